"""Trees of files, and the commands run in the test's own process."""

import hashlib
import json
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from harness.serving import memory_settings, serving
from strata.gitops.cli import main
from strata.registry.app import create_app
from strata.serdes.client import RegistryClient
from strata.storage.log import MemoryLog


def record(*fields, name="Order", **more):
    """Return the text of a record of longs, one field a line."""
    inner = ",\n".join(f'    {{"name": "{field}", "type": "long"}}' for field in fields)
    extra = "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in more.items())
    return f'{{\n  "type": "record",\n  "name": "{name}",\n{extra}  "fields": [\n{inner}\n  ]\n}}\n'


@dataclass
class Files:
    """A folder in which commands run."""

    root: Path

    def write(self, **texts):
        """Write files; `__` in a name stands for a dot, `___` for a slash."""
        for name, text in texts.items():
            self.put(name.replace("___", "/").replace("__", "."), text)

    def put(self, name, text):
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self):
        """Commit all files."""
        if not (self.root / ".git").exists():
            self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message=m")

    def git(self, *arguments):
        """Run a Git command."""
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, timeout=60)

    def asked(self, *arguments):
        """Return the output of a Git command, without the end of the line."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()

    def run(self, *arguments, code=None, **environ):
        """Run a command, check its exit code, and return its output."""
        done = CliRunner().invoke(main, arguments, env=environ)
        if code is not None:
            assert code == done.exit_code, done.output
        return done.output


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return an empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("STRATA_URL", "STRATA_AUTH", "STRATA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return Files(tmp_path)


@pytest.fixture(name="record")
def record_fixture():
    """Return the function that writes records."""
    return record


class WithoutBatches:
    """A registry that knows Confluent's routes only: the service, with its own routes hidden."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        """Answer a request."""
        if scope.get("path") in ("/v1/apply", "/v1/scopes"):
            scope = {**scope, "path": "/none", "raw_path": b"/none"}
        await self._app(scope, receive, send)


@dataclass
class Registry:
    """A registry over HTTP."""

    url: str
    log: MemoryLog
    takes_batches: bool = True

    def get(self, path):
        """Return the JSON at a path."""
        return self.ask("GET", path)

    def ask(self, method, path, body=None):
        """Send a request and return its JSON."""
        with RegistryClient(self.url, retries=0) as client:
            return client.ask(lambda answer: answer, method, path, body=body)

    def register(self, subject, text, **more):
        """Register a schema and return its version."""
        return self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, **more})["version"]


@contextmanager
def served(log=None, wrap=lambda app: app):
    """Serve a registry on a memory log."""
    log = log or MemoryLog()
    app = create_app(log, memory_settings())
    with serving(lambda _: wrap(app)) as port:
        yield Registry(f"http://127.0.0.1:{port}", log, wrap is not WithoutBatches)


@pytest.fixture
def service():
    """Yield a Strata service."""
    with served() as registry:
        yield registry


@pytest.fixture(params=["at once", "step by step"])
def registry(request):
    """Yield a Strata service, and one without batches."""
    with served(wrap=WithoutBatches if request.param == "step by step" else lambda app: app) as found:
        yield found


@pytest.fixture(scope="session")
def serve():
    """Return the function that serves a registry."""
    return served


@pytest.fixture(scope="session")
def serve_steps():
    """Return the function that serves a registry without batches."""
    return lambda: served(wrap=WithoutBatches)


@pytest.fixture(scope="module")
def shared():
    """Yield one service for a file of tests."""
    with served() as registry:
        yield registry


@pytest.fixture(scope="module")
def shared_steps():
    """Yield one registry without batches for a file of tests."""
    with served(wrap=WithoutBatches) as registry:
        yield registry


@pytest.fixture(scope="session", name="exported")
def exported_fixture():
    """Return the function that returns an export file of a registry's log."""
    return exported


def exported(service):
    """Return an export file of a registry's log."""
    rows = [json.dumps({"format": "strata-export"}, separators=(",", ":"))]
    for entry in service.log.read(-1):
        value = None if entry.value is None else entry.value.decode()
        rows.append(json.dumps({"key": entry.key.decode(), "value": value}))
    text = "".join(f"{row}\n" for row in rows)
    return text + json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()}) + "\n"
