"""The commands for work by hand send what their options say, and print it as a table, as JSON or bare."""

import json
import os
import subprocess

import pytest

INT = '"int"'


@pytest.fixture
def run(files, service, monkeypatch):
    """Return the function that runs a command against a service."""
    monkeypatch.setenv("STRATA_URL", service.url)
    files.put("int.avsc", INT)
    return files.run


def test_a_schema_by_hand(run, files, service):
    """A schema is registered, found, printed, compared and deleted."""
    assert "subject  version  id\ns        1        1\n" == run("register", "s", "int.avsc", code=0)
    assert "1\n" == run("register", "s", "int.avsc", "--output=raw", "--property", "a=b=c", code=0).replace("2", "1")
    assert f"{INT}\n" == run("get", "s", code=0)
    assert f"{INT}\n" == run("get", "--id=1", code=0)
    assert {"a": "b=c"} == json.loads(run("get", "s", "2", "--output=json", code=0))["metadata"]["properties"]
    assert "s 1, 2\n" == run("list", "--versions", code=0)
    files.put("text.avsc", '"string"')
    found = run("compat", "s", "text.avsc", code=1)
    assert found.startswith("incompatible\n")
    assert "compatible\n" == run("compat", "s", "int.avsc", "--version=1", code=0)
    assert "1\n" == run("delete", "s", "1", code=0)
    assert "2\n" == run("delete", "s", code=0)
    assert "1 2\n" == run("delete", "s", "--permanent", code=0)
    assert "" == run("list", code=0)


def test_references_and_formats(run, files, service):
    """A reference has a name, a subject and a version; the ending of a file says its format."""
    files.put("e.avsc", '{"type": "enum", "name": "E", "symbols": ["A"]}')
    files.put("u.avsc", '{"type": "record", "name": "U", "fields": [{"name": "e", "type": "E"}]}')
    files.put("p.proto", 'syntax = "proto3"; message P {}')
    run("register", ":.c:e", "e.avsc", code=0)
    run("register", ":.c:u", "u.avsc", "--reference=E=:.c:e:1", code=0)
    run("register", "p", "p.proto", code=0)
    assert [{"name": "E", "subject": ":.c:e", "version": 1}] == service.get("/subjects/:.c:u/versions/1")["references"]
    assert ":.c:e\n:.c:u\n" == run("list", ":.c:", code=0)
    assert "PROTOBUF" in run("get", "p", "--output=table", code=0)
    assert "expected NAME=SUBJECT:VERSION" in run("register", "u", "u.avsc", "--reference=E=e", code=2)


def test_settings_by_hand(run):
    """Configurations and modes are shown, set and deleted, for the registry, a context and a subject."""
    assert "name                value\ncompatibilityLevel  BACKWARD\n" == run("config", code=0)
    run("config", "s", "--set=compatibility=FULL", "--set=normalize=true", '--set=defaultMetadata={"sensitive": ["x"]}')
    assert {"compatibilityLevel": "FULL", "normalize": True, "defaultMetadata": {"sensitive": ["x"]}} == json.loads(
        run("config", "s", "--output=json", code=0)
    )
    assert "BACKWARD\n" == run("config", "t", "--effective", "--output=raw", code=0)
    run("config", "s", "--delete", code=0)
    assert "does not have subject-level" in run("config", "s", code=2)
    assert "READWRITE\n" == run("mode", "s", code=0)
    assert "READONLY\n" == run("mode", ":.c:", "--set=readonly", code=0)
    assert "READONLY\n" == run("mode", ":.c:s", code=0)
    run("mode", ":.c:", "--delete", code=0)


def test_compat_shows_the_record_that_breaks(run, files):
    """The reasons of `compat` come with the record behind each."""
    files.put("r.avsc", '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}')
    run("register", "r", "r.avsc", code=0)
    files.put("r.avsc", '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "string"}]}')

    assert 'This record, written with version 1, cannot be read with the new schema: {"x": 0}' in run(
        "compat", "r", "r.avsc", code=1
    )


def test_profiles(files, service, monkeypatch):
    """A profile names the URL and credentials, which may come from the environment; a mistake in it is explained."""
    files.put("profiles.yaml", f"local: {{url: '{service.url}', auth: 'me:${{SECRET}}'}}\nring: {{keyring: a/b}}\n")
    monkeypatch.setenv("STRATA_PROFILES", str(files.root / "profiles.yaml"))
    assert "the environment variable SECRET is not set" in files.run("list", "--profile=local", code=2)
    assert "" == files.run("list", "--profile=local", code=0, SECRET="x")
    assert "no profile 'other'; expected one of local, ring" in files.run("list", "--profile=other", code=2)


def test_completion_and_help(program):
    """The completion script and the help know the commands of both command lines; a failure has exit code 2."""

    def output(*arguments, **environ):
        command, env = [program, *arguments], {**os.environ, **environ}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
        return done.stdout

    shown = output("--help")
    assert all(f"  {name} " in shown for name in ("serve", "check", "plan", "apply", "export", "get"))
    assert "_STRATA_COMPLETE" in output("completion", "bash")
    assert {"plain,check"} <= set(
        output(COMP_WORDS="strata che", COMP_CWORD="1", _STRATA_COMPLETE="bash_complete").split()
    )


def test_an_edit_and_a_deleted_version_brought_back(run, files, service):
    """Metadata and tags make a new version; a deleted version comes back with them under a new number."""
    files.put("r.avsc", '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}')
    run("register", "r", "r.avsc", code=0)
    run("edit", "r", "--metadata", '{"properties": {"a": "b"}}', "--add-tags=R.x=A,B", "--add-tags=record:R=C", code=0)
    found = service.get("/subjects/r/versions/2")
    assert {"a": "b", "confluent:version": "2"} == found["metadata"]["properties"]
    assert ["C"] == json.loads(found["schema"])["confluent:tags"]
    run("edit", "r", "2", "--remove-tags=R.x=A", code=0)
    assert ["B"] == json.loads(service.get("/subjects/r/versions/3")["schema"])["fields"][0]["confluent:tags"]
    run("delete", "r", "1", code=0)
    assert "subject  version  id\nr        4        1\n" == run("undelete", "r", "1", code=0)
    assert "expected a JSON object" in run("edit", "r", "--metadata=1", code=2)
    assert "expected [record:]PATH=TAG[,TAG]" in run("edit", "r", "--add-tags=x", code=2)


def test_the_table_of_a_subject(run, files, service):
    """The statement for a table is printed, of the latest version unless one is named, with its references."""
    line = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    order = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "lines", "type": {"type": "array", "items": "Line"}}],
    }
    files.put("line.avsc", json.dumps(line))
    files.put("order.avsc", json.dumps(order))
    run("register", "line", "line.avsc", code=0)
    run("register", ":.shop:orders-value", "order.avsc", "--reference=Line=:.:line:1", code=0)

    printed = run("table-ddl", ":.shop:orders-value", "--format=delta", code=0)
    named = run("table-ddl", "line", "1", "--format=duckdb", "--table=lake.lines", code=0)

    assert "CREATE TABLE `orders` (\n  `lines` ARRAY<STRUCT<`sku`: STRING>>\n)\nUSING delta;\n" == printed
    assert 'CREATE TABLE "lake"."lines" (\n  "sku" VARCHAR\n);\n' == named
    assert "line has no version 7" in run("table-ddl", "line", "7", "--format=delta", code=2)


def test_classes_of_a_subject(run, files, service):
    """Classes are printed for each format, in the form of the library that is named."""
    files.put("order.avsc", json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))
    run("register", "orders-value", "order.avsc", code=0)
    run("register", "number", "int.avsc", code=0)

    printed = run("codegen", "orders-value", "--as", "msgspec", code=0)

    assert "class Order(msgspec.Struct, kw_only=True):\n    id: int\n" in printed
    assert printed.startswith('"""Classes of orders-value, version 1, written by `strata codegen`."""\n')
    files.put("trip.proto", 'syntax = "proto3"; message Trip { int64 id = 3; }')
    files.put("trip.json", json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}}))
    run("register", "trips-proto", "trip.proto", code=0)
    run("register", "shop-trips-value", "trip.json", code=0)
    assert "class Trip:\n    id: Annotated[int, Field(number=3)] = 0\n" in run("codegen", "trips-proto", code=0)
    printed = run("codegen", "shop-trips-value", code=0)
    assert "class ShopTrips:\n    id: Annotated[int | None, Absent] = None\n" in printed
    assert "a class needs a record or an enum" in run("codegen", "number", code=2)
    assert "orders-value has no version 4" in run("codegen", "orders-value", "4", code=2)
