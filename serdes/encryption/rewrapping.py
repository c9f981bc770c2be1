"""Wraps the data keys of a KEK again, such as after the rotation of its key in the KMS, or to move to another one.

Data keys stay the same, so records stay readable. A key is wrapped by the id of the KEK, unwrapped by it or an
alternate one, and unwrapped again as a check before the registry replaces it.

Rules of this file: it prints nothing; a key that fails does not stop the others.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from strata.serdes.client import RegistryClient
from strata.serdes.encryption.ciphers import ALGORITHMS, CipherError
from strata.serdes.encryption.dek_registry import Dek, DekRegistry
from strata.serdes.encryption.kms import DRIVERS, KmsDriver, Service
from strata.serdes.errors import RegistryError

__all__ = ["Rewrapped", "rewrap_keys"]


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """A version of a data key that was wrapped again, or was not.

    Attributes:
        subject: the subject.
        algorithm: the cipher that the key is for.
        version: the version.
        failure: why it was not wrapped again; empty if it was.
    """

    subject: str
    algorithm: str
    version: int
    failure: str = ""


def rewrap_keys(
    client: RegistryClient,
    name: str,
    settings: Mapping[str, object],
    *,
    subjects: Collection[str] = (),
    is_trial: bool = False,
    drivers: Mapping[str, KmsDriver] = DRIVERS,
) -> Iterator[Rewrapped]:
    """Wrap the live data keys of a KEK again, and yield each.

    Args:
        client: the registry.
        name: the name of the KEK.
        settings: those of the KMS, and `kms.allowed`.
        subjects: the subjects whose keys are meant; all by default.
        is_trial: whether to stop before the registry replaces a key.
        drivers: the drivers by KMS type.

    Raises:
        CipherError: If the KEK is unknown or shared, or the KMS lacks settings.
        RegistryError: If the registry rejects a request for a list.
        RegistryUnavailable: If the registry gives no usable answer after all retries.
    """
    registry = DekRegistry(client)
    kek = registry.find_kek(name, "")
    if kek is None:
        raise CipherError(f"the registry has no key encryption key {name}")
    if kek.shared:
        raise CipherError(f"the key encryption key {name} is shared: the registry wraps its data keys")
    service = Service(kek, settings, drivers)
    for subject in subjects or registry.subjects(name):
        for algorithm in ALGORITHMS:
            for version in registry.versions(name, subject, algorithm):
                try:
                    dek = registry.find_dek(name, subject, algorithm, version, deleted=False)
                    if dek is not None:
                        wrapped = _rewrapped(service, dek)
                        if not is_trial:
                            registry.rewrap(name, subject, dek, wrapped)
                        yield Rewrapped(subject, algorithm, version)
                except (CipherError, RegistryError) as error:
                    yield Rewrapped(subject, algorithm, version, str(error))


def _rewrapped(service: Service, dek: Dek) -> bytes:
    if dek.wrapped is None:
        raise CipherError("the registry returned no material")
    material = service.unwrap(dek.wrapped)
    wrapped = service.wrap(material)
    if service.unwrap(wrapped) != material:
        raise CipherError("the KMS did not unwrap what it has just wrapped")
    return wrapped
