"""The attempt that must fail: which refusals the demo accepts."""

import pytest

from demo import producer
from strata.serdes.errors import RegistryError
from strata.serdes.model import CompatibilityResult, RegisteredSchema, Schema

REASONS = (
    "{errorType:'TYPE_MISMATCH', …}, {errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', …}, {oldSchema: '{\"a\": []}'}, "
    "{validateFields: 'false', compatibility: 'BACKWARD'}] Field 'distance' is int in the new schema, … "
    "Add a default to field 'gate'."
)


class Registry:
    """A registry that raises the given refusal, if any."""

    def __init__(self, refusal, *, registers=False):
        self._refusal = refusal
        self._registers = registers
        self._versions = [1, 2]

    def get_versions(self, subject):
        """Return the versions so far."""
        return list(self._versions)

    def register(self, subject, schema):
        """Register if configured to, then raise the refusal or return a schema."""
        if self._registers:
            self._versions.append(3)
        if self._refusal:
            raise self._refusal
        return RegisteredSchema(subject, 3, 3, None, Schema(schema))

    def test_compatibility(self, subject, schema, version, *, witness):
        """Return a finding with a witness."""
        finding = {"direction": "BACKWARD", "version": 2, "witness": {"record": {"a": 0}, "error": "No field 'gate'."}}
        return CompatibilityResult(False, (), (finding,))


def test_proper_refusal():
    """The demo accepts a refusal of an incompatible schema that has reasons and leaves nothing."""
    refusal = producer.try_incompatible(Registry(RegistryError(409, 40901, REASONS)), "s")

    assert (409, 40901, REASONS) == (refusal.status, refusal.error_code, refusal.message)
    assert (
        'This record, written with version 2, cannot be read with the new schema: {"a": 0}',
        "No field 'gate'.",
    ) == refusal.proofs
    assert "{oldSchema: '...'}" in producer.describe(refusal, "s")


@pytest.mark.parametrize(
    ("registry", "problem"),
    [
        (Registry(None), "accepted the incompatible change as schema id 3"),
        (Registry(RegistryError(422, 42201, REASONS)), "another reason"),
        (Registry(RegistryError(409, 40901, REASONS), registers=True), "but the versions changed"),
        (Registry(RegistryError(409, 40901, "incompatible")), "does not mention"),
    ],
    ids=["taken", "other error", "registered anyway", "no reasons"],
)
def test_refusal_that_does_not_count(registry, problem):
    """The run ends if there is no refusal, another reason, a new version, or no reasons."""
    with pytest.raises(RuntimeError, match=problem):
        producer.try_incompatible(registry, "s")
