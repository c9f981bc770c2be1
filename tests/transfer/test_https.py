"""The commands talk to services over https and with credentials, which neither arguments nor messages show."""

import base64
import json
import subprocess
from contextlib import closing

import pytest

from harness.certificates import Authority
from harness.registry import RegistryNode
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

_SECRET = "open-sesame"
_ANN = f"ann:{_SECRET}"


@pytest.fixture(scope="module")
def strata(program):
    """Return a function that runs a command; it returns its exit code and all that it printed."""

    def run(*arguments, given="", **variables):
        command = [program, *map(str, arguments)]
        env = {"PATH": "", **variables}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env, input=given, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for the files of the tests."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def authority(folder):
    """Return the CA that node and commands trust."""
    return Authority(folder)


@pytest.fixture(scope="module")
def client(authority):
    """Return the certificate of the commands."""
    return authority.issue("client")


@pytest.fixture(scope="module")
def node(authority, client):
    """Yield a node with one schema that asks for certificates."""
    pair = authority.issue("registry")
    own = (f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}")
    asking = (f"--tls-client-ca={authority.file}", "--tls-client-auth=required")
    with RegistryNode("memory:", *own, *asking, tls=authority.context(client)) as started:
        with closing(started.connect()) as connection:
            body = json.dumps({"schema": '"int"'})
            connection.request("POST", "/subjects/s/versions", body, {"Content-Type": "application/json"})
            assert 200 == connection.getresponse().status
        yield started


@pytest.mark.parametrize("way", ["flags", "variables"])
def test_export_over_https(strata, node, authority, client, tmp_path, way):
    """A command trusts the CA that it is given, and shows its certificate."""
    files = {"ca_file": authority.file, "cert_file": client.cert, "key_file": client.key}
    if way == "flags":
        flags = [f"--{name.replace('_', '-')}={file}" for name, file in files.items()]
        code, output = strata("export", node.url, tmp_path / "export.jsonl", *flags)
    else:
        variables = {f"STRATA_{name.upper()}": file for name, file in files.items()}
        code, output = strata("export", node.url, tmp_path / "export.jsonl", **variables)

    assert 0 == code, output
    assert "is not a setting" not in output
    assert "1 version of 1 subject" in output


def test_verify_compares_two_services_over_https(strata, node, authority, client):
    """The same files serve for both sides of a command."""
    flags = (f"--ca-file={authority.file}", f"--cert-file={client.cert}", f"--key-file={client.key}")

    code, output = strata("verify", node.url, node.url, *flags)

    assert 0 == code, output


def test_files_of_https_that_do_not_fit(strata, node, authority, client, folder):
    """A command that does not trust the service, or cannot use its files, says so in one line and does not wait."""
    (folder / "text.pem").write_text("no certificate")
    locked = authority.issue("locked", password=b"open")
    cases = [
        ((), "is not accepted: self-signed certificate in certificate chain"),
        ((f"--ca-file={folder}/text.pem",), "--ca-file"),
        ((f"--ca-file={authority.file}", f"--cert-file={folder}/text.pem"), "--cert-file"),
        ((f"--ca-file={authority.file}", f"--cert-file={locked.cert}", f"--key-file={locked.key}"), "encrypted"),
        ((f"--key-file={client.key}",), "--key-file needs --cert-file"),
    ]
    for flags, word in cases:
        code, output = strata("export", node.url, "-", *flags)
        assert (2, 1) == (code, len(output.splitlines())), output
        assert word in output


class Guard:
    """An app that answers 401 or 403 unless a request has some credentials, and keeps those that it saw."""

    def __init__(self, app, expected, status):
        self._app, self._expected, self._status = app, expected, status
        self.seen = set()

    async def __call__(self, scope, receive, send):
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        self.seen.add(given)
        if given == self._expected:
            await self._app(scope, receive, send)
            return
        body = b'{"error_code":40301,"message":"User is denied operation Read on Subject: s"}'
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def guard():
    """Return an app that wants Ann's password."""
    basic = f"Basic {base64.b64encode(_ANN.encode()).decode()}"
    return Guard(create_app(MemoryLog(), Settings(log="memory:")), basic, 401)


# arguments, standard input, variables
GIVEN = {
    "file": (["--auth", "@{file}"], "", {}),
    "standard input": (["--auth", "@-"], f"{_ANN}\n", {}),
    "variable": ([], "", {"STRATA_AUTH": _ANN}),
    "file in a variable": ([], "", {"STRATA_AUTH": "@{file}"}),
}


@pytest.mark.parametrize(("flags", "given", "variables"), GIVEN.values(), ids=GIVEN)
def test_credentials_without_the_secret_in_the_arguments(strata, guard, tmp_path, flags, given, variables):
    """Credentials come from a file, from standard input or from a variable; the arguments name only the place."""
    (tmp_path / "auth").write_text(f"{_ANN}\n")
    flags = [flag.format(file=tmp_path / "auth") for flag in flags]
    variables = {name: value.format(file=tmp_path / "auth") for name, value in variables.items()}
    with serving(lambda _: guard) as port:
        code, output = strata("export", f"http://127.0.0.1:{port}", "-", *flags, given=given, **variables)

    assert 0 == code, output
    assert 1 == len(guard.seen)
    assert _SECRET not in output + " ".join(flags)


@pytest.mark.parametrize(("status", "words"), [(401, "rejected the credentials"), (403, "denied operation Read on")])
def test_refusal_is_told_without_the_secret(strata, guard, status, words):
    """Rejected credentials, and a missing right with what it is about, end a command at once."""
    guard._status, guard._expected = status, "other"
    with serving(lambda _: guard) as port:
        code, output = strata("export", f"http://ann:{_SECRET}@127.0.0.1:{port}", "-")

    assert (2, 1) == (code, len(output.splitlines())), output
    assert words in output
    assert f"status {status}" in output
    assert _SECRET not in output


def test_missing_file_of_credentials(strata):
    """A file that cannot be read is named."""
    code, output = strata("export", "http://127.0.0.1:1", "-", "--auth", "@/nowhere/auth")

    assert 2 == code
    assert "/nowhere/auth" in output
