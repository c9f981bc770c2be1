"""The export file: complete or refused."""

import gzip
import hashlib
import json
import os

import pytest


@pytest.fixture
def export(strata, raw_source, tmp_path):
    """Return an export of a registry with an example of everything."""
    strata("export", raw_source, tmp_path / "export.jsonl")
    return tmp_path / "export.jsonl"


def _change(old, new):
    return lambda data: data.replace(old, new, 1)


def _relabelled(data):
    """Return the same records with another version of the format and a correct digest."""
    body = b"".join(data.replace(b'"version":1', b'"version":2', 1).splitlines(keepends=True)[:-1])
    return body + json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(_change(b"orders", b"orderz"), "is damaged", id="a byte of a record changed"),
        pytest.param(_change(b'"records"', b'"recordz"'), "is damaged", id="a byte of the header changed"),
        pytest.param(lambda data: data[: len(data) // 2], "is truncated", id="the second half missing"),
        pytest.param(lambda data: data[: data.rindex(b'{"sha256"')], "is truncated", id="the last line missing"),
        pytest.param(lambda data: data + b"{}\n", "is truncated", id="something after the digest"),
        pytest.param(lambda data: b"", "is not an export", id="empty"),
        pytest.param(lambda data: b"[1, 2]\n", "is not an export", id="other JSON"),
        pytest.param(lambda data: b"\x00\xff" * 100, "is not an export", id="no text"),
        pytest.param(_relabelled, "has format version 2", id="a later format"),
    ],
)
def test_a_damaged_file_is_refused_before_anything_is_written(strata, export, tmp_path, damage, message):
    """Import refuses any file that is not exactly as exported, and does not create the log."""
    (tmp_path / "bad").write_bytes(damage(export.read_bytes()))

    code, _, errors = strata("import", tmp_path / "bad", f"sqlite:///{tmp_path / 'target.db'}")

    assert (2, True) == (code, message in errors), errors
    assert not (tmp_path / "target.db").exists()


@pytest.mark.parametrize("keep", [pytest.param(0.5, id="cut off"), pytest.param(0.0, id="empty")])
def test_a_packed_file_that_is_cut_off_is_refused(strata, export, tmp_path, keep):
    """The check also covers damage to the gzip file."""
    packed = gzip.compress(export.read_bytes())
    (tmp_path / "bad.gz").write_bytes(packed[: int(len(packed) * keep)])

    assert 2 == strata("verify", tmp_path / "bad.gz", export)[0]


def test_the_header_says_what_is_inside(export):
    """The first line is the header, the last the digest."""
    lines = [json.loads(line) for line in export.read_text().splitlines()]

    assert ("strata-export", 1, len(lines) - 2) == (lines[0]["format"], lines[0]["version"], lines[0]["records"])
    assert ["sha256"] == list(lines[-1])


def test_a_file_that_exists_stays_unless_forced(strata, source, tmp_path):
    """Export does not replace a file without `--force`, and leaves no partial file behind."""
    file = tmp_path / "export"
    file.write_text("mine")

    code, _, errors = strata("export", source, file)

    assert (2, "mine", True) == (code, file.read_text(), "--force" in errors)
    assert 0 == strata("export", source, file, "--force")[0]
    assert 0 == strata("verify", file, source)[0]
    assert [] == [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_only_a_file_is_replaced(strata, source, tmp_path):
    """A file does not replace a pipe or a device, even with `--force`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    code, _, errors = strata("export", source, pipe, "--force")

    assert (2, True, True) == (code, pipe.is_fifo(), "is not a regular file" in errors), errors


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("sqlite:///nowhere/none.db", "no such file", id="no such log"),
        pytest.param("http://127.0.0.1:1", "does not answer", id="registry down"),
        pytest.param("no-such-file", "cannot read no-such-file", id="no such file"),
        pytest.param("kafka://broker", "is not the URL of a log", id="half a URL"),
    ],
)
def test_a_source_that_is_not_there_is_named(strata, source, message, tmp_path, monkeypatch):
    """A failure prints one line and exits with code 2, and leaves no file."""
    monkeypatch.setattr("strata.http.sender.backoff", lambda *_: 0.0)

    code, _, errors = strata("export", source, tmp_path / "file")

    assert (2, True) == (code, message in errors), errors
    assert not (tmp_path / "file").exists()


def test_a_log_that_holds_something_else_is_refused(strata, export, serve, tmp_path):
    """Import adds nothing to another registry's log, nor to one that changed after the import."""
    other, grown = f"sqlite:///{tmp_path / 'other.db'}", f"sqlite:///{tmp_path / 'grown.db'}"
    serve(other).register("mine", '"string"')
    strata("import", export, grown)
    # The restored registry is read-only until its mode changes.
    registry = serve(grown)
    registry.setting("mode", "", mode="READWRITE")
    registry.register("mine", '"string"')

    for log in (other, grown):
        code, _, errors = strata("import", export, log)
        assert (2, True) == (code, "is not empty" in errors), errors


def test_an_import_done_before_is_done(strata, export, tmp_path):
    """A repeated import writes nothing and succeeds."""
    log = f"sqlite:///{tmp_path / 'target.db'}"
    strata("import", export, log)

    code, output, _ = strata("import", export, log)

    assert (0, True) == (code, output.endswith("; this run wrote no records\n")), output
