"""Fetched jars are kept only with the SHA-256 that is pinned for them."""

import hashlib

import pytest

from harness import jars

SET = jars.JarSet("small", ("org.example:small:1.0",), transitive=False)
CONTENT = b"what the repository sent"
OTHER = hashlib.sha256(b"something else").hexdigest()


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Return a function that resolves a set, given the pinned SHA-256 of its only jar."""

    def sent(_jar_set, _scratch, folder):
        (folder / "small-1.0.jar").write_bytes(CONTENT)

    def resolve(pinned):
        checksums = tmp_path / "jars.sha256"
        checksums.write_text(pinned)
        monkeypatch.setattr(jars, "_CHECKSUMS", checksums)
        return jars.resolve(SET)

    monkeypatch.setenv("STRATA_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "_with_maven", sent)
    monkeypatch.setattr(jars, "_with_ivy", sent)
    return resolve


def test_a_jar_with_its_checksum_is_kept(fetched):
    """A jar that is what was pinned is in the cache."""
    (jar,) = fetched(f"{hashlib.sha256(CONTENT).hexdigest()}  small-1.0.jar\n")

    assert jar.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("pinned", "expected"),
    [(f"{OTHER}  small-1.0.jar\n", OTHER), ("", "none"), (f"{OTHER}  other-1.0.jar\n", "none")],
    ids=["another", "no checksums", "one of another jar"],
)
def test_a_jar_without_its_checksum_is_not_kept(fetched, pinned, expected):
    """The error names the jar and both checksums, and nothing is left in the cache."""
    message = f"small-1.0.jar .* SHA-256 {hashlib.sha256(CONTENT).hexdigest()}, expected {expected} "
    with pytest.raises(RuntimeError, match=message):
        fetched(pinned)

    assert not list(jars.cache_folder().rglob("*.jar"))


def test_every_named_jar_is_pinned():
    """Each artifact of each set has a line, with a SHA-256 in hexadecimal digits, and no jar has two."""
    lines = [line.split() for line in (jars._CHECKSUMS).read_text().splitlines()]
    names = [name for _, name in lines]
    sets = {*jars.JAR_SETS.values(), *(one for one in vars(jars).values() if isinstance(one, jars.JarSet))}

    assert sorted(set(names)) == sorted(names)
    assert {64} == {len(digest) for digest, _ in lines}
    assert set() == {jars._jar_name(artifact) for one in sets for artifact in one.artifacts} - set(names)
