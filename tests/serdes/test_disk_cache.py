"""With `cache_dir`, a program starts again while the registry is down."""

import contextlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from strata.serdes import AvroDeserializer, AvroSerializer, ClientSettings, RegistryClient, RegistryError, Schema
from strata.serdes.client import Reference
from strata.serdes.disk_cache import CachingTransport, DiskCache
from strata.serdes.errors import RegistryUnavailable

SCHEMA = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'
SUIT = '{"type": "enum", "name": "Suit", "symbols": ["CLUBS"]}'
CARD = '{"type": "record", "name": "Card", "fields": [{"name": "suit", "type": "Suit"}]}'


class Switched:
    """A transport that can be switched off."""

    def __init__(self, client):
        self.plain, self.on, self.requests = client._transport, True, 0

    def close(self):
        """Do nothing."""

    def request(self, *args, **kwargs):
        """Pass a request on, or refuse it."""
        self.requests += 1
        if not self.on:
            raise RegistryUnavailable("switched off")
        return self.plain.request(*args, **kwargs)


@pytest.fixture
def switched():
    """Yield a transport to a registry in memory."""
    with RegistryClient("mock://") as client:
        yield Switched(client)


def _client(switched, folder, clock=lambda: 0.0, **options):
    settings = ClientSettings(urls=("http://registry.test",), cache_dir=str(folder), **options)
    transport = CachingTransport(switched, settings, clock=clock)
    return RegistryClient.from_settings(settings, transport=transport)


def _program(client):
    """Write and read records with a reference, the latest version and a context."""
    conf = {"use.latest.version": True, "auto.register.schemas": False}
    client.register("suit", SUIT)
    card = Schema(CARD, references=(Reference("Suit", "suit", 1),))
    frame = AvroSerializer(client, card)({"suit": "CLUBS"}, topic="cards")
    frame += AvroSerializer(client, conf=conf)({"suit": "CLUBS"}, topic="cards")
    return frame, AvroDeserializer(client)(frame[:6], topic="cards"), AvroDeserializer(client)(frame[:6])


def test_restart_while_down(switched, tmp_path):
    """What a program asked before, it gets from disk while the registry is down; anything else is unavailable."""
    expected = _program(_client(switched, tmp_path))
    switched.on = False

    restarted = _client(switched, tmp_path)
    assert expected == _program(restarted)
    with pytest.raises(RegistryUnavailable):
        restarted.get_schema(99)
    with pytest.raises(RegistryUnavailable):
        _client(switched, tmp_path / "other").get_schema(1)


def test_registry_comes_first(switched, tmp_path):
    """While the registry answers, it decides: an answer from disk never hides a newer one."""
    client = _client(switched, tmp_path)
    client.register("s", SCHEMA)
    assert 1 == client.get_version("s").version
    client.register("s", SCHEMA.replace("}]", '}, {"name": "m", "type": "int", "default": 0}]'))

    assert 2 == _client(switched, tmp_path).get_version("s").version
    client.delete_subject("s")
    with pytest.raises(RegistryError, match="not found"):
        _client(switched, tmp_path).get_version("s")


def test_pause_after_no_answer(switched, tmp_path):
    """After no answer the disk is used at once for `max_backoff` seconds, and then the registry is asked again."""
    now = [0.0]
    client = _client(switched, tmp_path, lambda: now[0], max_backoff=5)
    client.register("s", SCHEMA)
    client.get_version("s")
    switched.on, before = False, switched.requests

    for _ in range(3):
        assert 1 == client.get_version("s").version
    assert before + 1 == switched.requests
    now[0] = 6.0
    client.get_version("s")
    assert before + 2 == switched.requests


def test_writes_and_settings_are_not_kept(switched, tmp_path):
    """Deletions, config, mode and lists of subjects are never answered from disk."""
    client = _client(switched, tmp_path)
    client.register("s", SCHEMA)
    client.get_config()
    client.get_subjects()
    switched.on = False

    for ask in (client.get_config, client.get_mode, client.get_subjects, lambda: client.delete_subject("s")):
        with pytest.raises(RegistryUnavailable):
            ask()


DAMAGES = [
    ("empty", lambda content: b""),
    ("cut", lambda content: content[:-20]),
    ("one byte", lambda content: content.replace(b"int", b"inn", 1)),
    ("not JSON", lambda content: b"\xff" + content),
    ("another request", lambda content: content.replace(b"GET", b"GOT", 1)),
    ("a list", lambda content: b"[]"),
    ("deep", lambda content: b"[" * 100_000),
]


@pytest.mark.parametrize("damage", [row[1] for row in DAMAGES], ids=[row[0] for row in DAMAGES])
def test_damaged_files(switched, tmp_path, damage):
    """A damaged file counts as missing, and is replaced by the next answer."""
    _client(switched, tmp_path).register("s", SCHEMA)
    _client(switched, tmp_path).get_schema(1)
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(damage(path.read_bytes()))
    switched.on = False
    with pytest.raises(RegistryUnavailable):
        _client(switched, tmp_path).get_schema(1)

    switched.on = True
    assert SCHEMA.replace(" ", "") == _client(switched, tmp_path).get_schema(1).text
    switched.on = False
    assert SCHEMA.replace(" ", "") == _client(switched, tmp_path).get_schema(1).text


def test_files(switched, tmp_path):
    """Files are the owner's only, have no credentials, and each registry has a folder."""
    client = _client(switched, tmp_path, username="ann", password="s3cret")
    client.register("s", SCHEMA)
    client.get_schema(1)
    (folder,) = tmp_path.iterdir()
    files = list(folder.iterdir())

    assert 2 == len(files)
    assert {0o600} == {stat.S_IMODE(one.stat().st_mode) for one in files}
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert not any(b"s3cret" in one.read_bytes() or b"ann" in one.read_bytes() for one in files)
    other = ClientSettings(urls=("http://other.test",), cache_dir=str(tmp_path))
    with pytest.raises(KeyError):
        DiskCache(other).get(json.dumps(["GET", "/schemas/ids/1", {}, None], sort_keys=True))


def test_bound(tmp_path, monkeypatch):
    """Beyond four files for each schema of `cache_size` the oldest go, and so do files that a killed process left."""
    monkeypatch.setattr("strata.serdes.disk_cache._WRITES_BETWEEN_BOUNDS", 1)
    cache = DiskCache(ClientSettings(urls=("http://registry.test",), cache_dir=str(tmp_path), cache_size=2))
    (folder,) = tmp_path.iterdir()
    (folder / "killed.tmp").write_text("half")
    os.utime(folder / "killed.tmp", (0, 0))
    for number in range(20):
        cache.put(f"request {number}", {"answer": number})
        os.utime(cache._path(f"request {number}"), (number, number))
    cache.put("last", {"answer": "last"})

    assert 8 == len(list(folder.iterdir()))
    assert {"answer": "last"} == cache.get("last")
    with pytest.raises(KeyError):
        cache.get("request 0")


def test_threads(tmp_path):
    """Threads may share a cache: each answer is whole, and its own."""
    cache = DiskCache(ClientSettings(urls=("http://registry.test",), cache_dir=str(tmp_path), cache_size=5))

    def work(number):
        for turn in range(30):
            cache.put(f"request {turn % 7}", {"answer": [turn % 7] * 100})
            with contextlib.suppress(KeyError):
                assert [turn % 7] * 100 == cache.get(f"request {turn % 7}")["answer"]
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(range(8)) == list(pool.map(work, range(8)))


def test_disk_that_cannot_be_written(switched, tmp_path):
    """A disk that cannot be written changes nothing while the registry answers."""
    client = _client(switched, tmp_path)
    (folder,) = tmp_path.iterdir()
    folder.rmdir()
    folder.write_text("in the way")

    assert 1 == client.register("s", SCHEMA).schema_id


def test_option(registry_url, tmp_path):
    """`cache_dir` is an option of the client."""
    with RegistryClient(registry_url, cache_dir=str(tmp_path)) as client:
        schema_id = client.register("disk-cache-option", SCHEMA).schema_id
        client.get_schema(schema_id)
    with RegistryClient(registry_url, cache_dir=str(tmp_path)) as client:
        client._transport._transport._http._settings  # noqa: B018 - the real transport is below
    settings = ClientSettings(urls=(registry_url,), cache_dir=str(tmp_path), retries=0)
    with RegistryClient.from_settings(settings) as client:
        client._transport._transport = Switched(client)
        client._transport._transport.on = False
        assert SCHEMA.replace(" ", "") == client.get_schema(schema_id).text
