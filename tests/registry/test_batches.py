"""`POST /v1/apply`: several changes are one write, of which all happen or none."""

import json

import pytest

from strata.storage.log import LogTimeout, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import NoopKey

INT, LONG, TEXT = '"int"', '"long"', '"string"'


def record(*fields, name="R"):
    """Return the text of a record with fields that have no defaults."""
    return json.dumps({"type": "record", "name": name, "fields": [{"name": f, "type": "int"} for f in fields]})


def register(subject, text, **more):
    """Return a step that registers a schema."""
    flags = {"normalize": more.pop("normalize")} if "normalize" in more else {}
    return {"action": "register", "subject": subject, "schema": {"schema": text, **more}, **flags}


def settings(subject="", **given):
    """Return a step that changes settings."""
    return {"action": "settings", "subject": subject, **given}


def delete(subject):
    """Return a step that deletes a subject."""
    return {"action": "delete", "subject": subject}


def apply(api, *steps, **more):
    """Send a batch that must be accepted, and return the results."""
    status, answer = api.post("/v1/apply", {"steps": steps, **more})
    assert 200 == status, answer
    return answer["results"]


def offset(api):
    """Return the offset of the log."""
    return api.post("/v1/apply", {"dryRun": True})[1]["offset"]


def test_steps_are_one_write(api):
    """Settings, schemas and deletions land together; each step sees the ones before it."""
    api.placed("old", INT)
    before = api.get("/v1/log")[1]["offset"]

    results = apply(
        api, settings("a", config={"compatibility": "NONE"}), register("a", INT), register("a", TEXT),
        register("b", LONG), settings("b", mode="READONLY"), delete("old"),
    )  # fmt: skip

    assert [True] * 6 == [one["changed"] for one in results]
    assert [(1, 1), (2, 2), (1, 3)] == [(one["version"], one["id"]) for one in results if "id" in one]
    assert {"compatibilityLevel": "NONE"} == api.get("/config/a")[1]
    assert {"mode": "READONLY"} == api.get("/mode/b")[1]
    assert ["a", "b"] == api.get("/subjects")[1]
    assert before + 6 == api.get("/v1/log")[1]["offset"]


def test_a_rejected_step_rejects_all(api):
    """If one step is rejected, nothing is written; the error has the step's number, and keeps its code and findings."""
    api.placed("b", record("x"))
    before = offset(api)

    status, answer = api.post("/v1/apply", {"steps": [register("a", INT), register("b", record("x", "y"))]})

    assert (409, 40901) == (status, answer["error_code"])
    assert answer["message"].startswith("Step 2: Schema being registered is incompatible")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" == answer["findings"][0]["rule"]
    assert (before, ["b"]) == (offset(api), api.get("/subjects")[1])


REJECTED = [
    ("a schema that does not parse", register("a", "{"), 42201),
    ("an unknown level", settings("a", config={"compatibility": "MOST"}), 42203),
    ("an unknown mode", settings("a", mode="OPEN"), 42204),
    ("a deletion of what others refer to", delete("base"), 42206),
    ("an invalid subject", register("__GLOBAL", INT), 42208),
    ("an invalid rule set", register("a", INT, ruleSet={"domainRules": [{"name": ""}]}), 42210),
    ("a read-only subject", register("closed", INT), 42205),
    ("a registration without a schema", {"action": "register", "subject": "a"}, 400),
    ("an unknown action", {"action": "paint", "subject": "a"}, 400),
]


@pytest.mark.parametrize(("step", "code"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_each_step_is_checked_as_alone(api, step, code):
    """A step is rejected for the reasons of its own route, and the steps around it with it."""
    api.placed("base", record("x", name="Base"))
    api.placed("user", '["null", "Base"]', references=[{"name": "Base", "subject": "base", "version": 1}])
    api.put("/mode/closed", {"mode": "READONLY"})
    before = offset(api)

    assert code == api.post("/v1/apply", {"steps": [register("z", INT), step]})[1]["error_code"]
    assert before == offset(api)


UNKNOWN = [
    ({"step": []}, "Unknown property 'step' in the body; did you mean 'steps'?"),
    ({"steps": [], "dryrun": True}, "Unknown property 'dryrun' in the body; did you mean 'dryRun'?"),
    ({"steps": [register("a", INT) | {"normalise": True}]},
     "Unknown property 'normalise' in steps[0]; did you mean 'normalize'?"),
    ({"steps": [delete("b"), register("a", INT, schemaTyp="JSON")]},
     "Unknown property 'schemaTyp' in steps[1].schema; did you mean 'schemaType'?"),
    ({"steps": [register("a", INT, ruleSet={"domainRules": [{"name": "r", "x": 1}]})]},
     "Unknown property 'x' in steps[0].schema.ruleSet.domainRules[0]"),
    ({"steps": [settings("a", config={"compatability": "NONE"})]},
     "Unknown property 'compatability' in steps[0].config; did you mean 'compatibility'?"),
    ({"steps": [{"action": "rights", "resource_type": "SUBJECT", "resource": "a", "rules": [{"user": "x"}]}]},
     "Unknown property 'user' in steps[0].rules[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), UNKNOWN, ids=[row[1] for row in UNKNOWN])
def test_a_mistyped_property_rejects_the_batch(api, body, message):
    """A property that no step would take into account is named, at any depth, and nothing is written."""
    before = offset(api)

    assert (422, {"error_code": 422, "message": message}) == api.post("/v1/apply", body)
    assert before == offset(api)


def test_the_same_batch_again_changes_nothing(api):
    """A batch that is sent twice, written differently or not, changes nothing the second time."""
    steps = [
        settings(config={"compatibility": "FULL"}), settings("a", config={"normalize": True}, mode="READWRITE"),
        register("a", record("x"), metadata={"properties": {"owner": "me"}}),
    ]  # fmt: skip
    apply(api, *steps)
    before = offset(api)
    spaced = json.dumps(json.loads(record("x")), indent=8)

    again = apply(
        api, *steps, register("a", spaced), register("a", record("x"), metadata={"properties": {"owner": "me"}})
    )

    assert [False] * 5 == [one["changed"] for one in again]
    assert before == offset(api)


def test_a_default_that_is_shown_is_no_change(api):
    """The level and mode that a read shows, although none is set, do not count; another level does."""
    apply(api, settings("own", config={"normalize": True}))
    shown = [
        settings(config={"compatibility": "BACKWARD"}), settings(mode="READWRITE"),
        settings("own", config={"compatibility": "BACKWARD", "normalize": True}),
    ]  # fmt: skip

    assert [False, False, False] == [one["changed"] for one in apply(api, *shown)]
    assert apply(api, settings("other", config={"compatibility": "BACKWARD"}))[0]["changed"]
    assert apply(api, settings(config={"compatibility": "FULL"}))[0]["changed"]


def test_going_back_adds_a_version_once(api):
    """A schema that only an older version holds becomes the latest version, also among settings that add metadata."""
    for defaults in (
        {},
        {"defaultMetadata": {"properties": {"team": "t"}}},
        {"overrideMetadata": {"sensitive": ["s"]}},
    ):
        api.put("/config/s", {"compatibility": "NONE", **defaults})
        apply(api, register("s", INT), register("s", TEXT))

        back = apply(api, register("s", INT))

        assert back[0]["changed"]
        assert INT == api.get("/subjects/s/versions/latest")[1]["schema"]
        assert [{"changed": False, "version": back[0]["version"], "id": back[0]["id"]}] == apply(
            api, register("s", INT)
        )


def test_absent_metadata_is_kept_and_empty_removed(api):
    """Metadata that a step leaves out stays as it is; an empty object removes it, which is a new version."""
    metadata = {"properties": {"owner": "me"}}
    apply(api, register("s", INT), register("s", INT, metadata=metadata))

    assert not apply(api, register("s", INT))[0]["changed"]
    assert metadata == api.get("/subjects/s/versions/latest")[1]["metadata"]
    assert apply(api, register("s", INT, metadata={}))[0]["changed"]
    assert "owner" not in json.dumps(api.get("/subjects/s/versions/latest")[1])
    assert not apply(api, register("s", INT, metadata={}))[0]["changed"]


def test_a_reference_may_be_to_a_step_before(api):
    """Version -1 of a reference is the version that a step before leaves, and a new one there is a change here."""
    user = {"references": [{"name": "Base", "subject": "base", "version": -1}]}
    text = '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}'
    api.put("/config", {"compatibility": "NONE"})

    apply(api, register("base", record("x", name="Base")), register("user", text, **user))
    second = apply(api, register("base", record("x", "y", name="Base")), register("user", text, **user))

    assert [(True, 2), (True, 2)] == [(one["changed"], one["version"]) for one in second]
    assert 2 == api.get("/subjects/user/versions/2")[1]["references"][0]["version"]


def test_what_refers_is_deleted_before_what_it_refers_to(api):
    """A subject may be deleted with those that refer to it, in that order; deleting it again changes nothing."""
    api.placed("base", record("x", name="Base"))
    api.placed("user", '["null", "Base"]', references=[{"name": "Base", "subject": "base", "version": 1}])

    assert 42206 == api.post("/v1/apply", {"steps": [delete("base"), delete("user")]})[1]["error_code"]
    assert [True, True] == [one["changed"] for one in apply(api, delete("user"), delete("base"))]
    assert [False] == [one["changed"] for one in apply(api, delete("base"))]
    assert [] == api.get("/subjects")[1]


def test_a_dry_run_tells_all_and_writes_nothing(api):
    """A dry run returns the versions that would be, and the error of each rejected step, as if that were not there."""
    api.placed("s", record("x"))
    before = offset(api)

    results = apply(api, register("s", record("x", "y")), register("t", INT), register("t", "{"), dryRun=True)

    assert [False, True, False] == [one["changed"] for one in results]
    assert [40901, None, 42201] == [one.get("error", {}).get("error_code") for one in results]
    assert (1, 2) == (results[1]["version"], results[1]["id"])
    assert [False, True, False] == ["basis" in one for one in results]
    assert (before, ["s"]) == (offset(api), api.get("/subjects")[1])


def test_a_batch_for_another_offset_is_rejected(api):
    """A batch with an offset is carried out only on the State of that offset, for which its dry run was."""
    planned = offset(api)
    api.placed("other", INT)

    status, answer = api.post("/v1/apply", {"offset": planned, "steps": [register("s", INT)]})

    assert (409, 40990) == (status, answer["error_code"])
    assert ["other"] == api.get("/subjects")[1]
    assert apply(api, register("s", INT), offset=offset(api))[0]["changed"]


def test_records_that_change_nothing_do_not_count(start):
    """A batch is carried out after records without content, such as those of a node that takes the pen."""
    log = MemoryLog()
    api = start(log)
    api.placed("other", INT)
    planned = offset(api)
    log.append(log.end(), [encode(NoopKey())])

    assert planned + 1 == offset(api)
    assert apply(api, register("s", INT), offset=planned)[0]["changed"]
    assert 40990 == api.post("/v1/apply", {"offset": planned, "steps": [register("t", INT)]})[1]["error_code"]
    assert 40990 == api.post("/v1/apply", {"offset": 99, "steps": [register("t", INT)]})[1]["error_code"]


def test_after_a_replay_only_what_follows_is_known(start):
    """A node that has read a log from its start refuses older plans: compaction may have dropped what changed."""
    log = MemoryLog()
    first = start(log)
    first.placed("a", INT)
    planned = offset(first)
    log.append(log.end(), [encode(NoopKey())])
    second = start(log)

    assert 40990 == second.post("/v1/apply", {"offset": planned, "steps": [register("s", INT)]})[1]["error_code"]
    assert apply(second, register("s", INT), offset=offset(second))[0]["changed"]


BASE, USER = record("x", name="Base"), '{"type":"record","name":"User","fields":[{"name":"b","type":"Base"}]}'
PLANNED = [
    register("user", USER, references=[{"name": "Base", "subject": "base", "version": -1}], metadata={"tags": {}}),
    settings("set", config={"compatibility": "FULL"}),
    delete("old"),
    {"action": "rights", "resource_type": "SUBJECT", "resource": "r", "rules": [{"principal": "User:x", "operation":
     "READ"}]},
]  # fmt: skip
MOVES = [
    ("a version of another subject", ("POST", "/subjects/other/versions", {"schema": LONG}), None),
    ("settings of another subject", ("PUT", "/config/other", {"compatibility": "NONE"}), None),
    ("rights on another subject", ("POST", "/v1/apply", {"steps": [{**PLANNED[3], "resource": "other"}]}), None),
    ("a version of a subject", ("POST", "/subjects/user/versions", {"schema": INT}), 1),
    ("a version of what it refers to", ("POST", "/subjects/base/versions", {"schema": INT}), 1),
    ("the level of a subject", ("PUT", "/config/user", {"compatibility": "FORWARD"}), 1),
    ("the level of all subjects", ("PUT", "/config", {"compatibility": "FORWARD"}), 1),
    ("the mode of a subject", ("PUT", "/mode/user", {"mode": "READONLY"}), 1),
    ("the settings of a scope", ("PUT", "/config/set", {"normalize": True}), 2),
    ("a version of what is deleted", ("POST", "/subjects/old/versions", {"schema": INT}), 3),
    ("rights on the same resource", ("POST", "/v1/apply", {"steps": [PLANNED[3]]}), 4),
]


@pytest.mark.parametrize(("change", "step"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES])
def test_a_step_is_void_after_a_change_that_it_depends_on(start, change, step):
    """A batch with the basis of each step is carried out after any change but one that a step depends on.

    Another node of the same log finds the same.
    """
    log = MemoryLog()
    api = start(log)
    api.put("/config", {"compatibility": "NONE"})
    for subject, text in (("base", BASE), ("old", LONG), ("other", INT), ("user", LONG)):
        api.placed(subject, text)
    dry = apply(api, *PLANNED, dryRun=True)
    api.call(*change)
    before = offset(api)

    based = [{**one, "basis": result["basis"]} for one, result in zip(PLANNED, dry, strict=True)]
    status, answer = start(log).post("/v1/apply", {"steps": based})

    if step is None:
        assert (200, [True] * 4) == (status, [one["changed"] for one in answer["results"]])
    else:
        assert (409, 40990) == (status, answer["error_code"])
        assert answer["message"].startswith(f"Step {step}: ")
        assert before == offset(api)


class Failing(MemoryLog):
    """A log whose appends fail while `broken`."""

    broken = False

    def append(self, after, records):
        """Append records, or fail."""
        if self.broken:
            raise LogTimeout("no answer")
        return super().append(after, records)


def test_a_log_that_fails_has_nothing(start):
    """If the append fails, the registry is as before, and the same batch can be sent again."""
    log = Failing()
    api = start(log)
    log.broken = True

    assert 50002 == api.post("/v1/apply", {"steps": [register("a", INT), register("b", INT)]})[1]["error_code"]
    log.broken = False
    assert [] == api.get("/subjects")[1]
    assert [True, True] == [one["changed"] for one in apply(api, register("a", INT), register("b", INT))]


def test_a_batch_may_be_larger_than_a_request(api):
    """A batch of schemas that are each within the limit of a request is within the limit of a batch."""
    long = [json.dumps({"type": "fixed", "name": "F", "size": 4, "doc": "d" * 700_000})] * 3
    steps = [register(f"s{number}", text) for number, text in enumerate(long)]

    assert [1, 1, 1] == [one["id"] for one in apply(api, *steps)]
    assert 413 == api.post("/subjects/s/versions", {"schema": long[0] * 2})[0]


def test_contexts(api):
    """Subjects of other contexts get ids of their own context, and a context has settings."""
    results = apply(
        api, register("s", INT), register(":.c:s", TEXT), settings(":.c:", config={"compatibility": "FULL"})
    )

    assert [1, 1] == [one["id"] for one in results[:2]]
    assert "FULL" == api.get("/config/:.c:s?defaultToGlobal=true")[1]["compatibilityLevel"]


def rights(*rules, **about):
    """Return a step that sets rights: each rule is a principal and an operation."""
    given = [{"principal": principal, "operation": operation} for principal, operation in rules]
    return {"action": "rights", "rules": given, **about}


def test_rights_land_with_the_rest(api):
    """Rules of access are a step like others: in the same write, and no change if the log has them already."""
    about = {"resource_type": "SUBJECT", "resource": "a"}
    before = offset(api)
    steps = [register("a", INT), rights(("User:x", "READ"), ("Group:y", "ALL"), **about)]

    results = apply(api, *steps)

    assert [("Group:y", "ALL", "a"), ("User:x", "READ", "a")] == [
        (one["principal"], one["operation"], one["resource"]) for one in results[1]["added"]
    ]
    assert before + 3 == offset(api)
    assert results[1]["added"] == api.get("/security/acls")[1]
    again = apply(api, rights(("User:x", "read"), **{**about, "resource": ":.:a"}))[0]
    assert {"changed": False, "added": [], "removed": []} == again


def test_other_rights_go_if_asked(api):
    """With `only`, other rules about the very same resource are deleted; those about others stay."""
    prefix = {"resource_type": "SUBJECT", "resource": "a", "pattern_type": "PREFIXED"}
    literal = {**prefix, "pattern_type": "LITERAL"}
    apply(api, rights(("User:x", "READ"), ("User:y", "READ"), **literal), rights(("User:x", "READ"), **prefix))

    kept = apply(api, rights(("User:z", "READ"), **literal))[0]
    swept = apply(api, rights(("User:z", "READ"), **literal, only=True), rights(resource_type="REGISTRY", only=True))

    assert [] == kept["removed"]
    assert ["User:x", "User:y"] == [one["principal"] for one in swept[0]["removed"]]
    assert [True, False] == [one["changed"] for one in swept]
    left = api.get("/security/acls")[1]
    assert [("User:x", "PREFIXED"), ("User:z", "LITERAL")] == [(r["principal"], r["pattern_type"]) for r in left]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (rights(resource="a"), "resource_type is missing"),
        (rights(resource_type="SUBJECT"), "resource is missing"),
        (rights(("x", "READ"), resource_type="REGISTRY"), "principal is 'x'"),
        (rights(("User:x", "ALTER"), resource_type="REGISTRY"), "operation ALTER does not exist"),
    ],
)
def test_rights_that_cannot_be_used(api, step, reason):
    """A step with a rule that cannot be used is rejected with the batch, and says why."""
    status, answer = api.post("/v1/apply", {"steps": [register("a", INT), step]})
    assert 400 == status
    assert f"The rights cannot be used: {reason}" in answer["message"]
    assert [] == api.get("/subjects")[1]
