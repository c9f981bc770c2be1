"""The prefix form of contexts: `/contexts/{ctx}/…` before any route applies the route within that context.

Subjects get the context's prefix, lists get it as subject prefix, look-ups by id as `subject`, associations as
`context`. Qualified names stay as they are. Where an alias may replace a subject, the parameter `pathContext` keeps the
context, also in a forwarded request, because a plain alias belongs to it. Pure: a raw path and query string in, a raw
path and query string out.
"""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from strata.registry import errors
from strata.storage.records import DEFAULT_CONTEXT

__all__ = ["PATH_CONTEXT", "context_name", "within_context"]

PATH_CONTEXT = "pathContext"
_PREFIX = "/contexts/"


def within_context(path: str, query: str) -> tuple[str, str]:
    """Return the path and query string that a request under `/contexts/{ctx}/` stands for.

    Any other path is returned unchanged.

    Raises:
        RegistryError: 400 if the context's name holds a colon.
    """
    name, slash, rest = path.removeprefix(_PREFIX).partition("/")
    if not path.startswith(_PREFIX) or not slash:
        return path, query
    prefix = _qualifier(unquote(name))
    segments = rest.split("/")
    match segments:
        case ["config" | "mode"] if prefix:
            segments.append(quote(prefix, safe=""))
        case ["config" | "mode", subject, *_]:
            segments[1] = _qualified(prefix, subject)
        case ["schemas" | "subjects"]:
            query = _with_parameter(query, "subjectPrefix", prefix)
        case ["subjects", subject, *_]:
            segments[1] = _qualified(prefix, subject)
        case ["compatibility", "subjects", subject, *_]:
            segments[2] = _qualified(prefix, subject)
        case ["associations", "subjects", subject]:
            segments[2] = _qualified(prefix, subject)
        case ["associations" | "associations:batchMutate"] | ["associations", "resources", _] if prefix:
            query = _with_parameter(query, "context", prefix[1:-1])
        case ["dek-registry", "v1", "keks"]:
            query = _with_parameter(query, "subjectPrefix", prefix)
        case ["dek-registry", "v1", "keks", _, "deks", subject, *_]:
            segments[5] = _qualified(prefix, subject)
        case ["schemas", "ids", *_]:
            query = _with_parameter(query, "subject", prefix)
    return "/" + "/".join(segments), _with_path_context(segments, query, prefix)


def context_name(text: str) -> str:
    """Return a context's name as stored, with a leading dot.

    Raises:
        RegistryError: 400 if the name holds a colon.
    """
    name = text.strip(":") if text.startswith(":.") else text
    if ":" in name:
        raise errors.unreadable_body(f"The context {text!r} is not valid: it holds a colon")
    return name if name.startswith(".") else f".{name}"


def _qualifier(text: str) -> str:
    name = context_name(text)
    return "" if name == DEFAULT_CONTEXT else f":{name}:"


def _qualified(prefix: str, segment: str) -> str:
    subject = unquote(segment)
    return segment if subject.startswith((":.", ":*:")) else quote(prefix + subject, safe="")


def _with_path_context(segments: list[str], query: str, prefix: str) -> str:
    names_a_subject = len(segments) > 1 and not {"subjects", "ids", "deks"}.isdisjoint(segments[:5])
    return _with_parameter(query, PATH_CONTEXT, prefix[1:-1]) if prefix and names_a_subject else query


def _with_parameter(query: str, name: str, prefix: str) -> str:
    """Prefix a parameter's values with the context, or add the parameter."""
    pairs = parse_qsl(query, keep_blank_values=True)
    given = [value for key, value in pairs if key == name] or [""]
    values = [value if value.startswith((":.", ":*:")) else prefix + value for value in given]
    return urlencode([*(pair for pair in pairs if pair[0] != name), *((name, value) for value in values)])
