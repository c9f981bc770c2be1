"""Associations of topics with subjects: rules for creating, changing and deleting them, and look-ups by clients."""

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
)
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.compat.levels import Level
from strata.registry.core.decide.association_requests import AssociationRequest, Resource, Wanted
from strata.registry.core.decide.associations import change_associations, change_batch, delete_associations
from strata.registry.core.decide.delete import delete_subject
from strata.registry.core.decide.mode import set_mode
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.errors import RegistryError
from strata.registry.core.schema_request import SchemaRequest
from strata.storage.record_json import encode
from strata.storage.records import AssociationKey, AssociationValue, Reference
from strata.storage.state import State

INT, LONG = '"int"', '"long"'
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
RULES = Rules(Level.NONE)
NOW = 1000
DEFAULT = ":.ns:t-value"


def after(state, decision):
    """Return the State after a decision."""
    return state.drafted(decision.records, NOW)


def registered(state, subject, text, *references):
    """Return the State with one more schema."""
    return after(state, register(state, subject, SchemaRequest(text, references=references), RULES))


def change(state, *wanted, topic="t", resource_id="r", dry_run=False, **other):
    """Decide some changes of a topic's associations."""
    resource = Resource(topic, other.get("namespace", "ns"), resource_id, other.get("resource_type", "topic"))
    return change_associations(state, AssociationRequest(resource, wanted, dry_run=dry_run), RULES, NOW)


def create(subject=None, **other):
    """Return an association to create."""
    schema = SchemaRequest(other.pop("schema")) if "schema" in other else None
    return Wanted("CREATE", subject=subject, schema=schema, guid="g", **other)


def upsert(subject=None, **other):
    """Return an association to create or change."""
    schema = SchemaRequest(other.pop("schema")) if "schema" in other else None
    return Wanted("UPSERT", subject=subject, schema=schema, guid="g", **other)


@pytest.fixture(scope="module")
def base():
    """Return a State with subjects a, b, ref and user; `user` refers to `ref`; topics `weak` (a), `loose` (b).

    The association of `loose` is STRONG and not frozen, as logs of older registries have it.
    """
    state = registered(State(), "a", INT)
    state = registered(state, "b", LONG)
    state = registered(state, "ref", RECORD)
    state = registered(state, "user", '{"type":"array","items":"R"}', Reference("R", "ref", 1))
    state = after(state, change(state, create("a"), topic="weak", resource_id="weak"))
    loose = AssociationKey("ns", "loose", "topic", "value", "b")
    state = state.drafted([encode(loose, AssociationValue("g", "loose", "STRONG", False, NOW))], NOW)
    return after(state, change(state, create(schema=INT), topic="frozen", resource_id="frozen"))


def shown(state, subject):
    """Return the associations of a subject."""
    return [
        (a.key.resource_name, a.key.association_type, a.value.lifecycle, a.value.frozen)
        for a in state.associations.of_subject(subject)
    ]


ACCEPTED = [
    pytest.param([create("a")], {}, "a", ("t", "value", "WEAK", False), id="weak by default"),
    pytest.param([create("a", association_type="key")], {}, "a", ("t", "key", "WEAK", False), id="of the keys"),
    pytest.param([create(schema=INT)], {}, DEFAULT, ("t", "value", "STRONG", True), id="frozen, with its first schema"),
    pytest.param([upsert("a")], {}, "a", ("t", "value", "WEAK", False), id="upsert of a new one"),
    pytest.param([upsert(lifecycle="WEAK")], {"topic": "loose", "resource_id": "loose"},
                 "b", ("loose", "value", "WEAK", False), id="a loose strong one becomes weak, by its subject"),
    pytest.param([create("b")], {"topic": "loose", "resource_id": "loose"},
                 "b", ("loose", "value", "STRONG", False), id="the same again"),
    pytest.param([create(schema=INT)], {"topic": "frozen", "resource_id": "frozen"},
                 ":.ns:frozen-value", ("frozen", "value", "STRONG", True), id="the same with its schema again"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "resource", "subject", "expected"), ACCEPTED)
def test_accepted_change(base, wanted, resource, subject, expected):
    """A repeated request for an association changes nothing, and a dry run never does."""
    assert [] == change(base, *wanted, **resource, dry_run=True).records
    state = after(base, change(base, *wanted, **resource))

    assert expected in shown(state, subject)
    assert [] == change(state, *wanted, **resource).records


WEAK, FROZEN = ({"topic": name, "resource_id": name} for name in ("weak", "frozen"))
REFUSED = [
    pytest.param([create("a")], {"topic": ""}, 42212, "resourceName", id="no name"),
    pytest.param([create("a")], {"topic": "x" * 257}, 42212, "max length of 256", id="a long name"),
    pytest.param([create("a")], {"topic": "x\n"}, 42212, "illegal character", id="a control character"),
    pytest.param([create("a")], {"namespace": "a:b"}, 42212, "illegal character ':'", id="a colon"),
    pytest.param([create("a")], {"namespace": ""}, 42212, "resourceNamespace", id="no namespace"),
    pytest.param([create("a")], {"resource_id": ""}, 42212, "resourceId", id="no id"),
    pytest.param([create("a")], {"resource_type": "table"}, 42212, "must be 'topic'", id="not a topic"),
    pytest.param([], {}, 42212, "associations", id="nothing wanted"),
    pytest.param([create("a", association_type="header")], {}, 42212, "associationType", id="another type"),
    pytest.param([create("a"), create("b")], {}, 42212, "'value' appears more than once", id="a type twice"),
    pytest.param([create("a", lifecycle="MILD")], {}, 42212, "lifecycle", id="another lifecycle"),
    pytest.param([Wanted("DROP")], {}, 42212, "opType", id="another operation"),
    pytest.param([create("")], {}, 42212, "must not be empty", id="a blank subject"),
    pytest.param([create("x", schema=INT)], {}, 42212, "frozen associations must use", id="frozen elsewhere"),
    pytest.param([upsert("x", lifecycle="STRONG")], {}, 42212, "frozen associations must use subject ':.ns:t-value'",
                 id="strong elsewhere, later"),
    pytest.param([upsert(schema=INT)], {}, 42212, "must be created with the topic", id="a schema later"),
    pytest.param([upsert("x\n")], {}, 42208, "not a valid", id="no subject's name"),
    pytest.param([create()], {}, 42212, "must be provided", id="neither subject nor schema"),
    pytest.param([create(schema=INT, lifecycle="WEAK")], {}, 42212, "cannot be WEAK", id="weak with a schema"),
    pytest.param([create(schema=INT, frozen=False)], {}, 42212, "when a schema is provided", id="a schema, not frozen"),
    pytest.param([create("a", lifecycle="WEAK", frozen=True)], {}, 42212, "cannot be frozen", id="weak and frozen"),
    pytest.param([create(frozen=True)], {}, 42212, "schema", id="frozen without schema or subject"),
    pytest.param([create("a", frozen=False), create(association_type="key", frozen=True)], {},
                 42212, "consistently", id="one frozen, one not"),
    pytest.param([create("none")], {}, 40907, "'none'", id="a subject without versions"),
    pytest.param([create("b")], {}, 40905, "'b'", id="another topic's own subject"),
    pytest.param([create("user")], WEAK, 40903, "'value' already exists for resource 'weak'", id="create over another"),
    pytest.param([create("a")], {**WEAK, "resource_id": "new"}, 40903, "'weak'", id="the name under another id"),
    pytest.param([create("a")], {**WEAK, "topic": "u"}, 42212, "names 'weak' in 'ns'", id="the id under another name"),
    pytest.param([upsert("user")], WEAK, 42212, "subject of association cannot be changed", id="another subject"),
    pytest.param([upsert("a", frozen=True)], WEAK, 42212, "frozen attribute", id="frozen later"),
    pytest.param([upsert(frozen=False)], FROZEN, 42212, "frozen attribute", id="not frozen any more"),
    pytest.param([upsert(lifecycle="WEAK")], FROZEN, 40908, "type  'value' is frozen", id="a frozen one changed"),
    pytest.param([create(schema=LONG)], FROZEN, 40903, "'frozen'", id="another schema for a frozen one"),
    pytest.param([upsert("a", schema=LONG)], WEAK, 42212, "cannot be WEAK", id="a schema for a weak one"),
    pytest.param([create(schema="{")], {}, 42201, "Invalid schema", id="an invalid text"),
    pytest.param([Wanted("DELETE")], {}, 40410, "Association for 'r' not found.", id="deleting nothing"),
    pytest.param([Wanted("DELETE")], FROZEN, 40908, "frozen", id="deleting a frozen one"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "resource", "code", "reason"), REFUSED)
def test_refused_change(base, wanted, resource, code, reason):
    """Each rule has its own error code, and the message says what is wrong."""
    with pytest.raises(RegistryError) as refusal:
        change(base, *wanted, **resource)

    assert code == refusal.value.code
    assert reason in refusal.value.message


def test_read_only_subject_takes_no_association(base):
    """A mode that forbids writes forbids changes of associations, too."""
    state = after(base, set_mode(base, "a", "READONLY", force=False))

    for refused in (lambda: change(state, create("a")), lambda: change(state, Wanted("DELETE"), **WEAK)):
        with pytest.raises(RegistryError, match="read-only"):
            refused()


def test_associated_subject_stays(base):
    """The registry refuses to delete a subject, softly or for good, while it has an association."""
    for permanent in (False, True):
        with pytest.raises(RegistryError, match="An association already exists for subject 'a'"):
            delete_subject(base, "a", permanent=permanent)
    state = after(base, delete_associations(base, "weak", "topic", (), NOW, cascade=False, dry_run=False))

    assert [1] == delete_subject(state, "a", permanent=False).answer


def test_nothing_refers_to_a_topics_own_subject(base):
    """Registration refuses a reference to a subject with a strong association, except from that subject itself."""
    with pytest.raises(RegistryError, match="strong association") as refusal:
        registered(base, "x", '{"type":"array","items":"long"}', Reference("l", "b", 1))

    assert 42205 == refusal.value.code


@pytest.mark.parametrize(
    ("resource_id", "types", "cascade", "left", "versions"),
    [("loose", (), False, 0, 1), ("loose", (), True, 0, 0), ("loose", ("key",), True, 1, 1),
     ("none", (), True, 1, 1)],
)  # fmt: skip
def test_cascade_takes_the_topics_own_subject(base, resource_id, types, cascade, left, versions):
    """With cascade, deleting a strong association removes its subject; deleting a missing association succeeds."""
    dry = delete_associations(base, resource_id, "topic", types, NOW, cascade=cascade, dry_run=True)
    state = after(base, delete_associations(base, resource_id, "topic", types, NOW, cascade=cascade, dry_run=False))

    assert [] == dry.records
    assert (left, versions) == (len(shown(state, "b")), len(state.versions("b", include_deleted=True)))


def test_weak_subject_survives_cascade(base):
    """Deletion of an association keeps a subject of a weak one; deletion of a frozen one needs cascade."""
    state = after(base, delete_associations(base, "weak", "topic", (), NOW, cascade=True, dry_run=False))

    assert [1] == [entry.version for entry in state.versions("a", include_deleted=False)]
    with pytest.raises(RegistryError, match="frozen"):
        delete_associations(base, "frozen", "topic", (), NOW, cascade=False, dry_run=False)
    gone = after(base, delete_associations(base, "frozen", "topic", (), NOW, cascade=True, dry_run=False))
    assert ([], []) == (shown(gone, ":.ns:frozen-value"), gone.versions(":.ns:frozen-value", include_deleted=True))


def test_request_of_a_batch_is_all_or_nothing(base):
    """A refused request of a batch writes nothing, and the other requests succeed."""
    resource = Resource("t", "ns", "r")
    half = AssociationRequest(resource, [create("a"), create("none", association_type="key")])
    whole = AssociationRequest(resource, [create("a", association_type="key")])
    decision = change_batch(base, [half, whole], RULES, NOW)

    assert [40907] == [outcome.code for outcome in decision.answer if isinstance(outcome, RegistryError)]
    assert [("t", "key", "WEAK", False)] == [row for row in shown(after(base, decision), "a") if row[0] == "t"]


@pytest.fixture(scope="module")
def served(shared_api):
    """Return a registry with topic t in two namespaces, and one association of its keys."""
    for subject, text in (("a", INT), ("k", '"string"'), ("strong", LONG)):
        shared_api.placed(subject, text)
    value = {"subject": "a", "associationType": "value", "lifecycle": "WEAK"}
    key = {"subject": "k", "associationType": "key", "lifecycle": "WEAK"}
    for namespace, wanted in (("one", [value, key]), ("two", [value])):
        body = {"resourceName": "t.x", "resourceNamespace": namespace, "resourceId": f"{namespace}/t"}
        assert 200 == shared_api.post("/associations", {**body, "associations": wanted})[0]
    return shared_api


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/associations/resources/-/t.x", ["one key", "one value", "two value"]),
        ("/associations/resources/one/t.x", ["one key", "one value"]),
        ("/associations/resources/one/t.x?resourceType=topic&associationType=value", ["one value"]),
        ("/associations/resources/-/t.x?associationType=key&associationType=value&lifecycle=WEAK&limit=2",
         ["one key", "one value"]),
        ("/associations/resources/-/t.x?offset=1&limit=-1", ["one value", "two value"]),
        ("/associations/resources/-/t.x?lifecycle=STRONG", []),
        ("/associations/resources/-/t.x?resourceType=table", []),
        ("/associations/resources/-/none", []),
        ("/associations/resources/one/-", ["one key", "one value"]),
        ("/associations/resources/-/-?associationType=value", ["one value", "two value"]),
        ("/associations/resources/none/-", []),
        ("/associations/resources/one%2Ft", ["one key", "one value"]),
        ("/associations/resources/none", []),
        ("/associations/subjects/a", ["one value", "two value"]),
        ("/associations/subjects/none", []),
        ("/contexts/.c/associations/resources/-/t.x?associationType=key", ["one key"]),
        ("/contexts/.c/associations/subjects/a", []),
    ],
)  # fmt: skip
def test_listing(served, path, expected):
    """Lists by resource and by subject have filters and pages, and are empty where nothing is associated."""
    status, answer = served.get(path)

    assert 200 == status
    assert expected == [f"{one['resourceNamespace']} {one['associationType']}" for one in answer]


def test_unknown_lifecycle_is_refused(served):
    """The registry refuses an invalid filter and says which one."""
    for path in ("/associations/resources/-/t.x?lifecycle=MILD", "/schemas?lifecycle=MILD"):
        assert 42212 == served.get(path)[1]["error_code"]


def test_unknown_paths_are_not_found(served):
    """Routes that the registry does not serve answer in the form that clients parse."""
    for path in ("/associations", "/associations/resources", "/associations:batch"):
        status, answer = served.get(path)
        assert status in (404, 405)
        assert {"error_code": status, "message": answer["message"]} == answer


def test_list_of_schemas_by_association(served):
    """A search returns only subjects with an association that passes every filter, and those associations."""
    found = served.get("/schemas?resourceType=topic&associationType=key")[1]

    assert [("k", "k", "key")] == [
        (entry["subject"], one["subject"], one["associationType"]) for entry in found for one in entry["associations"]
    ]
    assert ["a", "k"] == [entry["subject"] for entry in served.get("/schemas?lifecycle=WEAK")[1]]
    assert [] == served.get("/schemas?lifecycle=STRONG")[1]
    assert ["strong"] == [entry["subject"] for entry in served.get("/schemas?lifecycle=NONE")[1]]
    both = served.get("/schemas?lifecycle=NONE&lifecycle=WEAK")[1]
    assert [("a", 2), ("k", 1), ("strong", 0)] == [
        (entry["subject"], len(entry.get("associations", ()))) for entry in both
    ]
    assert [] == served.get("/schemas?ruleType=CEL")[1]


def test_batches(served):
    """Each request of a batch has its own result, in order, with schemas if the request asks for them."""
    asked = {"requests": [{"resourceName": "t.x", "resourceNamespace": "one", "associationTypes": ["value"]},
                          {"resourceId": "none"}]}  # fmt: skip
    status, answer = served.post("/associations:batchGet?includeSchemas=true", asked)
    first, second = (result["result"] for result in answer["results"])
    assert 207 == status
    assert ("one/t", INT) == (first["resourceId"], first["associations"][0]["schema"]["schema"])
    assert {"resourceId": "none", "resourceType": "topic"} == second

    ops = [
        {"opType": "CREATE", "schema": {"schema": LONG}},
        {"opType": "DELETE", "associationType": "key"},
    ]
    new = {"resourceName": "n", "resourceNamespace": "one", "resourceId": "n"}
    asked = {"requests": [{**new, "associations": ops}, {**new, "associations": ops[:1]},
                          {**new, "associations": [{"opType": "DELETE", "cascadeLifecycle": True}]}]}  # fmt: skip
    status, answer = served.post("/associations:batchMutate", asked)
    assert 207 == status
    assert 40410 == answer["results"][0]["error"]["error_code"]
    assert ":.one:n-value" == answer["results"][1]["result"]["associations"][0]["subject"]
    assert new | {"resourceType": "topic"} == answer["results"][2]["result"]
    assert 40401 == served.get("/subjects/:.one:n-value/versions?deleted=true")[1]["error_code"]


def test_context_of_a_request_is_that_of_its_plain_subjects(served):
    """The routes work under a context prefix and with the context parameter."""
    assert 200 == served.post("/contexts/.q/subjects/s/versions", {"schema": INT})[0]
    body = {"resourceName": "q", "resourceNamespace": "ns", "resourceId": "q", "associations": [{"subject": "s"}]}

    assert ":.q:s" == served.post("/contexts/.q/associations", body)[1]["associations"][0]["subject"]
    assert ":.q:s" == served.put("/associations/resources/q?context=q", body)[1]["associations"][0]["subject"]
    assert [":.q:s"] == [one["subject"] for one in served.get("/associations/resources/ns/q")[1]]
    assert 42211 == served.delete("/contexts/.q")[1]["error_code"]
    assert (204, "") == served.delete("/associations/resources/q")
    assert [] == served.get("/associations/resources/ns/q")[1]


OWN = ":.ns:t-value"
T = {"resourceName": "t", "resourceNamespace": "ns", "resourceId": "id of t"}
PUT_T = "/associations/resources/id%20of%20t"


def wish(subject=None, association_type="value", **other):
    """Return an association as it appears in the body of a request."""
    return {"associationType": association_type, **({"subject": subject} if subject else {}), **other}


def of(*wanted, **other):
    """Return the body of a request for associations of topic t."""
    return {**T, **other, "associations": wanted}


def batch(*requests):
    """Return the body of a batch."""
    return {"requests": requests}


def register_in(subject, text=INT, **more):
    """Return a step that registers a schema."""
    return ("POST", f"/subjects/{subject}/versions", {"schema": text, **more})


def step(method, path, body=None):
    """Return a step that a row takes before its own request."""
    return (method, path, body)


STRONG = wish(schema={"schema": INT})
WITH_A = [register_in("a"), step("POST", "/associations", of(wish("a")))]
WITH_OWN = [step("POST", "/associations", of(STRONG))]
IMPORTED = [
    step("PUT", f"/mode/{OWN}?force=true", {"mode": "IMPORT"}),
    register_in(OWN, id=42, version=7),
]
REFERS = {"schema": '{"type":"array","items":"R"}', "references": [{"name": "R", "subject": OWN, "version": 1}]}
REFERS_TO_KEY = {**REFERS, "references": [{"name": "R", "subject": ":.ns:t-key", "version": 1}]}
OWN_KEY = wish(association_type="key", schema={"schema": RECORD})
OF_KEY = wish(schema=REFERS_TO_KEY)
TAGGED = {"schema": RECORD, "schemaTagsToAdd": [
    {"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["T"]}]}  # fmt: skip
UNKNOWN_TAGGED = {"schema": RECORD, "schemaTagsToAdd": [
    {"schemaEntity": {"entityPath": "none", "entityType": "sr_record"}, "tags": ["T"]}]}  # fmt: skip
DRY = {"resourceName": "t", "resourceNamespace": "ns", "resourceType": "topic"}

# name, the steps before, the request, what the answer must show: an error code, or the properties to compare.
RULES_OVER_HTTP = [
    ("the last live version stays, softly", [*WITH_A], step("DELETE", "/subjects/a/versions/1"), 40904),
    ("the last live version stays, for good", [*WITH_A], step("DELETE", "/subjects/a/versions/1?permanent=true"),
     40904),
    ("an older version goes, softly",
     [register_in("a"), register_in("a", LONG), step("POST", "/associations", of(wish("a")))],
     step("DELETE", "/subjects/a/versions/1"), 1),
    ("an older version goes, for good",
     [register_in("a"), register_in("a", LONG), step("POST", "/associations", of(wish("a"))),
      step("DELETE", "/subjects/a/versions/1")],
     step("DELETE", "/subjects/a/versions/1?permanent=true"), 1),
    ("then the last one stays",
     [register_in("a"), register_in("a", LONG), step("POST", "/associations", of(wish("a"))),
      step("DELETE", "/subjects/a/versions/1")],
     step("DELETE", "/subjects/a/versions/latest"), 40904),
    ("a dry run shows no associations", [register_in("a")],
     step("POST", "/associations?dryRun=true", of(wish("a"))), {**T, "resourceType": "topic"}),
    ("a dry run needs no id", [register_in("a")],
     step("POST", "/associations?dryRun=true", of(wish("a"), resourceId=None)), DRY),
    ("a dry run of a batch shows none", [register_in("a")],
     step("POST", "/associations:batchMutate?dryRun=true", batch(of(wish("a", opType="CREATE")))),
     {"results": [{"result": {**T, "resourceType": "topic"}}]}),
    ("a dry run of what stands is accepted", [*WITH_OWN],
     step("POST", "/associations?dryRun=true", of(STRONG, resourceId=None)), DRY),
    ("a dry run sees what the topic of this name has", [*WITH_OWN, register_in("k")],
     step("POST", "/associations?dryRun=true", of(wish("k", "key"), resourceId=None)), 42212),
    ("imported: a frozen one needs no schema", [*IMPORTED],
     step("POST", "/associations", of(wish(OWN, lifecycle="STRONG", frozen=True))),
     {"associations": [{"subject": OWN, "lifecycle": "STRONG", "associationType": "value"}]}),
    ("imported: an upsert may create it", [*IMPORTED],
     step("PUT", PUT_T, of(wish(lifecycle="STRONG", frozen=True))),
     {"associations": [{"subject": OWN, "lifecycle": "STRONG", "associationType": "value"}]}),
    ("imported: it needs a version", IMPORTED[:1],
     step("POST", "/associations", of(wish(OWN, lifecycle="STRONG", frozen=True))), 40907),
    ("imported: a schema is refused", IMPORTED[:1], step("POST", "/associations", of(STRONG)), 42205),
    ("imported: a schema for one that stands is refused",
     [*WITH_OWN, step("PUT", f"/mode/{OWN}?force=true", {"mode": "IMPORT"})],
     step("PUT", PUT_T, of(wish(schema={"schema": LONG}))), 42205),
    ("not imported: a frozen one needs a schema", [], step("POST", "/associations", of(wish(frozen=True))), 42212),
    ("a frozen one may find its one version", [register_in(OWN)], step("POST", "/associations", of(STRONG)),
     {"associations": [{"subject": OWN, "lifecycle": "STRONG", "associationType": "value", "schema": 1}]}),
    ("a frozen one may not find another schema", [register_in(OWN, LONG)],
     step("POST", "/associations", of(STRONG)), 42212),
    ("a frozen one may not find two versions", [register_in(OWN), register_in(OWN, LONG)],
     step("POST", "/associations", of(STRONG)), 42212),
    ("weak: not the topic's own subject", [register_in(OWN)], step("POST", "/associations", of(wish(OWN))), 42212),
    ("weak: needs a subject", [register_in("a")], step("POST", "/associations", of(wish(lifecycle="WEAK"))), 42212),
    ("weak: another context's subject", [register_in(":.ns:a")], step("POST", "/associations", of(wish(":.ns:a"))),
     {"associations": [{"subject": ":.ns:a", "lifecycle": "WEAK", "frozen": False, "associationType": "value"}]}),
    ("mixed in one request", [register_in("k")], step("POST", "/associations", of(wish("k", "key"), STRONG)), 42212),
    ("a weak one beside a strong one", [*WITH_OWN, register_in("k")],
     step("PUT", PUT_T, of(wish("k", "key"))), 42212),
    ("a strong one beside a weak one", [register_in("k"), step("POST", "/associations", of(wish("k", "key")))],
     step("POST", "/associations", of(STRONG)), 42212),
    ("two strong ones", [*WITH_OWN],
     step("POST", "/associations", of(wish(association_type="key", schema={"schema": LONG}))),
     {"associations": [{"subject": ":.ns:t-key", "lifecycle": "STRONG", "associationType": "key", "schema": 1}]}),
    ("of two ids of one name each has its lifecycle", [*WITH_OWN, register_in("k")],
     step("POST", "/associations", of(wish("k", "key"), resourceId="newer")),
     {"associations": [{"subject": "k", "lifecycle": "WEAK", "frozen": False, "associationType": "key"}]}),
    ("weak is not promoted", [*WITH_A], step("PUT", PUT_T, of(wish("a", lifecycle="STRONG"))),
     "cannot be frozen=false"),
    ("weak is not frozen later", [*WITH_A], step("PUT", PUT_T, of(wish("a", lifecycle="STRONG", frozen=True))),
     "frozen attribute of association cannot be changed"),
    ("strong is frozen", [register_in("a")],
     step("POST", "/associations", of(wish("a", lifecycle="STRONG", frozen=False))), 42212),
    ("strong has the topic's own subject", [register_in("a")],
     step("POST", "/associations", of(wish("a", lifecycle="STRONG"))), 42212),
    ("an upsert does not create with a schema", [], step("PUT", PUT_T, of(STRONG)), "'schema'"),
    ("an upsert does not create with a schema and a subject", [*WITH_A],
     step("PUT", "/associations/resources/u", of(wish("a", schema={"schema": LONG}), resourceName="u", resourceId="u")),
     "'schema'"),
    ("an upsert does not create a strong one", [register_in("a")],
     step("PUT", PUT_T, of(wish("a", lifecycle="STRONG"))), 42212),
    ("an upsert creates a weak one", [register_in("a")], step("PUT", PUT_T, of(wish("a"))),
     {"associations": [{"subject": "a", "lifecycle": "WEAK", "frozen": False, "associationType": "value"}]}),
    ("an upsert evolves the subject of a strong one", [*WITH_OWN],
     step("PUT", PUT_T, of(wish(schema={"schema": LONG}))),
     {"associations": [{"subject": OWN, "lifecycle": "STRONG", "associationType": "value", "schema": 2}]}),
    ("a schema for a weak one", [*WITH_A], step("PUT", PUT_T, of(wish(schema={"schema": LONG}))), 42212),
    ("nothing refers to a topic's own subject", [step("POST", "/associations", of(wish(schema={"schema": RECORD})))],
     ("POST", "/subjects/x/versions", REFERS), 42205),
    ("not in an import either",
     [step("POST", "/associations", of(wish(schema={"schema": RECORD}))), step("PUT", "/mode/x", {"mode": "IMPORT"})],
     ("POST", "/subjects/x/versions", {**REFERS, "id": 9, "version": 1}), 42205),
    ("what is referred to is not a topic's own",
     [register_in(OWN, RECORD), ("POST", "/subjects/x/versions", REFERS)],
     step("POST", "/associations", of(wish(schema={"schema": RECORD}))), 42206),
    ("in one request: a topic's own subject, then a schema that refers to it", [],
     step("POST", "/associations", of(OWN_KEY, OF_KEY)), 42205),
    ("in one request: a schema that refers to a subject, then the topic that owns it",
     [register_in(":.ns:t-key", RECORD)], step("POST", "/associations", of(OF_KEY, OWN_KEY)), 42206),
    ("in one request: both registered before",
     [register_in(":.ns:t-key", RECORD), ("POST", "/subjects/:.ns:t-value/versions", REFERS_TO_KEY)],
     step("POST", "/associations", of(OWN_KEY, OF_KEY)), 42206),
    ("in one batch: a topic's own subject, then another topic's schema that refers to it", [],
     step("POST", "/associations:batchMutate",
          batch(of({**OWN_KEY, "opType": "CREATE"}), of({**OF_KEY, "opType": "CREATE"}, resourceName="u",
                                                        resourceId="id of u"))),
     {"results": [{"result": {**T, "resourceType": "topic", "associations": [
         {"subject": ":.ns:t-key", "associationType": "key", "lifecycle": "STRONG", "schema": 1}]}},
         {"error": 42205}]}),
    ("tags come with the schema", [], step("POST", "/associations", of(wish(schema=TAGGED))),
     {"associations": [{"subject": OWN, "lifecycle": "STRONG", "associationType": "value", "schema": 1}]}),
    ("tags of what is not there", [], step("POST", "/associations", of(wish(schema=UNKNOWN_TAGGED))), 42201),
    ("tags of what is not there, dry", [], step("POST", "/associations?dryRun=true", of(wish(schema=UNKNOWN_TAGGED))),
     42201),
    ("a deletion in a batch shows what remains",
     [register_in("a"), register_in("k"), step("POST", "/associations", of(wish("a"), wish("k", "key")))],
     step("POST", "/associations:batchMutate", batch(of({"opType": "DELETE", "associationType": "key"}))),
     {"results": [{"result": {**T, "resourceType": "topic", "associations": [
         {"subject": "a", "associationType": "value", "lifecycle": "WEAK", "frozen": False}]}}]}),
    ("one change of a type in a request", [*WITH_A],
     step("POST", "/associations:batchMutate",
          batch(of(wish("a", opType="UPSERT"), {"opType": "DELETE", "associationType": "value"}))),
     {"results": [{"error": 42212}]}),
]  # fmt: skip


def told(answer):
    """Return the parts of an answer to compare: no wording, and only the version of a schema."""
    if isinstance(answer, list):
        return [told(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    if "error_code" in answer:
        return answer["error_code"]
    return {name: value["version"] if name == "schema" else told(value) for name, value in answer.items()}


@pytest.mark.parametrize(
    ("before", "request_", "expected"), [pytest.param(*row, id=name) for name, *row in RULES_OVER_HTTP]
)
def test_rule_over_http(api, before, request_, expected):
    """Each rule of associations gives a client the expected error code or answer."""
    assert 200 == api.put("/config", {"compatibility": "NONE"})[0]
    for method, path, body in before:
        assert api.call(method, path, body)[0] in (200, 204), (path, body)
    answer = api.call(*request_)[1]

    shown = told(answer)
    if isinstance(expected, str):
        assert (42212, True) == (shown, expected in answer["message"])
    elif isinstance(expected, dict) and expected.keys() == {"associations"}:
        assert expected["associations"] == shown["associations"]
    else:
        assert expected == shown


def test_frozen_is_shown_where_it_does_not_go_without_saying(api):
    """Lists leave `frozen` out for a STRONG association, which always is, and show it as false for a WEAK one."""
    api.placed("a", INT)
    api.post("/associations", of(STRONG))
    api.post("/associations", {**of(wish("a")), "resourceName": "u", "resourceId": "u"})

    shown = {one["resourceName"]: one.get("frozen") for one in api.get("/associations/resources/ns/-")[1]}
    assert {"t": None, "u": False} == shown


@pytest.fixture
def client(api):
    """Yield Confluent's Python client."""
    with SchemaRegistryClient({"url": f"http://127.0.0.1:{api.port}"}) as opened:
        yield opened


def test_serializers_follow_an_association(api, client):
    """Confluent's serdes use the associated subject by default, and `topic-value` if there is no association."""
    api.placed("shared", RECORD)
    request = AssociationCreateOrUpdateRequest(
        "orders", "lkc-1", "id-1", "topic", [AssociationCreateOrUpdateInfo("shared", "value", "WEAK")]
    )
    created = client.create_association(request)
    assert [("shared", "value", "WEAK", False)] == [
        (info.subject, info.association_type, info.lifecycle, info.frozen) for info in created.associations
    ]

    serialize, deserialize = AvroSerializer(client, RECORD), AvroDeserializer(client)
    for topic, subjects in (("orders", ["shared"]), ("other", ["other-value", "shared"])):
        context = SerializationContext(topic, MessageField.VALUE)
        assert {"a": 7} == deserialize(serialize({"a": 7}, context), context)
        assert subjects == api.get("/subjects")[1]

    with pytest.raises(SchemaRegistryError) as refusal:
        client.delete_subject("shared")
    assert 40904 == refusal.value.error_code
    client.delete_associations("id-1", "topic", ["value"])
    assert [] == client.get_associations_by_resource_name("orders", "-", "topic", ["value"])
