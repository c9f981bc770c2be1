"""The check that a schema of the registry can read values of a local schema.

Rules of this file: `compat` decides, by the rules of the reference registry; its formats are imported on demand, since
those of JSON Schema and Protobuf need their extras.
"""

from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module

from strata.serdes.errors import SchemaError
from strata.serdes.model import AVRO, JSON, PROTOBUF, Schema
from strata.serdes.references import resolve
from strata.serdes.registry_protocol import Registry

__all__ = ["check_reads"]

_PACKAGES = {AVRO: "strata.compat.avro", JSON: "strata.compat.json_schema", PROTOBUF: "strata.compat.protobuf"}


def check_reads(
    client: Registry,
    reader: Schema,
    writer: Schema,
    subject: str,
    *,
    imports: Mapping[str, Schema] | None = None,
) -> None:
    """Check that values of `writer` can be read with `reader`, a schema of the subject.

    Args:
        client: the registry, for the schemas' references.
        reader: the schema of the registry.
        writer: the local schema.
        subject: the subject of `reader`; references without a context belong to its context.
        imports: the references of `writer` in order of dependency, if they are known without the registry.

    Raises:
        SchemaError: If `reader` cannot read values of `writer`, or a schema cannot be parsed.
        RegistryError: If the registry does not know a reference.
        RegistryUnavailable: If the registry gives no usable answer after all retries.
    """
    from strata.compat.limits import DEFAULT_LIMITS
    from strata.compat.schema import ResolvedReference, SchemaParseError

    package = _PACKAGES[reader.format]
    parse, check = import_module(f"{package}.parser").parse, import_module(f"{package}.rules").check
    limits = DEFAULT_LIMITS
    try:
        parsed = []
        for schema, known in ((reader, None), (writer, imports)):
            named = resolve(client, schema, subject) if known is None else known
            # The text is the identity: files of one name are compared only if their texts differ.
            references = [
                ResolvedReference(name, schema.text, identity=sha256(schema.text.encode()).hexdigest())
                for name, schema in named.items()
            ]
            parsed.append(parse(schema.text, strict=False, references=references, limits=limits))
        findings = check(*parsed, limits=limits)
    except SchemaParseError as error:
        raise SchemaError(f"cannot compare the schemas of subject {subject}: {error}") from None
    if findings:
        kinds = ", ".join(sorted({finding.kind for finding in findings})[:5])
        raise SchemaError(f"the schema of subject {subject} cannot read data of the local schema: {kinds}")
