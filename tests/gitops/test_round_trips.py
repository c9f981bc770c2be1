"""Public schemas go through a contract and come back, or what is lost is named.

The schemas are files of installed packages: of Google's APIs, of Kubernetes and of Avro. The recorded cases of
tests/conformance, which were written or generated, add what public files rarely use.
"""

import gzip
import json
import sysconfig
from functools import cache
from pathlib import Path

import pytest
import yaml

from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat, SchemaParseError
from strata.gitops.contracts.envelope import TEXT, from_contract, to_contract
from strata.gitops.errors import GitopsError
from strata.gitops.versions import Held
from strata.strict_yaml import read_text

SITE = Path(sysconfig.get_paths()["purelib"])
RECORDED = Path(__file__).parents[1] / "conformance"
PUBLIC = {
    "PROTOBUF": ["google/**/*.proto", "grpc_tools/_proto/**/*.proto"],
    "JSON": ["kubernetes_validate/kubernetes-json-schema/v1.3[17].0-local/[a-h]*-v1.json"],
    "AVRO": ["avro/**/*.avsc"],
}
FILES = {"AVRO": ["avro_canonical"], "JSON": ["json_canonical"], "PROTOBUF": ["protobuf_canonical", "protobuf_options"]}

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the export's own takes ten times as long


def public(kind):
    """Return the texts of public files, each once: of three files that are much alike, one."""
    files = (file for pattern in PUBLIC[kind] for file in sorted(SITE.glob(pattern)))
    return list(dict.fromkeys(file.read_text("utf-8") for file in files))[:: 1 if kind == "AVRO" else 3]


def recorded(kind):
    """Return the texts of recorded cases without references."""
    files = (gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()) for name in FILES[kind])
    lines = (line for file in files for line in file.splitlines())
    cases = (json.loads(line)["new"] for line in lines)
    return [case["schema"] for case in cases if not case.get("references")][::24]


@cache
def exported(kind, text):
    """Return the contract of a schema as its reader gives it, and what only the carried text says; None if neither.

    It is not to be changed.
    """
    try:
        contract, unsaid = to_contract(Held("s", 1, kind, text))
    except GitopsError:  # a list, an enum, a type without fields
        return None
    written = yaml.dump(contract, Dumper=_DUMPER, sort_keys=False, width=1_000_000)
    return read_text(written, most_depth=200), unsaid


def meaning(kind, text):
    """Return the normal form of a schema; the order of required properties has no meaning."""
    form = FORMATS[SchemaFormat(kind)]
    found = form.normalize(form.parse(text, strict=False, references=()))
    return json.dumps(_unordered(json.loads(found)), sort_keys=True) if kind == "JSON" else found


def _unordered(value):
    if isinstance(value, dict):
        plain = {name: _unordered(one) for name, one in value.items()}
        return plain | ({"required": sorted(map(str, plain["required"]))} if "required" in plain else {})
    return [_unordered(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", PUBLIC)
def test_what_is_exported_comes_back(kind):
    """A contract as it was exported makes the very text, of public files and of recorded cases."""
    texts = public(kind)
    made = [(text, found[0]) for text in [*texts, *recorded(kind)] if (found := exported(kind, text)) is not None]

    assert [] == [text for text, contract in made if text != from_contract(contract)[0].text]
    assert {"PROTOBUF": 20, "JSON": 45, "AVRO": 2}[kind] <= len({text for text, _ in made} & set(texts))


@pytest.mark.parametrize("kind", PUBLIC)
def test_without_the_text_nothing_is_lost_without_a_word(kind):
    """The words of a contract alone make a schema of the same meaning, or the export has named what they do not say."""
    silent = []
    for text in [*public(kind), *recorded(kind)]:
        found = exported(kind, text)
        if found is None:
            continue
        contract, unsaid = found
        (schema,) = contract["schema"]
        custom = [one for one in schema["customProperties"] if one["property"] != TEXT]
        contract = {**contract, "schema": [{**schema, "customProperties": custom}]}
        try:
            expected, (imported,) = meaning(kind, text), from_contract(contract)
        except (SchemaParseError, GitopsError):  # it refers to other files, or the import says that it cannot
            continue
        if expected != meaning(kind, imported.text) and not unsaid and not imported.left_out:
            silent.append(text)
    assert [] == silent
