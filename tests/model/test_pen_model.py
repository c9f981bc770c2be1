"""TLC checks the model of the pen (docs/model): the design holds, and each known mistake breaks the property named."""

from pathlib import Path

import pytest

from harness.model_checker import Checked, Model, check

FILE = Path(__file__).resolve().parents[2] / "docs" / "model" / "Pen.tla"
SAFETY = ("NoAcknowledgedWriteIsLost", "EachIsDecidedOnTheNewestState", "IdsAreUnique", "ReadsAreLinearizable")
LIVENESS = "Temporal properties"
NONE = {"Crashes": 0, "Outages": 0, "Losses": 0, "Cuts": 0, "Expiries": 0, "Foreigns": 0, "Leases": False}


def run(nodes, *, clients=3, live=False, flaws=(), writes=1, invariants=SAFETY, is_small=False, **bounds) -> Checked:
    """Check the model with some bounds, of which `clients` nodes have a client; with `live` the liveness too."""
    bounds = {"Reading": False, **NONE, **bounds}
    names = "abc"[:nodes]
    constants = {
        "Nodes": _set(names),
        "Clients": _set(names[:clients]),
        "None": "None",
        "Writes": str(writes),
        "Flaws": _set(f'"{flaw}"' for flaw in flaws),
        **{name: str(value).upper() for name, value in bounds.items()},
    }
    model = Model(
        FILE,
        "FairSpec" if live else "Spec",
        constants,
        () if bounds.get("Losses") else invariants,  # a broker that loses records loses acknowledged writes
        ("WritesSucceed",) if live else (),
        None if live else "Symmetry",
    )
    return check(model, timeout_s=1500, is_small=is_small)


def _set(members) -> str:
    return "{" + ", ".join(members) + "}"


@pytest.mark.long
def test_two_nodes_and_a_crash():
    """With two nodes and a crash the design is safe."""
    checked = run(2, is_small=True, Crashes=1)

    assert checked.violated is None, checked.trace
    assert checked.states > 1000


LEASES = {"Reading": True, "Leases": True, "Cuts": 1}
# name, bounds; with `live` all properties are checked, otherwise the invariants
DESIGN = [
    ("a crash", {"nodes": 2, "live": True, "Crashes": 1}),
    ("reads and a crash", {"nodes": 2, "Reading": True, "Crashes": 1}),
    ("a foreign writer, and a live holder passed over", {"nodes": 2, "Foreigns": 1, "Cuts": 1}),
    ("an expired transaction, and a live holder passed over", {"nodes": 2, "live": True, "Expiries": 1, "Cuts": 1}),
    ("a broker that loses its last record", {"nodes": 2, "live": True, "Outages": 1, "Losses": 1}),
    ("an outage, and a live holder passed over", {"nodes": 2, "live": True, "Outages": 1, "Cuts": 1}),
    ("the same with two writes each", {"nodes": 2, "writes": 2, "Outages": 1, "Cuts": 1}),
    ("leases, a live holder passed over, and a crash", {"nodes": 2, "Crashes": 1, **LEASES}),
    ("three nodes and a crash", {"nodes": 3, "Crashes": 1}),
    ("three nodes of which two write, an outage, a cut", {"nodes": 3, "clients": 2, "Outages": 1, "Cuts": 1}),
    ("three nodes of which two write, and leases", {"nodes": 3, "clients": 2, **LEASES}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [row[1] for row in DESIGN], ids=[row[0] for row in DESIGN])
def test_the_design(bounds):
    """The design keeps every property within these bounds."""
    checked = run(**bounds)

    assert checked.violated is None, checked.trace


# flaws, the property that they violate, bounds
OLD = ("own signature not noted", "waits for a holder that refuses", "lost signatures kept")
MUTANTS = [
    (OLD, LIVENESS, {"live": True, "Outages": 1, "Cuts": 1}),
    (("never passes over a holder",), LIVENESS, {"live": True, "Crashes": 1}),
    (("no fencing",), "IdsAreUnique", {}),
    (("no compare of the end",), "EachIsDecidedOnTheNewestState", {}),
    (("no compare of offsets",), "EachIsDecidedOnTheNewestState", {"Foreigns": 1, "writes": 2}),
    (("acknowledges before the commit",), "NoAcknowledgedWriteIsLost", {}),
    (("acknowledges before it is visible",), "ReadsAreLinearizable", {"Reading": True}),
    (("reads from memory",), "ReadsAreLinearizable", {"Reading": True}),
    (("reads join a read under way",), "ReadsAreLinearizable", {"Reading": True}),
    (("reads what is not committed",), "ReadsAreLinearizable", {"Reading": True}),
    (("no wait for leases",), "ReadsAreLinearizable", LEASES),
    (("waits before the acknowledgement only",), "ReadsAreLinearizable", LEASES),
    (("waits before its signature is readable",), "ReadsAreLinearizable", LEASES),
    (("lease from the receipt",), "ReadsAreLinearizable", LEASES),
    (("lease kept during a commit",), "ReadsAreLinearizable", LEASES),
    (("lease without the pen",), "ReadsAreLinearizable", LEASES),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaws", "violated", "bounds"), MUTANTS, ids=["old design", *(row[0][0] for row in MUTANTS[1:])]
)
def test_a_mistake_breaks_a_property(flaws, violated, bounds):
    """The model without one part of the design violates the property that this part is for."""
    invariants = () if violated == LIVENESS else (violated,)

    assert violated == run(2, flaws=flaws, invariants=invariants, **bounds).violated
