"""The image: what `Dockerfile` copies gets into the build, and installs, starts and is healthy.

No Docker runs here. The build's steps are carried out by its rules in a folder, with the Python of the tests.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from fnmatch import translate
from pathlib import Path, PurePosixPath

import pytest
import yaml

from harness.environments import build_wheel
from strata.registry.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())


def instructions():
    """Return the instructions of the Dockerfile: a word and the rest of its logical line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


def copied():
    """Return what the first stage copies out of the context: sources and target."""
    rows = [rest.split() for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    return [(row[:-1], row[-1]) for row in rows]


def let_through(path, patterns):
    """Return whether a path gets into the context: the last pattern that fits it or a folder around it decides."""
    places = [str(place) for place in (path, *path.parents)]
    is_ignored = False
    for pattern in patterns:
        plain = re.compile(translate(pattern.lstrip("!").removeprefix("**/")).replace(".*", "[^/]*"))
        names = [PurePosixPath(place).name for place in places] if "**/" in pattern else places
        if any(plain.match(name) for name in names):
            is_ignored = not pattern.startswith("!")
    return not is_ignored


def context_files():
    """Return the files of the checkout that Git has and that `.dockerignore` lets into the context."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().split() if not line.startswith("#")]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [Path(name) for name in listed if name and let_through(PurePosixPath(name), patterns)]


def test_everything_that_is_copied_gets_into_the_context():
    """Each source of a COPY is there, each folder with all its files, and nothing gets in that is not copied."""
    sources = {name for names, _ in copied() for name in names}
    files = context_files()

    assert sources == {file.parts[0] for file in files}
    kept = subprocess.run(["git", "ls-files", *sources], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in kept.stdout.split("\n") if name} == {str(file) for file in files}


def test_each_package_is_copied():
    """Each folder that the wheel is made of is copied, so that no link in `strata` leads nowhere."""
    linked = {path.name for path in (ROOT / "strata").iterdir() if path.is_symlink()}

    assert linked <= {target for _, target in copied()}


def test_the_image_runs_as_a_number_with_pinned_versions():
    """Kubernetes can see that the user is not root, and pip installs the versions of constraints.txt."""
    user = [rest for word, rest in instructions() if word == "USER"]
    (installs,) = (rest for word, rest in instructions() if word == "RUN" and "pip install" in rest)

    assert ["8081:8081"] == user
    assert "--constraint constraints.txt" in installs
    assert "constraints.txt" in {name for names, _ in copied() for name in names}


def test_what_the_image_sets_are_settings():
    """The variables of the image are settings of the service, and name its port and its folder."""
    words = dict(instructions())
    variables = dict(pair.split("=", 1) for pair in shlex.split(words["ENV"]))
    ours = {name for name in variables if name.startswith("STRATA_")}

    assert ours <= {f"STRATA_{name.upper()}" for name in Settings.model_fields}
    assert f"0.0.0.0:{words['EXPOSE']}" == variables["STRATA_LISTEN"]
    assert words["VOLUME"] == words["WORKDIR"] == str(Path(variables["STRATA_LOG"].removeprefix("sqlite:///")).parent)


def checks():
    """Return the health checks of the image and of the compose file, as commands."""
    check = next(rest for word, rest in instructions() if word == "HEALTHCHECK")
    nodes = [node for name, node in COMPOSE["services"].items() if name.startswith("strata")]
    image = yaml.safe_load(check.partition("CMD ")[2])
    return [image, *(node["healthcheck"]["test"][1:] for node in nodes)]


def copy_context(folder):
    """Copy the files of the context into a folder."""
    for file in context_files():
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, target, follow_symlinks=False)


def contents(wheel):
    """Return the checksums of a wheel's files by name, without those of the jar and of the list of files."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            file.filename: file.CRC for file in archive.infolist() if not file.filename.endswith((".jar", "RECORD"))
        }


@pytest.mark.slow
def test_the_context_makes_the_package(tmp_path, strata_wheel):
    """The wheel made from the context is the one made from the checkout, the jar apart, which Git does not have."""
    copy_context(tmp_path / "context")

    assert contents(strata_wheel) == contents(build_wheel(tmp_path, tmp_path / "context"))


def test_the_package_starts_and_is_healthy(full_python, node):
    """The installed package serves, and the health checks of image and compose pass on that node."""
    listen = {"PATH": f"{full_python.parent}:{os.environ['PATH']}", "STRATA_LISTEN": f"0.0.0.0:{node.port}"}
    for check in sorted(set(map(tuple, checks()))):
        done = subprocess.run(check, env=listen, capture_output=True, text=True, timeout=60, check=False)
        assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.slow
def test_the_steps_of_the_dockerfile_install_the_pinned_versions(tmp_path):
    """The RUN of the first stage makes an environment from the context, in which the command works.

    The Python is that of the tests, where the image has the one of its base image.
    """
    copy_context(tmp_path / "src")
    run = next(rest for word, rest in instructions() if word == "RUN").replace("/opt/strata", str(tmp_path / "opt"))
    run = run.replace("python -m venv", f"{sys.executable} -m venv")
    subprocess.run(["sh", "-ec", run], cwd=tmp_path / "src", timeout=280, check=True)
    pip = [tmp_path / "opt/bin/pip", "freeze", "--exclude", "strata-registry"]
    listed = subprocess.run(pip, capture_output=True, text=True, timeout=60, check=True).stdout.split("\n")
    helped = subprocess.run([tmp_path / "opt/bin/strata", "serve", "--help"], timeout=60, check=False)

    assert 0 == helped.returncode
    pinned = {line.lower() for line in (ROOT / "constraints.txt").read_text().split("\n")}
    assert [] == [line for line in listed if line.lower() not in pinned]
