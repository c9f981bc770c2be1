"""Ten thousand schemas of three formats survive export and import."""

import json

import pytest

from strata.storage.record_json import encode
from strata.storage.records import Reference, SchemaId, SchemaKey, SchemaValue, Subject, Version

pytestmark = pytest.mark.slow
_COUNT = 10_000
_VERSIONS = 5


def _schema(i):
    """Return the i-th schema: five versions a subject, formats in turn; JSON subjects refer to an earlier one."""
    subject, version = Subject(f"subject-{i // _VERSIONS}"), Version(i % _VERSIONS + 1)
    references = ()
    match i // _VERSIONS % 3:
        case 0:
            kind, fields = "AVRO", [{"name": f"f{n}", "type": "long", "default": 0} for n in range(version + 10)]
            text = json.dumps({"type": "record", "name": f"R{i}", "fields": fields}, separators=(",", ":"))
        case 1:
            kind, text = (
                "JSON",
                json.dumps({"title": f"t{i}", "properties": {"a": {"$ref": "r"}}}, separators=(",", ":")),
            )
            references = (Reference("r", f"subject-{i // _VERSIONS - 1}", 1),)
        case _:
            kind, text = "PROTOBUF", f'syntax = "proto3";\n\nmessage M{i} {{\n  int64 a = {version};\n}}\n'
    value = SchemaValue(subject, version, SchemaId(i + 1), text, kind, references, deleted=version == 2)
    return encode(SchemaKey(subject, version), value)


@pytest.mark.parametrize(
    "kind",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres), pytest.param("kafka", marks=pytest.mark.kafka)],
)
def test_ten_thousand_schemas_come_back(strata, write_raw, tmp_path, kind, request):
    """Export and import keep everything, on every kind of log."""
    source, file = f"sqlite:///{tmp_path / 'source.db'}", tmp_path / "file.gz"
    target = f"sqlite:///{tmp_path / 'target.db'}"
    if kind == "postgresql":
        target = request.getfixturevalue("postgres_url")
    if kind == "kafka":
        target = f"kafka://{request.getfixturevalue('kafka_broker').bootstrap}/many-{tmp_path.name}"
    write_raw(source, *map(_schema, range(_COUNT)))

    assert [0, 0] == [strata("export", source, file)[0], strata("import", file, target)[0]]

    code, output, errors = strata("verify", source, target)
    assert (0, "", True) == (code, output, f"{_COUNT} versions of {_COUNT // _VERSIONS} subjects" in errors), errors
