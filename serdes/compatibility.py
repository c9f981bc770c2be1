"""Whether what a local schema describes can be written with another one of the registry.

Rules of this file: `compat` says it, by the reference's rules; it is loaded when asked for, format by format, since
those of JSON Schema and Protobuf need their extras.
"""

from importlib import import_module

from serdes.client import RegistryClient
from serdes.errors import SchemaError
from serdes.model import AVRO, JSON, PROTOBUF, Schema
from serdes.references import resolve

__all__ = ["check_reads"]

_PACKAGES = {AVRO: "compat.avro", JSON: "compat.json_schema", PROTOBUF: "compat.protobuf"}


def check_reads(client: RegistryClient, reader: Schema, writer: Schema, subject: str) -> None:
    """Raise SchemaError unless values of `writer` can be read with `reader`, a schema of the subject."""
    from compat.limits import DEFAULT_LIMITS
    from compat.schema import ResolvedReference, SchemaParseError

    package = _PACKAGES[reader.format]
    parse, check = import_module(f"{package}.parser").parse, import_module(f"{package}.rules").check
    limits = DEFAULT_LIMITS
    try:
        parsed = []
        for schema in (reader, writer):
            direct = {one.name for one in schema.references}
            references = [
                ResolvedReference(name, one.text, direct=name in direct)
                for name, one in resolve(client, schema, subject).items()
            ]
            parsed.append(parse(schema.text, strict=False, references=references, limits=limits))
        found = check(*parsed, limits=limits)
    except SchemaParseError as error:
        raise SchemaError(f"a schema of the subject {subject} cannot be compared: {error}") from None
    if found:
        kinds = ", ".join(sorted({one.kind for one in found})[:5])
        raise SchemaError(f"the schema of the subject {subject} cannot read what the local one describes: {kinds}")
