"""Failed logins are slowed down and then rejected, without keeping out others."""

import pytest

from strata.registry.features.access.throttle import Throttle
from strata.registry.node.buckets import Buckets

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 1000.0

    def read_us(self):
        """Return the time in microseconds."""
        return round(self.now * 1_000_000)


@pytest.fixture
def clock():
    """Return a clock."""
    return Clock()


@pytest.fixture
def throttle(clock):
    """Return a throttle without failures."""
    return Throttle(Buckets(clock.read_us))


def fail(throttle, times, user="alice", address=HERE):
    """Let passwords fail, and return the waits."""
    return [throttle.begin(address, user) for _ in range(times)]


def test_ten_wrong_passwords_are_checked(throttle, clock):
    """After ten failures of a user from an address, further ones wait until a tenth of a minute has passed."""
    assert [0.0] * 10 == fail(throttle, 10)
    assert pytest.approx(6.0) == throttle.begin(HERE, "alice")

    clock.now += 6.01
    assert 0.0 == throttle.begin(HERE, "alice")
    assert throttle.begin(HERE, "alice") > 5


def test_others_get_in(throttle):
    """Another user of the same address, and the same user elsewhere, are not kept out."""
    fail(throttle, 30)

    assert 0.0 == throttle.begin(HERE, "bob")
    assert 0.0 == throttle.begin(THERE, "alice")


def test_many_users_of_one_address(throttle):
    """Forty failures of an address keep out all of its users."""
    assert [0.0] * 40 == [throttle.begin(HERE, f"user{number}") for number in range(40)]
    assert pytest.approx(1.5) == throttle.begin(HERE, "bob")
    assert 0.0 == throttle.begin(THERE, "bob")


def test_success_is_taken_back(throttle):
    """Right passwords never keep anyone out."""
    for number in range(200):
        assert 0.0 == throttle.begin(HERE, f"user{number % 3}")
        throttle.succeed(HERE, f"user{number % 3}")

    assert 0.0 == throttle.delay_s(HERE, "user0")


def test_a_minute_forgives(throttle, clock):
    """A minute without failures empties the bucket."""
    fail(throttle, 10)
    clock.now += 60

    assert [0.0] * 10 == fail(throttle, 10)


def test_answers_are_delayed(throttle):
    """From the fourth failure on, the answer is delayed, longer each time, up to a bound."""
    delays = []
    for _ in range(10):
        throttle.begin(HERE, "alice")
        delays.append(throttle.delay_s(HERE, "alice"))

    assert [0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 1.6, 1.6] == pytest.approx(delays)


def test_tokens(throttle, clock):
    """Invalid tokens are counted by address, apart from passwords."""
    assert [0.0] * 10 == [throttle.fail_token(HERE)[0] for _ in range(10)]
    assert (pytest.approx(6.0), 0.0) == throttle.fail_token(HERE)
    assert (0.0, 0.0) == throttle.fail_token(THERE)
    assert 0.0 == throttle.begin(HERE, "alice")

    clock.now += 60
    assert (0.0, 0.0) == throttle.fail_token(HERE)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", HERE, True),
        ("", "", True),
        ("unix", "other", False),
    ],
)
def test_addresses(throttle, one, other, same):
    """An IPv6 host counts with its whole network of 64 bits, and a mapped IPv4 address as that address."""
    fail(throttle, 10, address=one)

    assert same == (throttle.begin(other, "alice") > 0)


def test_guesses_for_one_user_from_many_addresses(throttle, clock):
    """A hundred and twenty a minute are checked, however many addresses guess."""
    guessed = [throttle.begin(f"198.51.100.{number}", "alice") for number in range(200)]

    assert (120, True) == (guessed.count(0.0), max(guessed) > 0)
    clock.now += 0.51
    assert 0.0 == throttle.begin("203.0.113.1", "alice")
    assert 0.0 == throttle.begin("203.0.113.1", "bob")


def test_an_attacker_cannot_lock_a_user_out(throttle, clock):
    """Where a user has logged in during the last week, the guesses from elsewhere do not count."""
    assert 0.0 == throttle.begin(HERE, "alice")
    throttle.succeed(HERE, "alice")
    for number in range(200):
        throttle.begin(f"198.51.100.{number}", "alice")

    assert ([0.0] * 10, True) == (fail(throttle, 10), throttle.begin(HERE, "alice") > 0)
    assert throttle.begin(THERE, "alice") > 0
    clock.now += 7 * 24 * 3600 + 1
    assert (False, True) == (throttle.knows(HERE, "alice"), throttle.begin(HERE, "alice") == 0.0)
