"""`strata check` finds what is invalid or incompatible, and says where and why."""

import gzip
import hashlib
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema_rs
import pytest

PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  // the id\n  int32 id = 1;\n  string name = 2;\n}\n'
SCHEMA = '{\n  "type": "object",\n  "properties": {\n    "id": {"type": "integer"}\n  }\n}\n'

INVALID = [
    ("JSON that breaks off", "o.avsc", '{\n  "type": "record"\n', 3, 1),
    (
        "a type that does not exist",
        "o.avsc",
        '{"type": "record", "name": "O", "fields": [\n  {"name": "a", "type": "x.Y"}]}',
        2,
        4,
    ),
    ("a field without a number", "o.proto", 'syntax = "proto3";\nmessage O {\n  int32 x = ;\n}\n', 3, 13),
    ("an unknown message", "o.proto", 'syntax = "proto3";\nmessage O {\n  Foo x = 1;\n}\n', 3, 7),
    ("an unknown type of JSON", "o.schema.json", '{\n  "properties": {\n    "a": {"type": "text"}\n  }\n}', 3, 10),
]


@pytest.mark.parametrize(
    ("file", "text", "line", "column"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_an_invalid_schema_is_found_at_its_place(files, file, text, line, column):
    """A schema that does not parse is an error at the line and column of the mistake."""
    files.put(file, text)

    found = json.loads(files.run("check", "--output=json", code=1))["problems"]

    assert [("INVALID_SCHEMA", file, line, column)] == [
        tuple(one[k] for k in ("rule", "file", "line", "column")) for one in found
    ]


REFUSED = [
    ("a number twice", "message O {\n  int32 a = 1;\n  int32 b = 1;\n}", "FIELD_NUMBER_TWICE", 4),
    ("a name twice", "message O {\n  int32 a = 1;\n  int64 a = 2;\n}", "NAME_TWICE", 4),
    ("a reserved number", "message O {\n  reserved 4 to 6;\n  int32 a = 5;\n}", "FIELD_NUMBER_RESERVED", 4),
    ("an enum without 0", "enum E {\n  A = 1;\n}", "ENUM_FIRST_VALUE", 3),
    ("number 0", "message O {\n  int32 a = 0;\n}", "FIELD_NUMBER_OUT_OF_RANGE", 3),
    ("number 19001", "message O {\n  int32 a = 19001;\n}", "FIELD_NUMBER_OUT_OF_RANGE", 3),
    ("a missing import", 'import "none.proto";', "IMPORT_MISSING", 2),
    ("an import of itself", '\nimport "shop/o.proto";', "IMPORT_OF_ITSELF", 3),
    ("a type without its import", "message O {\n  google.type.Date a = 1;\n}", "TYPE_NOT_IMPORTED", 3),
    ("what the pool refuses", "message O {\n  int32 a_b = 1;\n  int32 aB = 2;\n}", "DESCRIPTOR_INVALID", 4),
]


@pytest.mark.parametrize(("text", "rule", "line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_file_that_protoc_refuses(files, text, rule, line):
    """A Protobuf file that the registry would store, but protoc refuses, is an error at its line."""
    files.put("api/shop/o.proto", f'syntax = "proto3";\n{text}\n')

    (found,) = json.loads(files.run("check", "--output=json", code=1))["problems"]

    assert (rule, "api/shop/o.proto", line) == (found["rule"], found["file"], found["line"])


ID = '{"name": "id", "type": "long"}'
INCOMPATIBLE = [
    ("a field without a default", "o.avsc", (ID, f'{ID},\n {{"name": "n", "type": "int"}}'),
     "READER_FIELD_MISSING_DEFAULT_VALUE", 6, "Add a default to field 'n'"),
    ("a type that does not fit", "o.avsc", ('"long"', '"boolean"'), "TYPE_MISMATCH", 5, "Use a type that can"),
    ("a scalar of another kind", "o.proto", ("int32 id", "string id"), "FIELD_SCALAR_KIND_CHANGED", 6, "a new tag"),
    ("another type of JSON", "o.schema.json", ('"integer"', '"boolean"'), "TYPE_CHANGED", 4, "Keep the previous type"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "change", "rule", "line", "advice"),
    [row[1:] for row in INCOMPATIBLE],
    ids=[row[0] for row in INCOMPATIBLE],
)
def test_an_incompatible_change_is_found_at_its_place(files, record, file, change, rule, line, advice):
    """A change that earlier data cannot be read with is an error at its line, which says what would be accepted."""
    text = {"o.avsc": record("id"), "o.proto": PROTO, "o.schema.json": SCHEMA}[file]
    files.put(file, text)
    files.commit()
    files.run("check", "--against=HEAD", code=0)
    files.put(file, text.replace(*change))

    (found,) = json.loads(files.run("check", "--against=HEAD", "--output=json", code=1))["problems"]

    assert (rule, file, line) == (found["rule"], found["file"], found["line"])
    assert advice in found["message"]


def test_a_compatible_change_is_fine(files, record):
    """White space, an added field with a default, and a level that allows the change are not findings."""
    files.put("o.avsc", record("id"))
    files.commit()
    files.put("o.avsc", record("id", "n"))

    assert "Add a default" in files.run("check", "--against=HEAD", code=1)
    files.run("check", "--against=HEAD", "--level=FORWARD", code=0)
    files.put("strata.yaml", "subjects: [{name: o, file: o.avsc, compatibility: FORWARD}]")
    files.run("check", "--against=HEAD", code=0)
    files.put("o.avsc", record("id").replace("\n", "\n\n"))
    files.run("check", "--against=HEAD", "--level=FULL", code=0)


def test_references_are_worked_out(files, record):
    """A schema is checked with the files that it refers to, also as they were in the revision."""
    files.put("money.avsc", record("cents", name="Money", namespace="shop"))
    files.put("order.avsc", '{"type": "record", "name": "Order", "fields": [{"name": "m", "type": "shop.Money"}]}')
    files.put("p/money.proto", 'syntax = "proto3";\npackage p;\nmessage Money { int64 cents = 1; }\n')
    files.put(
        "p/bill.proto", 'syntax = "proto3";\npackage p;\nimport "p/money.proto";\nmessage Bill { Money m = 1; }\n'
    )
    files.put("j/money.schema.json", '{"type": "integer"}')
    files.put("j/bill.schema.json", '{"properties": {"m": {"$ref": "money.schema.json"}}}')
    files.put("strata.yaml", "subjects: [{name: '{path}', files: '**/*'}]")
    files.commit()
    assert "6 schemas checked, no errors" in files.run("check", "--against=HEAD", code=0)
    files.put("money.avsc", record("cents", "more", name="Money", namespace="shop"))
    files.put("j/money.schema.json", '{"type": "boolean"}')

    found = json.loads(files.run("check", "--against=HEAD", "--output=json", code=1))["problems"]

    assert {"money", "order", "j.money", "j.bill"} == {one["subject"] for one in found}


def test_what_cannot_be_judged_is_neither_fine_nor_wrong(files, record):
    """A reference that leads nowhere, a source that does not exist and a broken manifest end with exit code 2."""
    files.put("o.avsc", '{"type": "record", "name": "O", "fields": [{"name": "m", "type": "M"}]}')
    files.put("strata.yaml", "subjects: [{name: o, file: o.avsc, references: [{name: M, subject: m, version: 3}]}]")
    assert "it refers to m version 3, which is not in" in files.run("check", code=2)
    assert "not a URL, a folder, an export file or a Git revision" in files.run("check", "--against=nothing", code=2)
    files.put("strata.yaml", "subjects: [{name: o, fiel: o.avsc}]")
    assert "strata.yaml.subjects[0]: unknown key 'fiel'" in files.run("check", code=2)
    files.put("strata.yaml", "subjects: [{name: o, file: other.avsc}]")
    assert "other.avsc: No such file" in files.run("check", code=2)


def test_a_mistake_is_reported_once_at_its_own_place(files, record, service):
    """What refers to an invalid schema is not blamed for its mistake, in a check and in a plan."""
    files.put("money.avsc", record("cents", name="Money").replace('"long"', '"lon"'))
    files.put("order.avsc", record("total").replace('"long"', '"Money"'))
    files.put("bill.avsc", record("order", name="Bill").replace('"long"', '"Order"'))
    files.put("strata.yaml", "subjects: [{name: '{stem}', files: '*.avsc'}]")

    found = files.run("check", code=1).splitlines()
    planned = files.run("plan", "--url", service.url, code=2)

    assert ["money.avsc:5:6: error: Unknown type lon", "order.avsc:1:1: unjudged: It refers to money, which is not",
            "bill.avsc:1:1: unjudged: It refers to order, which is not"] == [
        line[: line.find("valid") - 1 if "valid" in line else line.find(":", 25)] for line in found[:3]
    ]  # fmt: skip
    assert "  ! money.avsc:5:6: Unknown type lon" in planned
    assert "  ! order.avsc: it refers to money, which is not valid" in planned
    assert "  ! bill.avsc: it refers to order, which is not valid" in planned


def test_a_removed_subject_is_a_note(files, record):
    """A subject that is gone is shown, and no error: its data may be read as before."""
    files.write(a__avsc=record("x"), b__avsc=record("x"))
    files.commit()
    (files.root / "b.avsc").unlink()

    assert "Subject b is in HEAD and no longer here" in files.run("check", "--against=HEAD", code=0)


def export(*rows):
    """Return the bytes of an export file."""
    lines = [json.dumps({"format": "strata-export", "version": 1}, separators=(",", ":"))]
    lines += [json.dumps({"key": json.dumps(key), "value": json.dumps(value)}) for key, value in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    return data + json.dumps({"sha256": hashlib.sha256(data).hexdigest()}).encode() + b"\n"


def version(number, text, **more):
    """Return the record of a version of subject `o`."""
    key = {"keytype": "SCHEMA", "subject": "o", "version": number, "magic": 1}
    return key, {"subject": "o", "version": number, "id": number, "schema": text, "deleted": False, **more}


def test_an_export_file_has_all_versions_and_levels(files, record):
    """A transitive level of the export counts, over all live versions; a damaged file is not judged."""
    level = {"keytype": "CONFIG", "subject": "o", "magic": 0}, {"compatibilityLevel": "FORWARD_TRANSITIVE"}
    data = export(level, version(1, record("a", "b")), version(2, record("a")), version(3, '"int"', deleted=True))
    files.put("o.avsc", record("a"))
    (files.root / "e.jsonl.gz").write_bytes(gzip.compress(data))
    (files.root / "bad.jsonl").write_bytes(data[:-30] + b"\n")

    (found,) = json.loads(files.run("check", "--against=e.jsonl.gz", "--output=json", code=1))["problems"]

    assert (1, "FORWARD", "b") == (found["version"], found["direction"], found["field"])
    files.run("check", "--against=e.jsonl.gz", "--level=FORWARD", code=0)
    assert "damaged" in files.run("check", "--against=bad.jsonl", code=2)


def test_reports(files, record):
    """The same finding is an annotation, a SARIF result, a failed test case and an entry of the JSON report."""
    files.put("o.avsc", record("id"))
    files.commit()
    files.put("o.avsc", record("id", "n"))
    run = ("check", "--against=HEAD")

    github = files.run(*run, "--output=github", code=1)
    files.run(*run, "--output=sarif", "--output-file=out.sarif", code=1)
    sarif = json.loads((files.root / "out.sarif").read_text())
    junit = ET.fromstring(files.run(*run, "--output=junit", code=1))

    assert github.startswith(
        "::error file=o.avsc,line=6,col=6,title=o%3A READER_FIELD_MISSING_DEFAULT_VALUE::Field 'n'"
    )
    (result,) = sarif["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert ("2.1.0", "error", "o.avsc") == (sarif["version"], result["level"], place["artifactLocation"]["uri"])
    assert {"startLine": 6, "startColumn": 6} == place["region"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" == sarif["runs"][0]["tool"]["driver"]["rules"][0]["id"]
    assert ("1", "1") == (junit.get("tests"), junit.get("failures"))
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" == junit.find("testcase/failure").get("type")


def test_only_the_named_files_are_reported(files, record):
    """With a file as argument, other files are read for its references and not reported."""
    files.write(a__avsc="{", b__avsc=record("x"))
    files.run("check", "b.avsc", code=0)
    files.run("check", "a.avsc", code=1)
    assert "2 schemas checked, 1 error" in files.run("check", code=1)


def test_no_server_code_is_imported(files, record):
    """A check imports nothing of the service, nor what only the service needs."""
    files.put("o.avsc", record("id"))
    program = (
        "import sys; sys.argv = ['strata', 'check']\n"
        "from strata.command import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "roots = {'fastapi', 'pydantic', 'sqlalchemy', 'uvicorn', 'urllib3'}\n"
        "parts = ('strata.registry', 'strata.storage', 'strata.compat.protobuf', 'strata.compat.json_schema')\n"
        "print([name for name in sys.modules if name.split('.')[0] in roots or name.startswith(parts)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == done.stdout.splitlines()[-1]


def test_the_json_schema_of_the_manifest(files):
    """The published JSON Schema accepts what the reader accepts, and has the same keys."""
    from strata.gitops import manifest

    document = json.loads((Path(manifest.__file__).parent / "strata.schema.json").read_text())
    jsonschema_rs.meta.validate(document)
    assert set(manifest._TOP) == set(document["properties"])
    assert set(manifest._SUBJECT) == set(document["$defs"]["subject"]["properties"])
    assert set(manifest._CONFIG) == set(document["$defs"]["config"]["properties"])
    assert list(manifest.LEVELS) == document["$defs"]["level"]["anyOf"][0]["enum"]
    assert list(manifest.MODES) == document["$defs"]["mode"]["anyOf"][0]["enum"]


GROUPED = """
config: {{compatibilityGroup: major}}
subjects:
  - {{name: order, file: order.avsc, compatibility: BACKWARD_TRANSITIVE, metadata: {{properties: {{major: "{0}"}}}}}}
"""


@pytest.mark.parametrize("source", ["revision", "service", "export"])
def test_only_versions_of_the_same_group_count(files, record, service, exported, source):
    """A schema is compared with the versions of its compatibility group, offline as by the service."""
    files.write(order__avsc=record("a"), strata__yaml=GROUPED.format(1))
    files.commit()
    files.run("apply", "--url", service.url, code=0)
    files.put("log.jsonl", exported(service))
    against = {"revision": "HEAD", "service": service.url, "export": "log.jsonl"}[source]
    files.write(order__avsc=record("b"))

    files.run("check", "--against", against, code=1)
    files.write(strata__yaml=GROUPED.format(2))
    files.run("check", "--against", against, code=0)
    files.write(strata__yaml=GROUPED.format(2).partition("metadata")[0].rstrip(", ") + "}")
    files.run("check", "--against", against, code=1)


def test_a_finding_shows_the_record_that_breaks(files, record):
    """The report has the record in words and in JSON; the version has no number, since a file has none."""
    files.put("o.avsc", record("id"))
    files.commit()
    files.put("o.avsc", record("id", "n"))
    shown = files.run("check", "--against=HEAD", code=1)
    (found,) = json.loads(files.run("check", "--against=HEAD", "--output=json", code=1))["problems"]

    assert '  This record, written with the previous version, cannot be read with the new schema: {"id": ' in shown
    assert "has no field 'n'" in found["witness"]["error"]
    assert ("BACKWARD", None) == (found["direction"], found["version"])


def test_a_change_of_values_is_a_note_or_an_error(files):
    """What the level accepts although values change is a note, and fails the check if the user says so."""
    files.put("o.avsc", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}')
    files.commit()
    files.put("o.avsc", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "double"}]}')
    shown = files.run("check", "--against=HEAD", code=0)

    assert "note: Consumers with the new schema read long as double: integers beyond 2^53 are rounded." in shown
    assert "Written as 9007199254740993, read as 9007199254740992.0." in shown
    assert "1 error" in files.run("check", "--against=HEAD", "--silent=error", code=1)
    files.put("strata.yaml", "subjects: [{name: o, file: o.avsc, metadata: {properties: {strata.silent: refuse}}}]")
    assert "1 error" in files.run("check", "--against=HEAD", code=1)


def line(sku):
    """Return the text of an order with lines of a type."""
    lines = {"type": "array", "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": sku}]}}
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "lines", "type": lines}]}, indent=1)


def test_tables_must_be_able_to_follow(files):
    """A refusal names the table, the column and both types, at its place in the file; the level has no say."""
    files.put("o.avsc", line("int"))
    files.commit()
    files.put("o.avsc", line("double"))
    asked = ("check", "--against=HEAD", "--level=NONE", "--tables=Iceberg, delta", "--output=json")
    (found,) = json.loads(files.run(*asked, code=1))["problems"]

    place = {"file": "o.avsc", "line": 14, "severity": "error", "rule": "UNSUPPORTED_TYPE_CHANGE"}
    column = {"table": "Iceberg (format version 2)", "path": "lines[].sku", "previous": "INT", "new": "DOUBLE"}
    assert place | column == {name: found[name] for name in (*place, *column)}
    assert "(INT can become BIGINT). Keep the type INT, or add a field under another name." in found["message"]
    files.run("check", "--against=HEAD", "--level=NONE", "--tables=delta", code=0)


def test_tables_of_a_first_version(files):
    """Without an earlier version it is judged whether a table can hold the schema; a scalar is a note."""
    files.put("o.avsc", '{"type": "record", "name": "O", "fields": [{"name": "a", "type": ["int", "string"]}]}')
    files.put("key.avsc", '"string"')
    shown = files.run("check", "--tables", "flink", code=1)

    assert "error: Tables of Flink cannot hold the schema at 'a': Flink's Avro format cannot read a union of" in shown
    assert "note: Tables of Flink cannot hold the schema: a table needs a record." in shown
    assert "2 schemas checked, 1 error" in shown


def test_an_unknown_engine(files):
    """An engine without rules is an error that names those that have some."""
    assert "'hive' is not one of iceberg, delta, flink" in files.run("check", "--tables", "delta,hive", code=2)


def test_tables_keep_columns_of_old_versions(files, record):
    """A field that comes back with another type is compared with the version that had it."""
    data = export(version(1, record("a", "b")), version(2, record("a")))
    (files.root / "e.jsonl.gz").write_bytes(gzip.compress(data))
    files.put("o.avsc", record("a").replace('"a"', '"b"').replace('"long"', '"string"'))
    shown = files.run("check", "o.avsc", "--against=e.jsonl.gz", "--level=NONE", "--tables=delta", code=1)

    assert "from version 1 to the new schema at 'b': type changed from BIGINT to STRING" in shown


def test_the_policy_logical(files):
    """`--policy LOGICAL` judges as a registry with that policy does."""
    files.put("o.avsc", '{"type": "record", "name": "O", "fields": []}')

    assert "EMPTY_STRUCT" in files.run("check", "--policy=LOGICAL", code=1)
