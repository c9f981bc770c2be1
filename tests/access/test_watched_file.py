"""The auth file as it changes: all or nothing, and a broken file keeps the old one in force."""

import asyncio
import os

import pytest

from strata.registry.features.access import watched_file
from strata.registry.features.access.auth_file import AuthFileError
from strata.registry.features.access.watched_file import WatchedFile, is_exposed, read_bytes

HASH = "$scrypt$ln=4,r=8,p=1$c2FsdHNhbHQ$" + "A" * 43


def text(*names):
    """Return a file with users of these names."""
    return "users:\n" + "".join(f"- {{name: {name}, password: '{HASH}'}}\n" for name in names)


@pytest.fixture
def path(tmp_path):
    """Return a file with one user."""
    file = tmp_path / "auth.yaml"
    file.write_text(text("alice"))
    return file


@pytest.fixture
def changes():
    """Return a list that gets an entry for each new content."""
    return []


@pytest.fixture
def watched(path, changes):
    """Return that file as it is watched."""
    return WatchedFile(path, lambda: changes.append(path), every_s=0.001)


def replace(path, content):
    """Replace a file by another one, as an orchestrator does."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.replace(path)


async def look(watched):
    """Look at the file twice, after which a file that stays the same is in force."""
    await watched.refresh()
    await watched.refresh()


async def test_a_change_is_read(path, watched, changes):
    """A new file is in force after two looks."""
    await watched.refresh()
    assert (["alice"], 0) == (list(watched.content.users), len(changes))

    replace(path, text("alice", "bob"))
    await watched.refresh()
    assert ["alice"] == list(watched.content.users)
    await watched.refresh()

    assert (["alice", "bob"], 1, None) == (list(watched.content.users), len(changes), watched.failure)


async def test_a_link_to_another_file(path, watched, tmp_path):
    """A link that comes to point to another file is a change."""
    other = tmp_path / "other.yaml"
    other.write_text(text("carol"))
    link = tmp_path / "link"
    link.symlink_to(path)
    found = WatchedFile(link)

    link.unlink()
    link.symlink_to(other)
    await look(found)

    assert ["carol"] == list(found.content.users)


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "\n",
        "# users: []\n",
        " # a\n---\n\n# b",
        "users: [",
        "users: [{name: bob}]",
        text("alice", "alice"),
        "usres: []",
    ],
)
async def test_a_broken_file_changes_nothing(path, watched, changes, broken, caplog):
    """None of a broken file is in force; the failure is counted and logged once, until the file is right again."""
    replace(path, broken)
    await look(watched)
    await watched.refresh()

    assert (["alice"], 0, 1) == (list(watched.content.users), len(changes), watched.failures)
    assert watched.failure
    assert ["the last good one stays in force" in record.getMessage() for record in caplog.records] == [True]

    replace(path, text("bob"))
    await look(watched)

    assert (["bob"], 1, None, 1) == (
        list(watched.content.users),
        len(changes),
        watched.failure,
        watched.failures,
    )


async def test_a_file_that_changes_while_it_is_read(path, watched, changes, monkeypatch):
    """The first part of a file may be valid, and lack the denials of the rest."""

    def read_and_write(path):
        data = read_bytes(path)
        path.write_text(text("bob", "carol"))
        return data

    replace(path, text("bob"))
    monkeypatch.setattr(watched_file, "read_bytes", read_and_write)
    await look(watched)
    assert (["alice"], 0) == (list(watched.content.users), len(changes))

    monkeypatch.undo()
    await look(watched)

    assert (["bob", "carol"], 1, 0) == (list(watched.content.users), len(changes), watched.failures)


async def test_a_file_that_is_written_in_parts(path, watched, changes):
    """A part that is valid without the denial that follows it is never in force."""
    whole = text("alice") + "roles:\n- {principal: User:alice, role: admin}\nrules:\n- {principal: User:alice, "
    whole += "permission: DENY, operation: READ, resource_type: SUBJECT, resource: secret}\n"
    for end in range(len(text("alice")), len(whole) + 1):
        path.write_text(whole[:end])
        await watched.refresh()
    assert (0, 0, ()) == (len(changes), watched.failures, watched.content.rules)
    await watched.refresh()

    assert (1, "DENY") == (len(changes), watched.content.rules[-1].permission)


async def test_the_last_user_can_be_removed(path, watched):
    """A file that says that it holds nothing is in force, unlike one that is empty."""
    for content in ("users: []", "{}"):
        replace(path, content)
        await look(watched)
        assert {} == watched.content.users


@pytest.mark.parametrize(("mode", "expected"), [(0o600, False), (0o640, False), (0o604, True), (0o602, True)])
def test_a_file_of_all_users_is_exposed(path, mode, expected):
    """The group may read it, as where an orchestrator mounts secrets; others may not."""
    path.chmod(mode)

    assert expected == is_exposed(path)


async def test_a_file_that_is_gone_stays_in_force(path, watched):
    """Deleting the file changes nothing but the report."""
    path.unlink()
    await look(watched)

    assert ["alice"] == list(watched.content.users)
    assert "No such file" in watched.failure


async def test_a_file_that_has_a_fifo_s_place(path, watched):
    """What is not a regular file is not read: reading a pipe would wait for ever."""
    path.unlink()
    os.mkfifo(path)
    await asyncio.wait_for(look(watched), 60)

    assert ["alice"] == list(watched.content.users)
    assert watched.failure


async def test_the_watch_goes_on(path, watched):
    """The watch reads each change."""
    watch = asyncio.create_task(watched.watch())
    for name in ("bob", "carol"):
        replace(path, text(name))
        async with asyncio.timeout(60):
            while list(watched.content.users) != [name]:  # noqa: ASYNC110 - the watch has no event
                await asyncio.sleep(0.001)
    watch.cancel()


@pytest.mark.parametrize("content", [None, "users: ["])
def test_the_first_file_must_be_right(tmp_path, content):
    """A start with a file that cannot be used is an error that names the file."""
    path = tmp_path / "auth.yaml"
    if content is not None:
        path.write_text(content)

    with pytest.raises(AuthFileError, match=r"auth\.yaml: "):
        WatchedFile(path)
