"""The GitHub action and the hook of pre-commit do what the guide says: they run here as they run there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer

from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{\s*([\w.]+)\s*\}\}")
# An action installs the package, which tests/packaging does; here it is installed already.
INSTALLER = """#!/bin/sh
echo "$@" >> "$INSTALLED"
case "$2" in
  venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  pip) ln -sf "$STRATA" "$(dirname "$0")/strata" ;;
esac
"""


@pytest.fixture
def workflow(files, tmp_path_factory, program):
    """Return a function that runs the steps of the action in the folder, and returns exit code and output."""
    tools = tmp_path_factory.mktemp("tools")
    (tools / "python3").write_text(INSTALLER)
    (tools / "python3").chmod(0o755)

    def run(base_ref="", before="", **inputs):
        given = {name: str(one["default"]) for name, one in ACTION["inputs"].items()} | inputs
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {"github.action_path": str(ROOT), "github.base_ref": base_ref, "github.event.before": before}
        system = os.environ["PATH"].replace(str(Path(sys.executable).parent), "")
        environ = {
            "PATH": f"{tools}:{system}", "HOME": str(tools), "INSTALLED": str(tools / "installed"),
            "STRATA": str(program), "RUNNER_TEMP": str(tools / "a temp"),
            "GITHUB_PATH": str(tools / "path"), "GITHUB_WORKSPACE": str(files.root),
        }  # fmt: skip
        if "PYTHONPATH" in os.environ:
            environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
        output = ""
        for step in ACTION["runs"]["steps"]:
            variables = {name: EXPRESSION.sub(lambda m: known[m[1]], text) for name, text in step["env"].items()}
            # The shell that GitHub starts for `shell: bash`.
            command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                command, cwd=files.root, env={**environ, **variables}, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip
            output += done.stdout
            environ["PATH"] = ":".join([*(tools / "path").read_text().splitlines(), str(tools), system])
            if done.returncode:
                return done.returncode, output
        extras = "gitops,kafka,arrow" if given["replay"] else "gitops"
        assert (tools / "installed").read_text().endswith(f"-m pip install --quiet {ROOT}[{extras}]\n")
        (tools / "installed").unlink()
        return 0, output

    return run


@pytest.fixture
def pull_request(files, record, tmp_path_factory):
    """Make a clone of a repository with a branch `main`, as a runner checks it out for a pull request."""
    files.write(schemas___order__avsc=record("a", "b"))
    files.commit()
    files.git("checkout", "--quiet", "-B", "main")
    origin = tmp_path_factory.mktemp("origin") / "repository.git"
    files.git("clone", "--quiet", "--bare", ".", str(origin))
    files.git("remote", "add", "origin", origin.as_uri())
    files.git("checkout", "--quiet", "-B", "change")


def test_the_action_annotates_the_lines_of_a_pull_request(files, record, workflow, pull_request):
    """A pull request is compared with its base: a schema that breaks is annotated and fails the job."""
    files.write(schemas___order__avsc=record("a", "c"))
    files.commit()

    code, output = workflow(base_ref="main")

    assert 1 == code
    assert output.startswith("::error file=schemas/order.avsc,line=6,col=6,title=")
    assert "Field 'c' is in the new schema but not in the previous version" in output


def test_the_action_passes(files, record, workflow, pull_request):
    """A schema that may follow the base passes, also if it breaks the level that an input would set."""
    files.write(schemas___order__avsc=record("a"))
    files.commit()

    assert (0, "") == workflow(base_ref="main")
    assert 1 == workflow(base_ref="main", level="FORWARD")[0]


def test_the_action_takes_paths_and_a_source(files, record, workflow, pull_request, service):
    """Inputs name the files to check, and a folder or registry instead of the base; a push uses the commit before."""
    files.write(schemas___order__avsc=record("c"), other___other__avsc=record("x", name="Other"))
    files.commit()
    service.register("order", record("a", "b"))

    assert (0, "") == workflow(paths="other", against=service.url)
    assert 1 == workflow(paths="schemas other", against=service.url)[0]
    assert 1 == workflow()[0]


@pytest.fixture
def topic(record, service, kafka_broker):
    """Return the name of a topic with a record."""
    name, client = f"orders-{uuid4().hex[:12]}", RegistryClient(service.url)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    producer.produce(name, AvroSerializer(client, record("a", "b"))({"a": 1, "b": 2}, topic=name))
    producer.flush(30)
    return name


@pytest.mark.kafka
def test_the_action_reads_the_records_of_a_topic(files, record, workflow, pull_request, service, kafka_broker, topic):
    """A schema that reads the records of its topic passes, and the broker's address is an input."""
    files.write(schemas___order__avsc=record("a"))
    files.commit()
    inputs = {"replay": f"schemas/order.avsc={topic}", "registry": service.url, "broker": kafka_broker.bootstrap}

    assert 0 == workflow(base_ref="main", **inputs)[0]


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("further", "code"), [("", 1), pytest.param(" schemas/order.avsc=no-such-topic", 2, marks=pytest.mark.slow)]
)
def test_records_that_a_schema_does_not_read_fail_the_job(
    files, record, workflow, pull_request, service, kafka_broker, topic, further, code
):
    """The file is annotated, whatever becomes of further topics; the broker's settings may be in a file."""
    files.write(schemas___order__avsc=record("a", "b").replace('"b", "type": "long"', '"b", "type": "int"'))
    files.put("kafka.properties", f"bootstrap.servers={kafka_broker.bootstrap}")
    files.commit()
    inputs = {"registry": service.url, "kafka_config": "kafka.properties"}

    failed = workflow(base_ref="main", against="HEAD", replay=f"schemas/order.avsc={topic}{further}", **inputs)

    assert code == failed[0]
    assert "b: resolution: " in failed[1]
    assert f"::error file=schemas/order.avsc,title=Records in {topic}::" in failed[1]


def checkout(files, folder, *options):
    """Clone the repository as a runner does, and work there."""
    files.git("push", "--quiet", "origin", "HEAD:change")
    files.git(
        "clone", "--quiet", "--branch", "change", *options, files.asked("remote", "get-url", "origin"), str(folder)
    )
    files.root = folder


@pytest.mark.parametrize("depth", [("--depth=1",), ()])
def test_a_push_is_compared_with_what_was_there_before(files, record, workflow, pull_request, tmp_path, depth):
    """A push of two commits is compared with the state before both, in a clone of one commit too; its depth stays."""
    before = files.asked("rev-parse", "HEAD")
    files.write(schemas___order__avsc=record("c"))
    files.commit()
    files.write(other__txt="")
    files.commit()
    checkout(files, tmp_path / "clone", *depth)

    assert 1 == workflow(before=before)[0]
    assert bool(depth) == (files.root / ".git" / "shallow").exists()
    assert (0, "") == workflow(before="0" * 40)  # a new branch: only the last commit is known


def test_the_first_push_of_a_repository_only_parses(files, record, workflow, tmp_path_factory):
    """Without any commit before, there is nothing to compare with, and a mistake is still found."""
    files.write(schemas___order__avsc=record("a"))
    files.commit()
    assert (0, "") == workflow(before="0" * 40)
    files.write(schemas___order__avsc="{")
    assert 1 == workflow(before="0" * 40)[0]


@pytest.fixture
def hooked(files, monkeypatch, tmp_path_factory, program):
    """Return a function that commits all files under the hook, and returns exit code and output."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    del hook["additional_dependencies"]  # strata is installed here
    hook |= {"language": "system", "entry": hook["entry"].replace("strata", str(program), 1)}
    tools = Path(sys.executable).parent
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    files.put(".pre-commit-config.yaml", yaml.safe_dump(config))
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path_factory.mktemp("home")))
    files.git("init", "--quiet")
    files.git("config", "user.name", "t")
    files.git("config", "user.email", "t@example.com")
    subprocess.run([tools / "pre-commit", "install"], cwd=files.root, check=True, capture_output=True, timeout=60)

    def commit():
        files.git("add", "--all")
        done = subprocess.run(
            ["git", "commit", "--message=m"], cwd=files.root, text=True, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout

    return commit


def test_the_hook_sees_deletions_and_renames(files, record, hooked):
    """A commit that only deletes or renames a file is checked, as is one before there are schemas and after the last.

    What others refer to cannot go; what no other schema refers to can.
    """
    assert 0 == hooked()[0]
    files.put("money.avsc", record("cents", name="Money"))
    files.put("order.avsc", record("total").replace('"long"', '"Money"'))
    files.put("strata.yaml", "subjects: [{name: order, file: order.avsc}, {name: money, file: money.avsc}]")
    assert 0 == hooked()[0]

    (files.root / "money.avsc").rename(files.root / "money.txt")
    code, output = hooked()
    assert (1, True) == (code, "money.avsc: No such file" in output), output
    (files.root / "strata.yaml").unlink()
    code, output = hooked()
    assert (1, True) == (code, "order.avsc:5:6: error" in output), output
    (files.root / "order.avsc").unlink()
    assert 0 == hooked()[0]
    assert "money.txt" in files.asked("ls-files")


@pytest.mark.slow
def test_pre_commit_runs_the_hook(files, record, tmp_path):
    """pre-commit installs the hook from the repository, and a commit that breaks a schema fails."""
    files.put("order.avsc", record("a"))
    files.commit()
    files.put("order.avsc", record("b"))
    files.git("add", "--all")
    command = [Path(sys.executable).with_name("pre-commit"), "try-repo", ROOT, "strata-check", "--all-files"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=files.root, env={**environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
    )  # fmt: skip
    assert 1 == done.returncode, done.stdout
    assert "order.avsc:5:6: error: Field 'b' is in the new schema" in done.stdout
