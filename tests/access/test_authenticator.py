"""Who sends a request, by name and password or by nothing; what is remembered, shared, slowed down and rejected."""

import asyncio
import base64
import hashlib
import threading

import pytest

from strata.registry.core.errors import RegistryError, TooManyRequests, Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.features.access.auth_file import AuthFile
from strata.registry.features.access.authenticator import Authenticator, Remembered
from strata.registry.features.access.options import IdentityOptions
from strata.registry.features.access.passwords import PasswordHash
from strata.registry.features.access.proxy import TrustedProxies, parse_networks
from strata.registry.node.buckets import Buckets

SALT = b"saltsalt"
BASIC = ("WWW-Authenticate", 'Basic realm="Strata", charset="UTF-8"')
ALICE = Principal("alice", frozenset({"orders-team"}), "basic")


def hashed(password):
    """Return a cheap hash of a password."""
    return PasswordHash("scrypt", SALT, hashlib.scrypt(password.encode(), salt=SALT, n=2, r=8, p=1, dklen=32), log2_n=1)


def auth_file(**passwords):
    """Return an auth file with these users, all in one group."""
    users = (
        f"- {{name: {name}, password: '{hashed(one)}', groups: [orders-team]}}\n" for name, one in passwords.items()
    )
    return "users:\n" + "".join(users)


def basic(name, password):
    """Return the header of a name and password."""
    return b"Basic " + base64.b64encode(f"{name}:{password}".encode())


def undrained():
    """Return buckets that no time drains: a machine that pauses would let failed logins be forgotten."""
    return Buckets(lambda: 1_000_000)


def scope(*authorization, client="192.0.2.1", headers=()):
    """Return the scope of a request."""
    given = [(b"authorization", one) for one in authorization]
    return {"type": "http", "client": (client, 1234), "headers": [(b"host", b"x"), *given, *headers]}


class Sleeps:
    """Delays that are recorded instead of waited for."""

    def __init__(self):
        self.seconds = []

    async def sleep(self, seconds):
        """Record a delay."""
        self.seconds.append(round(seconds, 3))


@pytest.fixture
def path(tmp_path):
    """Return an auth file with the user alice."""
    file = tmp_path / "auth.yaml"
    file.write_text(auth_file(alice="secret"))
    return file


@pytest.fixture
def sleeps():
    """Return the delays of the authenticator."""
    return Sleeps()


@pytest.fixture
def authenticator(path, sleeps):
    """Yield an authenticator with that file."""
    made = Authenticator(IdentityOptions(auth_file=path), sleep=sleeps.sleep, buckets=undrained())
    yield made
    made.close()


@pytest.fixture
def counted(monkeypatch):
    """Return a list that gets an entry for each comparison of a password."""
    found, matches = [], PasswordHash.matches

    def count(self, password):
        found.append(password)
        return matches(self, password)

    monkeypatch.setattr(PasswordHash, "matches", count)
    return found


async def test_a_user_with_the_right_password(authenticator):
    """The principal has the name and groups of the auth file; the scheme's case does not matter."""
    assert ALICE == await authenticator.authenticate(scope(basic("alice", "secret")))
    assert ALICE == await authenticator.authenticate(scope(b"bAsIc  " + basic("alice", "secret")[6:]))


async def test_nobody(authenticator):
    """A request without credentials is anonymous; rights decide what that may do."""
    assert ANONYMOUS == await authenticator.authenticate(scope())


REFUSED = [
    ("a wrong password", [basic("alice", "Secret")]),
    ("an empty password", [basic("alice", "")]),
    ("an unknown user", [basic("bob", "secret")]),
    ("a name in capitals", [basic("ALICE", "secret")]),
    ("no colon", [b"Basic " + base64.b64encode(b"alice")]),
    ("no base64", [b"Basic alice:secret"]),
    ("not UTF-8", [b"Basic " + base64.b64encode(b"alice:\xff")]),
    ("bytes beyond ASCII", [b"Basic \xff\xfe"]),
    ("nothing", [b"Basic"]),
    ("empty", [b""]),
    ("every user", [basic("*", "secret")]),
    ("a long password", [basic("alice", "secret" * 1000)]),
    ("a scheme that is not on", [b"Bearer " + base64.b64encode(b"alice:secret")]),
    ("an unknown scheme", [b"Negotiate abc"]),
    ("twice", [basic("alice", "secret"), basic("bob", "secret")]),
    ("a wrong one first", [basic("bob", "secret"), basic("alice", "secret")]),
]


@pytest.mark.parametrize("given", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_invalid_credentials(authenticator, given):
    """The answer is 401, which names the schemes, and never a fall back to `Anonymous`."""
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(scope(*given))

    assert (401, 401, "Unauthorized") == (caught.value.status, caught.value.code, caught.value.message)
    assert [BASIC] == caught.value.headers
    assert "secret" not in caught.value.reason.lower()


async def test_a_second_header_counts_once_the_first_is_remembered_too(authenticator):
    """Several headers are rejected whether or not the first one is remembered."""
    await authenticator.authenticate(scope(basic("alice", "secret")))

    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope(basic("alice", "secret"), basic("bob", "secret")))


async def test_a_password_is_compared_once(authenticator, counted):
    """Valid credentials are remembered; invalid ones are compared again."""
    for _ in range(3):
        await authenticator.authenticate(scope(basic("alice", "secret")))
    assert ["secret"] == counted

    for _ in range(2):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(scope(basic("alice", "wrong")))
    assert ["secret", "wrong", "wrong"] == counted


async def test_an_unknown_user_costs_what_a_wrong_password_costs(authenticator, counted):
    """A name that does not exist is compared with some hash as well."""
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope(basic("bob", "secret")))

    assert ["secret"] == counted


async def test_the_same_credentials_at_once(authenticator, counted):
    """Many requests with the same credentials wait for one comparison."""
    found = await asyncio.gather(*(authenticator.authenticate(scope(basic("alice", "secret"))) for _ in range(50)))

    assert [ALICE] * 50 == found
    assert ["secret"] == counted


async def test_a_client_that_disconnects_takes_no_one_with_it(authenticator):
    """Cancelling one request leaves the others with the same credentials alone."""
    first, second = (asyncio.create_task(authenticator.authenticate(scope(basic("alice", "secret")))) for _ in "ab")
    await asyncio.sleep(0)
    first.cancel()

    assert ALICE == await second


async def test_a_new_file_ends_what_is_remembered(authenticator, path):
    """A user who is removed, or whose password changes, gets 401 at once."""
    await authenticator.authenticate(scope(basic("alice", "secret")))
    path.write_text(auth_file(alice="another", bob="secret"))
    await authenticator.file.refresh()
    await authenticator.file.refresh()

    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope(basic("alice", "secret")))
    assert "bob" == (await authenticator.authenticate(scope(basic("bob", "secret")))).user


async def test_a_file_that_changes_during_a_check(authenticator, path):
    """A password that was checked against the file of before is not remembered, and checked again for others."""
    early = asyncio.create_task(authenticator.authenticate(scope(basic("alice", "secret"))))
    await asyncio.sleep(0)  # the check exists, and has not begun
    authenticator.file.content = AuthFile()
    authenticator._remembered.clear()
    late = asyncio.create_task(authenticator.authenticate(scope(basic("alice", "secret"))))

    assert ALICE == await early
    with pytest.raises(Unauthorized):
        await late
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope(basic("alice", "secret")))


async def test_a_broken_file_ends_nothing(authenticator, path):
    """With a broken file the users of before still get in, remembered or not."""
    path.write_text("users: [")
    await authenticator.file.refresh()
    await authenticator.file.refresh()

    assert ALICE == await authenticator.authenticate(scope(basic("alice", "secret")))


async def test_failures_are_slowed_down_and_then_rejected(authenticator, sleeps):
    """From the fourth failure on the answer is delayed; after ten it is 429, with the time to wait."""
    for _ in range(10):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(scope(basic("alice", "wrong")))
    with pytest.raises(TooManyRequests) as caught:
        await authenticator.authenticate(scope(basic("alice", "secret")))

    assert ([0.1, 0.2, 0.4, 0.8, 1.6], 429, [("Retry-After", "6")]) == (
        sleeps.seconds[:5],
        caught.value.status,
        caught.value.headers,
    )
    assert ALICE == await authenticator.authenticate(scope(basic("alice", "secret"), client="192.0.2.2"))


async def test_who_is_remembered_is_not_kept_out(authenticator):
    """Failures of others behind the same address do not reject remembered credentials."""
    await authenticator.authenticate(scope(basic("alice", "secret")))
    for _ in range(12):
        with pytest.raises(RegistryError):
            await authenticator.authenticate(scope(basic("alice", "wrong")))

    assert ALICE == await authenticator.authenticate(scope(basic("alice", "secret")))


async def test_guesses_at_the_same_time(authenticator, counted):
    """Of a hundred guesses at once only ten are compared."""
    guesses = (authenticator.authenticate(scope(basic("alice", f"guess{number}"))) for number in range(100))
    answers = await asyncio.gather(*guesses, return_exceptions=True)

    assert 10 == len(counted)
    assert {401: 10, 429: 90} == {code: [one.code for one in answers].count(code) for code in (401, 429)}


async def test_the_address_behind_a_proxy(path, sleeps):
    """Behind a trusted proxy, failures count for the client that it names."""
    options = IdentityOptions(auth_file=path, proxies=TrustedProxies(parse_networks("10.0.0.0/8")))
    authenticator = Authenticator(options, sleep=sleeps.sleep, buckets=undrained())

    def forwarded(client):
        return scope(basic("alice", "wrong"), client="10.1.1.1", headers=[(b"x-forwarded-for", client)])

    for _ in range(10):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(forwarded(b"198.51.100.1"))
    with pytest.raises(TooManyRequests):
        await authenticator.authenticate(forwarded(b"198.51.100.1"))
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(forwarded(b"198.51.100.2"))
    authenticator.close()


async def test_without_a_mechanism():
    """Without a mechanism everyone is anonymous, but credentials are not ignored."""
    authenticator = Authenticator(IdentityOptions())

    assert not authenticator.is_on
    assert ANONYMOUS == await authenticator.authenticate(scope())
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(scope(basic("alice", "secret")))
    assert [] == caught.value.headers
    authenticator.close()


def test_what_is_remembered_ends():
    """Credentials are remembered for five minutes, or until their own end, and only so many of them."""
    now = [0.0]
    kept = Remembered(lambda: now[0], most=3)
    kept.put(b"a", ALICE, 0)
    kept.put(b"b", ALICE, 0, seconds=10)
    assert [ALICE, ALICE, None] == [kept.get(name) for name in (b"a", b"b", b"c")]

    now[0] = 10.0
    assert [ALICE, None] == [kept.get(b"a"), kept.get(b"b")]
    now[0] = 300.0
    assert kept.get(b"a") is None

    for name in (b"c", b"d", b"e", b"f"):
        kept.put(name, ALICE, 0)
    assert [None, ALICE, ALICE, ALICE] == [kept.get(name) for name in (b"c", b"d", b"e", b"f")]


def test_a_change_forgets_all():
    """What was checked before a change is dropped, also if the check ends after it."""
    kept = Remembered()
    kept.put(b"a", ALICE, kept.generation)
    begun = kept.generation
    kept.clear()
    kept.put(b"b", ALICE, begun)

    assert [None, None] == [kept.get(b"a"), kept.get(b"b")]


def test_use_extends_what_is_remembered():
    """Credentials that are used are kept, but not beyond their own end; unused ones are forgotten first."""
    now = [0.0]
    kept = Remembered(lambda: now[0], most=2)
    kept.put(b"used", ALICE, 0)
    kept.put(b"ends", ALICE, 0, seconds=500)
    for now[0] in (200.0, 400.0, 490.0):
        assert (ALICE, ALICE) == (kept.get(b"used"), kept.get(b"ends"))
    now[0] = 500.0
    assert (ALICE, None) == (kept.get(b"used"), kept.get(b"ends"))

    kept.put(b"new", ALICE, 0)
    assert (ALICE, ALICE) == (kept.get(b"used"), kept.get(b"new"))
    now[0] = 990.0
    assert kept.get(b"used") is None


class Clock:
    """A clock that only the test moves, in seconds; the first second is 1000."""

    def __init__(self):
        self.now = 1000.0

    def read_us(self):
        """Return the time in microseconds."""
        return round(self.now * 1_000_000)


async def test_running_clients_stay_in_while_many_addresses_guess(tmp_path, sleeps, monkeypatch):
    """Sixty addresses fill the queue with wrong passwords; users stay in, and log in again where they did before."""
    path = tmp_path / "auth.yaml"
    path.write_text(auth_file(alice="secret", bob="secret"))
    clock, gate = Clock(), threading.Event()
    options = IdentityOptions(auth_file=path)
    authenticator = Authenticator(options, sleep=sleeps.sleep, buckets=Buckets(clock.read_us), now=lambda: clock.now)
    matches = PasswordHash.matches

    def slow(self, password):
        if password.startswith("guess"):
            gate.wait(60)
        return matches(self, password)

    monkeypatch.setattr(PasswordHash, "matches", slow)

    def log_in(name, password, client):
        return asyncio.create_task(authenticator.authenticate(scope(basic(name, password), client=client)))

    for name in ("alice", "bob"):
        assert name == (await log_in(name, "secret", "127.0.1.1")).user
    guesses = []
    for minute in range(8):
        clock.now += 60
        guesses += [
            log_in("alice" if place % 2 else f"user{place}", f"guess{minute}.{place}.{turn}", f"127.0.0.{place}")
            for place in range(1, 61)
            for turn in range(3)
        ]
        await asyncio.sleep(0)
        assert "alice" == (await log_in("alice", "secret", "127.0.1.1")).user
    checked = [task for task in guesses if not task.done()]
    clock.now += 400  # bob was away for so long that he is not remembered
    assert "bob" == (await log_in("bob", "secret", "127.0.1.1")).user
    authenticator._remembered.clear()
    assert "alice" == (await log_in("alice", "secret", "127.0.1.1")).user
    gate.set()
    refused = await asyncio.gather(*guesses, return_exceptions=True)
    authenticator.close()

    assert 128 == len(checked)
    assert {401, 429} == {error.code for error in refused}
