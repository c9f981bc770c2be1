"""Export and import keep everything, over every kind of log."""

import gzip
from contextlib import closing

from strata.storage.log import Record
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import SchemaKey, SchemaValue


def test_everything_comes_back(strata, raw_source, log_url, tmp_path):
    """A restored log holds everything that the exported one did, and exports to the same records."""
    first, second = tmp_path / "first.jsonl.gz", tmp_path / "second.jsonl"

    assert 0 == strata("export", raw_source, first)[0]
    assert 0 == strata("import", first, log_url)[0]
    assert 0 == strata("export", log_url, second)[0]

    assert (0, "") == strata("verify", raw_source, log_url)[:2]
    assert (0, "") == strata("verify", first, log_url)[:2]
    assert gzip.decompress(first.read_bytes()).splitlines()[1:-1] == second.read_bytes().splitlines()[1:-1]


def test_the_next_id_is_as_high_as_before(strata, source, serve, tmp_path):
    """Ids that hard deletion freed are not assigned again after a restore."""
    target, file = f"sqlite:///{tmp_path / 'target.db'}", tmp_path / "file"
    strata("export", source, file)
    strata("import", file, target)
    before, after = serve(source), serve(target)

    for registry in (before, after):
        registry.register("new", {"type": "fixed", "name": "New", "size": 3})

    path = "/subjects/new/versions/1"
    assert before.call("GET", path)["id"] == after.call("GET", path)["id"]
    assert [] == [v for v in after.call("GET", "/subjects?deleted=true") if v == "scratch"]


def test_marks_survive_that_only_old_records_held(strata, write_raw, serve, tmp_path):
    """A tombstone without a high-water record, as of another registry, still keeps its id from being assigned again."""
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    write_raw(source, *_schema_record("s", 1, 41), *_schema_record("t", 1, 7), *_tombstone("s", 1))
    strata("export", source, tmp_path / "file")
    strata("import", tmp_path / "file", target)

    registry = serve(target)
    registry.register("new", {"type": "fixed", "name": "New", "size": 3})

    assert 42 == registry.call("GET", "/subjects/new/versions/1")["id"]


def test_an_export_of_a_service_restores_what_it_tells(strata, source, serve, tmp_path):
    """A registry that is exported over REST and restored answers as before."""
    url, file, target = serve(source).url, tmp_path / "file", f"sqlite:///{tmp_path / 'target.db'}"

    assert 0 == strata("export", url, file)[0]
    assert 0 == strata("import", file, target)[0]

    assert (0, "") == strata("verify", source, target)[:2]
    assert (0, "") == strata("verify", url, serve(target).url)[:2]
    assert (0, "") == strata("verify", file, url)[:2]


def test_what_no_registry_can_use_does_not_displace_what_stands(strata, write_raw, tmp_path):
    """An export leaves out a record that is set aside, and keeps the accepted record under the same key."""
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    ((key, value),) = [(r.key, r.value) for r in _schema_record("s", 1, 1)]
    write_raw(source, *_schema_record("s", 1, 1), *_schema_record("t", 1, 2))
    write_raw(
        source, Record(key, b"not json"), Record(key, value.replace(b'"id":1', b'"id":2').replace(b"size", b"sizes"))
    )

    code, _, errors = strata("export", source, tmp_path / "file")
    strata("import", tmp_path / "file", target)

    assert (0, True) == (code, "left out 2 invalid records" in errors)
    assert (0, "") == strata("verify", source, target)[:2]
    with closing(open_log(target)) as log:
        assert [key] == [entry.key for entry in log.read(-1) if entry.key == key and entry.value == value]


def _schema_record(subject, version, schema_id):
    text = f'{{"type":"fixed","name":"F{schema_id}","size":1}}'
    return [encode(SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text))]


def _tombstone(subject, version):
    return [encode(SchemaKey(subject, version))]


def test_an_export_of_a_service_restores_valid_records_only(strata, source, serve, tmp_path):
    """No record of a registry that was exported over REST is set aside after the restore."""
    file, target = tmp_path / "file", f"sqlite:///{tmp_path / 'target.db'}"

    assert 0 == strata("export", serve(source).url, file)[0]
    assert 0 == strata("import", file, target)[0]

    assert (0, "") == strata("log", target, "--set-aside")[:2]
