"""Rules run around a record: executors, order, and the handling of failures."""

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from strata.serdes.aio import AsyncDeserializer, AsyncSerializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Metadata, Rule, RuleSet, Schema
from strata.serdes.errors import RuleError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.subject_name_strategies import Context

TEXT = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "ssn", "type": "string", "confluent:tags": ["PII"]},
            {"name": "raw", "type": "bytes", "default": "", "confluent:tags": ["PII"]},
        ],
    }
)
VALUE = {"id": 7, "ssn": "123", "raw": b"\xff"}
HOLDS = Rule(name="positive", type="CEL", kind="CONDITION", mode="WRITE", expr="message.id > 0", doc="ids are positive")


def ruled(*domain, encoding=(), metadata=None, **more):
    """Return the schema with rules."""
    return Schema(
        TEXT, metadata=metadata, rule_set=RuleSet(domain_rules=domain, encoding_rules=tuple(encoding), **more)
    )


class Note:
    """Executors and actions that record their calls."""

    def __init__(self):
        self.calls = []

    def executor(self, result=lambda value: value):
        """Return a factory of an executor over whole values or payloads."""
        note = self

        class Executor:
            def transform(self, context, message):
                note.calls.append((context.rule.name, context.mode, message))
                return result(message)

        return lambda client, settings: Executor()

    def action(self, context, value, error):
        """Record an action."""
        self.calls.append((context.rule.name, context.mode, None if error is None else type(error).__name__))


@dataclass
class Producer:
    """A producer with the methods that the dead-letter action needs."""

    error: Exception | None = None

    def __post_init__(self):
        self.sent = []

    def produce(self, topic, *, key, value, headers):
        """Accept or refuse a record."""
        if self.error is not None:
            raise self.error
        self.sent.append((topic, key, value, dict(headers)))


def test_a_contract_survives_the_registry(client):
    """The registry returns metadata and rules unchanged, by id and by version."""
    metadata = Metadata(
        tags={"Order.ssn": frozenset({"PII"})}, properties={"owner": "me"}, sensitive=frozenset({"owner"})
    )
    rule = Rule(
        name="r", type="CEL", expr="true", params={"a": "b"}, tags=frozenset({"x"}), on_success="A,B", on_failure="C"
    )
    rule_set = RuleSet(domain_rules=(rule, HOLDS), migration_rules=(Rule(name="m", type="JSONATA", mode="UPDOWN"),))
    schema = Schema(TEXT, metadata=metadata, rule_set=rule_set)

    registered = client.register("contract", schema)

    found = [client.get_schema(registered.schema_id), client.get_version("contract").schema]
    found.append(client.lookup("contract", schema).schema)
    assert [(metadata, rule_set)] * 3 == [(one.metadata, one.rule_set) for one in found]
    assert 1 == len(set(found[:2]))
    assert Schema(TEXT) == schema.bare


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param({}, id="registered"),
        pytest.param({"auto.register.schemas": False}, id="looked up"),
        pytest.param({"auto.register.schemas": False, "use.latest.version": True}, id="the latest"),
    ],
)
def test_the_rules_of_the_registry_count(client, conf):
    """A writer with the bare schema follows the registry's rules for it, and its frames have the id of that schema."""
    topic = f"known-{len(conf)}"
    client.register(f"{topic}-value", ruled(HOLDS))
    serialize = AvroSerializer(client, TEXT, conf=conf)

    assert VALUE == AvroDeserializer(client)(serialize(VALUE, topic=topic), topic=topic)
    with pytest.raises(RuleError):
        serialize(VALUE | {"id": 0}, topic=topic)


def test_a_failure_says_where(client):
    """An error names rule, subject, topic and the rule's purpose, and survives pickling."""
    serialize = AvroSerializer(client, ruled(HOLDS))

    with pytest.raises(RuleError) as caught:
        serialize(VALUE | {"id": 0}, topic="where")

    expected = "the condition does not hold: ids are positive (rule positive, subject where-value, topic where)"
    assert expected == str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


def test_the_order_of_phases(client):
    """Writing runs domain rules, encoder, encoding rules; reading runs them in reverse."""
    note = Note()
    rules = [Rule(name=name, type="NOTE") for name in ("one", "two")]
    encoding = [Rule(name="three", type="FLIP"), Rule(name="four", type="NOTE")]
    conf = {
        "rule.executors": {
            "NOTE": note.executor(),
            "FLIP": note.executor(lambda data: bytes(255 - one for one in data)),
        }
    }
    schema = ruled(*rules, encoding=encoding)

    frame = AvroSerializer(client, schema, conf=conf)(VALUE, topic="order")
    plain = AvroSerializer(client, TEXT)(VALUE, topic="plain")[5:]
    read = AvroDeserializer(client, conf=conf)(frame, topic="order")

    flipped = bytes(255 - one for one in plain)
    assert flipped == frame[5:]
    assert VALUE == read
    assert [
        ("one", "WRITE", VALUE),
        ("two", "WRITE", VALUE),
        ("three", "WRITE", plain),
        ("four", "WRITE", flipped),
        ("four", "READ", flipped),
        ("three", "READ", flipped),
        ("two", "READ", VALUE),
        ("one", "READ", VALUE),
    ] == note.calls


def test_settings_of_executors(client):
    """Rules with equal settings share an executor; a rule's settings win over its type's, and these over defaults."""
    made = []

    def factory(_, settings):
        made.append(settings)
        return Note().executor()(None, None)

    conf = {
        "rule.executors": {"MADE": factory},
        "rule.executors._default_.param.a": 1,
        "rule.executors._default_.b": 1,
        "rule.executors._MADE_.b": 2,
        "rule.executors._OTHER_.b": 4,
        "rule.executors.mine.b": 3,
    }
    serialize = AvroSerializer(client, ruled(*(Rule(name=one, type="MADE") for one in ("x", "mine", "y"))), conf=conf)
    serialize(VALUE, topic="made")
    serialize(VALUE, topic="made-too")

    assert [{"a": 1, "b": 2}, {"a": 1, "b": 3}] == made


@pytest.mark.parametrize(
    ("conf", "fails"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"rule.executors._default_.disabled": True}, False, id="all disabled"),
        pytest.param({"rule.executors._CEL_.disabled": "true"}, False, id="the type disabled"),
        pytest.param(
            {"rule.executors._CEL_.disabled": True, "rule.executors.positive.disabled": False}, True, id="but"
        ),
        pytest.param({"rule.executors._JSONATA_.disabled": True}, True, id="another type disabled"),
        pytest.param({"rule.executors.positive.onFailure": "NONE"}, False, id="another action"),
    ],
)
def test_settings_over_rules(client, conf, fails):
    """The conf may disable a rule, or give it another action."""
    serialize = AvroSerializer(client, ruled(HOLDS), conf=conf)
    if fails:
        with pytest.raises(RuleError):
            serialize(VALUE | {"id": 0}, topic="over")
    else:
        assert serialize(VALUE | {"id": 0}, topic="over") is not None


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"rule.executors": [1]}, "a dict of functions by name"),
        ({"rule.executors": {"CEL": 1}}, "a dict of functions by name"),
        ({"rule.actions": {"X": None}}, "a dict of functions by name"),
        ({"rule.executors.x": 1}, "unknown setting .rule.executors.x"),
        ({"rule.nosuch": 1}, "unknown setting .rule.nosuch"),
        ({"dlq.producer": object()}, "a producer of confluent-kafka"),
        ({"dlq.topic": 1}, "a string or None"),
        ({"use.latest.version": 1}, "True or False"),
        ({"use.latest.with.metadata": {"a": 1}}, "a dict of strings"),
    ],
)
def test_settings_that_are_refused(client, conf, says):
    """A wrong or unknown rule setting is refused with the allowed values."""
    with pytest.raises(ValueError, match=says):
        AvroDeserializer(client, conf=conf)


def test_actions_of_ones_own(client):
    """A custom action gets the rule and its outcome, by direction; if it raises, the record fails."""
    note = Note()
    rules = [
        Rule(name="there", type="CEL", kind="CONDITION", expr="true", on_success="NOTE, NONE"),
        Rule(name="back", type="CEL", kind="CONDITION", expr="false", on_failure="NONE, NOTE"),
    ]
    schema, conf = ruled(*rules), {"rule.actions": {"NOTE": note.action}}

    frame = AvroSerializer(client, schema, conf=conf)(VALUE, topic="own")

    assert VALUE == AvroDeserializer(client, conf=conf)(frame, topic="own")
    assert [("there", "WRITE", None), ("back", "READ", "RuleError")] == note.calls
    with pytest.raises(RuleError, match=r"the rule failed with KeyError \(rule back, subject own-value, topic own\)"):
        AvroDeserializer(client, conf={"rule.actions": {"NOTE": lambda *_: {}["x"]}})(frame, topic="own")
    with pytest.raises(RuleError, match="unknown rule action NOTE"):
        AvroDeserializer(client)(frame, topic="own")


def dead(*others, **more):
    """Return a schema whose rule sends every record to the dead letters."""
    rule = Rule(name="dead", type="CEL", kind="CONDITION", mode="WRITE", expr="false", on_failure="DLQ", **more)
    return ruled(*others, rule, metadata=Metadata(properties={"dlq.topic": "of-metadata"}))


@pytest.mark.parametrize(
    ("params", "topic"),
    [pytest.param({"dlq.topic": "of-rule"}, "of-rule", id="rule"), pytest.param({}, "of-metadata", id="metadata")],
)
def test_dead_letters(client, params, topic):
    """A record goes to the dead-letter topic of its rule or metadata, with its key, as JSON; the call fails."""
    producer = Producer()
    serialize = AvroSerializer(client, dead(params=params), conf={"dlq.producer": producer, "dlq.topic": "of-conf"})

    with pytest.raises(RuleError, match="does not hold"):
        serialize(VALUE, Context(f"dead-{topic}", key=b"k"))

    ((to, key, value, headers),) = producer.sent
    assert (topic, b"k", {"id": 7, "ssn": "123", "raw": "\xff"}) == (to, key, json.loads(value))
    assert b"the condition does not hold: false" in headers["__rule.exception"]


def test_dead_letters_show_no_secrets(client):
    """A dead letter shows no field that a rule would have encrypted; under payload encryption it shows nothing."""
    producer = Producer()
    conf = {
        "dlq.producer": producer,
        "rule.executors": {"ENCRYPT": Note().executor(), "ENCRYPT_PAYLOAD": Note().executor()},
    }
    encrypted = Rule(name="secret", type="ENCRYPT", mode="WRITE", tags=frozenset({"PII"}))
    whole = Rule(name="all", type="ENCRYPT_PAYLOAD", mode="WRITE")
    schema = dead(encrypted)
    sealed = Schema(
        TEXT,
        metadata=schema.metadata,
        rule_set=RuleSet(domain_rules=schema.rule_set.domain_rules[1:], encoding_rules=(whole,)),
    )
    for number, one in enumerate((schema, sealed)):
        with pytest.raises(RuleError):
            AvroSerializer(client, one, conf=conf)(VALUE, topic=f"secrets-{number}")

    assert [{"id": 7, "ssn": "<REDACTED>", "raw": "<REDACTED>"}, "<REDACTED>"] == [
        json.loads(value) if value[:1] == b"{" else value.decode() for _, _, value, _ in producer.sent
    ]


INNER = {"type": "record", "name": "In", "fields": [
    {"name": "ssn", "type": "string", "confluent:tags": ["PII"]}, {"name": "n", "type": "int"}]}  # fmt: skip


@pytest.mark.parametrize("form", ["avro", "json"])
def test_dead_letters_show_no_secrets_that_do_not_fit(client, form):
    """A dead letter hides a tagged field even in a value that fits no branch of the schema."""
    producer = Producer()
    conf = {"dlq.producer": producer, "dlq.topic": "dead", "rule.executors": {"ENCRYPT": Note().executor()}}
    rules = (
        Rule(name="no", type="CEL", kind="CONDITION", mode="WRITE", expr="false", on_failure="DLQ"),
        Rule(name="secret", type="ENCRYPT", mode="WRITE", tags=frozenset({"PII"})),
    )
    if form == "avro":
        text = json.dumps({"type": "record", "name": "Out", "fields": [{"name": "in", "type": ["null", INNER]}]})
        serialize = AvroSerializer(client, Schema(text, rule_set=RuleSet(domain_rules=rules)), conf=conf)
    else:
        inner = {"properties": {"ssn": {"type": "string", "confluent:tags": ["PII"]}, "n": {"type": "integer"}}}
        text = json.dumps({"properties": {"in": {"oneOf": [{"type": "null"}, {**inner, "required": ["n"]}]}}})
        serialize = JsonSerializer(client, Schema(text, "JSON", rule_set=RuleSet(domain_rules=rules)), conf=conf)

    with pytest.raises(RuleError, match="does not hold"):
        serialize({"in": {"ssn": "123"}}, topic=f"loose-{form}")

    assert [{"in": {"ssn": "<REDACTED>"}}] == [json.loads(value) for _, _, value, _ in producer.sent]


@pytest.mark.parametrize(
    ("conf", "detail"),
    [
        pytest.param({}, "dlq.producer is not set", id="no producer"),
        pytest.param(
            {"dlq.producer": Producer(BufferError("full"))}, "sending the record to the dead-letter topic", id="no room"
        ),
    ],
)
def test_dead_letters_that_do_not_arrive(client, conf, detail):
    """If the dead letter cannot be sent, the record fails with an error that says so."""
    with pytest.raises(RuleError, match=detail):
        AvroSerializer(client, dead(), conf=conf)(VALUE, topic="nowhere")


def test_a_dead_letter_passes_its_rule(client):
    """A dead letter skips the rule that it failed, but no other rule."""
    serialize = AvroSerializer(client, ruled(HOLDS))
    value = VALUE | {"id": 0}

    assert serialize(value, Context("again", headers=[("__rule.name", b"positive")])) is not None
    with pytest.raises(RuleError):
        serialize(value, Context("again", headers=[("__rule.name", b"other")]))


def test_values_stay_as_they_are(client):
    """A transform makes a new value and does not change the caller's."""
    rule = Rule(name="mask", type="CEL_FIELD", mode="WRITE", tags=frozenset({"PII"}), expr="typeName == 'STRING' ; 'x'")
    value = dict(VALUE)

    frame = AvroSerializer(client, ruled(rule))(value, topic="kept")

    assert VALUE == value
    assert VALUE | {"ssn": "x"} == AvroDeserializer(client)(frame, topic="kept")


@pytest.mark.parametrize("topic", ["awaited", None])
async def test_awaited(client, topic):
    """The async serdes run the same rules; without a topic the rules of the schema run too."""
    read = Rule(name="read", type="CEL", mode="READ", expr="{'id': message.id + 1}")
    serialize = AsyncSerializer(AvroSerializer(client, ruled(HOLDS, read)))
    deserialize = AsyncDeserializer(AvroDeserializer(client))

    frame = await serialize(VALUE, topic="awaited")

    assert [{"id": 8}] * 2 == [await deserialize(frame, topic=topic) for _ in range(2)]
    assert await serialize(None, topic="awaited") is None
    with pytest.raises(RuleError):
        await serialize(VALUE | {"id": 0}, topic="awaited")


def test_threads(client):
    """One serializer runs the rules of many threads."""
    rules = [
        Rule(name="one", type="CEL_FIELD", mode="WRITE", expr="name == 'id' ; value + 1"),
        Rule(name="two", type="JSONATA", mode="WRITE", expr="$ ~> |$|{'id': id * 10}|"),
    ]
    serialize = AvroSerializer(client, ruled(*rules))
    read = AvroDeserializer(client)
    with ThreadPoolExecutor(4) as pool:
        frames = list(pool.map(lambda number: serialize(VALUE | {"id": number}, topic="threads"), range(200)))

    assert [10 * (number + 1) for number in range(200)] == [read(one)["id"] for one in frames]


def test_what_importing_rules_does():
    """Serializers do not import the package of rules, nor does it change the recursion limit, as JSONata's would."""
    program = (
        "import sys, strata.serdes.aio, strata.serdes.json_schema.serializer, strata.serdes.protobuf.serializer\n"
        "import strata.serdes.avro.serializer\n"
        "rules = ('strata.serdes.rules', 'cel', 'jsonata')\n"
        "print([one for one in sys.modules if one.startswith(rules)], sys.getrecursionlimit())\n"
        "import strata.serdes.rules.jsonata, strata.serdes.rules.cel\n"
        "print(sys.getrecursionlimit())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (0, "[] 1000\n1000\n", "") == (done.returncode, done.stdout, done.stderr)


def test_rules_of_the_other_direction_cost_nothing(client):
    """A schema with rules for writing only is read like one without any."""
    serialize, read = AvroSerializer(client, ruled(HOLDS)), AvroDeserializer(client)
    frame, context = serialize(VALUE, topic="half"), Context("half")
    read(frame, context)

    assert read.known(read.open(frame, context), context).rules is None
    assert serialize.known(context).rules is not None


@pytest.mark.parametrize(("kind", "module"), [("CEL", "cel_expr_python"), ("JSONATA", "jsonata")])
def test_a_missing_library_is_named(client, monkeypatch, kind, module):
    """Without the extra, the first record fails with what to install, whatever the rule's action."""
    for name in [
        one for one in sys.modules if one.startswith(("strata.serdes.rules.cel", "strata.serdes.rules.jsonata"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    rule = Rule(name="lacking", type=kind, kind="CONDITION", mode="WRITE", expr="true", on_failure="NONE")

    with pytest.raises(RuleError, match=rf"needs {module}: install strata-registry\[rules\] .* \(rule lacking"):
        AvroSerializer(client, ruled(rule))(VALUE, topic=f"lacking-{kind}")


def test_objects_are_json_before_the_rules(client):
    """Rules get the JSON that the serializer makes of a dataclass."""

    @dataclass
    class Order:
        id: int

    text = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    rule = Rule(name="more", type="CEL", mode="WRITE", expr="{'id': message.id + 1}")
    schema = Schema(text, "JSON", rule_set=RuleSet(domain_rules=(rule,)))

    assert {"id": 8} == JsonDeserializer(client)(JsonSerializer(client, schema)(Order(7), topic="dataclasses"))
