"""Wire's parser, which the Confluent Schema Registry uses, and ours read the same tree or both refuse."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from harness.proto_texts import Maker, changed
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf.model import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Kind,
    ListValue,
    MapValue,
    Message,
    OneOf,
    Option,
    Reserved,
    Rpc,
    Scalar,
    Service,
)
from strata.compat.protobuf.syntax import read_file
from strata.compat.schema import SchemaParseError

RECORDED = Path(__file__).parents[2] / "conformance"
ON_PURPOSE = "takes a single value"  # Wire takes a default or a JSON name that is a list or a map for its Java text
SYNTAXES = {"PROTO_2": "proto2", "PROTO_3": "proto3", None: None}


def _seeds():
    """Return the schemas of the recorded cases about texts."""
    for name in ("canonical", "parse"):
        with gzip.open(RECORDED / f"protobuf_{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["new"]["schema"] for line in lines)


def _texts(count):
    """Return the recorded schemas, as many changed ones, and as many random ones."""
    random = Random(2027)
    maker = Maker(random)
    seeds = [text for text in _seeds() if text]
    return [
        *seeds,
        *(changed(random, random.choice(seeds)) for _ in range(count)),
        *(maker.text() for _ in range(count)),
    ]


@pytest.fixture(scope="module", params=[100, pytest.param(40_000, marks=pytest.mark.slow)])
def told(request, run_library):
    """Return texts with Wire's answer to each."""
    texts = _texts(request.param)
    return list(zip(texts, run_library("strata.compat.WireParser", texts), strict=True))


def test_the_same_tree_or_none(told):
    """For any text, both parsers refuse it or read the same from it."""
    wrong, read = {}, 0
    for text, wire in told:
        expected = _file(wire["file"]) if "file" in wire else None
        actual, reason = _ours(text)
        read += actual is not None
        if expected != actual and ON_PURPOSE not in reason:
            wrong[text] = (wire.get("reason", ""), expected, reason, actual)

    assert {} == wrong
    assert 0.1 < read / len(told) < 0.9


def _ours(text):
    try:
        return read_file(text, DEFAULT_LIMITS), ""
    except SchemaParseError as error:
        return None, str(error)


def _file(file):
    return File(
        file["packageName"],
        SYNTAXES[file["syntax"]],
        tuple(file["imports"]),
        tuple(file["publicImports"]),
        tuple(file["weakImports"]),
        tuple(map(_type, file["types"])),
        tuple(map(_service, file["services"])),
        tuple(map(_extend, file["extendDeclarations"])),
        _options(file["options"]),
    )


def _type(element):
    if element["is"] == "EnumElement":
        constants = (Constant(one["name"], one["tag"], _options(one["options"])) for one in element["constants"])
        return Enum(element["name"], tuple(constants), _options(element["options"]), _reserved(element))
    types = [_type(nested) for nested in element["nestedTypes"]]
    return Message(
        element["name"],
        _fields(element),
        tuple(map(_oneof, element["oneOfs"])),
        tuple(map(_group, element["groups"])),
        (*(one for one in types if isinstance(one, Message)), *(one for one in types if isinstance(one, Enum))),
        _options(element["options"]),
        _reserved(element),
        tuple(Extensions(_ranges(one), _options(one["options"])) for one in element["extensions"]),
        tuple(map(_extend, element["extendDeclarations"])),
    )


def _oneof(element):
    groups = tuple(map(_group, element["groups"]))
    return OneOf(element["name"], _fields(element), groups, _options(element["options"]))


def _group(element):
    return Group(_label(element), element["name"], element["tag"], _fields(element))


def _extend(element):
    return Extend(element["name"], _fields(element))


def _service(element):
    return Service(element["name"], tuple(map(_rpc, element["rpcs"])), _options(element["options"]))


def _rpc(element):
    parts = ("name", "requestType", "responseType", "requestStreaming", "responseStreaming")
    return Rpc(*(element[part] for part in parts), _options(element["options"]))


def _fields(element):
    return tuple(map(_field, element["fields"]))


def _field(element):
    name, tag, options = element["name"], element["tag"], _options(element["options"])
    return Field(_label(element), element["type"], name, tag, options, element["defaultValue"], element["jsonName"])


def _label(element):
    return element["label"].lower() if element["label"] else None


def _reserved(element):
    return tuple(Reserved(_ranges(one)) for one in element["reserveds"])


def _ranges(element):
    return tuple((one["first"], one["last"]) if isinstance(one, dict) else one for one in element["values"])


def _options(elements):
    return tuple(map(_option, elements))


def _option(element):
    """Return a path of options as one option, as we have it."""
    path, last = [], element
    while last["kind"] == "OPTION":
        last = last["value"]
        path.append(f"({last['name']})" if last["isParenthesized"] else last["name"])
    kind = Kind[last["kind"]] if last["kind"] in Kind.__members__ else Kind.STRING
    return Option(element["name"], _value(last["value"], kind), element["isParenthesized"], tuple(path))


def _value(value, kind=Kind.STRING):
    if isinstance(value, str):
        return Scalar(kind, value)
    if isinstance(value, list):
        return ListValue(tuple(map(_value, value)))
    if "map" in value:
        return MapValue(tuple((key, _value(inner)) for key, inner in value["map"]))
    return Scalar(Kind[value["kind"]], value["value"])
