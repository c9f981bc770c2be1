"""The rules of a schema, run over records in order.

The choice of rules, their order, executors and fields is made once for a schema, so a schema without rules to run costs
nothing.

    WRITE    domain rules in order, then the encoder, then encoding rules in order, over the payload
    READ     encoding rules in reverse, then the decoder, then domain rules in reverse
    UPGRADE  migration rules of the newer of two versions, in order; DOWNGRADE the same, in reverse

Rules of this file: the order and the outcome of rules; executors do the work.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

from strata.serdes.errors import RuleError, SerdeError
from strata.serdes.model import Rule, RuleSet, Schema
from strata.serdes.observer import Observer
from strata.serdes.registry_protocol import Registry
from strata.serdes.rules.actions import ACTIONS, NAME_HEADER, header
from strata.serdes.rules.executors import (
    EXECUTORS,
    Action,
    Convert,
    Executor,
    FieldContext,
    FieldExecutor,
    RuleContext,
    same,
)
from strata.serdes.rules.fields import Values
from strata.serdes.serde_settings import SerdeSettings
from strata.serdes.subject_name_strategies import RecordContext
from strata.shared_cache import SharedCache

if TYPE_CHECKING:
    from strata.serdes.client import RegistryClient

__all__ = ["DOMAIN", "ENCODING", "MIGRATION", "Runner", "Step", "has_rules", "run"]

MIGRATION, DOMAIN, ENCODING = "migrationRules", "domainRules", "encodingRules"
_PHASES = {MIGRATION: "migration_rules", DOMAIN: "domain_rules", ENCODING: "encoding_rules"}

_MODES = {
    "WRITE": ("WRITE", "WRITEREAD"),
    "READ": ("READ", "WRITEREAD"),
    "UPGRADE": ("UPGRADE", "UPDOWN"),
    "DOWNGRADE": ("DOWNGRADE", "UPDOWN"),
}
_FORWARD = ("WRITE", "UPGRADE")
_ENCRYPTION = frozenset({"ENCRYPT", "ENCRYPT_PAYLOAD"})
_FLAGS = {True: True, "true": True, False: False, "false": False}
_MAX_EXECUTORS = 1000
_MAX_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Step:
    """A rule to run, with all that is known before there is a record.

    `skip` reports to the observer that a record passed without the rule. With an observer, a rule that is `off`
    (disabled, or a repetition) has a step too, which only reports. `prepare` gets what the executor needs before it
    writes the first record. A step with a `converter` does nothing to a record but convert the selected fields.
    """

    context: RuleContext
    apply: Callable[[RuleContext, object], object]
    over_fields: bool
    on_success: Action
    on_failure: Action
    skip: Callable[[], None]
    off: bool = False
    prepare: Callable[[RuleContext], None] = lambda _: None
    converter: Callable[[RuleContext, str], Convert] | None = None


def has_rules(rule_set: RuleSet | None, phase: str, mode: str) -> bool:
    """Return whether a rule set has rules for a phase and a mode, disabled ones included."""
    return any(rule.mode in _MODES[mode] for rule in _rules(rule_set, phase))


def _rules(rule_set: RuleSet | None, phase: str) -> tuple[Rule, ...]:
    rules: tuple[Rule, ...] = () if rule_set is None else getattr(rule_set, _PHASES[phase])
    return rules


class Runner:
    """The executors, actions and settings of one serializer or deserializer, which prepare its rules."""

    def __init__(self, client: Registry, settings: SerdeSettings) -> None:
        self._client = client
        self._settings = settings
        self._factories = {**EXECUTORS, **(settings.rule_executors or {})}
        self._actions: dict[str, Action] = {name: partial(action, settings) for name, action in ACTIONS.items()}
        self._none = self._actions["NONE"]
        self._actions |= settings.rule_actions or {}
        self._hidden = frozenset(rule_type.strip().upper() for rule_type in settings.dlq_redact_rule_types.split(","))
        self._executors: SharedCache[tuple[str, str], Executor] = SharedCache(_MAX_EXECUTORS)

    def steps(
        self,
        phase: str,
        mode: str,
        subject: str,
        target: Schema,
        *,
        values: Values | None = None,
        source: Schema | None = None,
    ) -> tuple[Step, ...]:
        """Return the rules that run in a phase, in the order in which they run.

        Args:
            phase: `MIGRATION`, `DOMAIN` or `ENCODING`.
            mode: WRITE, READ, UPGRADE or DOWNGRADE.
            subject: the subject of the record.
            target: the schema that the value has or gets.
            values: the values of the schema; None for payloads.
            source: in a migration, the schema that the value has.

        Raises:
            RuleError: If the library of an executor is not installed.
        """
        rule_set = source.rule_set if mode == "DOWNGRADE" and source is not None else target.rule_set
        wanted = [rule for rule in _rules(rule_set, phase) if rule.mode in _MODES[mode]]
        redact = partial(_redacted, self._hidden, rule_set, values)
        steps = []
        for rule in wanted:
            context = RuleContext(rule, phase, mode, subject, None, False, source, target, redact=redact)
            if self._runs(rule, rule_set):
                steps.append(self._step(rule, context, values))
            elif self._observer is not None:
                steps.append(Step(context, _nothing, False, _nothing, _nothing, self._skip(context), off=True))
        steps = [step for step in _without_repetitions(steps) if self._observer is not None or not step.off]
        return tuple(steps if mode in _FORWARD else reversed(steps))

    def _runs(self, rule: Rule, rule_set: RuleSet | None) -> bool:
        disabled = _FLAGS.get(self._setting(rule, "disabled"))
        if disabled is not None:
            return not disabled
        return not rule.disabled and (rule_set is None or rule_set.for_clients)

    def _step(self, rule: Rule, context: RuleContext, values: Values | None) -> Step:
        try:
            apply = self._applied(rule, context.phase, values)
        except ImportError as error:  # the message of MissingExtra names the extra
            raise RuleError(f"rule type {rule.type}: {error}", rule=rule.name, subject=context.subject) from None
        on_success = self._setting(rule, "onSuccess") or rule.on_success
        on_failure = self._setting(rule, "onFailure") or rule.on_failure
        executor = self._executor(rule)
        success = self._action(_direction(rule, context.mode, on_success) or "NONE", context, failed=False)
        only_converts = rule.kind == "TRANSFORM" and success is _nothing
        return Step(
            context,
            apply,
            hasattr(executor, "field_transform"),
            success,
            self._action(_direction(rule, context.mode, on_failure) or "ERROR", context, failed=True),
            self._skip(context),
            prepare=getattr(executor, "prepare", _nothing),
            converter=getattr(executor, "converter", None) if only_converts else None,
        )

    @property
    def _observer(self) -> Observer | None:
        return getattr(self._client, "observer", None)

    def _skip(self, context: RuleContext) -> Callable[[], None]:
        rule, observer = context.rule, self._observer
        if observer is None:
            return _nothing
        return partial(observer.skipped, rule.type, context.mode, context.subject, rule.name)

    def _action(self, name: str, context: RuleContext, *, failed: bool) -> Action:
        """Return an action; it reports the run of the rule first, if the client has an observer."""
        action: Action = self._actions.get(name) or _refusing(f"unknown rule action {name}")
        observer = self._observer
        if observer is None:
            return _nothing if action is self._none else action
        rule = context.rule

        def reported(context: RuleContext, value: object, error: Exception | None) -> None:
            observer.rule(rule.type, context.mode, context.subject, rule.name, name, failed=failed)
            action(context, value, error)

        return reported

    def _applied(self, rule: Rule, phase: str, values: Values | None) -> Callable[[RuleContext, object], object]:
        """Return a function that runs one rule over a value: the new value or, for a condition, whether it holds."""
        executor = self._executor(rule)
        if executor is None:
            return _refusing(f"unknown rule type {rule.type}: no executor runs it")
        if hasattr(executor, "field_transform"):
            if values is not None and phase != MIGRATION:
                return _over_fields(rule, executor, values)
            where = "so it cannot run over a migration or a payload"
            return _refusing(f"a rule of type {rule.type} runs over fields, {where}")
        transform: Callable[[RuleContext, object], object] = executor.transform
        if values is None:
            return transform
        lower = values.lower if getattr(executor, "takes_json", False) else same
        lift = values.lift if phase == DOMAIN and rule.kind != "CONDITION" else same
        return lambda context, value: lift(transform(context, lower(value)))

    def _executor(self, rule: Rule) -> Any:
        rule_type, front = rule.type.upper(), f"{rule.name}."
        if rule_type not in self._factories:
            return None
        client = cast("RegistryClient", self._client)  # executors that ask for keys need all of it
        own = rule.name if any(name.startswith(front) for name in self._settings.executor_settings) else ""
        return self._executors.get(
            (rule_type, own), lambda: self._factories[rule_type](client, self._executor_settings(rule))
        )

    def _executor_settings(self, rule: Rule) -> dict[str, object]:
        return {
            name.removeprefix(f"{scope}.").removeprefix("param."): value
            for scope in _scopes(rule)
            for name, value in self._settings.executor_settings.items()
            if name.startswith(f"{scope}.")
        }

    def _setting(self, rule: Rule, name: str) -> Any:
        setting = None
        for scope in _scopes(rule):
            setting = self._settings.executor_settings.get(f"{scope}.{name}", setting)
        return setting


def _scopes(rule: Rule) -> tuple[str, str, str]:
    """Return the scopes whose executor settings apply to a rule, weakest first."""
    return "_default_", f"_{rule.type.upper()}_", rule.name


def _without_repetitions(steps: Iterable[Step]) -> list[Step]:
    """Switch off all but the first transform of one type, mode and tags over fields, as every client does."""
    seen: set[tuple[str, str, frozenset[str]]] = set()
    kept = []
    for step in steps:
        rule = step.context.rule
        if step.over_fields and rule.kind == "TRANSFORM" and rule.tags:
            key = (rule.type, rule.mode, rule.tags)
            if key in seen:
                step = replace(step, off=True)  # noqa: PLW2901 - the one that is kept
            seen.add(key)
        kept.append(step)
    return kept


def _direction(rule: Rule, mode: str, actions: str | None) -> str:
    """Return the action for the mode out of `write,read` or `upgrade,downgrade`."""
    if not actions or rule.mode not in ("WRITEREAD", "UPDOWN") or "," not in actions:
        return (actions or "").strip()
    there, _, back = actions.partition(",")
    return (there if mode in _FORWARD else back).strip()


def _over_fields(rule: Rule, executor: FieldExecutor, values: Values) -> Callable[[RuleContext, object], object]:
    visit = values.visitor(rule)
    if rule.kind != "CONDITION":
        return lambda context, value: visit(executor.field_transform(context), value)

    def holds(context: RuleContext, value: object) -> bool:
        ask, failed = executor.field_transform(context), []

        def test(field: FieldContext, inner: object) -> object:
            if ask(field, inner) is not True:
                failed.append(field.full_name)
            return inner

        visit(test, value)
        if failed:
            raise RuleError(f"{_meaning(rule)} (at field {failed[0]})")
        return True

    return holds


def _redacted(hiding: frozenset[str], rule_set: RuleSet | None, values: Values | None, value: object) -> object:
    """Return a value without what rules of some types encrypt, even if it does not fit the schema.

    If a rule encrypts the whole payload, only the marker is left.
    """
    if any(rule.type.upper() in hiding for rule in _rules(rule_set, ENCODING)):
        return _MARKER
    for rule in _rules(rule_set, DOMAIN):
        if rule.type.upper() in hiding:
            value = _MARKER if values is None else values.visitor(rule, loosely=True)(_masked, value)
    return value if values is None else values.lower(value)


_MARKER = "<REDACTED>"


def _masked(field: FieldContext, value: object) -> object:  # noqa: ARG001 - an interface
    if isinstance(value, str):
        return _MARKER
    return _MARKER.encode() if isinstance(value, bytes | bytearray | memoryview) else value


def _refusing(message: str) -> Callable[..., NoReturn]:
    """Return a function in the place of an executor or action that cannot be run."""

    def refuse(context: RuleContext, value: object, error: Exception | None = None) -> NoReturn:  # noqa: ARG001 - an interface
        raise RuleError(message) from error

    return refuse


def _meaning(rule: Rule) -> str:
    said = rule.doc or rule.expr
    return f"the condition does not hold: {said[:_MAX_DETAIL]}" if said else "the condition does not hold"


def run(steps: tuple[Step, ...], value: object, record: RecordContext, original: object) -> Any:
    """Run rules over a value and return the result.

    Args:
        steps: the rules, in order.
        value: the value, or the payload.
        record: the topic, field and headers of the record.
        original: what the caller passed, for dead letters.

    Raises:
        RuleError: If a rule fails and its action is ERROR or DLQ.
        SerdeError: If an action raises another error of this package.
    """
    if not steps:
        return value
    headers = getattr(record, "headers", None)
    replayed = None if headers is None else header(headers, NAME_HEADER)
    is_key = record.field == "key"
    key = original if is_key else getattr(record, "key", None)
    for step in steps:
        known = step.context
        is_dead_letter = replayed is not None and replayed == known.rule.name  # of this rule, sent again
        if step.off or (is_dead_letter and not _would_write_plaintext(known)):
            step.skip()
            continue
        context = known.of_record(record.topic, headers, key, None if is_key else original, is_key=is_key)
        try:
            value = _outcome(step, context, value)
        except Exception as error:  # noqa: BLE001 - executors and expressions are a user's code
            _act(step.on_failure, context, value, _located(error, context))
        else:
            if step.on_success is not _nothing:
                _act(step.on_success, context, value, None)
    return value


def _nothing(*_arguments: object) -> None:
    """Do nothing."""


def _would_write_plaintext(context: RuleContext) -> bool:
    """Return whether skipping the rule would write plaintext, which a header that anyone may set must not cause."""
    return context.mode == "WRITE" and context.rule.type.upper() in _ENCRYPTION


def _outcome(step: Step, context: RuleContext, value: object) -> object:
    result = step.apply(context, value)
    if context.rule.kind == "CONDITION":
        if result is True:
            return value
        raise RuleError(
            _meaning(context.rule)
            if result in (False, None)
            else "expected true or false from the condition, got another value"
        )
    if result is None and value is not None:
        raise RuleError("expected a value from the rule, got none")
    return result


def _located(error: Exception, context: RuleContext) -> RuleError:
    """Return the error with rule, subject and topic; a library's error, which may quote the record, is its cause."""
    detail = error.detail if isinstance(error, RuleError) else f"the rule failed with {type(error).__name__}"
    if isinstance(error, SerdeError) and not isinstance(error, RuleError):
        detail = f"the rule failed: {error}"
    located = RuleError(detail, rule=context.rule.name, subject=context.subject, topic=context.topic)
    located.__cause__ = error.__cause__ if isinstance(error, RuleError) else error
    return located


def _act(action: Action, context: RuleContext, value: object, error: RuleError | None) -> None:
    try:
        action(context, value, error)
    except SerdeError as failure:
        if isinstance(failure, RuleError) and not failure.rule:
            raise _located(failure, context) from failure.__cause__
        raise
    except Exception as failure:
        raise _located(failure, context) from failure
