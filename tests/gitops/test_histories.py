"""Extracts of the histories of two repositories, commit by commit; and a service that is killed in mid-apply."""

import itertools
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.registry import RegistryNode

HISTORIES = Path(__file__).parent / "histories"
FINDING = re.compile(r": error: .*\[([^],]+), (\w+)\]$")


def found(output):
    """Return subject and rule of each error in the output of a check."""
    return sorted({" ".join(match.groups()) for match in map(FINDING.search, output.splitlines()) if match})


def commits(name):
    """Yield the number of each commit of a history, its files, and the findings that it must have."""
    for number in itertools.count(1):
        folder = HISTORIES / name / str(number)
        if not folder.is_dir():
            return
        files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        yield number, files, files.pop("findings", "").splitlines()


@pytest.mark.parametrize(
    ("name", "registry"),
    [
        ("readings", "step by step"),
        ("telemetry", "at once"),
        pytest.param("readings", "at once", marks=pytest.mark.slow),
        pytest.param("telemetry", "step by step", marks=pytest.mark.slow),
    ],
    indirect=["registry"],
)
def test_a_history(files, registry, name):
    """Each commit has the findings that its check must have, and gets in as a whole, or not at all if it has some.

    What gets in is what the plan lists, and leaves nothing to do.
    """
    url = ("--url", registry.url)
    for number, changed, findings in commits(name):
        for file, text in changed.items():
            files.put(file, text)
        against = ("--against=HEAD",) if number > 1 else ()
        assert findings == found(files.run("check", *against, code=1 if findings else 0)), f"{name} {number}"
        if findings:
            refused(files, registry, url)
            continue
        files.commit()
        planned = files.run("plan", *url, "--out=plan.json", code=1)
        changes = json.loads((files.root / "plan.json").read_text())["changes"]
        applied = files.run("apply", "plan.json", code=0)

        registered = [f"{one['step']['subject']} version {one['version']}" for one in changes if one["version"]]
        assert registered == [line[11:] for line in applied.splitlines() if line.startswith("registered ")], planned
        files.run("plan", *url, code=0)
        files.run("check", "--against", registry.url, code=0)
    assert "" == files.run("diff", ".", registry.url)


def refused(files, registry, url):
    """Check that a registry that takes batches refuses all of a tree; another one may find out in the middle."""
    before = contents(registry)
    if registry.takes_batches:
        files.run("plan", *url, code=2)
        files.run("apply", *url, code=2)
    assert before == contents(registry)


def contents(registry):
    """Return the versions of all subjects, and their levels."""
    subjects = registry.get("/subjects")
    return {one: (registry.get(f"/subjects/{one}/versions"), registry.get(f"/config/{one}")) for one in subjects}


@pytest.mark.slow
def test_a_killed_service_has_all_or_nothing(files, tmp_path):
    """A service that is killed during an apply has, after its restart, all subjects or none; the next apply is fine."""
    with RegistryNode(f"sqlite:///{tmp_path}/log.db") as node:
        for delay_s in (0.0, 0.3, 0.36):
            names = [f"s{delay_s:g}-{number}" for number in range(40)]
            for name in names:
                schema = {"type": "fixed", "name": "F", "size": 4, "doc": name * 500}
                files.put(f"{delay_s}/{name}.avsc", json.dumps(schema))
            files.put("strata.yaml", f"subjects: [{{name: '{{stem}}', files: '{delay_s}/*.avsc'}}]")
            files.run("plan", "--url", node.url, "--out=plan.json", code=1)
            command = [Path(sys.executable).with_name("strata"), "apply", "plan.json"]
            apply = subprocess.Popen(command, cwd=files.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            killer = threading.Timer(delay_s, node.kill)
            killer.start()
            killer.join()
            node.restart()
            apply.communicate(timeout=120)

            held = files.run("list", f"s{delay_s:g}-", "--url", node.url, code=0).split()
            assert held in ([], sorted(names))
            files.run("apply", "--url", node.url, code=0)
            assert sorted(names) == files.run("list", f"s{delay_s:g}-", "--url", node.url, code=0).split()
