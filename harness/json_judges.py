"""Judges of JSON documents that are not ours: jsonschema-rs as clients use it, and Python's jsonschema.

`refused` attacks the claim that a reader schema allows all that a writer schema allows, with random documents, and
`rounded` the claim that it reads the same numbers, if `number` is read into doubles as in Java and JavaScript.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, Final
from urllib.parse import unquote, urljoin

import jsonschema
import jsonschema_rs
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from harness.json_pairs import documents
from strata.compat.json_schema.containment.decision import Containment, Counterexample
from strata.compat.json_schema.model import JsonSchema
from strata.compat.json_schema.parser import parse

__all__ = ["Binding", "judges", "refused", "rounded", "verdict"]

_BASE: Final = "http://strata.invalid/"
_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_SPECIFICATIONS: Final[Mapping[Any, Any]] = {
    jsonschema.Draft4Validator: DRAFT4,
    jsonschema.Draft6Validator: DRAFT6,
    jsonschema.Draft7Validator: DRAFT7,
    jsonschema.Draft201909Validator: DRAFT201909,
    jsonschema.Draft202012Validator: DRAFT202012,
}
_ASSERTING: Final = (jsonschema.Draft4Validator, jsonschema.Draft6Validator, jsonschema.Draft7Validator)


_LARGE: Final = (2**53 + 1, -(2**53) - 1, 10 * (2**53 + 1), 3 * (2**53 + 1), 2**60 + 5)
_UNTYPED: Final = frozenset({"not", "if", "contains", "propertyNames"})  # keywords that give no value a type
_OTHERS: Final = (  # whose counterexamples are documents to begin with
    "false",
    '{"type": "null"}',
    '{"not": {"type": "object", "minProperties": 1}}',
    '{"maxProperties": 1}',
    '{"maxItems": 0}',
)


def judges(parsed: JsonSchema) -> list[Callable[[Any], bool]]:
    """Return functions that say whether a document is valid under a schema: two, unless one is known to err.

    Formats count in the dialects that assert them. A schema without a known dialect is draft 7, as in the registry.

    Args:
        parsed: The schema, with those that it refers to.
    """
    references = parsed.documents.texts
    schema = _with_dialect(json.loads(parsed.canonical))
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    base = urljoin(_BASE, own) if isinstance(own, str) else _BASE
    others = {urljoin(base, name): _with_dialect(json.loads(other)) for name, other in references.items()}
    fast = _fast(schema, others, base)
    # In 2019-09, jsonschema 4.26 forgets that `additionalProperties` evaluates properties.
    is_misjudged = "2019-09" in parsed.canonical and "unevaluatedProperties" in parsed.canonical
    return [fast] if is_misjudged else [fast, _slow(schema, others)]


def verdict(judged: Sequence[Callable[[Any], bool]], document: Any) -> bool | None:
    """Return what judges say about a document: True, False, or None if they differ or give up."""
    try:
        verdicts = {is_valid(document) for is_valid in judged}
    except RecursionError:
        return None
    return verdicts.pop() if len(verdicts) == 1 else None


def refused(writer: JsonSchema, reader: JsonSchema, number: int, seed: int) -> list[Any]:
    """Return a random document that both judges find valid under the writer schema and not under the reader's, if any.

    Args:
        writer: The writer schema.
        reader: The reader schema.
        number: How many documents to try.
        seed: The source of chance.
    """
    reads = judges(reader)
    return _first(_documents(writer, reader, number, seed), lambda document: verdict(reads, document) is False)


def rounded(writer: JsonSchema, reader: JsonSchema, number: int, seed: int) -> list[Any]:
    """Return a random document that is valid under both schemas and has other numbers under the reader's, if any.

    A number is read as a double where jsonschema-rs finds it valid by a `type` that names `number`, and by none that
    names `integer` alone. The arguments are those of `refused`.
    """
    reads = judges(reader)
    ours, theirs = (Binding(json.loads(schema.canonical)) for schema in (writer, reader))
    return _first(
        _documents(writer, reader, number, seed, _LARGE),
        lambda document: bool(verdict(reads, document)) and ours.read(document) != theirs.read(document),
    )


def _first(documents: Iterator[Any], is_wanted: Callable[[Any], bool]) -> list[Any]:
    return list(islice(filter(is_wanted, documents), 1))


def _documents(
    writer: JsonSchema,
    reader: JsonSchema,
    number: int,
    seed: int,
    numbers: Sequence[int] = (),
) -> Iterator[Any]:
    """Yield the random documents among some that both judges find valid under the writer schema."""
    writes = judges(writer)
    found = [Containment(writer, parse(other, strict=False)).decide(seconds=0.05) for other in _OTHERS]
    valid = [one.document for one in found if isinstance(one, Counterexample)]
    texts = [text for one in (writer, reader) for text in (one.canonical, *one.documents.texts.values())]
    for document in documents(texts, valid, number, Random(seed), numbers):  # noqa: S311 - the same documents each time
        if verdict(writes, document):
            valid.append(document)
            yield document


class Binding:
    """Reads documents as typed readers do, by what jsonschema-rs says about each part.

    Args:
        schema: The schema, as JSON, without references to others.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = _with_dialect(schema)
        self._validator = jsonschema_rs.validator_for(self._schema, offline=True)

    def read(self, document: Any) -> Any:
        """Return a document with doubles where they are read."""
        nodes = self._validator.evaluate(document).list()["details"]
        wrong = [(node["evaluationPath"], node["instanceLocation"]) for node in nodes if not node["valid"]]
        types: dict[str, list[Any]] = {}
        for node in nodes:
            path, at = node["evaluationPath"], node["instanceLocation"]
            if not path.endswith("/type") or _UNTYPED & set(path.split("/")):
                continue
            if not any(_is_inside(path, above) and _is_inside(at, place) for above, place in wrong):
                types.setdefault(at, []).append(self._word(node["schemaLocation"]))
        return _bound(document, types, "")

    def _word(self, location: str) -> Any:
        found = self._schema
        for step in location.rpartition("#")[2].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found[int(name) if isinstance(found, list) else name]
        return found


def _is_inside(path: str, above: str) -> bool:
    return path == above or path.startswith(above.rstrip("/") + "/")


def _bound(value: Any, types: Mapping[str, list[Any]], at: str) -> Any:
    if isinstance(value, dict):
        steps = ((name, name.replace("~", "~0").replace("/", "~1")) for name in value)
        return {name: _bound(value[name], types, f"{at}/{step}") for name, step in steps}
    if isinstance(value, list):
        return [_bound(one, types, f"{at}/{place}") for place, one in enumerate(value)]
    names = [[word] if isinstance(word, str) else word for word in types.get(at, ())]
    is_double = any("number" in one for one in names) and all("number" in one or "integer" not in one for one in names)
    return float(value) if is_double and isinstance(value, int) and not isinstance(value, bool) else value


def _fast(schema: Any, others: Mapping[str, Any], base: str) -> Callable[[Any], bool]:
    registry = jsonschema_rs.Registry(list(others.items()), draft=jsonschema_rs.Draft7) if others else None
    validator = jsonschema_rs.validator_for(schema, registry=registry, base_uri=base, offline=True)
    return lambda document: bool(validator.is_valid(document))


def _slow(schema: Any, others: Mapping[str, Any]) -> Callable[[Any], bool]:
    validator_class = jsonschema.validators.validator_for(schema, default=jsonschema.Draft7Validator)
    specification = _SPECIFICATIONS[validator_class]
    resources = {
        name: Resource.from_contents(other, default_specification=specification)
        for uri, other in others.items()
        for name in (uri, uri.removeprefix(_BASE))  # a schema without a name has no base
    }
    registry: Any = Registry().with_resources(resources.items())
    formats = validator_class.FORMAT_CHECKER if validator_class in _ASSERTING else None
    validator = validator_class(schema, registry=registry, format_checker=formats)
    return lambda document: bool(validator.is_valid(document))


def _with_dialect(schema: Any) -> Any:
    if isinstance(schema, dict) and "json-schema.org/" not in str(schema.get("$schema")):
        return {**schema, "$schema": _DRAFT_7}
    return schema
