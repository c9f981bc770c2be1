"""How many processes serve if `--workers` is not given: the cores that this process may use."""

import os

import pytest

from strata.registry import settings
from strata.registry.node import settings as core_settings
from strata.registry.node.settings import SettingRefused, usable_cores

# what limits, files of the control groups, groups of the process, the cores left of 8
LIMITS = [
    ("nothing", {}, "0::/", 8),
    ("a quota of version 2", {"cpu.max": "200000 100000"}, "0::/", 2),
    ("a quota in another period", {"cpu.max": "150000 50000"}, "0::/", 3),
    ("no quota of version 2", {"cpu.max": "max 100000"}, "0::/", 8),
    ("less than half a core", {"cpu.max": "20000 100000"}, "0::/", 1),
    ("a quota that rounds up", {"cpu.max": "170000 100000"}, "0::/", 2),
    ("a quota above the affinity", {"cpu.max": "9900000 100000"}, "0::/", 8),
    ("a quota of the group's parent", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, "0::/a/b", 3),
    ("a quota of another group", {"a/cpu.max": "300000 100000"}, "0::/b", 8),
    (
        "a quota of version 1",
        {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"},
        "4:memory:/x\n1:cpu,cpuacct:/",
        4,
    ),
    ("no quota of version 1", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "1:cpu:/", 8),
]


@pytest.mark.parametrize(("files", "groups", "cores"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_quotas_of_control_groups_limit_the_usable_cores(files, groups, cores, tmp_path, monkeypatch):
    """The smallest of affinity and quotas counts, rounded and at least 1."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    own = tmp_path / "own"
    own.write_text(groups)
    for name, content in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")

    assert cores == usable_cores(tmp_path / "groups", own)


def test_a_machine_without_control_groups_is_limited_by_affinity_alone(tmp_path, monkeypatch):
    """Missing files set no limit."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 7}, raising=False)

    assert 3 == usable_cores(tmp_path / "none", tmp_path / "none-either")


@pytest.mark.parametrize(
    ("flags", "cores", "workers"),
    [
        ({"log": "sqlite:///x.db"}, 5, 5),
        ({"log": "kafka://h:1/t"}, 3, 3),
        ({"log": "memory:"}, 5, 1),
        ({"log": "sqlite:///x.db", "workers": 2}, 5, 2),
        ({"log": "sqlite:///x.db"}, 1000, 256),
    ],
)
def test_a_node_has_a_worker_for_each_usable_core(flags, cores, workers, monkeypatch):
    """A log in memory belongs to one process; `--workers` takes precedence."""
    monkeypatch.setattr(core_settings, "usable_cores", lambda: cores)

    assert workers == settings.load_settings(**flags).worker_count


def test_a_number_that_is_not_one_is_refused_in_plain_words():
    """An error about a flag says what is expected, in the words of the help."""
    with pytest.raises(SettingRefused) as refused:
        settings.load_settings(workers="many", drain_seconds="long")

    assert [
        "--workers (or STRATA_WORKERS) is 'many': expected a whole number",
        "--drain-seconds (or STRATA_DRAIN_SECONDS) is 'long': expected a number",
    ] == str(refused.value).splitlines()
