"""Every way to ask a registry for what it hides: requests about a subject, its schema and a key.

`alice`, whose rules are `ALL_ON_OPEN`, must get the same answers from a registry that holds them as from one that does
not.
"""

import asyncio
from functools import cache
from typing import Any

from harness.access_rules import rule
from harness.guarded_registry import Registry
from harness.logs import copy_of
from strata.storage.log import MemoryLog

__all__ = ["ALL_ON_OPEN", "HOLDER", "QUESTIONS", "RECORD", "TO_COMMON", "filled", "filled_log"]

RECORD = '{"type":"record","name":"R","fields":[]}'
HOLDER = '{"type":"record","name":"H","fields":[{"name":"r","type":"R"}]}'
TO_COMMON = [{"name": "R", "subject": "common", "version": 1}]
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn"}
DEK = {"encryptedKeyMaterial": "QUJD", "subject": "secret"}
GLUE = "5a3d2c1b-0f9e-4d8c-b7a6-95847362514f"  # what AWS Glue called the version of `tagged`
GUID = "/schemas/guids/e1dd9a1e-f98b-451b-5369-0370b393966b"  # of the schema of the secret
DEKS = "/dek-registry/v1/keks/k/deks"
EXPORTER = {"name": "e", "subjects": ["secret"], "config": {"schema.registry.url": "http://127.0.0.1:1"}}


def topic(name: str, subject: str) -> dict[str, Any]:
    """Return the body that associates a topic with a subject."""
    return {"resourceName": name, "resourceNamespace": "ns", "resourceId": name, "associations": [{"subject": subject}]}


# Every way to ask for what a registry holds about the subject `secret`, its schema (id 2), and the key `k`.
QUESTIONS: list[tuple[str, str, Any]] = [
    ("GET", "/schemas/ids/2", None), ("GET", "/schemas/ids/2/schema", None), ("GET", "/schemas/ids/2/subjects", None),
    ("GET", "/schemas/ids/2/versions", None), ("GET", "/schemas/ids/2?subject=secret", None),
    ("GET", "/schemas/ids/2?subject=:.c:", None), ("GET", "/schemas/ids/1?subject=:.c:secret", None),
    ("GET", "/schemas/ids/2?subject=:.c:secret", None), ("GET", "/schemas/ids/1?subject=nick", None),
    ("GET", GUID, None), ("GET", f"{GUID}/ids", None),
    ("GET", "/subjects", None), ("GET", "/subjects?deleted=true", None), ("GET", "/subjects?subjectPrefix=sec", None),
    ("GET", "/schemas", None), ("GET", "/schemas?subjectPrefix=:*:", None), ("GET", "/schemas?aliases=true", None),
    ("GET", "/schemas?resourceType=topic", None), ("GET", "/contexts", None),
    ("POST", "/subjects/secret", {"schema": '"long"'}), ("POST", "/subjects/nick", {"schema": '"long"'}),
    ("GET", "/subjects/secret/versions", None), ("GET", "/subjects/secret/versions/1", None),
    ("GET", "/subjects/secret/versions/latest", None), ("GET", "/subjects/secret/versions/1/schema", None),
    ("GET", "/subjects/secret/versions/7", None), ("GET", "/subjects/secret/metadata?key=a&value=b", None),
    ("GET", "/subjects/nick/versions", None), ("GET", "/subjects/nick/versions/1", None),
    ("GET", "/subjects/common/versions/1/referencedby", None),
    ("GET", "/subjects/secret/versions/1/referencedby", None),
    ("GET", "/subjects/%3A.c%3Asecret/versions/1", None), ("GET", "/contexts/.c/subjects/secret/versions/1", None),
    ("GET", "/contexts/.c/subjects", None), ("GET", "/contexts/.c/schemas/ids/1", None),
    ("POST", "/subjects/secret/versions", {"schema": '"long"'}), ("POST", "/subjects/secret/versions", {"schema": "{"}),
    ("POST", "/subjects/open-new/versions",
     {"schema": HOLDER, "references": [{"name": "R", "subject": "secret", "version": 1}]}),
    ("POST", "/subjects/secret/versions/1/tags", {}), ("DELETE", "/subjects/secret", None),
    ("DELETE", "/subjects/secret?permanent=true", None), ("DELETE", "/subjects/secret/versions/1", None),
    ("DELETE", "/subjects/nick", None), ("POST", "/subjects/nick/versions", {"schema": '"long"'}),
    ("POST", "/compatibility/subjects/secret/versions", {"schema": '"int"'}),
    ("POST", "/compatibility/subjects/secret/versions/latest?verbose=true", {"schema": '"int"'}),
    ("POST", "/compatibility/subjects/nick/versions", {"schema": '"int"'}),
    ("GET", "/config/secret", None), ("GET", "/config/secret?defaultToGlobal=true", None),
    ("PUT", "/config/secret", {"compatibility": "NONE"}), ("DELETE", "/config/secret", None),
    ("GET", "/mode/secret", None), ("PUT", "/mode/secret", {"mode": "READONLY"}), ("DELETE", "/mode/secret", None),
    ("GET", "/associations/subjects/secret", None), ("GET", "/associations/resources/t", None),
    ("GET", "/associations/resources/ns/t", None), ("DELETE", "/associations/resources/t", None),
    ("DELETE", "/associations/resources/t?cascadeLifecycle=true&dryRun=true", None),
    ("PUT", "/associations/resources/t", topic("t", "secret")),
    ("POST", "/associations", topic("other", "secret")), ("POST", "/associations?dryRun=true", topic("o", "secret")),
    ("POST", "/associations:batchGet?includeSchemas=true", {"requests": [{"resourceId": "t"}]}),
    ("POST", "/associations:batchMutate", {"requests": [{**topic("q", "secret"), "opType": "CREATE"}]}),
    ("GET", "/dek-registry/v1/keks", None), ("GET", "/dek-registry/v1/keks?subjectPrefix=sec", None),
    ("GET", "/dek-registry/v1/keks/k", None), ("POST", "/dek-registry/v1/keks", KEK),
    ("PUT", "/dek-registry/v1/keks/k", {"doc": "d"}), ("DELETE", "/dek-registry/v1/keks/k", None),
    ("POST", "/dek-registry/v1/keks/k/test", None), ("POST", "/dek-registry/v1/keks/k/undelete", None),
    ("GET", DEKS, None), ("POST", DEKS, DEK), ("GET", f"{DEKS}/secret", None), ("POST", f"{DEKS}/secret", DEK),
    ("DELETE", f"{DEKS}/secret", None), ("POST", f"{DEKS}/secret/undelete", None),
    ("GET", f"{DEKS}/secret/versions", None), ("GET", f"{DEKS}/secret/versions/1", None),
    ("DELETE", f"{DEKS}/secret/versions/1", None), ("POST", f"{DEKS}/secret/versions/1/undelete", None),
    *(("POST", "/v1/apply", {"steps": [{"action": "register", "subject": "open", "schema": {"schema": '"int"'}}, step]})
      for step in (
          {"action": "register", "subject": "secret", "schema": {"schema": '"long"'}},
          {"action": "register", "subject": "open-2", "schema": {"schema": "[]", "references": [
              {"name": "S", "subject": "secret", "version": 1}]}},
          {"action": "settings", "subject": "secret", "mode": "READWRITE"},
          {"action": "settings", "subject": "secret", "config": {"compatibility": "FULL"}},
          {"action": "delete", "subject": "secret"},
          {"action": "settings", "config": {"compatibility": "FULL"}},
      )),
    ("GET", "/v1/highest-ids/.", None), ("PUT", "/v1/highest-ids/.", {}),
    ("GET", "/v1/log", None), ("GET", "/v1/usage", None), ("GET", "/v1/usage?subject=secret", None),
    ("GET", "/v1/scopes", None), ("GET", "/v1/settings", None), ("GET", f"/v1/glue/{GLUE}", None),
    ("GET", "/v1/search?query=s", None),
    ("GET", "/metrics", None),
    ("DELETE", "/contexts/.c", None), ("GET", "/config", None), ("GET", "/mode", None),
    ("PUT", "/config", {"compatibility": "NONE"}), ("PUT", "/mode", {"mode": "READONLY"}), ("DELETE", "/mode", None),
    ("DELETE", "/config", None), ("GET", "/security/acls", None), ("DELETE", "/security/acls", [{}]),
    ("POST", "/security/acls", []), ("GET", "/security/acls/verdict?principal=User:alice", None),
    *(("GET", f"/exporters{path}", None) for path in ("", "/e", "/e/config", "/e/config/clusterlink", "/e/status")),
    ("POST", "/exporters", EXPORTER), ("PUT", "/exporters/e", {"subjects": ["open"]}),
    ("PUT", "/exporters/e/config", EXPORTER["config"]), ("DELETE", "/exporters/e", None),
    *(("PUT", f"/exporters/e/{what}", None) for what in ("pause", "resume", "reset")),
]  # fmt: skip

ALL_ON_OPEN = [rule("alice", "ALL", "open-*"), rule("alice", "ALL", "nick"), rule("alice", "READ", "common")]


def filled(registry: Registry, *, secrets: bool) -> Registry:
    """Fill a registry, also with what `alice` may not see; return it."""
    registry.register("common", RECORD)
    if secrets:
        registry.register("secret", '"long"')
        registry.register("holder", HOLDER, references=TO_COMMON)
        registry.register("tagged", '"bytes"', metadata={"properties": {"glue.schema.version.id": GLUE}})
        registry.register("%3A.c%3Asecret", '"long"')
        registry.register("%3A.c%3Anick", '"string"')
        registry.ask("PUT", "/config/secret", {"compatibility": "FULL"})
        registry.ask("PUT", "/mode/secret", {"mode": "READWRITE"})
        assert registry.code("POST", "/associations", topic("t", "secret")) == 200
        assert registry.code("POST", "/dek-registry/v1/keks", KEK) == 200
        assert registry.code("POST", DEKS, DEK) == 200
        assert registry.code("POST", "/exporters", EXPORTER) == 200
    registry.ask("PUT", "/config/nick", {"alias": "secret"})
    return registry


def filled_log(*, secrets: bool) -> MemoryLog:
    """Return a new log of a registry that was filled."""
    return copy_of(_filled_log(secrets))


@cache
def _filled_log(secrets: bool) -> MemoryLog:
    log = MemoryLog()
    with asyncio.Runner() as runner:
        filled(Registry(runner, log=log), secrets=secrets)
    return log
