"""The table of formats: one row of functions for each.

A new schema language needs a package next to `avro/`, a member of `SchemaFormat` and a row here. A row is imported on
its first use, because a command that checks the Avro schemas of a commit should not wait for the other two formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from strata.compat.levels import Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility, Refusal
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat

if TYPE_CHECKING:
    from strata.compat.avro.model import AvroSchema
    from strata.compat.json_schema.model import JsonSchema
    from strata.compat.protobuf.schema import ProtobufSchema

__all__ = ["FORMATS", "Format"]


_SchemaT = TypeVar("_SchemaT", bound=ParsedSchema)
_OfSchemaT = TypeVar("_OfSchemaT", bound=ParsedSchema, contravariant=True)


class _Parse(Protocol):
    def __call__(
        self,
        text: str,
        *,
        strict: bool,
        references: Sequence[ResolvedReference] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> ParsedSchema: ...


class _Print(Protocol[_OfSchemaT]):
    def __call__(self, schema: _OfSchemaT, *, limits: Limits = DEFAULT_LIMITS) -> str: ...


class _Check(Protocol[_OfSchemaT]):
    def __call__(
        self, reader: _OfSchemaT, writer: _OfSchemaT, *, policy: Policy = Policy.STRICT, limits: Limits = DEFAULT_LIMITS
    ) -> Sequence[Incompatibility]: ...


class _CheckOfAnyPolicy(Protocol[_OfSchemaT]):
    def __call__(
        self, reader: _OfSchemaT, writer: _OfSchemaT, *, limits: Limits = DEFAULT_LIMITS
    ) -> Sequence[Incompatibility]: ...


class _Equivalent(Protocol[_OfSchemaT]):
    def __call__(self, left: _OfSchemaT, right: _OfSchemaT, *, limits: Limits = DEFAULT_LIMITS) -> bool: ...


class _Refusals(Protocol[_OfSchemaT]):
    def __call__(self, schema: _OfSchemaT, *, path: str = "", limits: Limits = DEFAULT_LIMITS) -> Sequence[Refusal]: ...


class _WireMessage(Protocol):
    def __call__(self, finding: Incompatibility, *, reader: str, writer: str) -> str: ...


def _no_refusals(schema: ParsedSchema, *, path: str = "", limits: Limits = DEFAULT_LIMITS) -> Sequence[Refusal]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class Format(Generic[_SchemaT]):
    """The functions of one format; each takes only schemas of that format."""

    parse: _Parse  # strict for a new schema, lenient for a stored one; raises SchemaParseError
    normalize: _Print[_SchemaT]  # returns the text that normalize=true stores
    check: _Check[_SchemaT]
    equivalent: _Equivalent[_SchemaT]  # whether two texts are one version of a subject
    wire_message: _WireMessage  # a finding in the reference's words
    explain: Callable[[Incompatibility], str]  # a finding in a sentence for people, with advice
    printed_as: Mapping[str, _Print[_SchemaT]]  # the texts of `format=`, except for the stored one
    refusals: _Refusals[_SchemaT] = _no_refusals  # why the format's own tools would refuse a schema


def _for_any_policy(check: _CheckOfAnyPolicy[_SchemaT]) -> _Check[_SchemaT]:
    """Return the check of a format whose rules know no policy."""
    return lambda reader, writer, *, policy=Policy.STRICT, limits=DEFAULT_LIMITS: check(reader, writer, limits=limits)  # noqa: ARG005


def _avro() -> Format[AvroSchema]:
    from strata.compat.avro import equivalence, normalizer, parser, printer, rules, wording

    def resolved(schema: AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
        """Return the text with each type of a reference written out at its first use."""
        limits.look_at_clock()
        return printer.print_schema(schema.root, schema.names, limits)

    return Format(
        parse=parser.parse,
        normalize=normalizer.normalize,
        check=_for_any_policy(rules.check),
        equivalent=equivalence.equivalent,
        wire_message=wording.wire_message,
        explain=wording.explain,
        printed_as={"resolved": resolved},
    )


def _protobuf() -> Format[ProtobufSchema]:
    from strata.compat.protobuf import equivalence, formats, linking, normalizer, parser, rules, wording

    return Format(
        parse=parser.parse,
        normalize=normalizer.normalize,
        check=_for_any_policy(rules.check),
        equivalent=equivalence.equivalent,
        wire_message=wording.wire_message,
        explain=wording.explain,
        printed_as={"serialized": formats.serialized, "ignore_extensions": formats.ignore_extensions},
        refusals=linking.refusals,
    )


def _json() -> Format[JsonSchema]:
    from strata.compat.json_schema import equivalence, parser, rules, wording

    return Format(
        parse=parser.parse,
        normalize=parser.normalize,
        check=rules.check,
        equivalent=equivalence.equivalent,
        wire_message=wording.wire_message,
        explain=wording.explain,
        printed_as={},
    )


class _Formats(Mapping[SchemaFormat, Format[Any]]):
    """The rows, each made when it is first looked up."""

    _MAKE: Final[Mapping[SchemaFormat, Callable[[], Format[Any]]]] = {
        SchemaFormat.AVRO: _avro,
        SchemaFormat.PROTOBUF: _protobuf,
        SchemaFormat.JSON: _json,
    }

    def __init__(self) -> None:
        self._made: dict[SchemaFormat, Format[Any]] = {}

    def __getitem__(self, schema_format: SchemaFormat) -> Format[Any]:
        row = self._made.get(schema_format)
        if row is None:
            row = self._made[schema_format] = self._MAKE[schema_format]()
        return row

    def __iter__(self) -> Iterator[SchemaFormat]:
        return iter(self._MAKE)

    def __len__(self) -> int:
        return len(self._MAKE)


FORMATS: Final[Mapping[SchemaFormat, Format[Any]]] = _Formats()
