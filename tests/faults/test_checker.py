"""The checker accepts everything that a correct registry can do, and finds each kind of wrong answer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.checker import by_subject, judge
from faults.ledger import Ledger, read_ledger
from faults.linear import WRITES, Verdict, explain
from faults.model import (
    CONTENTS,
    LEVELS,
    MANY_CONTENTS,
    NEW,
    NOT_WRITTEN,
    Operation,
    Request,
    compatible,
    content_of,
    perform,
    text_of,
)
from faults.objects import OBJECTS
from faults.rights import misplaced
from harness.examples import examples
from strata.storage.log import Entry as LogEntry
from strata.storage.record_json import encode
from strata.storage.records import AclKey, AclValue, ConfigKey, ConfigValue, ModeKey, SchemaKey, SchemaValue

S = "s"
ONE = ":.guarded:one"


def op(start, end, kind, answer, node=0, subject=S, **request):
    """Return an operation; no answer means an unknown outcome."""
    return Operation(int(start * 100), "c", node, Request(kind, subject, **request), start, end, answer)


def registered(start, end, content, schema_id, version, node=0, subject=S):
    """Return an acknowledged registration."""
    return op(start, end, "register", (200, (schema_id, version)), node, subject, content=content)


def shown(start, end, content, schema_id, version, kind="latest"):
    """Return a read that shows a version."""
    asked = version if kind == "version" else 0
    return op(start, end, kind, (200, (schema_id, version, content)), version=asked)


GOOD = [
    pytest.param([registered(0, 1, "a", 1, 1), shown(2, 3, "a", 1, 1)], id="write-then-read"),
    pytest.param(
        [registered(0, 4, "a", 1, 1), op(1, 2, "latest", (40401, None))], id="read-before-the-write-took-effect"
    ),
    pytest.param([registered(0, 4, "a", 1, 1), shown(1, 2, "a", 1, 1)], id="read-of-a-write-not-yet-answered"),
    pytest.param([op(0, 1, "register", None, content="a"), shown(5, 6, "a", 1, 1)], id="lost-answer-took-effect"),
    pytest.param(
        [op(0, 1, "register", None, content="a"), op(2, 3, "latest", (40401, None)), shown(5, 6, "a", 1, 1)],
        id="lost-answer-took-effect-late",
    ),
    pytest.param([op(0, 1, "register", None, content="a"), op(5, 6, "latest", (40401, None))], id="lost-answer-never"),
    pytest.param([registered(0, 3, "a", 1, 1), registered(1, 2, "ab", 2, 2)], id="concurrent-registrations"),
    pytest.param([registered(0, 1, "a", 1, 1), registered(2, 3, "a", 1, 1)], id="registered-again"),
    pytest.param(
        [registered(0, 1, "a", 1, 1), op(2, 3, "register", (40901, None), content="aA")], id="incompatible-refused"
    ),
    pytest.param(
        [
            registered(0, 1, "a", 1, 1),
            op(2, 3, "set_level", (200, "NONE"), level="NONE"),
            registered(2, 3.5, "A", 2, 2),
        ],
        id="incompatible-under-a-level-that-was-changed-meanwhile",
    ),
    pytest.param(
        [
            registered(0, 1, "a", 1, 1),
            op(2, 3, "soft_delete", (200, (1,))),
            registered(4, 5, "a", 1, 2),
            op(6, 7, "all_versions", (200, (2,))),
        ],
        id="a-deleted-schema-comes-back-as-a-new-version",
    ),
    pytest.param(
        [
            op(0, 1, "import", (200, (5, 5)), content="a", schema_id=5, version=5),
            op(2, 4, "soft_delete", (200, (5,))),
            op(3, 5, "import", (200, (5, 5)), content="a", schema_id=5, version=5),
            op(6, 7, "latest", (200, (5, 5, "a"))),
        ],
        id="a-write-that-would-change-nothing-if-it-came-earlier",
    ),
    pytest.param(
        [
            registered(0, 1, "a", 1, 1),
            op(2, 3, "soft_delete", (200, 1), version=1),
            shown(4, 5, "a", 1, 1, kind="version"),
        ],
        id="an-explicit-version-from-memory-after-its-deletion",
    ),
]
# A history, the index of the wrong operation, and its correct answer.
A1 = (200, (1, 1, "a"))
BAD = [
    pytest.param([registered(0, 1, "a", 1, 1), op(2, 3, "latest", (40401, None))], 1, A1, id="lost-write"),
    pytest.param(
        [registered(0, 1, "a", 1, 1), op(2, 3, "versions", (40401, None), node=1)],
        1,
        (200, (1,)),
        id="lost-write-in-a-list",
    ),
    pytest.param(
        [registered(0, 1, "a", 1, 1), op(2, 3, "version", (40401, None), version=1)],
        1,
        A1,
        id="acknowledged-version-not-found",
    ),
    pytest.param(
        [registered(0, 1, "a", 1, 1), registered(2, 3, "ab", 2, 2), shown(4, 5, "a", 1, 1)],
        2,
        (200, (2, 2, "ab")),
        id="stale-latest",
    ),
    pytest.param(
        [registered(0, 1, "a", 1, 1), op(2, 3, "by_id", (40403, None), schema_id=1)],
        1,
        (200, None),
        id="acknowledged-id-not-found",
    ),
    pytest.param(
        [registered(0, 1, "a", 1, 1), registered(0, 1, "b", 2, 1)], 1, (200, (0, 2)), id="version-given-twice"
    ),
    pytest.param(
        [registered(0, 1, "a", 1, 1), registered(2, 3, "aA", 2, 2)],
        1,
        (40901, None),
        id="incompatible-version-acknowledged",
    ),
    pytest.param(
        [registered(0, 1, "bAB", 1, 1), registered(2, 5, "aB", 2, 2), registered(3, 4, "aA", 3, 2)],
        1,
        (40901, None),
        id="two-that-do-not-fit-each-other",
    ),
    pytest.param([registered(0, 1, "a", 1, 1), shown(2, 3, "b", 1, 1)], 1, A1, id="changed-content"),
    pytest.param([registered(0, 1, "a", 1, 1), shown(2, 3, "a", 2, 1)], 1, A1, id="changed-id"),
    pytest.param(
        [registered(0, 1, "a", 1, 1), op(2, 3, "register", (40901, None), content="ab")],
        1,
        (200, (0, 2)),
        id="compatible-refused",
    ),
    pytest.param(
        [
            registered(0, 1, "a", 1, 1),
            op(2, 3, "soft_delete", (200, (1,))),
            shown(4, 5, "a", 1, 1),
        ],
        2,
        (40401, None),
        id="deleted-and-still-the-latest",
    ),
    pytest.param(
        [
            op(0, 1, "register", None, content="a"),
            shown(2, 3, "a", 1, 1),
            op(4, 5, "latest", (40401, None)),
        ],
        2,
        A1,
        id="seen-and-then-gone",
    ),
    pytest.param(
        [
            op(0, 9, "set_level", (200, "NONE"), level="NONE"),
            op(1, 2, "level", (200, "NONE")),
            op(3, 4, "set_level", (200, "FULL"), level="FULL"),
            op(5, 6, "level", (200, "FULL")),
            op(7, 8, "level", (200, "NONE")),
        ],
        4,
        (200, "FULL"),
        id="one-request-that-took-effect-twice",
    ),
    pytest.param(
        [
            registered(0, 1, "a", 1, 1),
            op(2, 3, "soft_delete", (NOT_WRITTEN, None)),
            op(4, 5, "latest", (40401, None)),
        ],
        2,
        A1,
        id="called-not-written-and-yet-done",
    ),
    pytest.param(
        [op(0, 1, "set_mode", (200, "READONLY"), level="READONLY"), registered(2, 3, "a", 1, 1)],
        1,
        (42205, None),
        id="read-only-and-yet-written",
    ),
]


@pytest.mark.parametrize("history", GOOD)
def test_good_histories(history):
    """A history with a possible order is accepted."""
    assert {} == {s: f for s, h in by_subject(history).items() if (f := explain(h)).verdict is not Verdict.EXPLAINED}


@pytest.mark.parametrize(("history", "liar", "truth"), BAD)
def test_planted_lies(history, liar, truth):
    """A history without a possible order is a broken promise, and the wrong operation is the one without a place."""
    finding = explain(by_subject(history)[S])
    assert Verdict.CONTRADICTED == finding.verdict
    (stuck,) = finding.stuck_before
    assert history[liar].number == stuck.number
    assert truth == perform(finding.stuck_at, stuck.request)[1]
    assert f"subject {S}: contradicted" in judge(history, _ledger_of(history)).broken[0]


def test_planted_lie_of_an_id():
    """An id that names two schemas is found, even if an order explains the rest."""
    history = [registered(0, 1, "a", 1, 1), registered(2, 3, "b", 1, 2)]
    (broken,) = judge(history, _ledger_of(history)).broken
    assert broken.startswith("id 1 of context . named 'a', then 'b'")


def test_many_unknown_fates_do_not_hide_a_plain_order():
    """The search tries a repeated registration before a concurrent deletion; the other order exceeds its budget."""
    unknown = [op(i / 10, i / 10 + 0.05, "set_level", None, level=LEVELS[i % 7]) for i in range(10, 24)]
    meanwhile = [op(5, 6.0, "soft_delete", (200, (1,))), registered(5, 6.001, "a", 1, 1)]
    history = [registered(0, 0.5, "a", 1, 1), *unknown, *meanwhile, op(7, 8, "latest", (40401, None))]

    assert Verdict.EXPLAINED == explain(history, budget=200).verdict


def test_search_without_end_is_undecided():
    """A search that exceeds its budget proves nothing: it is reported as undecided."""
    history = [op(0, 9, "set_level", None, level=LEVELS[i % 7]) for i in range(20)]
    finding = explain([*history, op(10, 11, "level", (200, "odd"))], budget=50)
    assert Verdict.UNDECIDED == finding.verdict
    broken = judge([*history, *(replace(o, start=20, end=21) for o in history)], Ledger()).broken
    assert () == broken


def test_acknowledged_but_not_in_the_log():
    """A registration that the log does not hold is reported, even if every read showed it."""
    history = [registered(0, 1, "a", 1, 1), shown(2, 3, "a", 1, 1)]
    assert () == judge(history, _ledger_of(history)).broken
    assert 2 == len(judge(history, Ledger()).broken)


# offset -> record, the law that it breaks
def _schema(version, content, schema_id, subject=S, **rest):
    return encode(
        SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text_of(content), "AVRO", **rest)
    )


def test_a_revoked_right_is_used_only_while_the_revocation_is_under_way():
    """A registration may overlap with the revocation, but not follow its answer."""
    granted = op(0, 1, "right_allow", (200, None), subject=ONE)
    revoked = op(2, 4, "right_disallow", (200, None), subject=ONE, node=1)
    meanwhile, afterwards = (op(at, at + 2, "right_use", (200, None), subject=ONE, content="k") for at in (3, 4.5))
    assert Verdict.EXPLAINED == explain([granted, revoked, meanwhile]).verdict
    assert Verdict.CONTRADICTED == explain([granted, revoked, afterwards]).verdict


@pytest.mark.parametrize(
    ("answer", "landed", "expected"),
    [
        pytest.param((200, None), True, None, id="acknowledged"),
        pytest.param((40301, None), False, None, id="refused"),
        pytest.param(None, True, None, id="unknown"),
        pytest.param((200, None), False, "acknowledged, but not in the log", id="acknowledged-and-lost"),
        pytest.param((40301, None), True, "refused, but in the log", id="refused-and-yet-written"),
    ],
)
def test_registrations_of_users_in_the_log(answer, landed, expected):
    """The log has exactly the registrations that were acknowledged."""
    registered_versions = {(ONE, 1, 1, "k")} if landed else set()
    found = list(misplaced([op(0, 1, "right_use", answer, subject=ONE, content="k")], registered_versions))
    assert ([expected] if expected else []) == [one.split(":")[0] for one in found]


def _acl(permission, *, gone=False):
    key = AclKey("User:ula", "*", "SUBJECT", ONE, "LITERAL", "WRITE", permission)
    return encode(key) if gone else encode(key, AclValue(1))


LOGS = [
    pytest.param([_acl("ALLOW"), _schema(1, "k", 1, ONE), _acl("ALLOW", gone=True)], "", id="written-while-granted"),
    pytest.param(
        [_acl("ALLOW"), _acl("ALLOW", gone=True), _schema(1, "k", 1, ONE)], "no right to write", id="after-a-revocation"
    ),
    pytest.param([_acl("ALLOW"), _acl("DENY"), _schema(1, "k", 1, ONE)], "no right to write", id="after-a-denial"),
    pytest.param([_schema(1, "a", 1), _schema(2, "ab", 2)], "", id="good"),
    pytest.param(
        [_schema(1, "a", 1), _schema(1, "a", 1, deleted=True), encode(SchemaKey(S, 1))], "", id="good-deletion"
    ),
    pytest.param([_schema(1, "a", 1), _schema(2, "ab", 3)], "the next id would have been 2", id="gap-in-ids"),
    pytest.param([_schema(1, "a", 1), _schema(2, "ab", 1)], "the id named 'a' before", id="id-of-two-schemas"),
    pytest.param([_schema(1, "a", 1), _schema(1, "a", 2, "t")], "the same content has the id", id="schema-of-two-ids"),
    pytest.param([_schema(1, "a", 1), _schema(1, "ab", 2)], "the version is not higher than 1", id="version-twice"),
    pytest.param([_schema(1, "a", 1), _schema(2, "aA", 2)], "not BACKWARD with", id="incompatible"),
    pytest.param([encode(ModeKey(S), "READONLY"), _schema(1, "a", 1)], "the subject is read-only", id="read-only"),
    pytest.param(
        [
            encode(ConfigKey(S), ConfigValue({"compatibilityLevel": "FORWARD"})),
            _schema(1, "aA", 1),
            _schema(2, "a", 2),
        ],
        "not FORWARD with",
        id="incompatible-under-a-level-of-its-own",
    ),
    pytest.param(
        [_schema(1, "a", 1), _schema(1, "a", 1, deleted=True), encode(SchemaKey(S, 1)), _schema(1, "b", 1)],
        "the id named 'a' before",
        id="id-reused-after-hard-delete",
    ),
]


@pytest.mark.parametrize(("records", "expected"), LOGS)
def test_laws_of_the_log(records, expected):
    """The checker finds each broken law of the log at the record that breaks it."""
    broken = read_ledger(LogEntry(i, 0, r.key, r.value) for i, r in enumerate(records)).broken
    if expected:
        assert expected in broken[0]
    else:
        assert [] == broken


def test_contents_and_texts():
    """A content and its schema text convert into each other."""
    assert list(MANY_CONTENTS) == [content_of(text_of(content)) for content in MANY_CONTENTS]
    assert "@3" == content_of(text_of("@3"), 3)


# Requests to one object, in order, each with its answer.
STORIES = [
    pytest.param(
        [
            ("pair_register", ":.r:u", "@1", 0, (42201, None)),
            ("pair_register", ":.r:b", "a", 0, (200, 1)),
            ("pair_register", ":.r:u", "@1", 0, (200, 1)),
            ("pair_soft_delete", ":.r:b", "", 1, (42206, None)),
            ("pair_soft_delete", ":.r:u", "", 0, (200, (1,))),
            ("pair_soft_delete", ":.r:b", "", 1, (200, 1)),
            ("pair_hard_delete", ":.r:b", "", 1, (42206, None)),
            ("pair_register", ":.r:b", "a", 0, (200, 2)),
            ("pair_all_versions", ":.r:b", "", 0, (200, (1, 2))),
            ("pair_hard_delete", ":.r:u", "", 1, (200, 1)),
            ("pair_hard_delete", ":.r:b", "", 1, (200, 1)),
            ("pair_versions", ":.r:b", "", 0, (200, (2,))),
        ],
        id="what-is-referred-to-stays",
    ),
    pytest.param(
        [
            ("alias_read", "n", "", 0, (40401, None)),
            ("alias_set", "n", ":.a:tb", 0, (200, ":.a:tb")),
            ("alias_read", "n", "", 0, (200, text_of("b"))),
            ("alias_drop", "n", "", 0, (200, ":.a:tb")),
            ("alias_drop", "n", "", 0, (40401, None)),
        ],
        id="alias",
    ),
    pytest.param(
        [
            ("dek_make", "k", "x", 0, (40470, None)),
            ("kek_make", "k", "d", 0, (200, "d")),
            ("kek_make", "k", "d", 0, (40971, None)),
            ("dek_make", "k", "x", 0, (200, "x")),
            ("kek_delete", "k", "", 0, (42272, None)),
            ("dek_purge", "k", "", 0, (40471, None)),
            ("dek_delete", "k", "", 0, (200, None)),
            ("dek_read", "k", "", 0, (40470, None)),
            ("kek_delete", "k", "", 0, (200, None)),
            ("kek_purge", "k", "", 0, (42272, None)),
            ("dek_purge", "k", "", 0, (200, None)),
            ("kek_purge", "k", "", 0, (200, None)),
            ("kek_read", "k", "", 0, (40470, None)),
        ],
        id="keys",
    ),
    pytest.param(
        [
            ("association_make", "t", "value", 0, (200, None)),
            ("association_make", "t", "key", 0, (200, None)),
            ("association_drop", "t", "value", 0, (200, None)),
            ("association_read", "t", "", 0, (200, ("key",))),
        ],
        id="associations",
    ),
    pytest.param(
        [
            ("right_use", ONE, "k", 0, (40301, None)),
            ("right_allow", ONE, "", 0, (200, None)),
            ("right_use", ONE, "l", 0, (200, None)),
            ("right_deny", ONE, "", 0, (200, None)),
            ("right_read", ONE, "", 0, (200, (True, True))),
            ("right_use", ONE, "m", 0, (40301, None)),
            ("right_disallow", ONE, "", 0, (200, None)),
            ("right_undeny", ONE, "", 0, (200, None)),
            ("right_use", ONE, "n", 0, (40301, None)),
        ],
        id="rights",
    ),
    pytest.param(
        [
            ("hot_read", "h", "", 0, (40408, None)),
            ("hot_set", "h", "w0-0", 0, (200, "w0-0")),
            ("hot_set", "h", "w1-0", 0, (200, "w1-0")),
            ("hot_read", "h", "", 0, (200, "w1-0")),
        ],
        id="the-hot-key",
    ),
]


@pytest.mark.parametrize("story", STORIES)
def test_objects(story):
    """The models of the other objects accept the documented answers, and reject one changed answer."""
    requests = [Request(kind, name, content, version=version) for kind, name, content, version, _ in story]
    history = [
        Operation(i, "c", 0, r, i, i + 0.5, one[-1]) for i, (r, one) in enumerate(zip(requests, story, strict=True))
    ]
    (object_name,) = by_subject(history)
    assert object_name in OBJECTS
    assert Verdict.EXPLAINED == explain(history).verdict
    lying = [*history[:-1], replace(history[-1], answer=(50000, None))]
    assert Verdict.CONTRADICTED == explain(lying).verdict


KINDS = st.sampled_from(
    ["register", "register", "register", "look_up", "latest", "versions", "all_versions", "version", "soft_delete",
     "hard_delete", "level", "set_level", "drop_level", "mode", "set_mode", "drop_mode"]
)  # fmt: skip
REQUESTS = st.builds(
    Request,
    kind=KINDS,
    subject=st.just(S),
    content=st.sampled_from(CONTENTS),
    version=st.integers(0, 4),
    level=st.sampled_from((*LEVELS, "READONLY")),
)
# The request, its time before and after its effect, whether an answer came, whether it was lost.
STEPS = st.lists(st.tuples(REQUESTS, st.floats(0, 6), st.floats(0, 6), st.booleans(), st.booleans()), max_size=40)


def _executed(steps):
    """Return a history in which each request takes effect at its place, or is lost with its answer."""
    subject, history = NEW, []
    for place, (request, earlier, later, answered, lost) in enumerate(steps):
        if not answered and lost:
            after, answer = subject, None
        else:
            after, answer = perform(subject, request, place + 1)
        if request.kind == "version" and request.version == 0:
            continue
        subject = after
        if answered or request.kind in WRITES:
            told = answer if answered else None
            history.append(Operation(place, "c", 0, request, place - earlier, place + later, told))
    return history


@settings(max_examples=examples(200))
@given(STEPS)
def test_whatever_a_sequence_explains_is_accepted(steps):
    """The checker accepts every history of a correct registry, with overlapping requests and lost answers."""
    finding = explain(_executed(steps))
    assert Verdict.EXPLAINED == finding.verdict, finding


@settings(max_examples=examples(200))
@given(STEPS, st.data())
def test_a_changed_answer_is_seen(steps, data):
    """In a history without overlap each answer is the only possible one, so the checker rejects any other."""
    history = [replace(o, start=o.number, end=o.number + 0.5) for o in _executed(steps) if o.answer is not None]
    subject, strict = NEW, []
    for operation in history:
        subject, answer = perform(subject, operation.request, operation.number + 1)
        strict.append(replace(operation, answer=answer))
    if not strict:
        return
    place = data.draw(st.integers(0, len(strict) - 1))
    lie = (40901, None) if strict[place].answer != (40901, None) else (40402, None)
    lying = [replace(o, answer=lie) if i == place else o for i, o in enumerate(strict)]
    assert Verdict.CONTRADICTED == explain(lying).verdict


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("level", LEVELS)
def test_rules_of_compatibility(content, level):
    """The model's rules, by letters, equal the level's definition over sets of fields."""
    for old in CONTENTS:
        reads_old = {letter for letter in content if letter not in old and letter.isupper()} == set()
        old_reads = {letter for letter in old if letter not in content and letter.isupper()} == set()
        wanted = {"BACKWARD": reads_old, "FORWARD": old_reads, "FULL": reads_old and old_reads, "NONE": True}
        assert wanted[level.removesuffix("_TRANSITIVE")] == compatible(content, [old], level)
        assert (wanted[level.removesuffix("_TRANSITIVE")] or "TRANSITIVE" not in level) == compatible(
            content, [old, content], level
        )


def _ledger_of(history):
    """Return a log that holds exactly what the history says."""
    ledger = Ledger()
    for operation in history:
        request, answer = operation.request, operation.answer
        if answer and answer[0] == 200 and request.kind == "register":
            ledger.registered.add((request.subject, answer[1][1], answer[1][0], request.content))
        if answer and answer[0] == 200 and request.kind in ("latest", "version"):
            ledger.registered.add((request.subject, answer[1][1], answer[1][0], answer[1][2]))
    return ledger


def test_a_stale_read_of_the_hot_key():
    """A stale read is found beside many writes with an unknown outcome, of which those count whose value was read."""
    lost = [op(0, 1, "hot_set", None, content=f"lost-{number}") for number in range(40)]
    acknowledged = [op(number, number + 0.5, "hot_set", (200, f"{number}"), content=f"{number}") for number in (1, 2)]
    fresh = [*lost, *acknowledged, op(3, 4, "hot_read", (200, "lost-7"))]
    stale = [*lost, *acknowledged, op(3, 4, "hot_read", (200, "1"))]
    assert [Verdict.EXPLAINED, Verdict.CONTRADICTED] == [
        explain(by_subject(history)["hot"]).verdict for history in (fresh, stale)
    ]
