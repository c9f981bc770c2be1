"""Writing and reading with a schema's rules, prepared once for each schema and topic.

Reading runs the domain rules of the schema that the value has by then: the latest one if the caller asked for it, else
the writer's. Only after that the value is converted to the shape that the caller wants.

    payload → encoding rules → decoder ┬────────────────────────────────┬→ domain rules → wanted shape
                                       └ migration → … → shape of latest ┘

Rules of this file: the order of things; the formats convert values between schemas.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from strata.serdes.functions import Decode
from strata.serdes.model import RegisteredSchema, Schema
from strata.serdes.registry_protocol import Registry
from strata.serdes.rules.fields import Encode, Values
from strata.serdes.rules.running import DOMAIN, ENCODING, MIGRATION, Runner, Step, has_rules, run
from strata.serdes.subject_name_strategies import RecordContext

__all__ = ["Reading", "Shapes", "Writing", "reading_of", "writing_of"]

Change = Callable[[object], object]


class Shapes(Protocol):
    """A format's conversions between the schemas of one kind of record."""

    def values(self, schema: Schema) -> Values:
        """Return the values of a schema as rules see them."""

    def decoder(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to values of a schema."""

    def first(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to values for the first migration, which starts from a schema."""

    def between(self, have: Schema, want: Schema) -> Change:
        """Return the conversion from the result of one migration to the input of the next."""

    def adopted(self, have: Schema, want: Schema) -> Change:
        """Return the conversion from the result of the last migration to a value of the latest schema."""

    def wanted(self, shape: Schema) -> Change | None:
        """Return the conversion of a value of a schema to what the caller wants; None if it is the same."""


@dataclass(slots=True)
class Writing:
    """The rules for writing with one schema.

    `direct` is there after the first record, if the rules allow it. It does the same as `payload` in less time, but its
    errors say nothing.
    """

    values: Values
    domain: tuple[Step, ...]
    encoding: tuple[Step, ...]
    direct: Encode | None = None
    _may_be_direct: bool = True

    def prepare(self) -> None:
        """Get what the rules need before the first record, such as data keys.

        Raises:
            RuleError: If a data key is missing and cannot be added.
        """
        for step in (*self.domain, *self.encoding):
            step.prepare(step.context)

    def payload(self, value: object, record: RecordContext, encode: Encode) -> bytes:
        """Return the payload of a value.

        Args:
            value: the value, of any of the caller's classes.
            record: the topic, field and headers of the record.
            encode: the format's encoder.

        Raises:
            RuleError: If a rule fails.
            EncodeError: If the value does not fit the schema.
        """
        value = original = self.values.plain(value)
        value = run(self.domain, value, record, original)
        payload: bytes = encode(value)
        if self.encoding:
            payload = run(self.encoding, payload, record, original)
        elif self._may_be_direct:
            self._may_be_direct = False
            self.direct = self._directly()
        return payload

    def _directly(self) -> Encode | None:
        """Return the encoder that does what a single rule does, if that only converts fields."""
        if len(self.domain) != 1 or self.domain[0].off or self.domain[0].converter is None:
            return None
        step, converter = self.domain[0], self.domain[0].converter
        return self.values.direct(step.context.rule, lambda type_name: converter(step.context, type_name))


def writing_of(runner: Runner, schema: Schema, subject: str, values: Callable[[], Values]) -> Writing | None:
    """Return the rules for writing with a schema; None if there are none.

    Args:
        runner: prepares the rules.
        schema: the schema, with its rule set.
        subject: the subject of the records.
        values: returns the values of the schema as rules see them.

    Raises:
        RuleError: If the library of an executor is not installed.
    """
    if schema.rule_set is None or not schema.rule_set.concerns("WRITE"):
        return None
    rule_values = values()
    domain = runner.steps(DOMAIN, "WRITE", subject, schema, values=rule_values)
    encoding = runner.steps(ENCODING, "WRITE", subject, schema)
    return Writing(rule_values, domain, encoding) if domain or encoding else None


@dataclass(frozen=True, slots=True)
class Reading:
    """The steps for payloads written with one schema."""

    encoding: tuple[Step, ...]
    decode: Decode
    migrations: tuple[tuple[Change | None, tuple[Step, ...]], ...]
    adopt: Change | None
    domain: tuple[Step, ...]
    finish: Change | None

    @property
    def plain(self) -> Decode | None:
        """The decoder alone, if no rules run; else None."""
        if self.encoding or self.migrations or self.domain:
            return None
        decode, finish = self.decode, self.finish
        return decode if finish is None else lambda payload: finish(decode(payload))

    def value(self, payload: bytes, record: RecordContext, original: bytes) -> object:
        """Return the value in a payload.

        Args:
            payload: the payload of the frame.
            record: the topic, field and headers of the record.
            original: the record as it came, for dead letters.

        Raises:
            RuleError: If a rule fails.
            DecodeError: If the payload does not decode, or the result of the rules does not fit the schema.
        """
        value = self.decode(run(self.encoding, payload, record, original))
        for change, steps in self.migrations:
            value = run(steps, value if change is None else change(value), record, original)
        if self.adopt is not None:
            value = self.adopt(value)
        value = run(self.domain, value, record, original)
        return value if self.finish is None else self.finish(value)


def reading_of(
    runner: Runner,
    client: Registry,
    subject: str,
    written: Schema,
    latest: RegisteredSchema | None,
    shapes: Shapes,
) -> Reading:
    """Return the steps for payloads written with a schema.

    Args:
        runner: prepares the rules.
        client: the registry, for the versions between the two schemas.
        subject: the subject of the records.
        written: the schema with which they were written.
        latest: the schema to migrate to; None if the caller did not ask for one.
        shapes: the format's conversions.

    Raises:
        RuleError: If the library of an executor is not installed.
        SchemaError: If a schema cannot be used.
        RegistryError: If the registry rejects a request, such as for a version that is gone.
        RegistryUnavailable: If the registry gives no usable answer after all retries.
    """
    shape = written if latest is None else latest.schema
    chain = [] if latest is None else _chain(runner, client, subject, written, latest, shapes)
    migrations: list[tuple[Change | None, tuple[Step, ...]]] = []
    have: Schema | None = None
    for source, target, steps in chain:
        migrations.append((None if have in (None, source) else shapes.between(have, source), steps))
        have = target
    values = shapes.values(shape)
    return Reading(
        encoding=runner.steps(ENCODING, "READ", subject, written),
        decode=shapes.decoder(shape) if have is None else shapes.first(chain[0][0]),
        migrations=tuple(migrations),
        adopt=None if have is None else shapes.adopted(have, shape),
        domain=runner.steps(DOMAIN, "READ", subject, shape, values=values),
        finish=shapes.wanted(shape),
    )


def _chain(
    runner: Runner, client: Registry, subject: str, written: Schema, latest: RegisteredSchema, shapes: Shapes
) -> list[tuple[Schema, Schema, tuple[Step, ...]]]:
    """Return the migrations from the writer's schema to the wanted one, each from one version to the next."""
    if written == latest.schema:
        return []
    begin, end = client.lookup(subject, written, deleted=True).version or 0, latest.version or 0
    mode = "UPGRADE" if begin < end else "DOWNGRADE"
    low, high = sorted((begin, end))
    ends = {begin: written, end: latest.schema}
    versions = [version for version in client.get_versions(subject, deleted=True) if low < version < high]
    line = [
        ends.get(number) or client.get_version(subject, number, deleted=True).schema
        for number in (low, *versions, high)
    ]
    pairs = list(pairwise(line))  # (older, newer): the newer one has the rules
    chain = [
        (older, newer) if mode == "UPGRADE" else (newer, older)
        for older, newer in (pairs if mode == "UPGRADE" else reversed(pairs))
        if has_rules(newer.rule_set, MIGRATION, mode)
    ]
    steps = [
        (
            source,
            target,
            runner.steps(MIGRATION, mode, subject, target, source=source, values=shapes.values(source)),
        )
        for source, target in chain
    ]
    return [step for step in steps if step[2]]
