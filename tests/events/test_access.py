"""Events of access control, caused on real nodes with a real OpenID Connect provider."""

import json
import shutil

import pytest

from harness.log_lines import JSON_LINES, call, until_logged
from harness.oidc import CLIENT, PEOPLE, SigningKey
from harness.passwords import cheap_hash
from harness.registry import RegistryNode

AUDIENCE = "https://strata.example.com"
KEY = SigningKey("RS256", "key-1")


@pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm")
def test_a_provider_that_goes_away(identity_providers, tmp_path):
    """A node says when it has read the provider's keys, and when it cannot; also that a sign-in has failed."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "provider").mkdir()
    with identity_providers(tmp_path / "provider", [KEY], {AUDIENCE: "RS256"}, {"groups": []}) as provider:
        options = (JSON_LINES, f"--oidc-issuer={provider.issuer}", f"--oidc-audience={AUDIENCE}",
                   f"--oidc-ca-file={provider.ca_file}", f"--superusers=User:{CLIENT}",
                   f"--oidc-client-id={PEOPLE}", f"--oidc-client-secret={secret}")  # fmt: skip
        headers = {"Authorization": f"Bearer {provider.token(AUDIENCE)}"}
        with RegistryNode("memory:", *options) as node:
            assert 200 == call(node, "GET", "/subjects", **headers)[0]
            until_logged(node, "provider_keys_read", level="INFO", issuer=provider.issuer, keys=1)
        provider.stop()
        with RegistryNode("memory:", *options) as node:
            assert 503 == call(node, "GET", "/subjects", **headers)[0]
            until_logged(node, "provider_keys_unreadable", level="ERROR", issuer=provider.issuer)
            [line] = until_logged(node, "provider_keys_missing", level="ERROR")
            assert provider.issuer in line["reason"]
            call(node, "GET", "/ui/sign-in/provider?to=/ui")
            until_logged(node, "sign_in_failed", level="INFO", address="127.0.0.1")
            assert headers["Authorization"].partition(" ")[2] not in node.output


def test_a_signature_that_is_not_of_a_node(tmp_path):
    """A forwarded write with a bad signature is named."""
    users, secret = tmp_path / "auth.yaml", tmp_path / "node-secret"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    secret.write_text("0" * 44)
    with RegistryNode("memory:", JSON_LINES, f"--auth-file={users}", f"--node-secret={secret}") as node:
        assert 401 == call(node, "DELETE", "/subjects/s", X_Strata_Asked_By="forged")[0]
        until_logged(node, "signature_invalid", level="WARNING")
