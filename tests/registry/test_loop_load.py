"""The load of an event loop's thread."""

import time
from pathlib import Path

import pytest

from harness.waiting import until
from strata.registry.core.write_group import LoopLoad

MS = 1_000_000


@pytest.mark.parametrize(
    ("ran_ms", "waited_ms", "elapsed_s", "share"),
    [(0, 0, 0.1, 0.0), (50, 0, 0.1, 0.5), (50, 25, 0.1, 0.75), (100, 20, 0.1, 1.0), (40, 0, 0.04, 0.0)],
)
def test_the_load_counts_running_and_waiting_for_a_core(tmp_path, ran_ms, waited_ms, elapsed_s, share):
    """A thread is as busy as the part of the time in which it ran or waited; less than 50 ms are not measured."""
    counters, times = tmp_path / "schedstat", iter((1000.0, 1000.0 + elapsed_s))
    load = LoopLoad(counters, lambda: next(times))
    counters.write_text(f"{7 * MS} {3 * MS} 1\n")
    assert 0.0 == load.share()
    counters.write_text(f"{(7 + ran_ms) * MS} {(3 + waited_ms) * MS} 2\n")

    assert share == pytest.approx(load.share())


def test_a_system_that_does_not_say_counts_as_idle(tmp_path):
    """Without the counters, no load is known."""
    times = iter((1.0, 2.0))
    load = LoopLoad(tmp_path / "absent", lambda: next(times))

    assert [0.0, 0.0] == [load.share(), load.share()]


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system does not count this")
def test_a_thread_that_computes_is_busy():
    """Linux's counters show a thread that has only computed as busy, however many others want its core."""
    load = LoopLoad()

    def is_busy():
        load.share()
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        return load.share() > 0.5

    until(is_busy)  # a pause of the machine counts as time in which nothing ran
