"""Routes do only what the rights of the principal allow, and say nothing about the rest."""

import asyncio
import re

import pytest

from harness.access_questions import ALL_ON_OPEN, HOLDER, QUESTIONS, RECORD, TO_COMMON, filled_log
from harness.access_rules import rule
from harness.guarded_registry import ADMIN, Registry
from strata.registry.app import ROUTERS
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.core.rights.rules import Operation, ResourceType, Rule, parse_resource
from strata.storage.log import MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import StandbyKey, StandbyValue

ROUTES = [route for router in ROUTERS for route in router.declared]
SCHEMES = 'Basic realm="test", Bearer realm="test"'


def test_every_route_is_asked():
    """The questions above ask every route about the secrets, except those that need no right."""
    asked = set()
    for method, path, _ in QUESTIONS:
        plain = re.sub(r"^/contexts/\.c(?=/)", "", path.partition("?")[0])
        asked |= {(method, r.path) for r in ROUTES if r.method == method and re.fullmatch(r.pattern, plain)}
    guarded = {(route.method, route.path) for route in ROUTES if route.facts.need is not OPEN}

    assert guarded == asked


class Unchanged:
    """A registry with or without the secrets; a question that has changed it is followed by a new one."""

    def __init__(self, runner, secrets, rules):
        self._runner, self._secrets, self._rules = runner, secrets, rules
        self._registry = None

    def ask(self, method, path, body, user):
        """Return the answer to a question."""
        if self._registry is None:
            self._registry = Registry(self._runner, self._rules, filled_log(secrets=self._secrets))
            self._end = self._registry.log.end()
        registry = self._registry
        try:
            return registry.ask(method, path, body, user)
        finally:
            if registry.log.end() != self._end:
                self._registry = None


@pytest.fixture(scope="module")
def with_and_without():
    """Yield a registry that holds the secrets and one that does not."""
    with asyncio.Runner() as runner:
        yield [Unchanged(runner, secrets, ALL_ON_OPEN) for secrets in (True, False)]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q[0]} {q[1]}")
def test_nothing_tells_whether_a_secret_exists(with_and_without, question):
    """A client without rights gets the same answer from a registry that holds the secret and from one that does not."""
    method, path, body = question
    answers = []
    for registry in with_and_without:
        status, content, headers = registry.ask(method, path, body, "alice")
        without_times = re.sub(r"'ts': \d+|'(since|last)': '[^']+'", "", str(content))
        answers.append((status, without_times, {**headers, "x-request-id": ""}))

    assert answers[0] == answers[1]
    # A setting of a subject that alice may configure holds what was set there, whether or not the alias leads anywhere.
    assert not re.search(r"(?<!Subject: )(?<!Subject: :\.c:)(?<!'alias': ')secret", answers[0][1])


def test_anonymous_clients_are_asked_who_they_are(guarded):
    """Without credentials and without a rule for `Anonymous`, each route but the open ones answers 401."""
    registry = guarded(ALL_ON_OPEN)
    for method, path, body in QUESTIONS:
        for user in (None, "wrong"):
            status, content, headers = registry.ask(method, path, body, user)

            assert (401, {"error_code": 401, "message": "Unauthorized"}) == (status, content), (method, path)
            assert SCHEMES == headers["www-authenticate"], (method, path)


def test_a_late_refusal_of_an_anonymous_client_names_the_schemes_too(guarded):
    """A right that is missing only once the schema is looked up is asked for like any other."""
    registry = guarded([Rule("Anonymous", "*", parse_resource(ResourceType.SUBJECT, "a"), Operation.READ)])
    registry.register("a")
    assert registry.register("a", user="") == 1
    status, content, headers = registry.ask("POST", "/subjects/a/versions", {"schema": '"long"'}, None)

    assert (status, content["error_code"], headers["www-authenticate"]) == (401, 401, SCHEMES)


def test_open_routes_need_no_credentials(guarded):
    """Probes and facts about the service are for all, whatever credentials they send."""
    registry = guarded()
    for path in ("/", "/schemas/types", "/health/live", "/health/ready", "/v1/metadata/id", "/docs"):
        for user in (None, "wrong", "nobody"):
            assert registry.ask("GET", path, None, user)[0] == 200


def test_strangers_learn_from_probes_only_whether_a_node_is_ready(guarded):
    """Offsets, reasons and the address of a standby's source are for those who may describe the cluster."""
    log = MemoryLog()
    standby = StandbyValue(source="https://main.example:8081", copied_at=0)
    log.append(log.end(), [encode(StandbyKey("."), standby)])
    registry = guarded([rule("alice", "READ", "*"), rule("ann", "DESCRIBE", kind="CLUSTER")], log)
    for path in ("/health/ready", "/health/write"):
        brief = [registry.ask("GET", path, None, user)[:2] for user in (None, "wrong", "alice")]
        status, full, _ = registry.ask("GET", path, None, "ann")

        assert [(503, {"ready": False, "canWrite": False})] * 3 == brief
        assert (503, "https://main.example:8081") == (status, full["standby"]["source"])
        assert {"reason", "offset", "end", "behind", "secondsSinceRead"} <= set(full)


def test_superusers_do_everything():
    """No question is refused to a superuser."""
    denied = [rule("root", "ALL", "*", permission="DENY")]
    with asyncio.Runner() as runner:
        registry = Unchanged(runner, True, denied)
        for method, path, body in QUESTIONS:
            assert registry.ask(method, path, body, ADMIN)[0] not in (401, 403)


def test_a_refusal_names_operation_and_resource(guarded):
    """The message is the one that clients of Confluent's registry know."""
    registry = guarded([rule("alice", "READ", "a")])
    asked = [
        ("PUT", "/config/a", {"compatibility": "FULL"}, "WriteCompatibility on Subject: a"),
        ("DELETE", "/subjects/%3A.c%3Ab", None, "Delete on Subject: :.c:b"),
        ("GET", "/config", None, "ReadCompatibility on Registry"),
        ("GET", "/config/%3A.__GLOBAL%3A", None, "ReadCompatibility on Registry"),
        ("GET", "/dek-registry/v1/keks/k", None, "Read on KEK: k"),
        ("GET", "/v1/log", None, "Describe on Cluster"),
        ("GET", "/metrics", None, "Describe on Cluster"),
        ("GET", "/schemas/ids/9", None, "Read on Schema: 9"),
    ]
    for method, path, body, text in asked:
        assert registry.ask(method, path, body, "alice")[:2] == (
            403,
            {"error_code": 40301, "message": f"User is denied operation {text}"},
        )


def test_reads_follow_references(guarded):
    """Who may read a version may read what it refers to, but nothing else of that subject."""
    registry = guarded([rule("alice", "READ", "holder")])
    common = registry.register("common", RECORD)
    registry.register("common", RECORD.replace("[]", '[{"name":"x","type":"int","default":0}]'))
    registry.register("holder", HOLDER, references=TO_COMMON)
    registry.register("twice", HOLDER.replace("H", "T"), references=[{"name": "R", "subject": "common", "version": 2}])

    assert registry.code("GET", "/subjects/common/versions/1", None, "alice") == 200
    assert registry.code("GET", "/subjects/common/versions/1/schema", None, "alice") == 200
    assert registry.code("GET", f"/schemas/ids/{common}", None, "alice") == 200
    assert registry.code("GET", "/subjects/common/versions/2", None, "alice") == 40301
    assert registry.code("GET", "/subjects/common/versions/latest", None, "alice") == 40301
    assert registry.code("GET", "/subjects/common/versions", None, "alice") == 40301
    registry.rules = (*registry.rules, rule("alice", "READ", "common", permission="DENY"))
    assert registry.code("GET", "/subjects/common/versions/1", None, "alice") == 40301
    assert registry.code("GET", f"/schemas/ids/{common}", None, "alice") == 40301


def test_registering_what_exists_needs_read_only(guarded):
    """A producer that may only read gets the id of a version that exists, and no new version."""
    registry = guarded([rule("alice", "READ", "a"), rule("bob", "WRITE", "a")])
    schema_id = registry.register("a")

    assert registry.register("a", user="alice") == schema_id
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"string"'}, "alice") == 40901
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"long"'}, "alice") == 40301
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"long"'}, "bob") == 200
    assert registry.code("GET", "/subjects/a/versions/1", None, "bob") == 40301


def test_force_and_ids_need_alter_configs(guarded):
    """What goes round the checks needs the right to change them."""
    registry = guarded([rule("alice", "WRITE", "*"), rule("bob", "WRITE", "*"), rule("bob", "ALTER_CONFIGS", "a")])
    registry.register("a")
    registry.ask("PUT", "/mode/b", {"mode": "IMPORT"})

    assert registry.code("POST", "/subjects/a/versions?force=true", {"schema": '"string"'}, "alice") == 40301
    assert registry.code("POST", "/subjects/a/versions?force=true", {"schema": '"string"'}, "bob") == 200
    imported = {"schema": '"string"', "id": 77, "version": 1}
    assert registry.code("POST", "/subjects/b/versions", imported, "bob") == 40301
    assert registry.code("POST", "/subjects/b/versions", imported) == 200


def test_an_alias_gives_no_right_on_its_target(guarded):
    """Who may change the configuration of a subject cannot read or delete another one through an alias."""
    registry = guarded([rule("alice", "ALL", "mine")])
    registry.register("secret")
    assert registry.code("PUT", "/config/mine", {"alias": "secret"}, "alice") == 200
    for method, path, body in [
        ("GET", "/subjects/mine/versions/1", None), ("GET", "/subjects/mine/versions", None),
        ("DELETE", "/subjects/mine", None), ("POST", "/subjects/mine/versions", {"schema": '"int"'}),
        ("POST", "/compatibility/subjects/mine/versions", {"schema": '"int"'}),
    ]:  # fmt: skip
        status, content, _ = registry.ask(method, path, body, "alice")
        assert (status, "secret" in content["message"]) == (403, False), path


def test_a_search_finds_only_what_may_be_read(guarded):
    """Neither a hit nor the count of pages shows a subject that the person may not read."""
    registry = guarded([rule("alice", "READ", "a*"), rule("bob", "DESCRIBE", "*")])
    for name in ("a1", "b1", "a2"):
        registry.register(name, RECORD)

    def found(query, user):
        answer = registry.ask("GET", f"/v1/search?query={query}", None, user)[1]
        return [hit["subject"] for hit in answer["hits"]], answer["more"]

    assert (["a1", "a2"], False) == found("name:R", "alice")
    assert ([], False) == found("b1", "alice") == found("a1", "bob")


def test_lists_hold_only_what_may_be_known(guarded):
    """Pages of filtered lists are full."""
    registry = guarded([rule("alice", "DESCRIBE", "a*"), rule("bob", "READ", "*"), rule("eve", "READ", ":.c:*")])
    for name in ("a1", "b1", "a2", "b2", "a3"):
        registry.register(name)
    registry.register("%3A.c%3Ax")

    assert registry.ask("GET", "/subjects", None, "alice")[1] == ["a1", "a2", "a3"]
    assert registry.ask("GET", "/subjects?offset=1&limit=2", None, "alice")[1] == ["a2", "a3"]
    assert registry.ask("GET", "/subjects", None, "nobody")[1] == []
    assert registry.ask("GET", "/schemas", None, "alice")[1] == []
    assert len(registry.ask("GET", "/schemas?subjectPrefix=:*:", None, "bob")[1]) == 6
    assert registry.ask("GET", "/schemas/ids/1/subjects", None, "alice")[1] == ["a1", "a2", "a3"]
    assert registry.ask("GET", "/contexts", None, "alice")[1] == ["."]
    assert registry.ask("GET", "/contexts", None, "eve")[1] == [".", ".c"]


def test_an_id_is_shown_with_a_subject_that_may_be_read(guarded):
    """Two clients get the same schema, each with the name of a subject of its own, also from memory."""
    registry = guarded([rule("alice", "READ", "a"), rule("bob", "READ", "b")])
    schema_id = registry.register("b")
    registry.register("a")
    for _ in range(3):
        for user, subject in (("alice", "a"), ("bob", "b")):
            assert registry.ask("GET", f"/schemas/ids/{schema_id}", None, user)[1]["subject"] == subject
        assert registry.code("GET", f"/schemas/ids/{schema_id}", None, "eve") == 40301


def test_an_id_does_not_tell_which_hidden_subject_uses_it(guarded):
    """Naming a hidden subject with an id gives the same answer whether the subject uses the id or not."""
    answers = []
    for hidden in ('"int"', '"long"'):
        registry = guarded([rule("alice", "READ", "open"), rule("alice", "READ", ":.c:open")])
        for name in ("open", "%3A.c%3Aopen"):
            registry.register(name, '"int"')
            registry.register(f"{name}2", '"long"')
        for name in ("secret", "%3A.c%3Asecret"):
            registry.register(name, hidden)
        registry.register("%3A.d%3Asecret", '"string"')
        asked = ["secret", ":.c:secret", ":.d:secret", ":.c:", ""]
        paths = [f"/schemas/ids/1{more}?subject={name}" for name in asked for more in ("", "/subjects", "/versions")]
        found = [registry.ask("GET", path, None, "alice")[:2] for path in paths]
        answers.append(re.sub(r"'ts': \d+", "", str(found)))

    assert answers[0] == answers[1]


def test_answers_in_memory_are_behind_the_rights(guarded):
    """What one client may read, and is now answered from memory, another one does not get, nor the first after it lost
    the right.
    """
    registry = guarded([rule("alice", "READ", "a")])
    registry.register("a")
    paths = ["/schemas/ids/1", "/subjects/a/versions/1", "/subjects/a/versions/latest", "/subjects/a/versions"]
    for path in paths:
        for _ in range(3):
            assert registry.code("GET", path, None, "alice") == 200
        assert registry.code("GET", path, None, "bob") == 40301
        assert registry.code("HEAD", path, None, "bob") == 403
    registry.rules = ()
    for path in paths:
        assert registry.code("GET", path, None, "alice") == 40301


def test_only_who_may_read_everything_learns_that_an_id_is_unknown(guarded):
    """A denial anywhere makes an unknown id the same as a hidden one."""
    registry = guarded([rule("alice", "READ", "*"), rule("bob", "READ", "*")])
    registry.register("secret")

    assert registry.code("GET", "/schemas/ids/9", None, "alice") == 40403
    registry.rules = (*registry.rules, rule("alice", "READ", "secret", permission="DENY"))
    assert registry.code("GET", "/schemas/ids/9", None, "alice") == 40301
    assert registry.code("GET", "/schemas/ids/1", None, "alice") == 40301


def test_deleting_what_belongs_to_others_needs_their_rights(guarded):
    """A mode that purges soft-deleted subjects, and a recursive deletion, need a right on each subject they touch."""
    registry = guarded([rule("alice", "ALTER_CONFIGS", ":.c:"), rule("alice", "DESCRIBE", ":.c:known")])
    for name in ("known", "hidden"):
        registry.ask("PUT", f"/mode/%3A.c%3A{name}", {"mode": "READONLY"})
    status, content, _ = registry.ask("DELETE", "/mode/%3A.c%3A?recursive=true", None, "alice")

    assert (status, "hidden" in content["message"]) == (403, False)


def test_names_with_settings_are_listed_to_those_who_may_read_them(guarded):
    """The list of names with settings has those whose configuration the user may read."""
    registry = guarded([rule("alice", "DESCRIBE_CONFIGS", "open-*")])
    for name in ("open-1", "secret"):
        registry.ask("PUT", f"/config/{name}", {"compatibility": "FULL"})
    registry.ask("PUT", "/config", {"compatibility": "FULL"})

    assert ["open-1", "secret"] == registry.ask("GET", "/v1/scopes")[1]
    assert ["open-1"] == registry.ask("GET", "/v1/scopes", None, "alice")[1]
    assert ["open-1"] == [one["name"] for one in registry.ask("GET", "/v1/settings", None, "alice")[1]]


def test_only_those_who_may_read_a_context_learn_its_highest_id(guarded):
    """`fetchMaxId` says nothing to a user of one subject."""
    registry = guarded([rule("alice", "READ", "a"), rule("ann", "READ", ":.:*")])
    registry.register("a")
    registry.register("b", '"long"')
    answers = {user: registry.ask("GET", "/schemas/ids/1?fetchMaxId=true", None, user)[1] for user in ("alice", "ann")}

    assert {"alice": None, "ann": 2} == {user: answer.get("maxId") for user, answer in answers.items()}
