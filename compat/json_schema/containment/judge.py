"""The validator's word on a document: each document is judged by jsonschema-rs before it is an answer.

The validator is the one of the deserializers. Where validators differ, a document counts only if each way to read the
schema agrees: `dependencies`, which the newer dialects dropped, may count or not, and so may a `format` of the newer
dialects, or one that an older dialect does not define.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

import jsonschema_rs

from strata.compat.json_schema.containment.formats import is_asserted
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.dialects import Dialect, dialect_of
from strata.compat.json_schema.model import JsonSchema

__all__ = ["Judge", "NotJudgedError"]

_BASE: Final = "http://strata.invalid/"  # nothing is fetched
_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_KNOWN: Final = "json-schema.org/"
_LARGEST: Final = 1 << 20  # characters of a schema; the validator's compiler cannot be interrupted
_MOST_WAYS: Final = 1_000_000
_LONGEST_ERROR: Final = 300
_MOST_ERRORS: Final = 20
_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class NotJudgedError(Exception):
    """The validator cannot use the schema, or trying its branches would take too long."""


class Judge:
    """The validators of one schema.

    Args:
        schema: The schema.
    """

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema

    def allows(self, document: Document) -> bool:
        """Return whether the schema allows a document, however validators read it.

        Raises:
            NotJudgedError: There is no validator for the schema or document.
        """
        return all(self._verdicts(document))

    def refuses(self, document: Document) -> bool:
        """Return whether the schema refuses a document, however validators read it.

        Raises:
            NotJudgedError: There is no validator for the schema or document.
        """
        return not any(self._verdicts(document))

    def check_proof(self) -> None:
        """Check that a proof about the schema is about what validators do.

        Raises:
            NotJudgedError: There is no validator for the schema, or it reads a referenced document in another dialect.
        """
        documents = [json.loads(text) for text in self._texts.values()]
        if len({dialect_of(document) for document in documents}) > 1:
            raise NotJudgedError
        self.allows(None)

    def errors(self, document: Document) -> int:
        """Return how many reasons the schema has to refuse a document; no more than a few are counted.

        Raises:
            NotJudgedError: There is no validator for the schema or document.
        """
        self._check_ways(document)
        return sum(1 for _ in islice(self._validators[0].iter_errors(document), _MOST_ERRORS))

    def error(self, document: Document, place: Sequence[str] = ()) -> str:
        """Return why the schema refuses a document, and where.

        Args:
            document: The document.
            place: The steps to a part of the document; of several reasons, take the one nearest to it.

        Raises:
            NotJudgedError: There is no validator for the schema or document.
        """
        self._check_ways(document)
        errors = list(islice(self._validators[0].iter_errors(document), _MOST_ERRORS))
        error = max(errors, key=lambda candidate: _nearness(candidate.instance_path, place))
        path = "".join(f"/{step}" for step in error.instance_path)
        words = str(error.message)
        words = words if len(words) <= _LONGEST_ERROR else f"{words[:_LONGEST_ERROR]}…"
        return f"{words} (at {path})" if path else words

    def _check_ways(self, document: Document) -> None:
        if self._branches > 1 and self._branches ** _depth(document) > _MOST_WAYS:
            raise NotJudgedError

    def _verdicts(self, document: Document) -> Iterator[bool]:
        self._check_ways(document)
        for validator in self._validators:
            try:
                yield bool(validator.is_valid(document))
            except ValueError as error:
                raise NotJudgedError from error

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {"": self._schema.canonical, **self._schema.documents.texts}

    @cached_property
    def _branches(self) -> int:
        """The most branches in one place, or 1 if no reference can make them nest in themselves."""
        documents = [json.loads(text) for text in self._texts.values()]
        has_reference, most = False, 1
        for schema in _objects(documents):
            has_reference = has_reference or any(word in schema for word in _REFERENCES)
            most = max([most, *(len(schema[word]) for word in _BRANCHES if isinstance(schema.get(word), list))])
        return most if has_reference else 1

    @cached_property
    def _validators(self) -> list[Any]:
        if sum(map(len, self._texts.values())) > _LARGEST:
            raise NotJudgedError
        dialect = dialect_of(self._schema.json)
        made = [self._compiled(lambda document: document)]
        if any('"format"' in text for text in self._texts.values()):
            if dialect.modern:
                made.append(self._compiled(lambda document: document, validate_formats=True))
            else:
                made.append(self._compiled(lambda document: _without_formats(document, dialect)))
        if dialect.modern and any('"dependencies"' in text for text in self._texts.values()):
            made.append(self._compiled(_without_dependencies))
        return made

    def _compiled(self, change: Callable[[object], object], *, validate_formats: bool | None = None) -> object:
        documents = {name: change(json.loads(text)) for name, text in self._texts.items()}
        root = documents.pop("")
        own = root.get("$id", root.get("id")) if isinstance(root, dict) else None
        base = urljoin(_BASE, own) if isinstance(own, str) else _BASE
        resources = [(urljoin(base, name), _with_dialect(document)) for name, document in documents.items()]
        try:
            registry = jsonschema_rs.Registry(resources, draft=jsonschema_rs.Draft7) if resources else None
            return jsonschema_rs.validator_for(
                _with_dialect(root), registry=registry, base_uri=base, offline=True, validate_formats=validate_formats
            )
        except (ValueError, TypeError) as error:
            raise NotJudgedError from error


def _nearness(path: Sequence[str | int], place: Sequence[str]) -> int:
    """Return how many steps two paths share, less those that the first one does not share."""
    shared = 0
    for step, other in zip(path, place, strict=False):
        if str(step) != other:
            break
        shared += 1
    return 2 * shared - len(path)


def _with_dialect(document: object) -> Any:
    """Return a document that names its dialect; a missing or unknown one is draft 7, as in the registry."""
    if isinstance(document, dict) and _KNOWN not in str(document.get("$schema")):
        return {**document, "$schema": _DRAFT_7}
    return document


def _without_formats(document: object, dialect: Dialect) -> object:
    """Return a document without the formats that its dialect does not define; some validators check them anyway."""
    if isinstance(document, dict):
        return {
            name: _without_formats(value, dialect)
            for name, value in document.items()
            if name != "format" or not isinstance(value, str) or is_asserted(value, dialect)
        }
    return [_without_formats(value, dialect) for value in document] if isinstance(document, list) else document


def _without_dependencies(document: object) -> object:
    if isinstance(document, dict):
        return {
            name: _without_dependencies(value)
            for name, value in document.items()
            if name != "dependencies" or not isinstance(value, dict)
        }
    return [_without_dependencies(value) for value in document] if isinstance(document, list) else document


def _objects(documents: list[object]) -> Iterator[dict[str, Any]]:
    stack = list(documents)
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield value
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _depth(document: Document) -> int:
    depth, level = 0, [document]
    while level:
        inner = [value for value in level if isinstance(value, dict | list)]
        depth, level = (
            depth + 1,
            [value for outer in inner for value in (outer.values() if isinstance(outer, dict) else outer)],
        )
    return depth
