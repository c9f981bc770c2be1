"""Verify finds each kind of difference, and names it."""

import json
import shutil
import sqlite3

import pytest

from strata.storage.log import Record

ORDERS = '{"keytype":"SCHEMA","subject":"orders-value","version":2,"magic":1}'
RULED = '{"keytype":"SCHEMA","subject":"ruled","version":7,"magic":1}'
BASKET = '{"keytype":"SCHEMA","subject":"basket","version":1,"magic":1}'
ITEM_CONFIG = '{"keytype":"CONFIG","subject":"item","magic":0}'
BASKET_MODE = '{"keytype":"MODE","subject":"basket","magic":0}'
STAGING = '{"keytype":"CONTEXT","tenant":"default","context":".staging","magic":0}'
HIGHEST = '{"keytype":"NOOP","context":".","magic":0}'
ASSOC = '{"keytype":"ASSOC","tenant":"default","resourceName":"orders","magic":0}'
TOPIC = (
    '{"keytype":"ASSOC","tenant":"default","resourceName":"orders","resourceNamespace":"lkc",'
    '"resourceType":"topic","associationType":"value","subject":"orders-value","magic":0}'
)
KEK = '{"keytype":"NOOP","kind":"KEK","name":"k","magic":0}'
DEK = (
    '{"keytype":"NOOP","kind":"DEK","kekName":"k","subject":"orders-value","algorithm":"AES256_GCM",'
    '"version":2,"magic":0}'
)


def _put(*path, to):
    """Return a change that sets a property inside the value of a record."""

    def change(value):
        inner = value
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = to
        return value

    return change


@pytest.mark.parametrize(
    ("key", "change", "expected"),
    [
        pytest.param(ORDERS, _put("id", to=999), "subject 'orders-value' version 2: id is 2 in A, 999 in B", id="id"),
        pytest.param(
            ORDERS, _put("schemaType", to="JSON"), 'version 2: schemaType is "AVRO" in A, "JSON" in B', id="type"
        ),
        pytest.param(ORDERS, _put("schema", to='"int"'), "version 2: schema is ", id="text"),
        pytest.param(ORDERS, _put("schema", to='"int"'), "version 2: guid is ", id="guid"),
        pytest.param(ORDERS, _put("deleted", to=True), "version 2: deleted is false in A, true in B", id="deletion"),
        pytest.param(BASKET, _put("references", 0, "version", to=2), "version 1: references is ", id="reference"),
        pytest.param(RULED, _put("metadata", "properties", "sla", to="8h"), "version 7: metadata is ", id="metadata"),
        pytest.param(RULED, _put("ruleSet", "domainRules", 0, "name", to="q"), "version 7: ruleSet is ", id="rule set"),
        pytest.param(ORDERS, None, "subject 'orders-value' version 2: only in A", id="version missing"),
        pytest.param(
            ITEM_CONFIG, _put("compatibilityLevel", to="FULL"), "config of 'item': compatibilityLevel is", id="level"
        ),
        pytest.param(
            ITEM_CONFIG, _put("normalize", to=False), "config of 'item': normalize is true in A, false in B", id="flag"
        ),
        pytest.param(ITEM_CONFIG, None, "config of 'item': only in A", id="config missing"),
        pytest.param(BASKET_MODE, _put("mode", to="IMPORT"), "mode of 'basket': mode is", id="mode"),
        pytest.param(BASKET_MODE, None, "mode of 'basket': only in A", id="mode missing"),
        pytest.param(HIGHEST, _put("maxId", to=9999), "context '.': highest id is", id="highest id"),
        pytest.param(
            ASSOC,
            _put("guid", to="2"),
            'ASSOC","tenant":"default","resourceName":"orders","magic":0}: value is',
            id="unknown record",
        ),
        pytest.param(
            TOPIC,
            _put("lifecycle", to="WEAK"),
            'topic value with orders-value: lifecycle is "STRONG" in A, "WEAK" in B',
            id="association",
        ),
        pytest.param(KEK, _put("kmsKeyId", to="x"), 'key encryption key k: kmsKeyId is "arn" in A, "x" in B', id="KEK"),
        pytest.param(KEK, None, "key encryption key k: only in A", id="KEK missing"),
        pytest.param(
            DEK,
            _put("encryptedKeyMaterial", to="QQ=="),
            'AES256_GCM of orders-value under k version 2: encryptedKeyMaterial is "QUJD" in A, "QQ==" in B',
            id="DEK",
        ),
        pytest.param(DEK, _put("deleted", to=True), "version 2: deleted is false in A, true in B", id="DEK deleted"),
    ],
)
def test_a_planted_difference_is_found(strata, raw_source, tmp_path, key, change, expected):
    """Verify compares each property, and the line shows the value on either side."""
    strata("export", raw_source, tmp_path / "a")
    _edit(raw_source, key, change)

    code, output, _ = strata("verify", tmp_path / "a", raw_source)

    assert (1, True) == (code, any(expected in line for line in output.splitlines())), output


def test_what_only_b_holds_is_found(strata, source, write_raw, tmp_path):
    """Verify names a context, a subject and a setting that only B has."""
    strata("export", source, tmp_path / "a")
    write_raw(source, Record(STAGING.replace(".staging", ".new").encode(), b'{"context":".new"}'))
    write_raw(source, Record(ITEM_CONFIG.replace("item", "added").encode(), b'{"compatibilityLevel":"NONE"}'))

    assert (1, "config of 'added': only in B\ncontext '.new': only in B\n") == strata("verify", tmp_path / "a", source)[
        :2
    ]


def test_services_are_compared_with_all_else(strata, source, serve, tmp_path):
    """A service equals its own log and export; a change over REST shows in every comparison."""
    registry = serve(source)
    strata("export", source, tmp_path / "a")
    assert [0, 0] == [strata("verify", side, registry.url)[0] for side in (source, tmp_path / "a")]

    registry.delete("customer")

    line = "subject 'customer' version 1: deleted is false in A, true in B\n"
    assert [(1, line), (0, "")] == [strata("verify", side, registry.url)[:2] for side in (tmp_path / "a", source)]


def _edit(log_url, key, change):
    """Change the newest record under a key in the file itself, or remove it."""
    with sqlite3.connect(log_url.removeprefix("sqlite:///")) as connection:
        where = "FROM strata_log WHERE key = ? ORDER BY offset DESC LIMIT 1"
        offset, value = connection.execute(f"SELECT offset, value {where}", (key.encode(),)).fetchone()
        if change is None:
            connection.execute("DELETE FROM strata_log WHERE offset = ?", (offset,))
        else:
            changed = json.dumps(change(json.loads(value)), ensure_ascii=False).encode()
            connection.execute("UPDATE strata_log SET value = ? WHERE offset = ?", (changed, offset))
    connection.close()


def test_each_command_prints_one_object(strata, source, tmp_path):
    """With `--output json` export, import and migrate print one object: what was copied, and where to."""
    file, log, other = tmp_path / "x.jsonl", f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    counts = {"subjects", "versions", "records", "contexts"}

    exported = json.loads(strata("export", source, file, "--output=json")[1])
    imported = json.loads(strata("import", file, log, "--output=json")[1])
    again = json.loads(strata("import", file, log, "--output=json")[1])
    code, output, errors = strata("migrate", "--from", source, "--to", other, "--output=json")
    migrated = json.loads(output)

    assert {"source", "file", "notes"} | counts == set(exported)
    assert (source, str(file)) == (exported["source"], exported["file"])
    assert {name: exported[name] for name in counts} == {name: imported[name] for name in counts}
    assert (str(file), log, exported["records"], 0) == (
        imported["file"], imported["log"], imported["written"], again["written"],
    )  # fmt: skip
    assert (0, source, other, []) == (code, migrated["a"], migrated["b"], migrated["differences"])
    assert exported["versions"] == migrated["versions"]
    assert "imported" in errors


def test_differences_as_json(strata, source, tmp_path, write_raw):
    """`--output json` prints one object with complete values; the exit code is that of the text output."""
    shutil.copy(source.removeprefix("sqlite:///"), tmp_path / "other.db")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    long = "x" * 500
    write_raw(other, Record(ITEM_CONFIG.encode(), json.dumps({"compatibilityLevel": "FULL", "alias": long}).encode()))
    write_raw(other, Record(b'{"keytype":"CONFIG","subject":"new","magic":0}', b'{"compatibilityLevel":"NONE"}'))

    code, output, _ = strata("verify", source, other, "--output", "json")

    report = json.loads(output)
    assert (1, source, other) == (code, report["a"], report["b"])
    assert [
        {"kind": "config of", "name": "'item'", "property": "alias", "a": None, "b": long},
        {"kind": "config of", "name": "'item'", "property": "compatibilityLevel", "a": "NONE", "b": "FULL"},
        {"kind": "config of", "name": "'item'", "property": "normalize", "a": True, "b": None},
        {"kind": "config of", "name": "'new'", "onlyIn": "B"},
    ] == report["differences"]
    assert (0, []) == (
        (found := strata("verify", source, source, "--output", "json"))[0],
        json.loads(found[1])["differences"],
    )
