"""A real node with several mechanisms at once: passwords, tokens of a real provider, and client certificates."""

import base64
import http.client
import json
import shutil
from contextlib import closing

import pytest

from harness.certificates import Authority
from harness.log_lines import JSON_LINES, until_logged
from harness.oidc import CLIENT, SigningKey
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.features.access.auth_file_edits import add_user, remove_user

pytestmark = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm")

HERE = "https://strata.example.com"
ROLES = """
roles:
- {principal: Group:etl-team, role: viewer}
- {principal: User:spark, role: consumer, on: orders-*}
"""
ADA, EVE = (
    {"Authorization": "Basic " + base64.b64encode(f"{name}:open sesame".encode()).decode()} for name in ("ada", "eve")
)
CHALLENGES = ['Basic realm="Strata", charset="UTF-8"', 'Bearer realm="Strata"']


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Return the CA of the node and its clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def provider(identity_providers, tmp_path_factory):
    """Yield an identity provider whose clients are in a group."""
    folder = tmp_path_factory.mktemp("provider")
    with identity_providers(folder, [SigningKey("RS256", "1")], {HERE: "RS256"}, {"groups": ["etl-team"]}) as running:
        yield running


@pytest.fixture(scope="module")
def auth_file(tmp_path_factory):
    """Return an auth file with two administrators, and the roles of others."""
    path = tmp_path_factory.mktemp("auth") / "auth.yaml"
    path.write_text(ROLES)
    for name in ("ada", "eve"):
        add_user(path, name, cheap_hash("open sesame"), role="admin")
    return path


@pytest.fixture(scope="module")
def node(authority, provider, auth_file):
    """Yield a node with all of them, and two subjects."""
    own = authority.issue("registry")
    flags = [
        f"--tls-certfile={own.cert}", f"--tls-keyfile={own.key}", f"--tls-client-ca={authority.file}",
        "--tls-client-auth=optional", "--tls-principal-rules=RULE:^CN=([a-z]+),OU=Services$/$1/",
        f"--auth-file={auth_file}", f"--oidc-issuer={provider.issuer}", f"--oidc-audience={HERE}",
        f"--oidc-ca-file={provider.ca_file}", JSON_LINES,
    ]  # fmt: skip
    with RegistryNode("memory:", *flags, tls=authority.context()) as started:
        for subject in ("orders-value", "pay-value"):
            assert 200 == ask(started, authority.context(), "POST", f"/subjects/{subject}/versions", ADA)[0]
        yield started


def ask(node, context, method="GET", path="/subjects", headers=None):
    """Return status, content and headers of the answer to one request."""
    body = json.dumps({"schema": '"int"'}) if method == "POST" else None
    connection = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=60, context=context)
    with closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers


def test_each_mechanism_names_its_user(node, authority, provider):
    """A password, a token and a certificate each give the rights of their user and groups."""
    plain, spark = authority.context(), authority.context(authority.issue("spark", subject="CN=spark,OU=Services"))
    token = {"Authorization": f"Bearer {provider.token(HERE)}"}

    assert (200, ["orders-value", "pay-value"]) == ask(node, plain, headers=ADA)[:2]
    assert (200, ["orders-value", "pay-value"]) == ask(node, plain, headers=token)[:2]
    assert (200, ["orders-value"]) == ask(node, spark)[:2]
    assert (200, ["orders-value", "pay-value"]) == ask(node, spark, headers=token)[:2]  # the header comes first
    status, content, _ = ask(node, plain, "POST", "/subjects/pay-value/versions?normalize=true", token)
    assert (200, 1) == (status, content["version"])
    status, content, _ = ask(node, plain, "POST", "/subjects/new-value/versions", token)
    assert (40301, "User is denied operation Write on Subject: new-value") == (
        content["error_code"],
        content["message"],
    )


def test_without_valid_credentials(node, authority, provider):
    """The answer is 401 and names both schemes, whatever is wrong."""
    plain = authority.context()
    other = authority.context(authority.issue("other", subject="CN=other,OU=People"))
    wrong = {"Authorization": "Basic " + base64.b64encode(b"ada:wrong").decode()}
    forged = {"Authorization": "Bearer " + SigningKey("RS256", "1").sign({"iss": provider.issuer, "sub": CLIENT})}
    for context, headers in (
        (plain, {}),
        (plain, wrong),
        (plain, forged),
        (other, {}),
        (plain, {"X-Forwarded-User": "ada"}),
    ):
        status, content, answered = ask(node, context, headers=headers)

        assert (401, {"error_code": 401, "message": "Unauthorized"}) == (status, content)
        assert CHALLENGES == answered.get_all("WWW-Authenticate")


def test_health_needs_no_credentials(node, authority):
    """Probes answer without credentials."""
    assert 200 == ask(node, authority.context(), path="/health/ready")[0]


def readiness_of_the_file(node, context):
    """Return what readiness says about the auth file; None if it says nothing."""
    return ask(node, context, path="/health/ready", headers=EVE)[1].get("auth")


def test_a_broken_file_changes_nothing(node, authority, auth_file):
    """A file that cannot be used changes nothing, is logged, and shows in readiness."""
    plain, good = authority.context(), auth_file.read_text()

    auth_file.write_text(good.replace("principal", "principle"))
    until_logged(node, "auth_file_rejected")

    assert "stale" == readiness_of_the_file(node, plain)
    assert 200 == ask(node, plain, headers=ADA)[0]
    auth_file.write_text(good)


def test_a_user_is_removed(node, authority, auth_file):
    """A user who is removed gets 401 without a restart; the log tells how many users there are."""
    plain = authority.context()

    remove_user(auth_file, "ada")
    until_logged(node, "auth_file_read", users=1)

    assert 401 == ask(node, plain, headers=ADA)[0]
    assert readiness_of_the_file(node, plain) is None
