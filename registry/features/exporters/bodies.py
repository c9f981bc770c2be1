"""The JSON of exporters: models that parse bodies and describe the API, and functions that check and build answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field

from strata.imports import deferred
from strata.registry.api.bodies.contracts import Answer, Body, Text, TextMap, Texts
from strata.registry.core import errors
from strata.registry.core.decide.exporters import (
    AUTO,
    CUSTOM,
    DEFAULT,
    EVERY_SUBJECT,
    KEK,
    SUBJECT,
    TYPES,
    never_sent,
    state_shown,
)
from strata.registry.features.exporters.credentials import HIDDEN, Credentials, shown
from strata.registry.http.bodies import Word
from strata.registry.transfer.copies import TransferError
from strata.storage.records import DEFAULT_CONTEXT, ExporterValue, ExportValue

if TYPE_CHECKING:
    from strata.registry.features.exporters import destination
else:
    destination = deferred("strata.registry.features.exporters.destination")

__all__ = [
    "ExporterAnswer",
    "ExporterBody",
    "ExporterChange",
    "ExporterConfig",
    "ExporterNameAnswer",
    "ExporterStatusAnswer",
    "exporter_answer",
    "parse_config",
    "parse_name",
    "status_answer",
]

_LONGEST_NAME = 256


class ExporterChange(Body):
    """A change of an exporter: what is absent or empty stays."""

    subjects: Texts | None = Field(
        None, description="names; `*` at the end matches any rest, `:.c:*` a context, `:*:` everything; `*` when absent"
    )
    context_type: Word | None = Field(None, description="AUTO, CUSTOM, DEFAULT or NONE; AUTO when absent")
    context: Text | None = Field(None, description="the context of the destination, for CUSTOM")
    subject_rename_format: Text | None = Field(None, description="such as `dc_${subject}`")
    kek_rename_format: Text | None = Field(None, description="such as `dc_${kek}`")
    config: TextMap | None = Field(
        None, description="`schema.registry.url`, `basic.auth.user.info`, …; credentials are stored encrypted"
    )

    def changed(self, exporter: ExporterValue, config: Mapping[str, str] | None) -> ExporterValue:
        """Return an exporter with what this body changes.

        Args:
            exporter: the exporter.
            config: the new configuration from `parse_config`; None keeps the present one.

        Raises:
            RegistryError: 40951 or 40952 if something is missing or cannot be used.
        """
        made = ExporterValue(
            tuple(self.subjects or exporter.subjects),
            (self.context_type or exporter.context_type).upper(),
            self.context or exporter.context,
            self.subject_rename_format or exporter.subject_format,
            self.kek_rename_format or exporter.kek_format,
            exporter.config if config is None else _merged(exporter.config, config),
            exporter.paused,
        )
        _check(made)
        return made


class ExporterBody(ExporterChange):
    """An exporter to create."""

    name: Word | None = Field(None, description="the name of the exporter")

    def exporter(self, config: Mapping[str, str]) -> ExporterValue:
        """Return the exporter that this body describes.

        Args:
            config: the configuration from `parse_config`.

        Raises:
            RegistryError: 40951 or 40952 if something is missing or cannot be used.
        """
        return self.changed(ExporterValue((EVERY_SUBJECT,), AUTO, "", SUBJECT, KEK), config)


class ExporterConfig(Body):
    """The configuration of an exporter: names and values, all texts."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Text]

    def values(self) -> dict[str, str]:
        """Return the configuration."""
        return dict(self.__pydantic_extra__)


class ExporterNameAnswer(Answer):
    """The exporter that was changed."""

    name: str


class ExporterAnswer(Answer):
    """An exporter; credentials in `config` are hidden."""

    name: str
    subjects: list[str]
    context_type: str
    context: str
    subject_rename_format: str
    kek_rename_format: str
    config: dict[str, str]


class ExporterStatusAnswer(Answer):
    """How far an exporter has come.

    The destination has everything up to `offset` in the log; `ts` is when that was noted, in milliseconds since the
    epoch, and `trace` says why the last attempt failed, empty if it did not.
    """

    name: str
    state: str = Field(description="STARTING, RUNNING or PAUSED")
    offset: int
    ts: int
    trace: str


def parse_name(name: str | None) -> str:
    """Return the name of a new exporter.

    Raises:
        RegistryError: 40950 if it is missing or cannot be used.
    """
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name in (".", ".."):
        raise errors.invalid_exporter_name(f"expected up to {_LONGEST_NAME} printable characters")
    return name


def parse_config(name: str, config: Mapping[str, str] | None, credentials: Credentials) -> dict[str, str]:
    """Return a configuration as it is stored, with its credentials encrypted.

    Args:
        name: the name of the exporter.
        config: the configuration.
        credentials: encrypts the credentials.

    Raises:
        RegistryError: 40951 if something is missing or cannot be used.
    """
    try:
        destination.destination_of(
            {key: _STANDS_FOR_HIDDEN if value == HIDDEN else value for key, value in (config or {}).items()}
        )
        return credentials.sealed(name, config or {})
    except TransferError as error:
        raise errors.invalid_exporter_config(error) from None


def exporter_answer(name: str, exporter: ExporterValue, auto: str) -> dict[str, object]:
    """Return the JSON of an exporter.

    Args:
        name: its name.
        exporter: the exporter.
        auto: the context of the type AUTO.
    """
    return {
        "name": name,
        "subjects": list(exporter.subjects),
        "contextType": exporter.context_type,
        "context": {AUTO: auto, CUSTOM: exporter.context, DEFAULT: DEFAULT_CONTEXT}.get(exporter.context_type, ""),
        "subjectRenameFormat": exporter.subject_format,
        "kekRenameFormat": exporter.kek_format,
        "config": shown(exporter.config),
    }


def status_answer(name: str, exporter: ExporterValue, progress: ExportValue) -> dict[str, object]:
    """Return the JSON of the progress of an exporter."""
    state = state_shown(exporter, progress)
    return {"name": name, "state": state, "offset": progress.offset, "ts": progress.ts, "trace": progress.trace}


_STANDS_FOR_HIDDEN = "hidden:hidden"


def _merged(held: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return a new configuration, in which hidden values stay as they are."""
    if lost := sorted(name for name, value in wanted.items() if value == HIDDEN and name not in held):
        raise errors.invalid_exporter_config(f"{lost[0]} is {HIDDEN}, but has no value yet")
    return {name: held[name] if value == HIDDEN else value for name, value in wanted.items()}


def _check(exporter: ExporterValue) -> None:
    """Reject an exporter that would not copy what it says."""
    for pattern in exporter.subjects:
        if not pattern or not pattern.isprintable() or "*" in pattern.removesuffix("*").removeprefix(":*:"):
            raise errors.invalid_exporter_subjects(
                f"{pattern!r}; expected names, PREFIX*, :.CONTEXT:*, * for the default context or :*: for everything"
            )
    if exporter.context_type not in TYPES:
        raise errors.invalid_exporter_config(f"contextType is {exporter.context_type!r}; expected {', '.join(TYPES)}")
    name = exporter.context.strip(":").removeprefix(".")
    if exporter.context_type == CUSTOM and (not name or ":" in name or not name.isprintable()):
        raise errors.invalid_exporter_config("contextType CUSTOM needs a context, such as .first")
    if kept := never_sent(exporter):
        raise errors.invalid_exporter_subjects(
            f"{kept[0]!r} would never be sent below the context {exporter.context!r}, because it looks like a copy; "
            "choose another context, or contextType NONE to keep it"
        )
    if SUBJECT not in exporter.subject_format or ":" in exporter.subject_format:
        raise errors.invalid_exporter_subjects(f"subjectRenameFormat must contain {SUBJECT} and no colon")
    if exporter.kek_format != KEK:
        raise errors.invalid_exporter_config(f"kekRenameFormat must be {KEK}: keys are not exported")
