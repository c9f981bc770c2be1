"""Export of part of a registry: some subjects, and what they need."""

import pytest


@pytest.fixture
def export(strata, source, tmp_path):
    """Return a function that exports with some flags and restores; it returns standard error and the log."""

    def run(*flags):
        file, log = tmp_path / "part.jsonl", f"sqlite:///{tmp_path / 'part.db'}"
        code, _, errors = strata("export", source, file, *flags)
        assert 0 == code, errors
        assert 0 == strata("import", file, log)[0]
        return errors, log

    return run


# flags, subjects
PARTS = [
    ("one subject", ["--subject=item"], ["item"]),
    ("two", ["--subject=item", "--subject=address"], ["address", "item"]),
    ("a prefix", ["--subject=o*"], ["old-basket", "old-item", "orders-value"]),
    ("what it refers to", ["--subject=basket"], ["basket", "item"]),
    ("what its deleted version refers to", ["--subject=old-basket"], ["old-basket", "old-item"]),
    ("a context", ["--context=.staging"], [":.staging:basket", ":.staging:item", ":.staging:orders-value"]),
    ("its other spelling", ["--context=:.staging:"], [":.staging:basket", ":.staging:item", ":.staging:orders-value"]),
    (
        "both",
        ["--context=staging", "--subject=paid"],
        [":.staging:basket", ":.staging:item", ":.staging:orders-value", "acme/money.proto", "paid"],
    ),
]


@pytest.mark.parametrize(("flags", "subjects"), [row[1:] for row in PARTS], ids=[row[0] for row in PARTS])
def test_the_part_that_was_asked_for(export, serve, flags, subjects):
    """The part holds the named subjects and those they refer to, deleted versions included, and nothing else."""
    _, log = export(*flags)

    assert subjects == serve(log).call("GET", "/subjects?deleted=true")


def test_a_deleted_version_of_a_part_can_be_read(export, source, serve):
    """What a soft-deleted version refers to goes with it, so that its schema and references are those of the whole."""
    _, log = export("--subject=old-basket")
    old, new = serve(source), serve(log)

    for path in ("/subjects/old-basket/versions/1", "/subjects/old-item/versions/1"):
        whole, part = (registry.call("GET", f"{path}?deleted=true") for registry in (old, new))
        assert whole | {"ts": 0} == part | {"ts": 0}
    resolved = [
        registry.call("GET", "/subjects/old-basket/versions/1?deleted=true&format=resolved")["schema"]
        for registry in (old, new)
    ]
    assert "OldItem" in resolved[0]
    assert resolved[0] == resolved[1]


def test_what_a_part_needs_goes_with_it(export, source, serve):
    """Ids, settings, keys and associations of the part equal those of the whole; so does the next id."""
    errors, log = export(*(f"--subject={name}" for name in ("basket", "orders-value", "paid", "address")))
    old, new = serve(source), serve(log)

    assert "also includes the subjects that the chosen ones refer to: acme/money.proto, item" in errors
    for path in ("/config", "/config/item", "/mode/basket", "/dek-registry/v1/keks?deleted=true"):
        assert old.call("GET", path) == new.call("GET", path)
    basket = [registry.call("GET", "/subjects/basket/versions/1") for registry in (old, new)]
    assert basket[0] | {"ts": 0} == basket[1] | {"ts": 0}
    assert ["address"] == [found["subject"] for found in new.call("GET", "/associations/resources/id%20of%20homes")]
    for registry in (old, new):
        registry.register("after", {"type": "fixed", "name": "After", "size": 3})
    assert old.call("GET", "/subjects/after/versions/1")["id"] == new.call("GET", "/subjects/after/versions/1")["id"]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--subject=itme", "no subject is called 'itme'; did you mean 'item'?"),
        ("--subject=zzz*", "no subject is called 'zzz*'"),
        ("--context=.stagin", "no context is called '.stagin'; did you mean '.staging'?"),
    ],
)
def test_a_name_that_stands_for_nothing(strata, source, tmp_path, flag, words):
    """Export refuses a misspelt name, suggests the nearest one, and writes no file."""
    code, _, errors = strata("export", source, tmp_path / "part.jsonl", flag)

    assert (2, True) == (code, words in errors), errors
    assert not (tmp_path / "part.jsonl").exists()
