"""The JSON of encryption keys: models that parse bodies and describe the API, and functions that build answers."""

from typing import Annotated, Any, Literal

from pydantic import Field

from strata.registry.decide.deks import AES256_GCM, Dek, DekRequest
from strata.registry.decide.keks import Kek, KekRequest
from strata.registry.wire.contracts import Answer, Body, Number, Text, Truth, Word
from strata.storage.records import Subject

__all__ = ["Algorithm", "DekAnswer", "DekBody", "KekAnswer", "KekBody", "KekChange", "dek_answer", "kek_answer"]

Algorithm = Literal["AES128_GCM", "AES256_GCM", "AES256_SIV"]
_Short = Annotated[str, Field(max_length=4096)]
_Props = Annotated[dict[_Short, _Short], Field(max_length=100)]
# Enough for a key of 64 bytes, encrypted by the KMS under several of its keys.
_Material = Annotated[str, Field(max_length=16 * 1024)]


class KekBody(Body):
    """A key encryption key to create."""

    name: Word = Field("", description="up to 64 letters, digits, `_` and `-`, a letter or `_` first")
    kms_type: _Short | None = Field(None, alias="kmsType", description="aws-kms, azure-kms, gcp-kms, hcvault, …")
    kms_key_id: _Short | None = Field(None, alias="kmsKeyId", description="the key within its KMS")
    kms_props: _Props | None = Field(None, alias="kmsProps", description="for clients; credentials are left out")
    doc: Text | None = None
    shared: Truth | None = Field(None, description="must be false: this service has no access to a KMS")
    deleted: Truth | None = Field(None, description="create it as soft-deleted")

    def request(self) -> KekRequest:
        """Return the KEK request that this body describes."""
        return KekRequest(
            self.name,
            self.kms_type,
            self.kms_key_id,
            self.kms_props or {},
            self.doc,
            shared=self.shared is True,
            deleted=self.deleted is True,
        )


class KekChange(Body):
    """A change of a key encryption key: an absent property keeps its value, null removes it."""

    kms_props: _Props | None = Field(None, alias="kmsProps")
    doc: Text | None = None
    shared: Truth | None = None

    def change(self) -> dict[str, Any]:
        """Return the properties that the body holds by their JSON names, null ones included."""
        return {type(self).model_fields[name].alias or name: getattr(self, name) for name in self.model_fields_set}


class DekBody(Body):
    """A version of a data encryption key to create."""

    subject: Word | None = Field(None, description="the subject, if the path does not name one")
    version: Number | None = Field(None, description="1 when absent")
    algorithm: Algorithm | None = Field(None, description="AES256_GCM when absent")
    material: _Material | None = Field(
        None, alias="encryptedKeyMaterial", description="the key, encrypted by the KEK, in base64"
    )
    deleted: Truth | None = Field(None, description="create it as soft-deleted")

    def request(self, kek: str, subject: Subject, *, rewrap: bool = False) -> DekRequest:
        """Return the DEK request that this body describes.

        Args:
            kek: the name of the KEK, from the path.
            subject: the subject, from the path or the body.
            rewrap: whether to replace an existing version.
        """
        return DekRequest(
            kek,
            subject,
            self.algorithm or AES256_GCM,
            1 if self.version is None else self.version,
            self.material,
            deleted=self.deleted is True,
            rewrap=rewrap,
        )


class KekAnswer(Answer):
    """A key encryption key, with its creation time (`ts`); `deleted` only if it is soft-deleted."""

    name: str
    kms_type: str = Field(alias="kmsType")
    kms_key_id: str = Field(alias="kmsKeyId")
    kms_props: dict[str, str] | None = Field(None, alias="kmsProps")
    doc: str | None = None
    shared: bool
    ts: int
    deleted: bool | None = None


class DekAnswer(Answer):
    """A version of a data encryption key, with its creation time (`ts`); `deleted` only if it is soft-deleted."""

    kek_name: str = Field(alias="kekName")
    subject: str
    version: int
    algorithm: str
    material: str | None = Field(None, alias="encryptedKeyMaterial")
    ts: int
    deleted: bool | None = None


def kek_answer(kek: Kek) -> dict[str, Any]:
    """Return the JSON of a key encryption key."""
    value = kek.value
    content: dict[str, Any] = {"name": kek.name, "kmsType": value.kms_type, "kmsKeyId": value.kms_key_id}
    content |= {name: found for name, found in (("kmsProps", value.kms_props), ("doc", value.doc)) if found}
    return content | {"shared": value.shared} | _log_facts(value.created, deleted=value.deleted)


def dek_answer(dek: Dek) -> dict[str, Any]:
    """Return the JSON of a version of a data encryption key."""
    key, value = dek.key, dek.value
    content: dict[str, Any] = {"kekName": key.kek, "subject": key.subject, "version": key.version}
    content["algorithm"] = key.algorithm
    if value.material is not None:
        content["encryptedKeyMaterial"] = value.material
    return content | _log_facts(value.created, deleted=value.deleted)


def _log_facts(created: int, *, deleted: bool) -> dict[str, Any]:
    return {"ts": created, "deleted": True} if deleted else {"ts": created}
