"""The OpenAPI document is correct: it has every route, and answers have the documented shape."""

import json
from asyncio import _get_running_loop as running_loop

import pytest
from pydantic import TypeAdapter

from harness.logs import copy_of
from strata.registry.api.bodies.acls import AclAnswer, VerdictAnswer
from strata.registry.api.bodies.associations import AssociationAnswer, BatchAnswer, ResourceAnswer
from strata.registry.api.bodies.batches import BatchResultAnswer
from strata.registry.api.bodies.configuration import ConfigAnswer, ConfigChange, ModeAnswer, ScopeAnswer
from strata.registry.api.bodies.failures import ErrorAnswer
from strata.registry.api.bodies.operations import HighestIdAnswer, LiveAnswer, LogAnswer, ReadyAnswer, UsageAnswer
from strata.registry.api.bodies.schemas import (
    CompatibilityAnswer,
    ContextIdAnswer,
    RegisteredAnswer,
    SchemaAnswer,
    SchemaStringAnswer,
    SubjectVersionAnswer,
)
from strata.registry.api.listing import ListedSchema
from strata.registry.app import ROUTERS
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.features.exporters.bodies import ExporterAnswer, ExporterNameAnswer, ExporterStatusAnswer
from strata.registry.features.keys.bodies import DekAnswer, KekAnswer
from strata.registry.features.search.routes import SearchAnswer

SCHEMA = {"schema": '"int"'}
METADATA = {"tags": {"**.f": ["PII"]}, "properties": {"owner": "me"}, "sensitive": ["owner"]}
RULE = {"name": "check", "doc": "d", "kind": "CONDITION", "mode": "READ", "type": "CEL", "tags": ["PII"],
        "params": {"p": "1"}, "expr": "true", "onSuccess": "NONE", "onFailure": "DLQ", "disabled": True}  # fmt: skip
RULE_SET = {"domainRules": [RULE], "enableAt": "CLIENT"}
CONTRACT = {
    "schema": '{"type":"record","name":"R","fields":[{"name":"f","type":"int","confluent:tags":["PII"]}]}',
    "metadata": METADATA,
    "ruleSet": RULE_SET,
}
CONFIG = {
    "alias": "a",
    "aliasForDeks": "b",
    "normalize": False,
    "validateFields": False,
    "validateNewSchemas": True,
    "validateRules": True,
    "compatibility": "FULL",
    "compatibilityPolicy": "LENIENT",
    "compatibilityGroup": "major",
    "defaultMetadata": METADATA,
    "overrideMetadata": METADATA,
    "defaultRuleSet": RULE_SET,
    "overrideRuleSet": RULE_SET,
}
TYPED = {"opType": "UPSERT", "associationType": "key", "schema": SCHEMA}
NEW = {"resourceName": "u", "resourceNamespace": "ns", "resourceId": "q", "associations": [TYPED]}
WRONG = {**NEW, "resourceType": "table"}
HELD = {"resourceName": "t", "resourceNamespace": "ns", "associations": [{"subject": "a", "lifecycle": "WEAK"}]}
ACL = {"principal": "User:u", "resource": "s", "resource_type": "SUBJECT", "pattern_type": "LITERAL", "host": "*",
       "operation": "READ", "permission": "ALLOW"}  # fmt: skip
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn", "kmsProps": {"p": "1"}, "doc": "d", "shared": False}
DEK = {"encryptedKeyMaterial": "QUJD"}
DESTINATION = {"schema.registry.url": "http://127.0.0.1:1"}
KEKS, DEKS = "/dek-registry/v1/keks", "/dek-registry/v1/keks/{name}/deks"

# method, path as documented, path, body, model of the answer
ANSWERS = [
    ("GET", "/", "/", None, dict[str, str]),
    ("POST", "/", "/", {}, dict[str, str]),
    ("GET", "/schemas/types", "/schemas/types", None, list[str]),
    ("GET", "/schemas/ids/{schema_id}", "/schemas/ids/1", None, SchemaStringAnswer),
    ("GET", "/schemas/ids/{schema_id}", "/schemas/ids/1?subject=s&fetchMaxId=true", None, SchemaStringAnswer),
    ("GET", "/schemas/ids/{schema_id}/schema", "/schemas/ids/1/schema", None, str),
    ("GET", "/schemas/ids/{schema_id}/subjects", "/schemas/ids/1/subjects", None, list[str]),
    ("GET", "/schemas/ids/{schema_id}/versions", "/schemas/ids/1/versions", None, list[SubjectVersionAnswer]),
    ("GET", "/schemas", "/schemas", None, list[ListedSchema]),
    ("GET", "/schemas/guids/{guid}", "/schemas/guids/ef524ea1-b91e-7317-3d93-8ade36c1db32", None, SchemaStringAnswer),
    ("GET", "/schemas/guids/{guid}/ids",
     "/schemas/guids/ef524ea1-b91e-7317-3d93-8ade36c1db32/ids", None, list[ContextIdAnswer]),
    ("GET", "/contexts", "/contexts", None, list[str]),
    ("GET", "/schemas", "/schemas?aliases=true&resourceType=topic", None, list[ListedSchema]),
    ("DELETE", "/contexts/{context}", "/contexts/.c", None, str),
    ("GET", "/contexts/{context}", "/contexts/.c/", None, dict[str, str]),
    ("POST", "/contexts/{context}", "/contexts/.c/", {}, dict[str, str]),
    ("POST", "/associations", "/associations", NEW, ResourceAnswer),
    ("POST", "/associations", "/associations", WRONG, ErrorAnswer),
    ("GET", "/associations/subjects/{subject}", "/associations/subjects/s", None, list[AssociationAnswer]),
    ("GET", "/associations/resources/{resource_id}", "/associations/resources/r", None, list[AssociationAnswer]),
    ("GET", "/associations/resources/{resource_namespace}/{resource_name}",
     "/associations/resources/-/t", None, list[AssociationAnswer]),
    ("PUT", "/associations/resources/{resource_id}", "/associations/resources/r", HELD, ResourceAnswer),
    ("DELETE", "/associations/resources/{resource_id}", "/associations/resources/r", None, str),
    ("POST", "/associations:batchGet", "/associations:batchGet?includeSchemas=true",
     {"requests": [{"resourceId": "r"}, {"resourceName": "none"}]}, BatchAnswer),
    ("POST", "/associations:batchMutate", "/associations:batchMutate", {"requests": [NEW, WRONG]}, BatchAnswer),
    ("GET", KEKS, KEKS, None, list[str]),
    ("POST", KEKS, KEKS, {**KEK, "name": "new"}, KekAnswer),
    ("POST", KEKS, KEKS, {**KEK, "shared": True}, ErrorAnswer),
    ("GET", f"{KEKS}/{{name}}", f"{KEKS}/k", None, KekAnswer),
    ("GET", f"{KEKS}/{{name}}", f"{KEKS}/gone?deleted=true", None, KekAnswer),
    ("PUT", f"{KEKS}/{{name}}", f"{KEKS}/k", {"doc": None, "kmsProps": None}, KekAnswer),
    ("DELETE", f"{KEKS}/{{name}}", f"{KEKS}/gone?permanent=true", None, str),
    ("POST", f"{KEKS}/{{name}}/undelete", f"{KEKS}/gone/undelete", None, str),
    ("POST", f"{KEKS}/{{name}}/test", f"{KEKS}/k/test", None, ErrorAnswer),
    ("GET", DEKS, f"{KEKS}/k/deks", None, list[str]),
    ("POST", DEKS, f"{KEKS}/k/deks", {**DEK, "subject": "new"}, DekAnswer),
    ("GET", f"{DEKS}/{{subject}}", f"{KEKS}/k/deks/s", None, DekAnswer),
    ("POST", f"{DEKS}/{{subject}}", f"{KEKS}/k/deks/s", {**DEK, "version": 2, "deleted": True}, DekAnswer),
    ("POST", f"{DEKS}/{{subject}}", f"{KEKS}/k/deks/s", DEK, ErrorAnswer),
    ("DELETE", f"{DEKS}/{{subject}}", f"{KEKS}/k/deks/s", None, str),
    ("POST", f"{DEKS}/{{subject}}/undelete", f"{KEKS}/k/deks/s/undelete", None, str),
    ("GET", f"{DEKS}/{{subject}}/versions", f"{KEKS}/k/deks/s/versions", None, list[int]),
    ("GET", f"{DEKS}/{{subject}}/versions/{{version}}", f"{KEKS}/k/deks/s/versions/1", None, DekAnswer),
    ("DELETE", f"{DEKS}/{{subject}}/versions/{{version}}", f"{KEKS}/k/deks/s/versions/1", None, str),
    ("POST", f"{DEKS}/{{subject}}/versions/{{version}}/undelete", f"{KEKS}/k/deks/s/versions/1/undelete", None, str),
    ("GET", "/subjects", "/subjects", None, list[str]),
    ("POST", "/subjects/{subject}", "/subjects/s", SCHEMA, SchemaAnswer),
    ("DELETE", "/subjects/{subject}", "/subjects/s", None, list[int]),
    ("GET", "/subjects/{subject}/metadata", "/subjects/c/metadata?key=owner&value=me", None, SchemaAnswer),
    ("GET", "/subjects/{subject}/versions", "/subjects/s/versions", None, list[int]),
    ("POST", "/subjects/{subject}/versions", "/subjects/s/versions", SCHEMA, RegisteredAnswer),
    ("POST", "/subjects/{subject}/versions", "/subjects/new/versions", SCHEMA, RegisteredAnswer),
    ("POST", "/subjects/{subject}/versions", "/subjects/new/versions", CONTRACT, RegisteredAnswer),
    ("POST", "/subjects/{subject}/versions/{version}/tags", "/subjects/c/versions/1/tags",
     {"rulesToRemove": ["check"]}, RegisteredAnswer),
    ("GET", "/subjects/{subject}/versions/{version}", "/subjects/c/versions/1?findTags=PII", None, SchemaAnswer),
    ("GET", "/subjects/{subject}/versions/{version}", "/subjects/s/versions/1", None, SchemaAnswer),
    ("GET", "/subjects/{subject}/versions/{version}/schema", "/subjects/s/versions/latest/schema", None, str),
    ("GET", "/subjects/{subject}/versions/{version}/referencedby",
     "/subjects/s/versions/1/referencedby", None, list[int]),
    ("DELETE", "/subjects/{subject}/versions/{version}", "/subjects/s/versions/1", None, int),
    ("POST", "/compatibility/subjects/{subject}/versions",
     "/compatibility/subjects/s/versions", SCHEMA, CompatibilityAnswer),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}",
     "/compatibility/subjects/s/versions/1?verbose=true", SCHEMA, CompatibilityAnswer),
    ("GET", "/config", "/config", None, ConfigAnswer),
    ("PUT", "/config", "/config", {"compatibility": "FULL"}, ConfigChange),
    ("DELETE", "/config", "/config", None, ConfigAnswer),
    ("GET", "/config/{subject}", "/config/s?defaultToGlobal=true", None, ConfigAnswer),
    ("GET", "/config/{subject}", "/config/x", None, ErrorAnswer),
    ("PUT", "/config/{subject}", "/config/s", CONFIG, ConfigChange),
    ("GET", "/config/{subject}", "/config/full", None, ConfigAnswer),
    ("DELETE", "/config/{subject}", "/config/t", None, ConfigAnswer),
    ("GET", "/mode", "/mode", None, ModeAnswer),
    ("PUT", "/mode", "/mode", {"mode": "READONLY"}, ModeAnswer),
    ("DELETE", "/mode", "/mode", None, ModeAnswer),
    ("GET", "/mode/{subject}", "/mode/s?defaultToGlobal=true", None, ModeAnswer),
    ("PUT", "/mode/{subject}", "/mode/s", {"mode": "READONLY"}, ModeAnswer),
    ("DELETE", "/mode/{subject}", "/mode/m", None, ModeAnswer),
    ("GET", "/exporters", "/exporters", None, list[str]),
    ("POST", "/exporters", "/exporters", {"name": "f", "config": DESTINATION}, ExporterNameAnswer),
    ("POST", "/exporters", "/exporters", {"name": "e", "config": DESTINATION}, ErrorAnswer),
    ("GET", "/exporters/{exporter}", "/exporters/e", None, ExporterAnswer),
    ("PUT", "/exporters/{exporter}", "/exporters/e", {"subjects": ["a"]}, ExporterNameAnswer),
    ("DELETE", "/exporters/{exporter}", "/exporters/e", None, ExporterNameAnswer),
    ("GET", "/exporters/{exporter}/config", "/exporters/e/config", None, dict[str, str]),
    ("PUT", "/exporters/{exporter}/config", "/exporters/e/config", DESTINATION, ExporterNameAnswer),
    ("GET", "/exporters/{exporter}/config/clusterlink", "/exporters/e/config/clusterlink", None, dict[str, str]),
    ("GET", "/exporters/{exporter}/status", "/exporters/e/status", None, ExporterStatusAnswer),
    *(("PUT", f"/exporters/{{exporter}}/{what}", f"/exporters/e/{what}", None, ExporterNameAnswer)
      for what in ("pause", "resume", "reset")),
    ("GET", "/security/acls", "/security/acls?host=*", None, list[AclAnswer]),
    ("POST", "/security/acls", "/security/acls", [ACL], list[AclAnswer]),
    ("POST", "/security/acls", "/security/acls", [{}], ErrorAnswer),
    ("DELETE", "/security/acls", "/security/acls", [{"host": "*"}], list[AclAnswer]),
    ("GET", "/security/acls/verdict",
     "/security/acls/verdict?principal=User:u&operation=READ&resource=s", None, VerdictAnswer),
    ("GET", "/v1/metadata/id", "/v1/metadata/id", None, dict[str, dict[str, object]]),
    ("GET", "/v1/metadata/version", "/v1/metadata/version", None, dict[str, str]),
    ("GET", "/v1/log", "/v1/log", None, LogAnswer),
    ("GET", "/v1/highest-ids/{context}", "/v1/highest-ids/.", None, HighestIdAnswer),
    ("PUT", "/v1/highest-ids/{context}", "/v1/highest-ids/.", {}, HighestIdAnswer),
    ("GET", "/v1/scopes", "/v1/scopes", None, list[str]),
    ("GET", "/v1/settings", "/v1/settings", None, list[ScopeAnswer]),
    ("GET", "/v1/search", "/v1/search?query=s", None, SearchAnswer),
    ("GET", "/v1/glue/{guid}", "/v1/glue/ef524ea1-b91e-7317-3d93-8ade36c1db32", None, list[SchemaAnswer]),
    ("GET", "/metrics", "/metrics", None, str),
    ("GET", "/v1/usage", "/v1/usage?subject=s", None, UsageAnswer),
    ("POST", "/v1/apply", "/v1/apply",
     {"steps": [{"action": "register", "subject": "n", "schema": SCHEMA}, {"action": "settings", "config": CONFIG}]},
     BatchResultAnswer),
    ("POST", "/v1/apply", "/v1/apply",
     {"dryRun": True, "steps": [{"action": "register", "subject": "s", "schema": {"schema": '"string"'}}]},
     BatchResultAnswer),
    ("GET", "/health/live", "/health/live", None, LiveAnswer),
    ("GET", "/health/ready", "/health/ready", None, ReadyAnswer),
    ("GET", "/health/write", "/health/write", None, ReadyAnswer),
    ("GET", "/v1/metadata/deployment", "/v1/metadata/deployment", None, dict[str, list[str]]),
]  # fmt: skip


@pytest.fixture(scope="module")
def content(shared_log):
    """Return a log with something of each kind."""
    log, api = shared_log
    api.placed("s", '"int"')
    api.post("/subjects/c/versions", CONTRACT)
    api.put("/config/t", {"compatibility": "NONE"})
    api.put("/config/full", CONFIG)
    api.put("/mode/m", {"mode": "READONLY"})
    api.placed("a", '"int"')
    api.post("/associations", {**HELD, "resourceId": "r", "associations": [{"subject": "a"}]})
    for name in ("k", "gone"):
        api.post(KEKS, {**KEK, "name": name})
    api.post(f"{KEKS}/k/deks/s", DEK)
    api.post("/security/acls", [ACL])
    api.post("/exporters", {"name": "e", "config": DESTINATION})
    api.put("/exporters/e/pause", {})
    api.delete(f"{KEKS}/gone")
    return log


@pytest.mark.parametrize(("method", "documented", "path", "body", "model"), ANSWERS)
def test_answer_is_of_the_documented_shape(content, shared_api, start, document, method, documented, path, body, model):
    """Each route returns what the document says: no extra property, no other type, no null."""
    api = shared_api if method == "GET" else start(copy_of(content))
    status, answer = api.call(method, path, body)
    operation = document["paths"][documented][method.lower()]

    TypeAdapter(model).validate_python(answer, extra="forbid", by_alias=True)
    assert str(status) in operation["responses"]
    assert "null" not in json.dumps(answer)


def test_every_route_is_documented_and_tried(document):
    """The table above includes every documented route."""
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}

    assert found == {(method, path) for method, path, *_ in ANSWERS}


def test_the_document_is_made_in_a_thread(api, monkeypatch):
    """Other requests do not wait while the document is made, which takes seconds."""
    loops = []
    monkeypatch.setattr("strata.registry.app._Application.openapi", lambda _app: loops.append(running_loop()) or {})

    assert (200, {}) == api.get("/openapi.json")
    assert [None] == loops


def test_pages_of_the_document(api):
    """The page of the document is HTML."""
    assert 200 == api.get("/docs", Accept="text/html")[0]
    assert api.headers["content-type"].startswith("text/html")


def test_refusals_by_the_layers_before_the_routes_are_documented(document):
    """Any route but a probe may answer 429, and each that needs a right also 401 and 403."""
    needs = {(route.method, route.path): route.facts.need for router in ROUTERS for route in router.declared}
    found = {(method.upper(), path): set(one["responses"]) & {"401", "403", "429"}
             for path, methods in document["paths"].items() for method, one in methods.items()}  # fmt: skip

    assert found == {
        place: set() if place[1].startswith("/health/") else {"429"} if needs[place] is OPEN else {"401", "403", "429"}
        for place in found
    }


def test_numbers_that_are_refused_are_documented(document):
    """A number out of range is 404, so every operation with a number in its query documents 404."""
    undocumented = [
        (method, path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if any(one["schema"].get("type") == "integer" for one in operation.get("parameters", ()))
        and "404" not in operation["responses"]
    ]

    assert [] == undocumented
