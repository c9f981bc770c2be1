"""`strata user add`, `remove` and `list`: what they write, and that nothing else is lost."""

import os
import stat
import threading

import pytest
from click.testing import CliRunner

from harness.passwords import cheap_hash
from strata.registry.commands.cli import main
from strata.registry.features.access import passwords
from strata.registry.features.access.auth_file import AuthFileError, parse_auth_file
from strata.registry.features.access.auth_file_edits import add_user, list_users, remove_user
from strata.registry.features.access.passwords import PasswordHash

HASH = PasswordHash("scrypt", b"saltsalt", bytes(32), log2_n=1)
RULES = "rules:\n- {principal: User:ada, permission: DENY, operation: READ, resource_type: SUBJECT, resource: x}\n"


@pytest.fixture
def path(tmp_path):
    """Return the name of an auth file that does not exist yet."""
    return tmp_path / "auth.yaml"


@pytest.fixture
def run(path, monkeypatch):
    """Return a function that runs `strata user` on that file, and returns the exit code and the output."""
    monkeypatch.setattr(passwords, "hash_password", cheap_hash)

    def command(verb, *arguments, typed=None):
        found = CliRunner().invoke(main, ["user", verb, *arguments, "--auth-file", str(path)], input=typed)
        return found.exit_code, found.output

    return command


def test_add_list_remove(run, path):
    """A user is added with roles and groups, is listed, gets in, and is removed with all that names the user."""
    roles = ["--role", "producer", "--on", "orders-*", "--on", "no", "--group", "etl"]
    assert (0, "") == run("add", "ada", "--password-stdin", *roles, typed="open sesame\n")
    assert (0, "") == run("add", "007", "--password-stdin", "--role", "admin", typed="licence to")
    assert (0, "007: admin\nada: producer on orders-*, producer on no, group etl\n") == run("list")

    found = parse_auth_file(path.read_bytes())
    assert found.users["ada"].password.matches("open sesame")
    assert not found.users["ada"].password.matches("open sesame\n")
    assert {"subject orders-*", "subject no"} == {
        str(rule.resource) for rule in found.rules if rule.principal == "User:ada"
    }

    assert (0, "") == run("remove", "ada")
    assert (0, "007: admin\n") == run("list")
    assert {"User:007"} == {rule.principal for rule in parse_auth_file(path.read_bytes()).rules}


def test_a_generated_password(run, path):
    """A password can be drawn; it is printed once, and not in the file."""
    code, printed = run("add", "ci", "--generate")

    assert (0, 44) == (code, len(printed))
    assert parse_auth_file(path.read_bytes()).users["ci"].password.matches(printed.strip())
    assert printed.strip() not in path.read_text()


def test_a_typed_password(run, path):
    """Without a flag the password is asked for twice, and not shown."""
    code, printed = run("add", "ada", typed="open sesame\nopen sesame\n")

    assert 0 == code
    assert "sesame" not in printed
    assert parse_auth_file(path.read_bytes()).users["ada"].password.matches("open sesame")


@pytest.mark.parametrize(
    ("arguments", "typed", "message"),
    [
        (["ada", "--password-stdin"], "short", "at least 8 characters"),
        (["ada", "--password-stdin"], "", "at least 8 characters"),
        (["ada", "--password-stdin"], "x" * 1025, "at most 1024 bytes"),
        (["ada", "--password-stdin"], b"\xff" * 10, "not UTF-8"),
        (["ada", "--generate", "--password-stdin"], "", "exclude each other"),
        (["ada", "--generate", "--on", "x"], "", "--on needs --role"),
        (["ada", "--generate", "--role", "boss"], "", "unknown role 'boss'"),
        (["ada", "--generate", "--role", "owner"], "", "the role owner needs subjects"),
        (["ada", "--generate", "--role", "admin", "--on", "x"], "", "cannot be given on 'x'"),
        (["a:b", "--generate"], "", "without a colon"),
        (["*", "--generate"], "", "expected a name"),
        (["ada", "--generate", "--group", "*"], "", "users[0].groups"),
    ],
)
def test_what_is_not_added(run, path, arguments, typed, message):
    """A wrong argument ends with 2 and a message, and writes nothing."""
    code, printed = run("add", *arguments, typed=typed)

    assert 2 == code
    assert message in printed
    assert not path.exists()


def test_an_existing_user_is_replaced_only_if_asked(run, path):
    """`--replace` changes the password; role and groups stay unless they are given."""
    run("add", "ada", "--password-stdin", "--role", "viewer", "--group", "a", typed="open sesame")
    code, printed = run("add", "ada", "--password-stdin", typed="another one")
    assert (2, True) == (code, "the user 'ada' exists already" in printed)
    assert parse_auth_file(path.read_bytes()).users["ada"].password.matches("open sesame")

    assert (0, "") == run("add", "ada", "--replace", "--password-stdin", typed="another one")
    assert parse_auth_file(path.read_bytes()).users["ada"].password.matches("another one")
    assert (0, "ada: viewer, group a\n") == run("list")
    run("add", "ada", "--replace", "--generate", "--role", "admin")
    assert (0, "ada: admin, group a\n") == run("list")


def test_only_the_owner_may_read_it(path):
    """The file is for its owner only, even if the one before was not; a link stays a link."""
    path.write_text("users: []")
    path.chmod(0o644)
    link = path.with_name("link")
    link.symlink_to(path)
    add_user(link, "ada", HASH)

    assert link.is_symlink()
    assert (0o600, ["ada"]) == (stat.S_IMODE(path.stat().st_mode), [one[0] for one in list_users(path)])
    assert {"auth.yaml", "link"} == {one.name for one in path.parent.iterdir()}


def test_an_owner_stays_the_owner(path):
    """A file of the service's user does not become one of root's."""
    path.write_text("users: []")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, 12345, 12345)
    add_user(path, "ada", HASH)

    assert (12345, 12345) == (path.stat().st_uid, path.stat().st_gid)


def test_rules_stay(path):
    """Rules are kept; those of a removed user go."""
    path.write_text(RULES)
    add_user(path, "bob", HASH, role="viewer")
    assert "User:ada may not READ subject x" in {str(rule) for rule in parse_auth_file(path.read_bytes()).rules}

    add_user(path, "ada", HASH)
    remove_user(path, "ada")
    assert {"User:bob"} == {rule.principal for rule in parse_auth_file(path.read_bytes()).rules}


def test_json_stays_json(path):
    """A JSON file is written as JSON."""
    path.write_text('{"users": null}')
    add_user(path, "ada", HASH)

    assert path.read_text().startswith("{")
    assert ["ada"] == list(parse_auth_file(path.read_bytes()).users)


@pytest.mark.parametrize("content", ["# the users\nusers: []\n", "users: []  # none yet\n", "users:\n  # none yet\n"])
def test_comments_are_not_lost_in_silence(run, path, content):
    """A command that drops comments says so."""
    path.write_text(content)

    assert (0, True) == (
        (found := run("add", "ada", "--password-stdin", typed="open sesame"))[0],
        "comments" in found[1],
    )


@pytest.mark.parametrize("content", ["users: [", '{"users": [], "permissions": []}'])
def test_a_file_that_is_not_changed(path, content):
    """A broken file, and one of Karapace, are left as they are."""
    path.write_text(content)

    with pytest.raises(AuthFileError):
        add_user(path, "ada", HASH)
    assert content == path.read_text()


def test_commands_at_the_same_time(path):
    """Several commands at once lose no change."""
    threads = [threading.Thread(target=add_user, args=(path, f"user{number}", HASH)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {f"user{number}" for number in range(20)} == {one[0] for one in list_users(path)}


def test_who_is_not_there_cannot_be_removed(run, path):
    """Removing an unknown user, or listing a file that does not exist, ends with 2."""
    assert (2, True) == ((found := run("list"))[0], "No such file" in found[1])
    run("add", "ada", "--generate")
    assert (2, True) == ((found := run("remove", "bob"))[0], "there is no user 'bob'" in found[1])
