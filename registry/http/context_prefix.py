"""The prefix form of contexts: `/contexts/{ctx}/…` before any route applies the route within that context.

Subjects get the context's prefix, lists get it as subject prefix, look-ups by id as `subject`, associations as
`context`. Qualified names stay as they are. Pure: a raw path and query string in, a raw path and query string out.
"""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from strata.registry.core import errors
from strata.registry.http.route_facts import SUBJECT, ContextForm, DeclaredRoute, RouteTable
from strata.storage.records import DEFAULT_CONTEXT

__all__ = ["CONTEXTS", "context_name", "within_context"]

CONTEXTS = "/contexts/"
"""The start of the prefix form."""

_QUALIFIED = (":.", ":*:")


def within_context(path: str, query: str, routes: RouteTable, method: str) -> tuple[str, str]:
    """Return the path and query string that a request under `/contexts/{ctx}/` stands for.

    Any other path is returned unchanged.

    Args:
        path: the raw path.
        query: the raw query string.
        routes: the routes, which declare their context form.
        method: the HTTP method.

    Raises:
        RegistryError: 400 if the context's name holds a colon.
    """
    if not path.startswith(CONTEXTS):
        return path, query
    name, slash, rest = path.removeprefix(CONTEXTS).partition("/")
    if not slash:
        return path, query
    prefix, path = _qualifier(unquote(name)), f"/{rest}"
    route = routes.find(method, path)
    form = route.facts.context if route else ContextForm.UNCHANGED
    if form is ContextForm.SUBJECT_PREFIX:
        return path, _with_parameter(query, "subjectPrefix", prefix)
    if route is None or not prefix:
        return path, query
    match form:
        case ContextForm.SUBJECT | ContextForm.SCOPE:
            return _with_subject(path, route, prefix), query
        case ContextForm.SUBJECT_PARAMETER:
            return path, _with_parameter(query, "subject", prefix)
        case ContextForm.CONTEXT_PARAMETER:
            return path, _with_parameter(query, "context", prefix[1:-1])
    return path, query


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


def _with_subject(path: str, route: DeclaredRoute, prefix: str) -> str:
    """Qualify the subject in a path; add the qualifier as subject if the route has none."""
    segments = path.split("/")
    if SUBJECT not in route.segments:
        return f"{path}/{quote(prefix, safe='')}"
    at = route.segments.index(SUBJECT)
    subject = unquote(segments[at])
    if not subject.startswith(_QUALIFIED):
        segments[at] = quote(prefix + subject, safe="")
    return "/".join(segments)


def _with_parameter(query: str, name: str, prefix: str) -> str:
    """Prefix a parameter's values with the context, or add the parameter."""
    pairs = parse_qsl(query, keep_blank_values=True)
    texts = [value for key, value in pairs if key == name] or [""]
    values = [value if value.startswith(_QUALIFIED) else prefix + value for value in texts]
    return urlencode([*(pair for pair in pairs if pair[0] != name), *((name, value) for value in values)])
