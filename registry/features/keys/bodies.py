"""The JSON of encryption keys: models that parse bodies and describe the API, and functions that build answers."""

from typing import Annotated, Literal, cast

from pydantic import Field

from strata.registry.api.bodies.contracts import Answer, Body, Text
from strata.registry.core.decide.deks import AES256_GCM
from strata.registry.core.decide.keks import Kek, KekFields
from strata.registry.http.bodies import Number, Truth, Word
from strata.storage.encryption_keys import Dek
from strata.storage.record_json import properties_of
from strata.storage.records import DekKey, DekValue, KekValue, Subject

__all__ = ["Algorithm", "DekAnswer", "DekBody", "KekAnswer", "KekBody", "KekChange", "dek_answer", "kek_answer"]

Algorithm = Literal["AES128_GCM", "AES256_GCM", "AES256_SIV"]
_Short = Annotated[str, Field(max_length=4096)]
_Props = Annotated[dict[_Short, _Short], Field(max_length=100)]
# Enough for a key of 64 bytes, encrypted by the KMS under several of its keys.
_Material = Annotated[str, Field(max_length=16 * 1024)]


class KekBody(Body):
    """A key encryption key to create."""

    name: Word = Field("", description="up to 64 letters, digits, `_` and `-`, a letter or `_` first")
    kms_type: _Short | None = Field(None, description="aws-kms, azure-kms, gcp-kms, hcvault, …")
    kms_key_id: _Short | None = Field(None, description="the key within its KMS")
    kms_props: _Props | None = Field(None, description="for clients; credentials are left out")
    doc: Text | None = None
    shared: Truth | None = Field(None, description="must be false: this service has no access to a KMS")
    deleted: Truth | None = Field(None, description="create it as soft-deleted")

    def kek(self) -> Kek:
        """Return the KEK that this body describes."""
        props, shared, deleted = self.kms_props or {}, self.shared is True, self.deleted is True
        value = KekValue(self.kms_type or "", self.kms_key_id or "", props, self.doc, shared, deleted, created=0)
        return Kek(self.name, value)


class KekChange(Body):
    """A change of a key encryption key: an absent property keeps its value, null removes it."""

    kms_props: _Props | None = None
    doc: Text | None = None
    shared: Truth | None = None

    def change(self) -> KekFields:
        """Return the properties that the body holds by their JSON names, null ones included."""
        held = {type(self).model_fields[name].alias or name: getattr(self, name) for name in self.model_fields_set}
        return cast("KekFields", held)


class DekBody(Body):
    """A version of a data encryption key to create."""

    subject: Word | None = Field(None, description="the subject, if the path does not name one")
    version: Number | None = Field(None, description="1 when absent")
    algorithm: Algorithm | None = Field(None, description="AES256_GCM when absent")
    material: _Material | None = Field(
        None, alias="encryptedKeyMaterial", description="the key, encrypted by the KEK, in base64"
    )
    deleted: Truth | None = Field(None, description="create it as soft-deleted")

    def dek(self, kek: str, subject: Subject) -> Dek:
        """Return the version of a DEK that this body describes, with KEK and subject from the path or the body."""
        key = DekKey(kek, subject, self.algorithm or AES256_GCM, 1 if self.version is None else self.version)
        return Dek(key, DekValue(self.material, deleted=self.deleted is True, created=0))


class KekAnswer(Answer):
    """A key encryption key, with its creation time (`ts`); `deleted` only if it is soft-deleted."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool
    ts: int
    deleted: bool | None = None


class DekAnswer(Answer):
    """A version of a data encryption key, with its creation time (`ts`); `deleted` only if it is soft-deleted."""

    kek_name: str
    subject: str
    version: int
    algorithm: str
    material: str | None = Field(None, alias="encryptedKeyMaterial")
    ts: int
    deleted: bool | None = None


def kek_answer(kek: Kek) -> dict[str, object]:
    """Return the JSON of a key encryption key."""
    content = {"name": kek.name, **properties_of(kek.value)}
    return _shown({name: value for name, value in content.items() if name != "doc" or value})


def dek_answer(dek: Dek) -> dict[str, object]:
    """Return the JSON of a version of a data encryption key."""
    key = dek.key
    content = {"kekName": key.kek, "subject": key.subject, "version": key.version, "algorithm": key.algorithm}
    return _shown(content | properties_of(dek.value))


def _shown(content: dict[str, object]) -> dict[str, object]:
    """Return the JSON of a stored key, with its creation time as `ts`, and `deleted` only if it is soft-deleted."""
    created, deleted = content.pop("createTs"), content.pop("deleted")
    return content | ({"ts": created, "deleted": True} if deleted else {"ts": created})
