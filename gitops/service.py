"""A running registry, over its REST API: its versions and settings as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from strata.gitops.desired import Reference
from strata.gitops.errors import GitopsError
from strata.gitops.versions import Held
from strata.http.paths import segment, setting_path
from strata.serdes.client import RegistryClient
from strata.serdes.errors import ErrorCode, RegistryError

__all__ = ["APPLY", "Service"]

APPLY = "/v1/apply"
"""The route of a Strata service that takes batches."""

_NONE_SET = (40408, 40409, 40401)
_NOT_HERE = (404, 405)
_EVERY_CONTEXT = {"subjectPrefix": ":*:"}


class Service:
    """A registry; what was read once is not read again."""

    def __init__(self, client: RegistryClient) -> None:
        self.client = client
        self.label = client.settings.urls[0]
        self._numbers: dict[tuple[str, bool], list[int]] = {}
        self._versions: dict[tuple[str, str], Held | None] = {}
        self._configs: dict[str, Mapping[str, object]] = {}
        self._modes: dict[str, str | None] = {}

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON at a path.

        Raises:
            SerdeError: If the registry rejects the request or does not answer.
        """
        return self.client.ask(lambda answer: answer, "GET", path, query=query or None)

    def send(self, method: str, path: str, body: Mapping[str, object] | None = None, /, **query: str) -> Any:
        """Send a request and return the JSON of its answer.

        Raises:
            SerdeError: If the registry rejects the request or does not answer.
        """
        return self.client.ask(lambda answer: answer, method, path, body=body, query=query or None)

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects with live versions, sorted."""
        return sorted(self.get("/subjects", **_EVERY_CONTEXT))

    def numbers(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject, oldest first; empty if there is none."""
        key = (subject, deleted)
        if key not in self._numbers:
            try:
                self._numbers[key] = self.client.get_versions(subject, deleted=deleted)
            except RegistryError as error:
                if error.error_code != ErrorCode.SUBJECT_NOT_FOUND:
                    raise
                self._numbers[key] = []
        return self._numbers[key]

    def versions(self, subject: str) -> Sequence[Held]:
        """Return the live versions of a subject, oldest first."""
        versions = (self.version(subject, number) for number in self.numbers(subject))
        return [version for version in versions if version is not None]

    def version(self, subject: str, number: int | None) -> Held | None:
        """Return a version, deleted or not; None for the number is the latest live one."""
        key = (subject, "latest" if number is None else str(number))
        if key not in self._versions:
            query = {} if number is None else {"deleted": "true"}
            try:
                answer = self.get(f"/subjects/{segment(subject)}/versions/{key[1]}", **query)
            except RegistryError as error:
                if error.status != 404:
                    raise
                self._versions[key] = None
            else:
                # A plain name is also found in another context, or under an alias.
                same = str(answer.get("subject", subject)) == subject
                self._versions[key] = _held(answer, subject) if same else None
        return self._versions[key]

    def level(self, subject: str) -> str | None:
        """Return the compatibility level in force for a subject."""
        return str(self._in_force(subject)["compatibilityLevel"])

    def group(self, subject: str) -> str | None:
        """Return the metadata property that divides a subject's versions into groups."""
        return self._in_force(subject).get("compatibilityGroup")

    def policy(self, subject: str) -> str | None:
        """Return how strictly differences of a subject count; None if the registry does not say."""
        return self._in_force(subject).get("compatibilityPolicy")

    def _in_force(self, subject: str) -> Mapping[str, Any]:
        if subject not in self._configs:
            self._configs[subject] = self.client.get_config(subject, default_to_global=True)
        return self._configs[subject]

    def scopes(self) -> Sequence[str]:
        """Return the empty name of the registry, the contexts (`:.name:`) and, of Strata, all names with settings."""
        contexts = (f":{name}:" for name in self.get("/contexts") if name != ".")
        return sorted({"", *contexts, *(self.names_with_settings() or ())})

    def names_with_settings(self) -> Sequence[str] | None:
        """Return the names with settings of their own; None if the registry does not list them."""
        try:
            names: list[str] = self.get("/v1/scopes")
        except RegistryError as error:
            if error.status not in _NOT_HERE:
                raise
            return None
        return names

    def config(self, scope: str) -> Mapping[str, object]:
        """Return the configuration that a subject, a context or, under the empty name, the registry itself has."""
        return self._own("config", scope)

    def mode(self, scope: str) -> str | None:
        """Return the mode that a scope itself has; None if it has none."""
        mode = self._own("mode", scope).get("mode")
        return None if mode is None else str(mode)

    def mode_in_force(self, scope: str) -> str | None:
        """Return the mode in force for a scope; None if the registry does not say."""
        if scope not in self._modes:
            try:
                answer = self.get(setting_path("mode", scope or None), defaultToGlobal="true")
                self._modes[scope] = str(answer["mode"])
            except RegistryError as error:
                if error.status not in _NOT_HERE:
                    raise
                self._modes[scope] = None
        return self._modes[scope]

    def rules(self) -> Sequence[Mapping[str, str]]:
        """Return the rules of access that a Strata service keeps in its log; other registries have none of that kind.

        Raises:
            RegistryError: If the registry does not let this client read them.
        """
        if not self.takes_batches():
            return []
        rules: list[Mapping[str, str]] = self.get("/security/acls")
        return rules

    def takes_batches(self) -> bool:
        """Return whether the registry takes batches, as a Strata service does."""
        try:
            self.send("POST", APPLY, {"dryRun": True, "steps": []})
        except RegistryError as error:
            if error.status not in _NOT_HERE:
                raise
            return False
        return True

    def _own(self, setting: str, scope: str) -> Mapping[str, object]:
        try:
            answer = self.get(setting_path(setting, scope or None))
        except RegistryError as error:
            if error.error_code not in _NONE_SET:
                raise
            return {}
        if not isinstance(answer, dict):
            raise GitopsError(f"{self.label} answered GET /{setting} with something other than an object")
        return answer


def _held(answer: Mapping[str, Any], subject: str) -> Held:
    references = tuple(
        Reference(str(reference["name"]), str(reference["subject"]), int(reference["version"]))
        for reference in answer.get("references") or ()
    )
    return Held(
        subject, int(answer["version"]), str(answer.get("schemaType") or "AVRO"), str(answer["schema"]), references,
        answer.get("metadata"), answer.get("ruleSet"),
    )  # fmt: skip
