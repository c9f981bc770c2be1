"""The ordered index of subjects: whatever the changes and the page, it yields what sorting everything would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.storage import listing
from strata.storage.listing import Listed, Listing, VersionCount, beyond

NAMES = st.text("ab:.\U0010ffff", min_size=1, max_size=4)
COUNTS = st.sampled_from([VersionCount(live, every) for every in range(4) for live in range(every + 1)])
BATCHES = st.lists(st.dictionaries(NAMES, COUNTS, max_size=12), max_size=8)


@pytest.fixture(autouse=True, scope="module")
def _small_chunks():
    """Make chunks so small that lists of a few names have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_MOST", 4)
        yield


def number(listed, count):
    """Return how many entries a subject adds to a list."""
    return {
        Listed.LIVE_SUBJECTS: int(count.live > 0),
        Listed.SUBJECTS: 1,
        Listed.DELETED_SUBJECTS: int(count.live == 0),
        Listed.LIVE_VERSIONS: count.live,
        Listed.VERSIONS: count.every,
    }[listed]


@settings(max_examples=examples(200))
@given(BATCHES, st.sampled_from(Listed), st.lists(NAMES, max_size=4, unique=True), st.integers(0, 20), st.booleans())
def test_entries_are_those_of_a_sorted_list(batches, listed, cuts, skip, filtered):
    """After any changes, each list in any ranges, from any entry on, filtered or not, is that of the sorted names."""
    index, counts = Listing(), {}
    for batch in batches:
        index = index.after(batch)
        counts |= batch
    names = sorted(name for name, count in counts.items() if count.every)
    edges = ["", *sorted(cuts), None]
    bounds = list(zip(edges[::2], edges[1::2], strict=False))
    keep = (lambda name: "a" in name) if filtered else None

    every = [
        (name, entry)
        for name in names
        if any(low <= name and (high is None or name < high) for low, high in bounds) and (not keep or keep(name))
        for entry in range(number(listed, counts[name]))
    ]
    found = [
        (name, entry)
        for name, left_out in index.entries(listed, bounds, skip, keep)
        for entry in range(left_out, number(listed, counts[name]))
    ]
    assert every[skip:] == found


@settings(max_examples=examples(100))
@given(BATCHES)
def test_a_listing_is_a_value(batches):
    """A change makes another listing and leaves the one before as it was."""
    made = [Listing()]
    for batch in batches:
        before = list(made[-1].entries(Listed.SUBJECTS, [("", None)]))
        made.append(made[-1].after(batch))
        assert before == list(made[-2].entries(Listed.SUBJECTS, [("", None)]))


@given(NAMES, NAMES)
def test_beyond_a_prefix(prefix, name):
    """A text begins with a prefix exactly if it is between the prefix and what is beyond it."""
    high = beyond(prefix)
    assert name.startswith(prefix) == (prefix <= name and (high is None or name < high))


def test_a_change_copies_few_chunks():
    """A new name in a long listing leaves all chunks but one as they are."""
    index = Listing().after({f"s{number:04}": VersionCount(1, 1) for number in range(1000)})
    after = index.after({"s0500x": VersionCount(1, 1)})

    assert len(index._chunks) - 1 == len(
        {id(chunk) for chunk in index._chunks} & {id(chunk) for chunk in after._chunks}
    )
    assert index is index.after({})
