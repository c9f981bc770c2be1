"""Whatever calls a registry reaches it by OAuth tokens, through a proxy, and at the next address if one is dead."""

from contextlib import closing

import pytest
from click.testing import CliRunner

from harness.gateway import CLIENT, SECRET, gateway
from harness.neighbours import served
from harness.waiting import until
from strata.gitops.cli import main as schemas
from strata.http.credentials import credentials_in
from strata.registry.commands.cli import main
from strata.registry.features.standby.sources import ServiceSource
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection
from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryUnavailable

DEAD = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def registry():
    """Yield a registry with one version."""
    with served("memory:") as running:
        running.register("orders", '"int"')
        yield running


@pytest.fixture
def door(registry):
    """Yield a gateway in front of the registry."""
    with gateway(registry.url) as made:
        yield made


def lines(door, **more):
    """Return credentials as lines of a file: OAuth, and the gateway as proxy."""
    settings = {"token_url": door.token_url, "client_id": CLIENT, "client_secret": SECRET, "scope": "registry"}
    return "".join(f"{name}={value}\n" for name, value in {**settings, "proxy": door.url, **more}.items())


def by_client(door, addresses, _folder):
    """Ask with the client of the serdes."""
    options = {"token_url": door.token_url, "client_id": CLIENT, "client_secret": SECRET, "scope": "registry"}
    with RegistryClient(addresses, proxy=door.url, backoff=0.01, **options) as client:
        assert ["orders"] == client.get_subjects()


def by_command(door, addresses, folder):
    """Migrate into a log."""
    (folder / "auth").write_text(lines(door))
    log = f"sqlite:///{folder}/copy.db"
    ended = CliRunner().invoke(main, ["migrate", "--from", addresses, "--to", log, f"--from-auth=@{folder}/auth"])
    assert 0 == ended.exit_code, ended.output
    assert "1 version of 1 subject" in ended.output


def by_gitops(door, addresses, folder):
    """Ask as the commands for schemas in Git do."""
    (folder / "auth").write_text(lines(door))
    given = ["list", "--url", addresses, f"--auth=@{folder}/auth"]
    ended = CliRunner().invoke(schemas, given)
    assert (0, "orders") == (ended.exit_code, ended.output.split()[0]), ended.output


def by_standby(door, addresses, _folder):
    """Read as a standby."""
    with closing(ServiceSource(addresses, lines(door))) as source:
        assert ["orders"] == list(source.read().state.subjects)


def by_exporter(door, addresses, folder):
    """Copy another registry's subject to the registry."""
    (folder / "secret").write_text("s" * 32)
    config = {
        "schema.registry.url": addresses,
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": door.token_url,
        "bearer.auth.client.id": CLIENT,
        "bearer.auth.client.secret": SECRET,
        "bearer.auth.scope": "registry",
        "proxy": door.url,
    }
    with served("memory:", exporter_secret=folder / "secret", exporter_seconds=0.02) as source:
        source.register("sent", '"long"')
        body = {"name": "e", "subjects": ["sent"], "contextType": "CUSTOM", "context": "copies", "config": config}
        source.call("POST", "/exporters", body)
        until(lambda: source.call("GET", "/exporters/e/status")["offset"] >= 0)
        first = source.call("GET", "/exporters/e/status")["offset"]
        source.register("sent", '"double"')
        until(lambda: source.call("GET", "/exporters/e/status")["offset"] > first)
        assert 1 == len(door.scopes)  # one token serves all copies
        shown = source.call("GET", "/exporters/e/config")
        assert config | {"bearer.auth.client.secret": "[hidden]"} == shown


@pytest.mark.parametrize("ask", [by_client, by_command, by_gitops, by_standby, by_exporter])
def test_every_caller_reaches_a_registry_by_token_proxy_and_another_address(registry, door, tmp_path, ask):
    """A dead address comes first, the proxy carries requests for tokens and to the registry, and tokens open it."""
    dead, alive = "http://dead.invalid:8081", "http://registry.invalid:8081"
    ask(door, f"{dead},{alive}", tmp_path)

    paths = [one.partition(" ")[2] for one in door.through]
    assert door.scopes
    assert set(door.scopes) == {"registry"}
    assert door.token_url in paths
    assert {dead, alive} <= {path[: path.index("/", 8)] for path in paths}


@pytest.mark.parametrize(
    "ask",
    [
        lambda urls: RegistryClient(urls, retries=0).get_subjects(),
        lambda urls: Connection(urls, retries=0).get("/subjects"),
    ],
    ids=["client", "transfer"],
)
def test_a_dead_address_is_passed_over_even_without_retries(registry, ask):
    """Every address is tried once before a failure."""
    assert "orders" in ask(f"{DEAD},{registry.url}")


def test_a_rejected_secret_is_told_without_it(door, registry):
    """The token endpoint's refusal is the error of a transfer, which shows no secret."""
    with pytest.raises(TransferError, match="refused the request: invalid_client") as refused:
        Connection(registry.url, lines(door, client_secret="wr0ng"), retries=0).get("/subjects")

    assert "wr0ng" not in str(refused.value)


CREDENTIALS = [
    ("nothing", None, {}),
    ("an empty text", "\n", {}),
    ("a user", "ann:pa=ss:word", {"username": "ann", "password": "pa=ss:word"}),
    ("a user with a line end", "ann:pw\n", {"username": "ann", "password": "pw"}),
    ("a token", "abc.def==", {"token": "abc.def=="}),
    ("a token that looks like a setting", "name=", {"token": "name="}),
    ("settings", "# ours\n\ntoken = abc \nproxy=http://p:1", {"token": "abc", "proxy": "http://p:1"}),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in CREDENTIALS], ids=[row[0] for row in CREDENTIALS])
def test_the_forms_of_credentials(text, expected):
    """A user with a password, a token, or lines of settings."""
    assert expected == credentials_in(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("token=a\nsecret-b", "credentials, line 2: expected NAME=VALUE$"),
        ("token=a\n\ntokn=secret-b", "line 3: expected one of username, .*, key_password$"),
        ("token=secret-b\ntoken=c", "token is there twice"),
    ],
)
def test_lines_that_are_not_settings(text, says):
    """A line that is not a setting is refused, and not shown: it may be a secret."""
    with pytest.raises(ValueError, match=says) as refused:
        credentials_in(text)

    assert "secret-b" not in str(refused.value)


def test_an_outage_is_said_in_plain_words(monkeypatch):
    """A client and a command name the address and the reason, without what only a programmer of the library reads."""
    monkeypatch.setattr("strata.http.sender.backoff", lambda *_: 0.0)
    with RegistryClient(DEAD, retries=0) as client, pytest.raises(RegistryUnavailable) as outage:
        client.get_subjects()
    exported = CliRunner().invoke(main, ["export", DEAD, "-"])

    assert f"{DEAD} does not answer: Connection refused" == str(outage.value)
    assert f"the registry {DEAD} does not answer: Connection refused" in exported.output + str(exported.exception)
