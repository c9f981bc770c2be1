"""Shared parts of the Spark benchmarks: a session, and the time and CPU time of a job."""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

__all__ = ["Job", "Rate", "best", "compared", "in_turn", "ratio", "session"]


class Job(NamedTuple):
    """A data frame to compute and discard, and its number of rows."""

    rows: DataFrame
    number: int


class Rate(NamedTuple):
    """The speed and the cost of a job."""

    rows_per_second: float
    cpu_microseconds: float
    """Per row: the CPU time of the JVM, its workers and all other child processes."""


def session(folder: Path, jars: Sequence[Path], conf: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Return a session with two threads that keeps its files in a folder, with extra jars and settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark: SparkSession = (
        builder.master("local[2]")
        .appName("strata-bench")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def in_turn(jobs: dict[str, Job], warm_ups: int, rounds: int) -> dict[str, list[Rate]]:
    """Run all jobs in turn in each round, and return the rates of each job.

    Args:
        jobs: the jobs by name.
        warm_ups: the number of rounds before the measured ones.
        rounds: the number of measured rounds.
    """
    for _ in range(warm_ups):
        for job in jobs.values():
            _measure(job)
    made = [{name: _measure(job) for name, job in jobs.items()} for _ in range(rounds)]
    return {name: [each[name] for each in made] for name in jobs}


def best(rates: list[Rate]) -> Rate:
    """Return the highest speed and the lowest CPU time per row."""
    return Rate(max(rate.rows_per_second for rate in rates), min(rate.cpu_microseconds for rate in rates))


def ratio(rates: list[Rate], others: list[Rate]) -> float:
    """Return how many times as fast as the other rates: the median over the rounds."""
    return median(a.rows_per_second / b.rows_per_second for a, b in zip(rates, others, strict=True))


def compared(name: str, all_rates: dict[str, list[Rate]], others: Iterable[str]) -> list[str]:
    """Return a row of a table: a way, its best rate and cost, and its ratio to each of the others."""
    rates = all_rates[name]
    top = best(rates)
    ratios = [ratio(rates, all_rates[other]) for other in others]
    return [name, f"{top.rows_per_second:,.0f}", f"{top.cpu_microseconds:.2f}", *(f"{one:.2f}" for one in ratios)]


def _measure(job: Job) -> Rate:
    cpu, started = _cpu_seconds(), time.perf_counter()
    job.rows.write.format("noop").mode("overwrite").save()
    seconds, cpu = time.perf_counter() - started, _cpu_seconds() - cpu
    return Rate(job.number / seconds, cpu / job.number * 1e6)


def _cpu_seconds() -> float:
    """Return the CPU seconds of all child processes so far: the JVM and its workers."""
    ticks, below = 0, {os.getpid()}
    stats = [_stat(file) for file in Path("/proc").glob("[0-9]*/stat")]
    for pid, parent, used in sorted(one for one in stats if one is not None):
        if parent in below:  # children have higher numbers than their parents, except in the rare case of a wrap-around
            below.add(pid)
            ticks += used
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        fields = file.read_text().rpartition(")")[2].split()
    except OSError:  # it has exited
        return None
    return int(file.parent.name), int(fields[1]), int(fields[11]) + int(fields[12])
