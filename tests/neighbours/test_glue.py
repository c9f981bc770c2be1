"""A registry of AWS Glue becomes a context: from its service (moto), or from what the AWS command line printed."""

import json
from contextlib import closing

import pytest

from harness.aws_sessions import fake_aws
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.glue_source import copy_of_answers, read_glue
from strata.storage.log import START
from strata.storage.open_log import open_log
from strata.storage.records import Subject
from strata.storage.state import State

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}
SECOND = {**ITEM, "fields": [*ITEM["fields"], {"name": "n", "type": "int", "default": 0}]}
# name, format, compatibility, versions
SCHEMAS = [
    ("orders", "AVRO", "BACKWARD_ALL", [json.dumps(ITEM), json.dumps(SECOND)]),
    ("frozen", "AVRO", "DISABLED", ['"string"']),
    ("gates", "JSON", "NONE", ['{"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}']),
    ("paid", "PROTOBUF", "FULL", ['syntax = "proto3"; message Paid { int64 cents = 1; }']),
]


def _list_schemas(self):
    from moto.core.responses import ActionResult

    schemas = self.glue_backend.registries["r"].schemas.values()
    return ActionResult({"Schemas": [{"SchemaArn": one.schema_arn, "SchemaName": one.schema_name} for one in schemas]})


def _list_versions(self):
    from moto.core.responses import ActionResult

    arn = self._get_param("SchemaId")["SchemaArn"]
    schema = self.glue_backend.registries["r"].schemas[arn.rpartition("/")[2]]
    return ActionResult(
        {"Schemas": [{"SchemaVersionId": v.schema_version_id} for v in schema.schema_versions.values()]}
    )


@pytest.fixture
def glue(monkeypatch):
    """Yield a client of a Glue service with a registry `r`; moto lacks the two calls that list."""
    from botocore.session import get_session  # here, for their import takes long
    from moto.glue.responses import GlueResponse

    monkeypatch.setattr(GlueResponse, "list_schemas", _list_schemas, raising=False)
    monkeypatch.setattr(GlueResponse, "list_schema_versions", _list_versions, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with fake_aws():
        client = get_session().create_client("glue", region_name="eu-west-1")
        client.create_registry(RegistryName="r")
        for name, data_format, level, (first, *more) in SCHEMAS:
            client.create_schema(
                RegistryId={"RegistryName": "r"},
                SchemaName=name,
                DataFormat=data_format,
                Compatibility=level,
                SchemaDefinition=first,
            )
            for text in more:
                client.register_schema_version(
                    SchemaId={"RegistryName": "r", "SchemaName": name}, SchemaDefinition=text
                )
        yield client


@pytest.fixture
def export(glue, tmp_path):
    """Return a file with what the AWS command line prints for each schema and version."""
    answers = []
    for name, _, _, texts in SCHEMAS:
        place = {"RegistryName": "r", "SchemaName": name}
        answers.append(glue.get_schema(SchemaId=place))
        answers += [
            glue.get_schema_version(SchemaId=place, SchemaVersionNumber={"VersionNumber": number})
            for number in range(1, len(texts) + 1)
        ]
    for answer in answers:
        answer.pop("ResponseMetadata")
    path = tmp_path / "glue.json"
    path.write_text("\n".join(json.dumps(answer, indent=4, default=str) for answer in answers))
    return f"glue-export:{path}"


def uuid_of(glue, name, number):
    """Return the UUID of a version."""
    place = {"RegistryName": "r", "SchemaName": name}
    return glue.get_schema_version(SchemaId=place, SchemaVersionNumber={"VersionNumber": number})["SchemaVersionId"]


def state_of(log_url):
    """Return the State of a log."""
    with closing(open_log(log_url)) as log:
        return State().apply_all(log.read(START))


@pytest.fixture(params=["service", "export"])
def source(request, glue):
    """Return the address of the registry, of each kind."""
    return "glue:eu-west-1/r" if request.param == "service" else request.getfixturevalue("export")


def test_a_registry_of_glue_becomes_a_log(strata, source, glue, tmp_path):
    """Versions, levels and UUIDs are kept; a schema that takes no versions is read-only."""
    target = f"sqlite:///{tmp_path}/new.db"

    code, output, errors = strata("migrate", "--from", source, "--to", target)

    assert 0 == code, errors
    assert "imported 10 records: 5 versions of 4 subjects" in output
    state = state_of(target)
    assert {f":.glue:{name}": len(texts) for name, _, _, texts in SCHEMAS} == {
        subject: len(versions) for subject, versions in state.subjects.items()
    }
    assert "BACKWARD_TRANSITIVE" == state.configs[Subject(":.glue:orders")].get("compatibilityLevel")
    assert {":.glue:frozen": "READONLY"} == dict(state.modes)
    found = state.version(":.glue:orders", 2)
    assert SECOND == json.loads(found.schema.text)
    assert uuid_of(glue, "orders", 2) == found.schema.value.metadata["properties"]["glue.schema.version.id"]
    assert 5 == state.context(".glue").high_water


def test_a_registry_of_glue_joins_one_that_is_in_use(strata, serve, source, glue, tmp_path):
    """The context is filled and verified beside what is there, which stays; a second run finds everything."""
    registry = serve(f"sqlite:///{tmp_path}/used.db")
    registry.register("own")

    codes = [strata("migrate", "--from", source, "--to", registry.url, "--into", "old")[:2] for _ in range(2)]

    assert [(0, ""), (0, "")] == codes
    assert [":.old:frozen", ":.old:gates", ":.old:orders", ":.old:paid", "own"] == sorted(registry.subjects())
    (found,) = registry.call("GET", f"/v1/glue/{uuid_of(glue, 'orders', 2).upper()}")
    assert (":.old:orders", 2, SECOND) == (found["subject"], found["version"], json.loads(found["schema"]))
    assert [] == registry.call("GET", "/v1/glue/none")
    assert {"compatibilityLevel": "FULL"} == registry.call("GET", "/config/:.old:paid")
    assert 2 == registry.register("own-2", '"long"')
    assert 42205 == registry.ask("POST", "/subjects/:.old:frozen/versions", {"schema": '"int"'})[1]["error_code"]


# answers, what the error says
BAD = [
    pytest.param([{"x": 1}], "expected answers of get-schema", id="of another call"),
    pytest.param([{"SchemaArn": "a/r/s", "Compatibility": "ODD"}], "unknown compatibility 'ODD'", id="a level"),
    pytest.param(
        [{"SchemaDefinition": "", "SchemaArn": "a/r/s", "DataFormat": "XML", "VersionNumber": 1}],
        "unknown format 'XML'",
        id="a format",
    ),
]


@pytest.mark.parametrize(("answers", "reason"), BAD)
def test_an_answer_that_is_not_understood(answers, reason):
    """An answer of another kind stops the migration with its reason."""
    with pytest.raises(TransferError, match=reason):
        copy_of_answers("glue", answers, ".glue")


def test_versions_that_glue_does_not_serve_are_left_out():
    """Pending, failed and deleted versions have no schema that a record could have."""
    version = {"SchemaArn": "arn:aws:glue:r:1:schema/r/s", "DataFormat": "AVRO", "SchemaDefinition": '"int"'}
    answers = [
        {**version, "VersionNumber": n, "SchemaVersionId": f"{n}", "Status": status}
        for n, status in enumerate(("AVAILABLE", "FAILURE"), start=1)
    ]

    copy = copy_of_answers("glue", answers, ".glue")

    assert [1] == [entry.version for entry in copy.state.versions(":.glue:s", include_deleted=True)]
    assert "left out 1 versions" in copy.notes[0]


@pytest.mark.parametrize("where", ["glue:eu-west-1", "glue-export:/nowhere.json"])
def test_a_source_that_cannot_be_read(where):
    """A registry without a name, and a file that does not exist, are refused in words."""
    with pytest.raises(TransferError, match=r"does not name a registry|cannot be read"):
        read_glue(where, ".glue")
