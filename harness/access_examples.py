"""One valid request for each route that needs a right, and by which rights it is allowed.

The rights are written down here as the documentation states them, not derived from what the routes declare.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harness.access_model import decision
from harness.access_questions import HOLDER, RECORD
from harness.guarded_registry import Registry
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.rules import Rule

__all__ = ["EXAMPLES", "Example", "May", "fill"]

ADDRESS = "10.0.0.1"
OTHER = ":.c:a"
KEKS, DEKS = "/dek-registry/v1/keks", "/dek-registry/v1/keks/k/deks"
DEK = {"encryptedKeyMaterial": "QUJD"}
DESTINATION = {"schema.registry.url": "http://127.0.0.1:1"}
TO_A = [{"name": "R", "subject": "a", "version": 1}]
NEXT = {"schema": '{"type":"record","name":"R","fields":[{"name":"x","type":"int","default":0}]}'}
NEXT_HOLDER = {"schema": HOLDER.replace("]}", ',{"name":"x","type":"int","default":0}]}'), "references": TO_A}


def topic(name: str) -> dict[str, Any]:
    """Return the body that associates a topic with the subject `a`."""
    return {"resourceName": name, "resourceNamespace": "ns", "resourceId": name, "associations": [{"subject": "a"}]}


def fill(registry: Registry) -> None:
    """Fill a registry with what the examples ask for: `ab` refers to `a`, and `t`, `k` belong to `a`."""
    registry.register("a", RECORD)
    registry.register("ab", HOLDER, references=TO_A)
    registry.register("%3A.c%3Aa", '"long"')
    registry.register("%3A.e%3Ax")
    for method, path, body in [
        ("DELETE", "/subjects/%3A.e%3Ax", None), ("DELETE", "/subjects/%3A.e%3Ax?permanent=true", None),
        ("PUT", "/config/a", {"compatibility": "NONE"}), ("PUT", "/mode/a", {"mode": "READWRITE"}),
        ("PUT", "/config/%3A.c%3A", {"compatibility": "NONE"}), ("PUT", "/mode/b", {"mode": "IMPORT"}),
        ("POST", "/associations", topic("t")),
        *(("POST", KEKS, {"name": name, "kmsType": "aws-kms", "kmsKeyId": "arn"}) for name in ("k", "kd", "kk")),
        ("DELETE", f"{KEKS}/kk", None), ("POST", f"{DEKS}/a", DEK), ("POST", f"{DEKS}/ab", DEK),
        ("DELETE", f"{DEKS}/ab", None), ("POST", "/exporters", {"name": "e", "config": DESTINATION}),
        ("PUT", "/exporters/e/pause", None),
    ]:  # fmt: skip
        status, content, _ = registry.ask(method, path, body)
        assert status < 300, content


class May:
    """What a user may do, by the model.

    Args:
        rules: the rules.
        user: the user.
    """

    def __init__(self, rules: Iterable[Rule], user: Principal) -> None:
        self._rules, self._user = tuple(rules), user

    def __call__(self, operation: str, name: str = "a", kind: str = "SUBJECT") -> bool:
        """Return whether the user may do something."""
        return self.decision(operation, name, kind) is True

    def decision(self, operation: str, name: str, kind: str = "SUBJECT") -> bool | None:
        """Return whether the user may do something; None if no rule says so."""
        return decision(self._rules, (), self._user, operation, kind, name, ADDRESS)

    def both(self, operation: str, kek: str, subject: str) -> bool:
        """Return whether the user may do something with a KEK and with a subject."""
        return self(operation, kek, "KEK") and self(operation, subject)

    @property
    def reads_a1(self) -> bool:
        """Whether the user may read version 1 of `a`: by a rule, or because `ab` refers to it and no rule denies it."""
        return self("READ") or (self("READ", "ab") and self.decision("READ", "a") is None)

    def among(self, operation: str, *names: str, kind: str = "SUBJECT") -> list[str]:
        """Return the names with which the user may do something."""
        return sorted(name for name in names if self(operation, name, kind))


Rights = Callable[[May], Any]


@dataclass(frozen=True)
class Example:
    """A valid request.

    Attributes:
        method: its method.
        path: its path and query string.
        allowed: whether it is allowed.
        body: its body.
        listed: what the answer lists if it is filtered; None if it is not.
        shown: what of each item of the answer to compare with that.
    """

    method: str
    path: str
    allowed: Rights
    body: Any = None
    listed: Rights | None = None
    shown: str | None = None


def on(operation: str, name: str = "a", kind: str = "SUBJECT") -> Rights:
    """Return whether one right is there."""
    return lambda may: may(operation, name, kind)


def always(_may: May) -> bool:
    """Return that a request is never refused, because its answer is filtered."""
    return True


def registers(may: May, name: str = "a") -> bool:
    """Return whether what stands already may be registered again."""
    return may("WRITE", name) or may("READ", name)


EVERY = ("a", "ab", OTHER)
EXAMPLES = (
    Example("GET", "/schemas/ids/1", lambda may: may.reads_a1),
    Example("GET", "/schemas/ids/2", on("READ", "ab")),
    Example("GET", "/contexts/.c/schemas/ids/1", on("READ", OTHER)),
    Example("GET", "/schemas/ids/1/schema", lambda may: may.reads_a1),
    Example("GET", "/schemas/ids/1/subjects", on("DESCRIBE"), listed=lambda may: may.among("DESCRIBE", "a")),
    Example("GET", "/schemas/ids/1/versions", on("DESCRIBE"), listed=lambda may: may.among("DESCRIBE", "a"),
            shown="subject"),
    Example("GET", "{guid}", lambda may: may.reads_a1),
    Example("GET", "{guid}/ids", always, listed=lambda may: ["."] if may.reads_a1 else [], shown="context"),
    Example("GET", "/v1/glue/e1dd9a1e-f98b-451b-5369-0370b393966b", always, listed=lambda _may: [], shown="subject"),
    Example("GET", "/schemas?subjectPrefix=:*:", always, listed=lambda may: may.among("READ", *EVERY),
            shown="subject"),
    Example("GET", "/contexts", always, listed=lambda may: [".", ".c", ".e"] if may("DESCRIBE", "", "REGISTRY")
            else [".", *(".c" for _ in may.among("DESCRIBE", OTHER))]),
    Example("DELETE", "/contexts/.e", on("DELETE", "", "REGISTRY")),
    Example("GET", "/subjects", always, listed=lambda may: may.among("DESCRIBE", *EVERY)),
    Example("POST", "/subjects/a", on("READ"), {"schema": RECORD}),
    Example("POST", "/subjects/ab", lambda may: may("READ", "ab") and may.reads_a1,
            {"schema": HOLDER, "references": TO_A}),
    Example("GET", "/subjects/a/metadata?key=x&value=y", on("READ")),
    Example("DELETE", "/subjects/ab", on("DELETE", "ab")),
    Example("GET", "/subjects/a/versions", on("DESCRIBE")),
    Example("GET", "/contexts/.c/subjects/a/versions", on("DESCRIBE", OTHER)),
    Example("POST", "/subjects/a/versions", registers, {"schema": RECORD}),
    Example("POST", "/subjects/a/versions", on("WRITE"), NEXT),
    Example("POST", "/subjects/a/versions?force=true",
            lambda may: may("WRITE") and may("ALTER_CONFIGS"), NEXT),
    Example("POST", "/subjects/b/versions", lambda may: may("WRITE", "b") and may("ALTER_CONFIGS", "b"),
            {"schema": RECORD, "id": 77, "version": 2}),
    Example("POST", "/subjects/ab/versions", lambda may: registers(may, "ab") and may.reads_a1,
            {"schema": HOLDER, "references": TO_A}),
    Example("POST", "/subjects/ab/versions", lambda may: may("WRITE", "ab") and may.reads_a1, NEXT_HOLDER),
    Example("POST", "/subjects/%3A.c%3Aa/versions", on("WRITE", OTHER), {"schema": '"double"'}),
    Example("GET", "/subjects/a/versions/1", lambda may: may.reads_a1),
    Example("GET", "/subjects/b/versions/1", on("READ", "b")),
    Example("GET", "/subjects/a/versions/1/schema", lambda may: may.reads_a1),
    Example("POST", "/subjects/a/versions/1/tags", lambda may: may("READ") and may("WRITE"),
            {"tagsToAdd": [{"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["T"]}]}),
    Example("GET", "/subjects/a/versions/1/referencedby", on("READ"),
            listed=lambda may: [2] if may("READ", "ab") else []),
    Example("DELETE", "/subjects/ab/versions/1", on("DELETE", "ab")),
    Example("POST", "/compatibility/subjects/a/versions", on("READ"), NEXT),
    Example("POST", "/compatibility/subjects/ab/versions/latest",
            lambda may: may("READ", "ab") and may.reads_a1, NEXT_HOLDER),
    Example("GET", "/config", on("DESCRIBE_CONFIGS", "", "REGISTRY")),
    Example("PUT", "/config", on("ALTER_CONFIGS", "", "REGISTRY"), {"compatibility": "FULL"}),
    Example("DELETE", "/config", on("ALTER_CONFIGS", "", "REGISTRY")),
    Example("GET", "/config/a", on("DESCRIBE_CONFIGS")),
    Example("GET", "/config/%3A.c%3A", on("DESCRIBE_CONFIGS", ":.c:")),
    Example("PUT", "/config/a", on("ALTER_CONFIGS"), {"compatibility": "FULL"}),
    Example("DELETE", "/config/a", on("ALTER_CONFIGS")),
    Example("GET", "/mode", on("DESCRIBE_CONFIGS", "", "REGISTRY")),
    Example("PUT", "/mode", on("ALTER_CONFIGS", "", "REGISTRY"), {"mode": "READONLY"}),
    Example("DELETE", "/mode", on("ALTER_CONFIGS", "", "REGISTRY")),
    Example("GET", "/mode/a", on("DESCRIBE_CONFIGS")),
    Example("PUT", "/mode/%3A.c%3A", on("ALTER_CONFIGS", ":.c:"), {"mode": "READONLY"}),
    Example("PUT", "/mode/a", on("ALTER_CONFIGS"), {"mode": "READONLY"}),
    Example("DELETE", "/mode/a", on("ALTER_CONFIGS")),
    Example("GET", "/associations/subjects/a", on("DESCRIBE")),
    Example("GET", "/associations/resources/ns/t", always, listed=lambda may: may.among("DESCRIBE", "a"),
            shown="subject"),
    Example("GET", "/associations/resources/t", always, listed=lambda may: may.among("DESCRIBE", "a"),
            shown="subject"),
    Example("POST", "/associations", on("WRITE"), topic("new")),
    Example("PUT", "/associations/resources/t", lambda may: may("WRITE") and may("DESCRIBE"), topic("t")),
    Example("DELETE", "/associations/resources/t", lambda may: may("DELETE") or not may("DESCRIBE")),
    Example("POST", "/associations:batchGet", always, {"requests": [{"resourceId": "t"}]}),
    Example("POST", "/associations:batchMutate", on("WRITE"), {"requests": [{**topic("new"), "opType": "CREATE"}]}),
    Example("GET", KEKS, always, listed=lambda may: may.among("DESCRIBE", "k", "kd", kind="KEK")),
    Example("POST", KEKS, on("WRITE", "kx", "KEK"), {"name": "kx", "kmsType": "aws-kms", "kmsKeyId": "arn"}),
    Example("GET", f"{KEKS}/k", on("READ", "k", "KEK")),
    Example("PUT", f"{KEKS}/k", on("WRITE", "k", "KEK"), {"doc": "d"}),
    Example("DELETE", f"{KEKS}/kd", on("DELETE", "kd", "KEK")),
    Example("POST", f"{KEKS}/kk/undelete", on("DELETE", "kk", "KEK")),
    Example("POST", f"{KEKS}/k/test", on("READ", "k", "KEK")),
    Example("GET", DEKS, on("DESCRIBE", "k", "KEK"), listed=lambda may: may.among("DESCRIBE", "a")),
    Example("POST", DEKS, lambda may: may.both("WRITE", "k", "b"), {**DEK, "subject": "b"}),
    Example("POST", f"{DEKS}/b", lambda may: may.both("WRITE", "k", "b"), DEK),
    *(Example("GET", f"{DEKS}/a{more}", lambda may: may.both("READ", "k", "a")) for more in ("", "/versions",
                                                                                           "/versions/1")),
    *(Example("DELETE", f"{DEKS}/a{more}", lambda may: may.both("DELETE", "k", "a")) for more in ("", "/versions/1")),
    *(Example("POST", f"{DEKS}/ab{more}/undelete", lambda may: may.both("DELETE", "k", "ab"))
      for more in ("", "/versions/1")),
    Example("POST", "/v1/apply",
            lambda may: registers(may, "ab") and may.reads_a1 and may("WRITE") and may("DELETE", OTHER)
            and may("ALTER_CONFIGS", "b"),
            {"steps": [
                {"action": "register", "subject": "ab", "schema": {"schema": HOLDER, "references": TO_A}},
                {"action": "register", "subject": "a", "schema": NEXT},
                {"action": "delete", "subject": OTHER},
                {"action": "settings", "subject": "b", "mode": "READWRITE"},
            ]}),
    *(Example("GET", path, on("DESCRIBE", "", "CLUSTER"))
      for path in ("/exporters", "/exporters/e", "/exporters/e/config", "/exporters/e/config/clusterlink",
                   "/exporters/e/status")),
    Example("POST", "/exporters", on("ALTER", "", "CLUSTER"), {"name": "f", "config": DESTINATION}),
    Example("PUT", "/exporters/e", on("ALTER", "", "CLUSTER"), {"subjects": ["a"]}),
    Example("PUT", "/exporters/e/config", on("ALTER", "", "CLUSTER"), DESTINATION),
    *(Example("PUT", f"/exporters/e/{what}", on("ALTER", "", "CLUSTER")) for what in ("pause", "resume", "reset")),
    Example("DELETE", "/exporters/e", on("ALTER", "", "CLUSTER")),
    Example("GET", "/v1/log", on("DESCRIBE", "", "CLUSTER")),
    Example("GET", "/v1/highest-ids/.", on("DESCRIBE", "", "CLUSTER")),
    Example("PUT", "/v1/highest-ids/.", on("ALTER", "", "CLUSTER"), {}),
    Example("GET", "/v1/search?query=a", always),
    Example("GET", "/v1/scopes", always),
    Example("GET", "/v1/settings", always),
    Example("GET", "/v1/usage", always),
    Example("GET", "/metrics", on("DESCRIBE", "", "CLUSTER")),
    Example("GET", "/security/acls", on("DESCRIBE", "", "CLUSTER")),
    Example("POST", "/security/acls", on("ALTER", "", "CLUSTER"),
            [{"principal": "User:x", "resource": "x", "resource_type": "SUBJECT", "pattern_type": "LITERAL",
              "host": "*", "operation": "READ", "permission": "ALLOW"}]),
    Example("DELETE", "/security/acls", on("ALTER", "", "CLUSTER"), [{"principal": "User:x"}]),
    Example("GET", "/security/acls/verdict?principal=User:x&resource=a", on("DESCRIBE", "", "CLUSTER")),
)  # fmt: skip
"""At least one request for each route that needs a right; `{guid}` is the path of the schema of `a`."""
