"""The JSON of batches: the steps of `POST /v1/apply`, and what became of each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Literal, get_args

from pydantic import BaseModel, Field, model_validator

from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.registry.api.bodies.acls import AclAnswer, rules_json
from strata.registry.api.bodies.configuration import ConfigChange
from strata.registry.api.bodies.contracts import Answer, Body
from strata.registry.api.bodies.failures import FindingAnswer
from strata.registry.api.bodies.schemas import SchemaBody
from strata.registry.core import errors
from strata.registry.core.decide.batch import Batch, Outcome, Result, Step, deletion, registration, rights, settings
from strata.registry.core.decide.register import Rules
from strata.registry.core.rights.rules import EVERY_USER, Operation, RuleError, parse_new_rule
from strata.registry.core.subject_names import writable_scope, writable_subject
from strata.registry.http.bodies import Number, Truth, Word

__all__ = ["BatchBody", "BatchResultAnswer", "batch_result"]

MAX_STEPS = 10_000
_LONGEST_NAME = 100


class RightBody(Body):
    """A rule about the resource of a step."""

    principal: Word = Field(description="User:NAME, User:*, Group:NAME or Anonymous")
    operation: Word
    permission: Word | None = Field(None, description="ALLOW, which is the default, or DENY")
    host: Word | None = Field(None, description="*, an IP address or a network")


class StepBody(Body):
    """One change: a schema, the settings of a subject, context or registry, a deletion, or rules of access."""

    action: Literal["register", "settings", "delete", "rights"]
    subject: Word = Field("", description="empty: the registry as a whole")
    body: SchemaBody | None = Field(None, alias="schema", description="of `register`; its id and version are ignored")
    normalize: Truth | None = Field(None, description="of `register`")
    config: ConfigChange | None = Field(None, description="of `settings`, as in PUT /config")
    mode: Word | None = Field(None, description="of `settings`")
    resource_type: Word | None = Field(None, alias="resource_type", description="of `rights`: SUBJECT, KEK and so on")
    resource: Word | None = Field(None, description="of `rights`: a name or its beginning; * for all")
    pattern_type: Word | None = Field(None, alias="pattern_type", description="of `rights`: LITERAL or PREFIXED")
    rules: list[RightBody] = Field(default_factory=list, description="of `rights`: rules about the resource")
    only: Truth | None = Field(None, description="of `rights`: delete other rules about the resource")
    basis: Word | None = Field(None, description="from a dry run: refuse if what the step depends on has changed since")

    def step(self, level: Level, limits: Limits, now: int) -> Step:
        """Return the step that this body describes.

        Raises:
            RegistryError: 42208 for an invalid subject; 400 if the schema of a registration is missing, or a rule
                cannot be used.
        """
        if self.action == "rights":
            return self._rights(now)
        if self.action == "settings":
            change = None if self.config is None else self.config.change()
            return settings(writable_scope(self.subject), change, self.mode, level)
        subject = writable_subject(self.subject)
        if self.action == "delete":
            return deletion(subject)
        if self.body is None:
            raise errors.unreadable_body(f"The step that registers '{subject}' has no schema")
        return registration(subject, self.body.request(limits), Rules(level, normalize=self.normalize is True))

    def _rights(self, now: int) -> Step:
        names = {"resource_type": self.resource_type, "resource": self.resource, "pattern_type": self.pattern_type}
        about = {name: value for name, value in names.items() if value is not None}
        try:
            # The resource is known without any rule about it.
            resource = parse_new_rule({**about, "principal": EVERY_USER, "operation": Operation.ALL.value}).resource
            rules = [parse_new_rule({**about, **rule.model_dump(exclude_none=True)}) for rule in self.rules]
        except RuleError as error:
            raise errors.unreadable_body(f"The rights cannot be used: {error}") from None
        return rights(resource, rules, now, only=self.only is True)


class BatchBody(Body):
    """Changes that are written together or not at all; unlike other bodies it may have no unknown property."""

    offset: Number | None = Field(None, description="refuse if anything changed after it; from a dry run")
    dry_run: Truth | None = Field(None, description="return what would happen, and write nothing")
    steps: list[StepBody] = Field(default_factory=list, max_length=MAX_STEPS)

    @model_validator(mode="before")
    @classmethod
    def _has_known_properties(cls, value: object) -> object:
        """Reject a property that no step would take into account: a batch with one would do less than it says.

        Raises:
            RegistryError: 422 if there is one.
        """
        for name, where, known in _unknown(value, cls, ""):
            near = get_close_matches(name[:_LONGEST_NAME], known, 1)
            raise errors.unknown_property(
                name[:_LONGEST_NAME], where or "the body", f"; did you mean '{near[0]}'?" if near else ""
            )
        return value

    def batch(self, level: Level, limits: Limits, now: int) -> Batch:
        """Return the batch that this body describes.

        Args:
            level: the compatibility level of subjects that have none.
            limits: the limits on each schema.
            now: the time of new rules, in milliseconds since the epoch.

        Raises:
            RegistryError: as `StepBody.step`.
        """
        steps = [replace(body.step(level, limits, now), basis=body.basis) for body in self.steps]
        return Batch(steps, self.offset)


def _unknown(value: object, model: type[BaseModel], where: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each property that a model lacks, at any depth, with its place and the properties that the model has."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for name, inner in value.items() if isinstance(value, dict) else ():
        if name not in fields:
            yield name, where, list(fields)
        elif (nested := _model_in(fields[name])) is not None:
            place = f"{where}.{name}".removeprefix(".")
            for index, item in enumerate(inner if isinstance(inner, list) else [inner]):
                yield from _unknown(item, nested, f"{place}[{index}]" if isinstance(inner, list) else place)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model of an object, or of the items of a list; None if it is neither."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


class StepErrorAnswer(Answer):
    """Why a step is rejected, as its own route would answer."""

    error_code: int = Field(alias="error_code")
    message: str
    findings: list[FindingAnswer] | None = None


class StepAnswer(Answer):
    """What became of one step: `version` and `id` of a schema, `added` and `removed` rules.

    In a dry run `error` says why it would be rejected, and `basis` is the digest of what the step depends on.
    """

    changed: bool
    version: int | None = None
    id: int | None = None
    added: list[AclAnswer] | None = None
    removed: list[AclAnswer] | None = None
    error: StepErrorAnswer | None = None
    basis: str | None = None


class BatchResultAnswer(Answer):
    """The offset of the log on which the batch was decided, and the results in the order of the steps."""

    offset: int
    results: list[StepAnswer]


def batch_result(result: Result) -> dict[str, object]:
    """Return the JSON of the result of a batch."""
    return {"offset": result.offset, "results": _results(result.outcomes)}


def _results(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    return [
        {"changed": outcome.changed}
        | ({"version": outcome.entry.version, "id": outcome.entry.schema.schema_id} if outcome.entry else {})
        | (
            {"added": rules_json(outcome.rules.added), "removed": rules_json(outcome.rules.removed)}
            if outcome.rules
            else {}
        )
        | ({"error": _error(outcome.error)} if outcome.error else {})
        | ({"basis": outcome.basis} if outcome.basis else {})
        for outcome in outcomes
    ]


def _error(error: errors.RegistryError) -> dict[str, object]:
    content: dict[str, object] = {"error_code": error.code, "message": error.message}
    return content if error.findings is None else content | {"findings": error.findings}
