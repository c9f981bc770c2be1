"""SQL makes columns of Protobuf and JSON Schemas from texts alone, as the driver in Python makes them."""

import gzip
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from harness.java_probes import RunJava
from harness.json_cases import schemas
from harness.json_references import Maker
from harness.protobuf_cases import Maker as ProtobufMaker
from strata.compat.json_schema.parser import parse as parse_json
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse
from strata.compat.schema import ResolvedReference
from strata.serdes.client import Schema
from strata.serdes.errors import NoMessage, SchemaError
from strata.spark_udfs.decoding.arrow_columns import spark_type
from strata.spark_udfs.decoding.payload_formats import inputs_for_jvm, reader_of
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema

pytestmark = pytest.mark.spark

RECORDED = Path(__file__).parents[1] / "conformance"
METASCHEMAS = Path(__file__).parents[2] / "compat" / "json_schema" / "metaschemas.json"


class Case(NamedTuple):
    """A reader schema, its references by name, and what of it to read."""

    format: str
    text: str
    references: dict[str, str] = {}  # noqa: RUF012 - never changed
    columns: tuple[str, ...] | None = None
    message: str | None = None

    @property
    def payload(self) -> PayloadSchema:
        """Return the schema as `decode` has it."""
        named = tuple((name, Schema(one, self.format)) for name, one in self.references.items())
        return PayloadSchema(Schema(self.text, self.format), named, self.columns, self.message)

    @property
    def line(self) -> dict[str, Any]:
        """Return the schema as the registry gives it to the JVM."""
        asked = {"columns": self.columns, "message": self.message}
        files = [ResolvedReference(name, one) for name, one in self.references.items()]
        if self.format == "JSON":
            text = parse_json(self.text, strict=False, references=files).canonical
            return {"text": text, "references": self.references, **asked}
        texts = [parse(one.text, strict=False, references=files[:number]) for number, one in enumerate(files)]
        return {
            "files": [*map(serialized, texts), serialized(parse(self.text, strict=False, references=files))],
            **asked,
        }


def _by_python(case: Case) -> dict[str, Any] | None:
    """Return the type and what the JVM plans from, or the refusal; None for a schema that no registry accepts."""
    try:
        kind = spark_type(reader_of(case.payload).shape.arrow)
        return {"inputs": inputs_for_jvm(case.payload), "type": kind.jsonValue()}
    except (SchemaError, NoMessage):
        return None
    except (ValueError, OnlyInPython) as error:
        return {"refused": str(error)}


def _compared(run_java: RunJava, cases: Iterable[Case]) -> Counter[str]:
    """Check that both sides agree on each case, and return how often each outcome occurs."""
    known = [(case, expected) for case in cases if (expected := _by_python(case)) is not None]
    lines = [case.line for case, _ in known]
    sent = [expected["inputs"] for _, expected in known if "inputs" in expected]
    answers = run_java("strata.spark.ColumnsProbe", [*lines, *sent])
    by_driver = iter(answers[len(lines) :])
    for (case, expected), answer in zip(known, answers, strict=False):
        if "refused" in expected:
            assert _reason(expected["refused"]) in _reason(answer.get("refused", "")), case
        else:
            assert _lowered(expected["type"]) == _lowered(answer["type"]), case
            assert _lowered(answer) == _lowered(next(by_driver)), case
    return Counter(next(iter(expected)) for _, expected in known)


def _lowered(answer: Any) -> Any:
    """Return an answer in small letters: only protoc capitalizes the names of map entries, which no frame holds."""
    return json.loads(json.dumps(answer).lower())


def _reason(message: str) -> str:
    """Return an error without its remedy, which is another one in SQL."""
    return message.partition(";")[0].lower()


def _recorded(kind: str) -> Iterator[Case]:
    """Yield the recorded schemas of a format, with their references by name."""
    for path in sorted(RECORDED.glob(f"{kind.lower()}_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                known = {(one["subject"], one["version"]): one for one in line.get("references", ())}
                for one in (*line.get("previous", ()), line["new"]):
                    named: dict[str, str] = {}
                    _add_references(named, one, known)
                    yield Case(kind, one["schema"], named)


def _add_references(named: dict[str, str], schema: Any, known: dict[tuple[str, int], Any]) -> None:
    for one in schema.get("references", ()):
        target = known.get((one["subject"], one["version"]))
        if target is not None and one["name"] not in named:
            _add_references(named, target, known)
            named.setdefault(one["name"], target["schema"])


@pytest.mark.parametrize("step", [30, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "count"), [("JSON", 3000), ("PROTOBUF", 1500)])
def test_recorded_schemas(run_java: RunJava, kind: str, count: int, step: int) -> None:
    """Each schema that the reference was asked about becomes the same columns, or is refused for the same reason."""
    cases = {repr(case): case for case in _recorded(kind)}

    outcomes = _compared(run_java, islice(cases.values(), 0, None, step))

    assert outcomes["inputs"] + outcomes["refused"] > count / step
    assert outcomes["refused"] > count / step / 100


@pytest.mark.parametrize("step", [150, pytest.param(1, marks=pytest.mark.slow)], ids=["400", "62000"])
def test_keywords(run_java: RunJava, step: int) -> None:
    """So does each keyword with each kind of value that the registry accepts, in each dialect."""
    cases = (Case("JSON", text) for text in islice(schemas(), 0, None, step))

    assert _compared(run_java, cases)["inputs"] > 60_000 / step


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_references(run_java: RunJava, count: int) -> None:
    """So do schemas that refer to others and to themselves, with names of any kind, in documents of any dialect."""
    chance = Random(2027)
    maker = Maker(chance)
    asked = [None, None, None, ("a", "b")]
    cases = [Case("JSON", json.dumps(maker.document()), maker.references(), chance.choice(asked)) for _ in range(count)]

    outcomes = _compared(run_java, cases)

    assert min(outcomes["inputs"], 2 * outcomes["refused"]) > count / 20


def _of_metaschemas(dialect: str) -> Iterator[Case]:
    """Yield each bundled metaschema, and schemas of a dialect that refer to it."""
    for uri, document in json.loads(METASCHEMAS.read_text(encoding="utf-8")).items():
        yield Case("JSON", json.dumps(document))
        yield Case("JSON", json.dumps({"$schema": dialect, "$ref": uri}))
        yield Case("JSON", json.dumps({"$schema": dialect, "properties": {"id": {"$ref": uri}, "n": {"type": "null"}}}))
        yield Case("JSON", '{"$ref": "s"}', {"s": json.dumps({"$schema": dialect, "items": {"$ref": uri}})})


def test_metaschemas(run_java: RunJava) -> None:
    """So do metaschemas and schemas that refer to one; newer dialects do not read that of draft 4."""
    dialects = ("draft-07/schema#", "draft/2019-09/schema", "draft/2020-12/schema")
    cases = {repr(case): case for one in dialects for case in _of_metaschemas(f"http://json-schema.org/{one}")}.values()
    unread = [case for case in cases if "/draft/" in case.text and "draft-04" in case.text]

    assert len(cases) - len(unread) == _compared(run_java, cases).total()
    assert len(unread) == 4


MONEY = (
    'syntax = "proto2"; package shop; message Money { optional int64 units = 1 [default = -3]; '
    'optional string note = 6 [default = "\\303\\274b"]; optional bytes proof = 7 [default = "\\\\001\\\\xffq\\\\n"]; '
    "optional double rate = 8 [default = -inf]; optional float part = 9 [default = 1.5e-3]; "
    "optional sint32 low = 10 [default = -2]; optional fixed64 high = 11 [default = 0x10]; "
    "optional bool paid = 12 [default = true]; repeated int32 all = 13; optional uint64 most = 14 "
    "[default = 18446744073709551615]; optional int32 octal = 15 [default = 017]; map<int32, string> names = 16; }"
)
ORDER = (
    'syntax = "proto3"; package shop; import "shop/money.proto"; import "google/protobuf/timestamp.proto"; '
    'import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto"; '
    'import "google/type/date.proto"; '
    "message Head { string id = 1; } message Order { message Line { optional sint32 count = 2; string sku = 1; "
    "enum State { NEW = 0; OLD = 1; ALSO_OLD = 1; option allow_alias = true; } repeated State states = 3; } "
    "map<string, Line> lines = 9; map<int32, Line.State> states = 8; Money price = 1; google.type.Date day = 2; "
    "google.protobuf.Timestamp at = 4; google.protobuf.StringValue note = 5; google.protobuf.Duration took = 3; "
    "repeated google.protobuf.UInt64Value many = 6; oneof choice { int32 a = 20; Line b = 19; } "
    "oneof single { int32 c = 18; } Empty none = 21; } message Empty {} "
)
IN_ORDER = {"shop/money.proto": MONEY}
HARD = (
    'syntax = "proto2"; import "google/protobuf/struct.proto"; message M { optional int32 n = 1; '
    "optional M next = 2; optional E e = 3; optional group G = 4 { optional int32 a = 1; } "
    "optional google.protobuf.Value v = 5; repeated google.protobuf.ListValue all = 6; "
    "map<string, google.protobuf.Struct> by = 7; } enum E { ONE = 1; }"
)
MESSAGES = [
    *(Case("PROTOBUF", ProtobufMaker(Random(seed)).kind().text()) for seed in range(50)),
    *(Case("PROTOBUF", ORDER, IN_ORDER, None, f"shop.{name}") for name in ("Order", "Order.Line", "Money", "Empty")),
    Case("PROTOBUF", ORDER, IN_ORDER),
    Case("PROTOBUF", ORDER, IN_ORDER, ("at", "price", "b", "at"), "shop.Order"),
    Case("PROTOBUF", ORDER, IN_ORDER, ("a", "b"), "shop.Order"),
    Case("PROTOBUF", ORDER, IN_ORDER, ("none",), "shop.Order"),
    Case("PROTOBUF", HARD, {}, ("n",)),
]
REFUSED = [
    Case("PROTOBUF", ORDER, IN_ORDER, ("x",), "shop.Order"),
    Case("PROTOBUF", ORDER, IN_ORDER, None, "shop.None"),
    *(Case("PROTOBUF", HARD, {}, (name,)) for name in ("next", "e", "g", "v", "all", "by")),
]


def test_messages(run_java: RunJava) -> None:
    """Messages keep presence, defaults, oneofs, enums and order; parts that only Python decodes are named."""
    edition = FileDescriptorProto(syntax="editions", message_type=[DescriptorProto(name="M")]).SerializeToString()

    outcomes = _compared(run_java, [*MESSAGES, *REFUSED])
    [answer] = run_java("strata.spark.ColumnsProbe", [{"files": [b64encode(edition).decode()]}])

    assert {"inputs": len(MESSAGES), "refused": len(REFUSED)} == outcomes
    assert "SQL does not decode an edition of Protobuf (M); make the column by strata.spark_udfs" in answer["refused"]
