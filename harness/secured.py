"""A registry as a company runs it: https, and users that prove who they are by a password, a token or a certificate.

    with SecuredNode(folder, provider) as node:
        RegistryClient(node.url, **node.password("ann"))

`ann`, the certificate of `etl` and the tokens of the provider may read and write under `orders-`; `ada` may do all.
"""

import ssl
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.certificates import Authority
from harness.oidc import OidcProvider
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.features.access.auth_file_edits import add_user

__all__ = ["AUDIENCE", "PASSWORD", "SecuredNode"]

AUDIENCE = "https://strata.example.com"
PASSWORD = "0pen-sesame"  # noqa: S105 - of the users of tests
_ROLES = """
roles:
- {principal: Group:orders-team, role: producer, on: orders-*}
- {principal: User:etl, role: producer, on: orders-*}
"""


class SecuredNode:
    """One node with access control.

    Args:
        folder: an empty folder for its files.
        provider: the provider of its tokens, if it takes any, for the audience `AUDIENCE`.
    """

    def __init__(self, folder: Path, provider: OidcProvider | None = None) -> None:
        self._authority = Authority(folder)
        auth_file, own = folder / "auth.yaml", self._authority.issue("registry")
        auth_file.write_text(_ROLES)
        add_user(auth_file, "ada", cheap_hash(PASSWORD), role="admin")
        add_user(auth_file, "ann", cheap_hash(PASSWORD), role="producer", on=["orders-*"])
        flags = [
            f"--tls-certfile={own.cert}", f"--tls-keyfile={own.key}", f"--tls-client-ca={self.ca_file}",
            "--tls-client-auth=optional", "--tls-principal-rules=RULE:^CN=([a-z]+)$/$1/", f"--auth-file={auth_file}",
        ]  # fmt: skip
        if provider is not None:
            identity = {"issuer": provider.issuer, "audience": AUDIENCE, "ca-file": provider.ca_file}
            flags += [f"--oidc-{name}={value}" for name, value in identity.items()]
        self._node = RegistryNode("memory:", *flags, tls=self._authority.context())
        self.url = self._node.url

    def __enter__(self) -> Self:
        self._node.restart()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node.stop()

    @property
    def ca_file(self) -> str:
        """The file of the CA that clients must trust."""
        return self._authority.file

    @property
    def context(self) -> ssl.SSLContext:
        """The context of a client that trusts the node, and shows no certificate."""
        return self._authority.context()

    @property
    def output(self) -> str:
        """The output of the node so far."""
        return self._node.output

    def password(self, user: str) -> dict[str, str]:
        """Return the settings of a client with a user's password."""
        return {"username": user, "password": PASSWORD, "ca_file": self.ca_file}

    def certificate(self, user: str) -> dict[str, str]:
        """Return the settings of a client with a new certificate of a user."""
        pair = self._authority.issue(user)
        return {"cert_file": pair.cert, "key_file": pair.key, "ca_file": self.ca_file}
