"""Events of defects. No request or file causes them in a process, so a part is replaced by one that fails.

Each test calls the lowest code that logs the event.
"""

import asyncio
import logging
import ssl

import pytest

from harness.pipelines import bare_pipeline
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.access.control import AccessControl
from strata.registry.features.access.identity_keys import ProviderKeys
from strata.registry.features.access.watched_file import WatchedFile
from strata.registry.features.audit.lines import Audit
from strata.registry.features.exporters.choice import Choice
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.job import Job
from strata.registry.features.exporters.runner import Exporters
from strata.registry.features.standby.follower import Follower
from strata.registry.node.board import Seat
from strata.registry.node.health import Health
from strata.storage.log import MemoryLog
from strata.storage.records import ExporterValue
from strata.storage.state import State

DEFECT = ZeroDivisionError("a defect")


def fail(*_arguments, **_names):
    """Fail as code with a defect does."""
    raise DEFECT


async def fail_later(*_arguments, **_names):
    """Fail as code with a defect does."""
    raise DEFECT


class Anyone:
    """An authenticator with a defect."""

    authenticate = staticmethod(fail_later)

    def address(self, _scope):
        """Return no address."""
        return ""


async def answer_a_request(_tmp_path, _monkeypatch):
    """Answer a request by a route that fails."""
    scope = {"type": "http", "method": "GET", "raw_path": b"/x", "query_string": b"", "headers": []}

    async def send(_message):
        pass

    await bare_pipeline(fail_later)(scope, fail_later, send)


async def authenticate(_tmp_path, _monkeypatch):
    """Ask who sends a request."""
    await AccessControl(Anyone()).admit({"headers": []}, State())


async def check_the_health(_tmp_path, monkeypatch):
    """Watch the health of a node for a moment."""
    writer, tried = Writer(MemoryLog()), asyncio.Event()

    async def catch_up():
        tried.set()
        fail()

    monkeypatch.setattr(writer, "catch_up", catch_up)
    watch = asyncio.create_task(Health(writer, Seat(), every_s=0.001).watch())
    await tried.wait()
    tried.clear()
    await tried.wait()  # the watch survived the first failure
    watch.cancel()


async def export(_tmp_path, monkeypatch):
    """Run an exporter with a defect."""
    exporters = Exporters(Writer(MemoryLog()), Credentials(None), ".a", me="n", every_s=1, tally=Tally())
    monkeypatch.setattr(exporters, "_copy", fail_later)
    await exporters._turn(Job("e", ExporterValue(("*",), "NONE"), Choice()))


async def follow(_tmp_path, monkeypatch):
    """Follow another registry for a turn."""
    follower = Follower(Writer(MemoryLog()), Anyone(), None, every_s=1, tally=Tally(), tls=ssl.create_default_context)
    follower._source.name = "http://other:8081"
    monkeypatch.setattr(follower, "copy", fail_later)
    await follower._turn()


async def read_the_auth_file(tmp_path, monkeypatch):
    """Read a changed auth file."""
    path = tmp_path / "auth.yaml"
    path.write_text("users: []")
    watched = WatchedFile(path)
    path.write_text("users: [] # changed")
    monkeypatch.setattr(watched, "_read_again", fail)
    await watched.refresh()
    await watched.refresh()


async def read_the_keys(_tmp_path, _monkeypatch):
    """Read the keys of an identity provider."""
    keys = ProviderKeys("https://id.example.com", "https://id.example.com/jwks", fail)
    with pytest.raises(Exception, match="does not answer"):
        await keys.find("a", "RSA", "RS256")


async def note_a_change(_tmp_path, _monkeypatch):
    """Note a change in the audit."""
    asked = {"method": "PUT", "route": "/config"}
    Audit(Anyone(), refuses=False, reads=False).change(asked, None, 7, [None], State())


@pytest.mark.parametrize(
    ("event", "cause", "fields"),
    [
        ("request_failed", answer_a_request, {"method": "GET", "path": "/x"}),
        ("login_broken", authenticate, {}),
        ("watch_failed", check_the_health, {}),
        ("follow_broken", follow, {}),
        ("exporter_broken", export, {"exporter": "e"}),
        ("auth_file_broken", read_the_auth_file, {}),
        ("provider_keys_broken", read_the_keys, {"issuer": "https://id.example.com"}),
        ("audit_line_missing", note_a_change, {"offset": 7}),
    ],
)
async def test_a_defect_is_logged_with_its_traceback(tmp_path, monkeypatch, caplog, event, cause, fields):
    """The line of the event has severity ERROR, its fields and the traceback, and the caller goes on."""
    await cause(tmp_path, monkeypatch)
    line = next(one for one in caplog.records if isinstance(one.args, dict) and one.args.get("event") == event)

    assert logging.ERROR == line.levelno
    assert line.exc_info
    assert fields.items() <= line.args.items()
