"""The table of formats: one row of functions for each.

A new schema language needs a package next to `avro/`, a member of `SchemaFormat` and a row here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from strata.compat.avro import equivalence, normalizer, parser, printer, rules, wording
from strata.compat.avro.model import AvroSchema
from strata.compat.json_schema import equivalence as json_equivalence
from strata.compat.json_schema import parser as json_parser
from strata.compat.json_schema import rules as json_rules
from strata.compat.json_schema import wording as json_wording
from strata.compat.json_schema.model import JsonSchema
from strata.compat.levels import Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf import equivalence as protobuf_equivalence
from strata.compat.protobuf import formats as protobuf_formats
from strata.compat.protobuf import normalizer as protobuf_normalizer
from strata.compat.protobuf import parser as protobuf_parser
from strata.compat.protobuf import rules as protobuf_rules
from strata.compat.protobuf import wording as protobuf_wording
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat

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


class _WireMessage(Protocol):
    def __call__(self, finding: Incompatibility, *, reader: str, writer: str) -> str: ...


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


def _resolved_avro(schema: AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text with each type of a reference written out at its first use."""
    limits.look_at_clock()
    return printer.print_schema(schema.root, schema.names, limits)


def _for_any_policy(check: _CheckOfAnyPolicy[_SchemaT]) -> _Check[_SchemaT]:
    """Return the check of a format whose rules know no policy."""
    return lambda reader, writer, *, policy=Policy.STRICT, limits=DEFAULT_LIMITS: check(reader, writer, limits=limits)  # noqa: ARG005


FORMATS: Final[Mapping[SchemaFormat, Format[Any]]] = {
    SchemaFormat.AVRO: Format[AvroSchema](
        parse=parser.parse,
        normalize=normalizer.normalize,
        check=_for_any_policy(rules.check),
        equivalent=equivalence.equivalent,
        wire_message=wording.wire_message,
        explain=wording.explain,
        printed_as={"resolved": _resolved_avro},
    ),
    SchemaFormat.PROTOBUF: Format[ProtobufSchema](
        parse=protobuf_parser.parse,
        normalize=protobuf_normalizer.normalize,
        check=_for_any_policy(protobuf_rules.check),
        equivalent=protobuf_equivalence.equivalent,
        wire_message=protobuf_wording.wire_message,
        explain=protobuf_wording.explain,
        printed_as={
            "serialized": protobuf_formats.serialized,
            "ignore_extensions": protobuf_formats.ignore_extensions,
        },
    ),
    SchemaFormat.JSON: Format[JsonSchema](
        parse=json_parser.parse,
        normalize=json_parser.normalize,
        check=json_rules.check,
        equivalent=json_equivalence.equivalent,
        wire_message=json_wording.wire_message,
        explain=json_wording.explain,
        printed_as={},
    ),
}
