"""The rules of data contracts in a job: what the driver sends to the Python workers, and the errors of rules there.

The driver fixes the reader's version for a decode; workers ask the registry for the writers' rules and keys, as they do
for writer schemas. For an encode the driver asks everything beforehand and sends the registry's answers along: schemas
with their rules, and wrapped data keys. Keys of a KMS come from the settings of the call, or from each worker's
environment.

Rules of this file: no session, no columns, no format; secrets stay out of every `repr`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack
from uuid import uuid4

from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryError, RegistryUnavailable, RuleError, SerdeError
from strata.serdes.model import RegisteredSchema
from strata.serdes.requests import RequestParts, T
from strata.serdes.rules.executors import RuleContext
from strata.serdes.settings import ClientSettings
from strata.serdes.transport import Transport
from strata.spark_udfs.waits import WaitLog

__all__ = ["Answers", "DecodeRules", "EncodeRules", "RuleClient", "RuleOption", "rule_conf", "serde_conf", "token_of"]

RuleOption = bool | Mapping[str, object]
"""The values of the option `rules`: whether rules run, or the settings with which they run."""

_FRONTS = ("rule.", "dlq.")
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class DecodeRules:
    """The rules of a decode.

    Attributes:
        token: stands for all the other attributes: plans with equal tokens share decoders.
        reader: the version that records are migrated to.
        is_key: whether the column holds record keys.
        conf: the settings of rules.
    """

    token: str = field(repr=False)
    reader: RegisteredSchema = field(compare=False)
    is_key: bool = False
    conf: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EncodeRules:
    """The rules of an encode.

    Attributes:
        token: stands for all the other attributes: plans with equal tokens share encoders.
        subject: the subject of the records.
        is_key: whether the column holds record keys.
        conf: the settings of rules.
        answers: what the registry answered to the driver.
    """

    token: str = field(repr=False)
    subject: str
    is_key: bool = False
    conf: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    answers: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)


def rule_conf(option: RuleOption) -> Mapping[str, object] | None:
    """Return the settings of rules; None if no rules run.

    Args:
        option: the option `rules`.

    Raises:
        TypeError: If it is neither a bool nor a dict.
        ValueError: If it has settings that are not about rules.
    """
    if isinstance(option, bool):
        return {} if option else None
    if not isinstance(option, Mapping):
        raise TypeError(f"rules is True, False or a dict of settings, not {type(option).__name__}")
    others = sorted(name for name in option if not str(name).startswith(_FRONTS))
    if others:
        raise ValueError(f"rules: expected settings of rules, such as rule.executors.…, got {', '.join(others)}")
    return dict(option)


def serde_conf(conf: Mapping[str, Any], subject: str) -> dict[str, Any]:
    """Return the settings of a serializer or deserializer that runs rules for one subject.

    A rule with the action DLQ fails like one with ERROR: the row becomes a dead letter of the job.

    Args:
        conf: the settings of rules.
        subject: the subject of the records.
    """
    actions = {"DLQ": _fail, **conf.get("rule.actions", {})}
    return {**conf, "rule.actions": actions, "subject.name.strategy": lambda _context, _name: subject}


def _fail(_context: RuleContext, _value: object, error: Exception | None) -> None:
    raise error or RuleError("the rule's action is DLQ")


def token_of(*parts: object) -> str:
    """Return a text that is equal for equal plain values; functions and other objects are equal to nothing."""
    try:
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    except TypeError:
        return uuid4().hex


class RuleClient(RegistryClient):
    """A registry client for the rules of one decode.

    Its latest version of the reader's subject is the one that the driver fixed. It remembers that the registry did not
    answer: executors of rules turn that into errors of their own, or ignore it.
    """

    outage: SerdeError | None = None
    _reader: RegisteredSchema

    @classmethod
    def of(cls, settings: ClientSettings, reader: RegisteredSchema) -> "RuleClient":
        """Return a client for a reader's version."""
        client = cls.from_settings(settings, observer=WaitLog())
        client._reader = reader
        return client

    def get_version(
        self, subject: str, version: int | Literal["latest"] = "latest", *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return one version of a subject; the latest one is the reader's.

        Raises:
            RegistryError: If the registry does not have it.
            RegistryUnavailable: If the registry does not answer.
        """
        if version == "latest" and subject == self._reader.subject:
            return self._reader
        return super().get_version(subject, version, deleted=deleted)

    def ask(self, read: Callable[[Any], T], method: str, path: str, **more: Unpack[RequestParts]) -> T:
        """Send a request, and remember it if the registry did not answer, or refused every request like it.

        Raises:
            RegistryError: If the registry answers with an error.
            RegistryUnavailable: If the registry does not answer.
        """
        try:
            return super().ask(read, method, path, **more)
        except RegistryError as error:
            concerns_one = 400 <= error.status < 500 and error.status != _UNAUTHORIZED  # not known, or not allowed
            if not concerns_one:
                self.outage = error
            raise
        except SerdeError as error:
            self.outage = error
            raise


class Answers(Transport):
    """A transport that records answers on the driver, and gives them again in the workers, which send nothing.

    Args:
        settings: the settings of the registry.
        recorded: the answers to give; None sends requests and records their answers.
    """

    def __init__(self, settings: ClientSettings, recorded: Mapping[str, object] | None = None) -> None:
        super().__init__(settings, observer=WaitLog())
        self._sends = recorded is None
        self.recorded: dict[str, object] = dict(recorded or {})

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        """Return the answer to a request.

        Raises:
            RegistryError: If the registry answers with an error.
            RegistryUnavailable: If the registry does not answer, or the driver did not ask this.
        """
        key = json.dumps([method, path, query or {}, body], sort_keys=True)
        if self._sends:
            self.recorded[key] = super().request(method, path, query=query, body=body)
        elif key not in self.recorded:
            raise RegistryUnavailable(f"executors do not ask the registry, and the driver did not ask {method} {path}")
        return self.recorded[key]
