"""Whether what a local schema describes can be written with another one of the registry.

Rules of this file: `compat` says it, by the reference's rules; it is loaded when asked for, format by format, since
those of JSON Schema and Protobuf need their extras.
"""

from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module

from serdes.client import RegistryClient
from serdes.errors import SchemaError
from serdes.model import AVRO, JSON, PROTOBUF, Schema
from serdes.references import resolve

__all__ = ["check_reads"]

_PACKAGES = {AVRO: "compat.avro", JSON: "compat.json_schema", PROTOBUF: "compat.protobuf"}


def check_reads(
    client: RegistryClient,
    reader: Schema,
    writer: Schema,
    subject: str,
    *,
    imports: Mapping[str, Schema] | None = None,
) -> None:
    """Raise SchemaError unless values of `writer` can be read with `reader`, a schema of the subject.

    Args:
        client: the registry, which is asked for what the schemas refer to.
        reader: the schema of the registry.
        writer: the local schema.
        subject: whose schema `reader` is; references without a context are those of its context.
        imports: what `writer` refers to, where that is known without the registry; what is imported comes first.
    """
    from compat.limits import DEFAULT_LIMITS
    from compat.schema import ResolvedReference, SchemaParseError

    package = _PACKAGES[reader.format]
    parse, check = import_module(f"{package}.parser").parse, import_module(f"{package}.rules").check
    limits = DEFAULT_LIMITS
    try:
        parsed = []
        for schema, known in ((reader, None), (writer, imports)):
            named = resolve(client, schema, subject) if known is None else known
            # By its text, for two files of one name are compared only where they are not the same.
            references = [
                ResolvedReference(name, one.text, identity=sha256(one.text.encode()).hexdigest())
                for name, one in named.items()
            ]
            parsed.append(parse(schema.text, strict=False, references=references, limits=limits))
        found = check(*parsed, limits=limits)
    except SchemaParseError as error:
        raise SchemaError(f"a schema of the subject {subject} cannot be compared: {error}") from None
    if found:
        kinds = ", ".join(sorted({one.kind for one in found})[:5])
        raise SchemaError(f"the schema of the subject {subject} cannot read what the local one describes: {kinds}")
