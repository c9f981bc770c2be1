"""With some features taken out, the tests of the others pass, and those of the core."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from strata.registry.app import FEATURES

ROOT = Path(__file__).resolve().parents[2]
NAMES = [feature.name for feature in FEATURES]
CORE = ["registry/test_compatibility.py", "registry/test_contexts.py", "registry/test_subjects.py"]
# The tests of each feature that make their registry in their own process; those of the other files start nodes.
OWN = {
    "access": ["access/test_acl_routes.py", "access/test_access_rights.py", "access/test_limits_and_origins.py"],
    "associations": ["registry/test_associations.py"],
    "audit": ["access/test_audit.py"],
    "decoding": ["registry/test_decoding.py"],
    "exporters": ["neighbours/test_exporter_requests.py", "neighbours/test_exporter_choices.py"],
    "glue": [],
    "keys": ["registry/test_dek_routes.py", "registry/test_dek_decisions.py"],
    "metrics": ["registry/test_metrics.py", "registry/test_metrics_moves.py"],
    "pages": ["registry/pages/test_pages.py", "registry/pages/test_subject_list.py", "registry/pages/test_actions.py"],
    "search": ["registry/test_search.py"],
    "standby": ["neighbours/test_many_subjects.py"],
    "tracing": [],
    "usage": [],
}
# What a feature says about another one cannot be tested without it.
NEEDS = {"audit": {"access"}}
BETWEEN = {
    "test_every_name_is_in_the_table": "the table of metrics has those of all features",
    "test_no_secret_is_noted": "it sends the keys of fields too",
    "test_a_name_of_dots_leads_to_its_page": "it follows the link to the usage of a subject too",
    "test_the_audit_notes_no_refusal_for_a_rate": "it reads the audit",
    "test_actions_are_in_the_audit": "it reads the audit",
}
# What either half of the features has, without the other half, of which a test fails.
HALVES = [
    (["access", "audit", "metrics", "pages"], "registry/test_dek_routes.py::test_prefix_form_of_contexts"),
    (
        ["associations", "decoding", "exporters", "glue", "keys", "search", "standby", "tracing", "usage"],
        "registry/pages/test_pages.py::test_browsers_are_sent_to_the_pages",
    ),
]
QUICK = {
    "access": ["access/test_acl_routes.py"],
    "exporters": ["neighbours/test_exporter_choices.py"],
    "keys": ["registry/test_dek_routes.py"],
    "metrics": ["registry/test_metrics.py"],
    "pages": ["registry/pages/test_pages.py"],
}


def own_tests(names, own):
    """Return the files with the tests of some features."""
    return [f"tests/{file}" for name in names if NEEDS.get(name, set()) <= {*names} for file in own.get(name, [])]


def run_tests(without, files):
    """Run tests on registries without some features; return which fail, and the last lines."""
    between = " and ".join(f"not {name}" for name in BETWEEN)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not long", "-k", between]
    command += ["-p", "no:cacheprovider", "-p", "harness.without_features", f"--without={','.join(without)}", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode < 2, done.stdout + done.stderr
    return re.findall(r"^FAILED tests/(\S+)", done.stdout, re.MULTILINE), done.stdout[-2000:]


def test_each_feature_names_its_tests():
    """The table has a row for each feature, and its files exist."""
    assert sorted(NAMES) == sorted(OWN) == sorted(name for half, _ in HALVES for name in half)
    assert [] == [file for files in (CORE, *OWN.values()) for file in files if not (ROOT / "tests" / file).exists()]


@pytest.mark.parametrize(
    ("half", "other"),
    [
        pytest.param(*HALVES[0], id="access", marks=pytest.mark.long),
        pytest.param(*HALVES[1], id="search", marks=pytest.mark.slow),
    ],
)
def test_half_of_the_features_pass_their_tests_without_the_other_half(half, other):
    """The tests of a half of the features pass on a registry without the other half, of which a test fails."""
    failed, output = run_tests(
        [name for name in NAMES if name not in half], [*own_tests(half, QUICK), f"tests/{other}"]
    )
    assert [other] == failed, output


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_rest_passes_its_tests_without_a_feature(name):
    """With one feature taken out, the tests of all others and of the core pass."""
    rest = [other for other in NAMES if other != name]
    failed, output = run_tests([name], [*own_tests(rest, OWN), *(f"tests/{file}" for file in CORE)])
    assert [] == failed, output
