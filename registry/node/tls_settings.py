"""The settings of `strata serve` for TLS."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from strata.registry.node.setting_types import ExistingFile, Lowered, SettingGroup

__all__ = ["ClientAuth", "TlsSettings", "TlsVersion"]


class ClientAuth(StrEnum):
    """Whether clients show a certificate when they connect."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


class TlsVersion(StrEnum):
    """A version of TLS."""

    V1_2 = "1.2"
    V1_3 = "1.3"


class TlsSettings(SettingGroup):
    """How connections are encrypted; each field is a flag and a variable, as in `Settings`."""

    tls_certfile: ExistingFile = Field(
        None, description="serve https with this certificate, followed by its intermediate ones (PEM)  [plain http]"
    )
    tls_keyfile: ExistingFile = Field(
        None, description="private key of the certificate (PEM)  [in the file of the certificate]"
    )
    tls_key_password_file: ExistingFile = Field(None, description="file with the password of the private key")
    tls_client_ca: ExistingFile = Field(
        None, description="CA certificates by which certificates of clients are verified (PEM)"
    )
    tls_client_auth: Annotated[ClientAuth, Lowered] = Field(
        ClientAuth.NONE, description="whether clients show a certificate; one that is not valid is never accepted"
    )
    tls_min_version: TlsVersion = Field(TlsVersion.V1_2, description="oldest version of TLS to accept")
    node_ca_file: ExistingFile = Field(
        None, description="CA certificates to trust in calls to other nodes over https (PEM)  [the system's]"
    )

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if self.tls_certfile is None and (self.tls_keyfile or self.tls_key_password_file or self.tls_client_ca):
            raise ValueError("--tls-keyfile, --tls-key-password-file and --tls-client-ca need --tls-certfile")
        if (self.tls_client_auth is ClientAuth.NONE) != (self.tls_client_ca is None):
            raise ValueError("--tls-client-ca and --tls-client-auth optional or required need each other")
        return self
