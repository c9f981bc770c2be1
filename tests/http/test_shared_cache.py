"""The cache loads each key once for any number of concurrent callers."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from strata.shared_cache import SharedCache


def test_a_value_is_loaded_once():
    """The second caller gets the value that the first one loaded."""
    cache = SharedCache(10)

    assert [1, 1] == [cache.get("a", lambda: 1), cache.get("a", lambda: 2)]


def test_many_threads_cause_one_load():
    """Callers that miss while a load is under way wait for it."""
    cache, gate, began, calls = SharedCache(10), threading.Event(), threading.Event(), []

    def load():
        calls.append(1)
        began.set()
        gate.wait(60)
        return object()

    with ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(cache.get, "a", load) for _ in range(16)]
        began.wait(60)
        gate.set()
        values = {id(one.result()) for one in waiting}

    assert (1, 1) == (len(values), len(calls))


def test_a_failure_is_for_all_who_waited_and_for_nobody_after():
    """The error reaches every waiting thread; the next caller retries."""
    cache, gate, began = SharedCache(10), threading.Event(), threading.Event()

    def fail():
        began.set()
        gate.wait(60)
        raise OSError("down")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, "a", fail)
        began.wait(60)
        second = pool.submit(cache.get, "a", fail)
        gate.set()
        for one in (first, second):
            with pytest.raises(OSError, match="down"):
                one.result()

    assert cache.get("a", lambda: 5) == 5


def test_it_stays_within_its_capacity():
    """The entry that was loaded longest ago is evicted first."""
    cache = SharedCache(3)
    for key in range(10):
        cache.get(key, lambda key=key: key)

    assert len(cache) == 3
    assert [7, 8, 9] == [cache.get(key, lambda: None) for key in (7, 8, 9)]
    assert cache.get(0, lambda: "again") == "again"


def test_a_stale_value_is_loaded_again():
    """A value that the caller calls stale is loaded again."""
    cache = SharedCache(3)
    cache.get("a", lambda: 1)

    assert cache.get("a", lambda: 2, is_fresh=lambda value: value > 1) == 2
    assert cache.get("a", lambda: 3, is_fresh=lambda value: value > 1) == 2


def test_discarded_keys_are_forgotten_even_while_they_load():
    """A load that began before the discard is not kept after it."""
    cache, gate, started = SharedCache(10), threading.Event(), threading.Event()
    cache.get("b", lambda: 1)

    def load():
        started.set()
        gate.wait(60)
        return "old"

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(cache.get, "a", load)
        started.wait(60)
        cache.discard(lambda key: key in "ab")
        gate.set()

        assert slow.result() == "old"
    assert cache.get("a", lambda: "new") == "new"
    assert cache.get("b", lambda: 2) == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_waits_for_nobody():
    """A forked child does not wait for a load or a lock of a thread that it does not have."""
    cache, gate, began = SharedCache(10), threading.Event(), threading.Event()

    def load():
        began.set()
        gate.wait(60)
        return 1

    loading = threading.Thread(target=cache.get, args=("a", load))
    loading.start()
    began.wait(60)
    with cache._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(cache.get("a", lambda: 5))
    gate.set()
    loading.join()

    assert 5 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 1 == cache.get("a", lambda: 2)
