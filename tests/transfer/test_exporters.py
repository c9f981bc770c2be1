"""Exporters in exports, restores and comparisons: kept paused and without credentials, or named as left out."""

from contextlib import closing

import pytest

from harness.neighbours import served
from strata.storage.exporter_records import ExporterKey, ExporterValue, ExportKey, ExportValue
from strata.storage.log import START
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import SchemaId, SchemaKey, SchemaValue, Subject, Version
from strata.storage.state import State

PASSWORD = "sealed-password"
URL = {"schema.registry.url": "http://third:8081"}
CREDENTIALS = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": PASSWORD}
SUBJECT = Subject("s")


def state_of(url):
    """Return the State of a log."""
    with closing(open_log(url)) as log:
        return State().apply_all(log.read(START))


@pytest.fixture
def source(write_raw, tmp_path):
    """Return a log with a schema, an exporter that runs with a password, and one that is paused and needs none."""
    url = f"sqlite:///{tmp_path}/source.db"
    write_raw(
        url,
        encode(SchemaKey(SUBJECT, Version(1)), SchemaValue(SUBJECT, Version(1), SchemaId(1), '"int"')),
        encode(ExporterKey("to-third"), ExporterValue(("a*",), "CUSTOM", ".c", config=URL | CREDENTIALS)),
        encode(ExportKey("to-third"), ExportValue("RUNNING", 7)),
        encode(ExporterKey("idle"), ExporterValue(("*",), "NONE", config=URL, paused=True)),
    )
    return url


def test_a_restore_brings_exporters_back_at_rest(strata, source, tmp_path):
    """The restored log has both exporters, paused and without the password, and no progress; the export names this."""
    file, restored = tmp_path / "backup.jsonl", f"sqlite:///{tmp_path}/restored.db"
    code, _, said = strata("export", source, file)
    assert 0 == code
    assert f"{source}: exporter to-third: a copy holds it paused and without basic.auth.user.info" in said
    assert "exporter idle" not in said
    assert PASSWORD not in file.read_text()
    assert 0 == strata("import", file, restored)[0]

    found = state_of(restored)
    assert found.exporters["to-third"] == ExporterValue(
        ("a*",), "CUSTOM", ".c", config=URL | {"basic.auth.credentials.source": "USER_INFO"}, paused=True
    )
    assert (state_of(source).exporters["idle"], {}) == (found.exporters["idle"], dict(found.exports))
    assert [0, 0] == [strata("verify", *pair)[0] for pair in ((source, restored), (file, restored))]


def test_verify_lists_exporters_that_differ(strata, source, write_raw, tmp_path):
    """An exporter that is gone or copies something else is a difference; one that is paused is not."""
    other = f"sqlite:///{tmp_path}/other.db"
    write_raw(
        other,
        encode(SchemaKey(SUBJECT, Version(1)), SchemaValue(SUBJECT, Version(1), SchemaId(1), '"int"')),
        encode(ExporterKey("to-third"), ExporterValue(("b*",), "CUSTOM", ".c", config=URL | CREDENTIALS, paused=True)),
    )
    code, output, _ = strata("verify", source, other)

    assert 1 == code
    assert [
        "exporter idle: only in A",
        'exporter to-third: subjects is ["a*"] in A, ["b*"] in B',
    ] == output.splitlines()


def test_exporters_are_named_where_they_are_left_out(strata, source, tmp_path):
    """Over REST, and in an export of some subjects, exporters are left out and named, not differences."""
    file, part = tmp_path / "rest.jsonl", tmp_path / "part.jsonl"
    with served(source, exporter_seconds=3600) as registry:
        code, _, said = strata("export", registry.url, file)
        assert (0, True) == (code, "left out the exporters idle, to-third; an export of the log holds them" in said)
        assert 0 == strata("verify", source, registry.url)[0]
    code, _, said = strata("export", source, part, "--subject", "s")

    assert (0, True) == (code, "left out 2 exporters, which belong to the whole registry" in said)
    assert "EXPORTER" not in part.read_text() + file.read_text()
