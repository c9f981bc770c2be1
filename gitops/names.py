"""The names that a schema text defines and needs, found without parsing it: a file that is wrong still has references.

In Avro the names are those of types, in Protobuf the paths of imports, in JSON Schema the URIs before `#` in `$ref`.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["NAMES", "Names", "default_name", "file_format", "stem"]

_FORMATS = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_COMPLEX = frozenset({"array", "map", "record", "error", "enum", "fixed", "union"})
_DEPTH = 200
_IMPORT = re.compile(r"""(?:^|[;}])\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']\s*(?=;)""", re.MULTILINE)
_COMMENT = re.compile(r"""("[^"\n]*"|'[^'\n]*')|/\*.*?\*/|//[^\n]*""", re.DOTALL)  # not in the quotes of a string
_PACKAGE = re.compile(r"(?:^|[;}])\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_MESSAGE = re.compile(r"(?:^|[;}])\s*message\s+(\w+)", re.MULTILINE)
_OF_TOPICS = ("-key", "-value")
_WELL_KNOWN = ("google/protobuf/", "google/type/", "confluent/")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a schema text.

    Attributes:
        own: its own name; empty if it has none.
        defined: all names under which others may refer to it.
        needed: the names that it does not define itself, in the order of the text.
        package: the package of a Protobuf file.
    """

    own: str = ""
    defined: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    package: str = ""


def file_format(name: str) -> str | None:
    """Return the format that a file's name says; None if it says none."""
    return _FORMATS.get(posixpath.splitext(name)[1])


def stem(path: str) -> str:
    """Return a path without the ending of schema files: `.schema.json` is one."""
    return posixpath.splitext(path)[0].removesuffix(".schema")


def default_name(path: str, names: Names) -> str:
    """Return the subject of a file that no manifest names: its name without the ending.

    A Protobuf file in the folder of its package has the name by which others import it, as serializers name the
    subjects of imports: trees with a folder for each package repeat the names of files. A subject of a topic is not
    meant by that.

    Args:
        path: the path of the file, from the top of the file system.
        names: the names in its text.
    """
    folder, file = posixpath.split(path)
    package = names.package.replace(".", "/")
    is_in_place = package and f"/{folder}".endswith(f"/{package}")
    return f"{package}/{file}" if is_in_place and not stem(file).endswith(_OF_TOPICS) else stem(file)


def _avro(text: str, _: str) -> Names:
    tree = _json(text)
    defined: list[str] = []
    used: list[str] = []
    _walk_avro(tree, "", defined, used, 0)
    own = defined[0] if defined and isinstance(tree, dict) else ""
    return Names(own, tuple(defined), tuple(dict.fromkeys(name for name in used if name not in defined)))


def _walk_avro(node: object, namespace: str, defined: list[str], used: list[str], depth: int) -> None:
    if depth > _DEPTH:
        return
    if isinstance(node, str):
        if node not in _PRIMITIVE and node not in _COMPLEX:
            used.append(_full(node, namespace))
    elif isinstance(node, list):
        for inner in node:
            _walk_avro(inner, namespace, defined, used, depth + 1)
    elif isinstance(node, dict):
        name = node.get("name")
        type_name = node.get("type")
        if type_name in ("record", "error", "enum", "fixed") and isinstance(name, str):
            own = node.get("namespace")
            full = name if "." in name else _full(name, own if isinstance(own, str) else namespace)
            defined.append(full)
            namespace = full.rpartition(".")[0]
            fields = node.get("fields")
            for field in fields if isinstance(fields, list) else ():
                if isinstance(field, dict):
                    _walk_avro(field.get("type"), namespace, defined, used, depth + 1)
        elif type_name in ("array", "map"):
            _walk_avro(node.get("items" if type_name == "array" else "values"), namespace, defined, used, depth + 1)
        else:
            _walk_avro(type_name, namespace, defined, used, depth + 1)


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _protobuf(text: str, file: str) -> Names:
    plain = _COMMENT.sub(lambda match: match[1] or " ", text)
    package, message = _PACKAGE.search(plain), _MESSAGE.search(plain)
    own = ".".join(match[1] for match in (package, message) if match) if message else ""
    parts = file.split("/") if file else []
    suffixes = ("/".join(parts[index:]) for index in range(len(parts)))
    needed = (name for name in _IMPORT.findall(plain) if not name.startswith(_WELL_KNOWN))
    return Names(own, tuple(suffixes), tuple(dict.fromkeys(needed)), package[1] if package else "")


def _json_schema(text: str, file: str) -> Names:
    tree = _json(text)
    own = tree.get("$id") if isinstance(tree, dict) else None
    title = tree.get("title") if isinstance(tree, dict) else None
    bases = (ref.partition("#")[0] for ref in _refs(tree, 0))
    needed = tuple(dict.fromkeys(base for base in bases if base and base != own))
    defined = tuple(name for name in (own, file) if isinstance(name, str) and name)
    return Names(title if isinstance(title, str) else "", defined, needed)


def _refs(node: object, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from _refs(inner, depth + 1)
    elif isinstance(node, list):
        for inner in node:
            yield from _refs(inner, depth + 1)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


NAMES: Mapping[str, Callable[[str, str], Names]] = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json_schema}
"""Format -> the function that finds the names of a text in a file."""
