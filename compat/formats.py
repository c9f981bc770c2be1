"""The table of formats: one row of functions for each.

A new schema language needs a package next to `avro/`, a member of `SchemaFormat` and a row here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

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
from strata.compat.protobuf import rules as protobuf_rules
from strata.compat.protobuf import wording as protobuf_wording
from strata.compat.protobuf.normalizer import normalize as normalize_protobuf
from strata.compat.protobuf.parser import parse as parse_protobuf
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat

__all__ = ["FORMATS", "Format"]


class _Parse(Protocol):
    def __call__(
        self,
        text: str,
        *,
        strict: bool,
        references: Sequence[ResolvedReference] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> ParsedSchema: ...


class _Check(Protocol):
    def __call__(
        self,
        reader: ParsedSchema,
        writer: ParsedSchema,
        *,
        policy: Policy = Policy.STRICT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Sequence[Incompatibility]: ...


class _Normalize(Protocol):
    def __call__(self, schema: ParsedSchema, *, limits: Limits = DEFAULT_LIMITS) -> str: ...


class _Equivalent(Protocol):
    def __call__(self, left: ParsedSchema, right: ParsedSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool: ...


class _PrintAs(Protocol):
    def __call__(self, schema: ParsedSchema, *, limits: Limits = DEFAULT_LIMITS) -> str: ...


class _WireMessage(Protocol):
    def __call__(self, finding: Incompatibility, *, reader: str, writer: str) -> str: ...


@dataclass(frozen=True)
class Format:
    """The functions of one format; each takes only schemas of that format."""

    parse: _Parse  # strict for a new schema, lenient for a stored one; raises SchemaParseError
    normalize: _Normalize  # returns the text that normalize=true stores
    check: _Check
    equivalent: _Equivalent  # whether two texts are one version of a subject
    wire_message: _WireMessage  # a finding in the reference's words
    explain: Callable[[Incompatibility], str]  # a finding in a sentence for people, with advice
    printed_as: Mapping[str, _PrintAs]  # the texts of `format=`, except for the stored one


def _avro(schema: ParsedSchema) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise TypeError(f"expected an Avro schema, got {schema.format}")
    return schema


def _resolved_avro(schema: ParsedSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text with each type of a reference written out at its first use."""
    limits.look_at_clock()
    return printer.print_schema(_avro(schema).root, _avro(schema).names, limits)


def _protobuf(schema: ParsedSchema) -> ProtobufSchema:
    if not isinstance(schema, ProtobufSchema):
        raise TypeError(f"expected a Protobuf schema, got {schema.format}")
    return schema


def _check_protobuf(
    reader: ParsedSchema,
    writer: ParsedSchema,
    *,
    policy: Policy = Policy.STRICT,  # noqa: ARG001 - Protobuf's rules know no policy
    limits: Limits = DEFAULT_LIMITS,
) -> Sequence[Incompatibility]:
    return protobuf_rules.check(_protobuf(reader), _protobuf(writer), limits=limits)


def _check_avro(
    reader: ParsedSchema,
    writer: ParsedSchema,
    *,
    policy: Policy = Policy.STRICT,  # noqa: ARG001 - Avro's rules know no policy
    limits: Limits = DEFAULT_LIMITS,
) -> Sequence[Incompatibility]:
    return rules.check(_avro(reader), _avro(writer), limits=limits)


def _json(schema: ParsedSchema) -> JsonSchema:
    if not isinstance(schema, JsonSchema):
        raise TypeError(f"expected a JSON Schema, got {schema.format}")
    return schema


def _check_json(
    reader: ParsedSchema,
    writer: ParsedSchema,
    *,
    policy: Policy = Policy.STRICT,
    limits: Limits = DEFAULT_LIMITS,
) -> Sequence[Incompatibility]:
    return json_rules.check(_json(reader), _json(writer), policy=policy, limits=limits)


FORMATS: Final[Mapping[SchemaFormat, Format]] = {
    SchemaFormat.AVRO: Format(
        parse=parser.parse,
        normalize=lambda schema, *, limits=DEFAULT_LIMITS: normalizer.normalize(_avro(schema), limits=limits),
        check=_check_avro,
        equivalent=lambda left, right, *, limits=DEFAULT_LIMITS: equivalence.equivalent(
            _avro(left), _avro(right), limits=limits
        ),
        wire_message=wording.wire_message,
        explain=wording.explain,
        printed_as={"resolved": _resolved_avro},
    ),
    SchemaFormat.PROTOBUF: Format(
        parse=parse_protobuf,
        normalize=lambda schema, *, limits=DEFAULT_LIMITS: normalize_protobuf(_protobuf(schema), limits=limits),
        check=_check_protobuf,
        equivalent=lambda left, right, *, limits=DEFAULT_LIMITS: protobuf_equivalence.equivalent(
            _protobuf(left), _protobuf(right), limits=limits
        ),
        wire_message=protobuf_wording.wire_message,
        explain=protobuf_wording.explain,
        printed_as={
            "serialized": lambda schema, *, limits=DEFAULT_LIMITS: protobuf_formats.serialized(
                _protobuf(schema), limits=limits
            ),
            "ignore_extensions": lambda schema, *, limits=DEFAULT_LIMITS: protobuf_formats.ignore_extensions(
                _protobuf(schema), limits=limits
            ),
        },
    ),
    SchemaFormat.JSON: Format(
        parse=json_parser.parse,
        normalize=lambda schema, *, limits=DEFAULT_LIMITS: json_parser.normalize(_json(schema), limits=limits),
        check=_check_json,
        equivalent=lambda left, right, *, limits=DEFAULT_LIMITS: json_equivalence.equivalent(
            _json(left), _json(right), limits=limits
        ),
        wire_message=json_wording.wire_message,
        explain=json_wording.explain,
        printed_as={},
    ),
}
