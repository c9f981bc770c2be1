"""Connections from options and profiles: what is wrong with them is said in a sentence."""

import sys
from types import SimpleNamespace

import pytest

from strata.gitops.errors import GitopsError
from strata.gitops.profiles import connect

URL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def profiles(tmp_path, monkeypatch):
    """Return the file of the profiles, which does not exist yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRATA_PROFILES", str(tmp_path / "profiles.yaml"))
    return tmp_path / "profiles.yaml"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no registry: give --url, or set STRATA_URL, or name a --profile"),
        ({"url": "127.0.0.1:8081"}, "the registry URL cannot be read"),
        ({"url": URL, "auth": "@nowhere"}, "nowhere cannot be read; expected a text file with the credentials"),
        ({"profile": "any"}, "cannot read the profiles in .*: No such file"),
    ],
)
def test_options_that_cannot_be_used(given, message):
    """A missing or unreadable option is named."""
    with pytest.raises(GitopsError, match=message):
        connect(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"one: {url: [}", "profiles.yaml: "),
        (b"one: \xff", "profiles.yaml: "),
        (b"other: {}", "no profile 'one'; expected one of other"),
        (b"one: {url: x, colour: red}", "colour"),
        (b"one: {auth: 'me:secret'}", "no registry"),
    ],
)
def test_profiles_that_cannot_be_used(profiles, text, message):
    """A file that is not YAML, a profile that is missing and a setting that is unknown are named."""
    profiles.write_bytes(text)
    with pytest.raises(GitopsError, match=message):
        connect({"profile": "one"})


@pytest.mark.parametrize(
    ("keyring", "message"),
    [
        (None, "needs the package keyring: pip install keyring"),
        (
            SimpleNamespace(get_password=lambda _service, _user: None),
            "the keyring has no password of 'me' for 'strata'",
        ),
    ],
)
def test_a_keyring_without_the_password(profiles, monkeypatch, keyring, message):
    """A profile that names an entry of the keyring needs the package and the entry."""
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    profiles.write_text(f"one: {{url: '{URL}', keyring: strata/me}}")
    with pytest.raises(GitopsError, match=message):
        connect({"profile": "one"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"auth": "me:secret"}, ("me", "secret", None)),
        ({"auth": "a-token"}, (None, None, "a-token")),
        ({"auth": "@credentials"}, ("me", "of:the-file", None)),
        ({"profile": "one"}, ("me", "of-the-ring", None)),
        ({"profile": "one", "auth": "another-token"}, (None, None, "another-token")),
    ],
)
def test_credentials(profiles, tmp_path, monkeypatch, given, expected):
    """They come from the option, a file or the keyring; an option goes before the profile."""
    (tmp_path / "credentials").write_text("me:of:the-file\n")
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda _service, _user: "of-the-ring"))
    profiles.write_text("one: {keyring: strata/me}")
    settings = connect({"url": URL, **given}).client.settings
    assert expected == (settings.username, settings.password, settings.token)
