"""Tests draw few examples when they are the same each time, and all when they are new."""

from hypothesis import settings

from harness.examples import examples


def test_the_number_of_examples():
    """A quarter, and at least one; all of them in the profile that draws new ones."""
    before = settings.get_current_profile_name()
    try:
        settings.load_profile("ci")
        few = examples(300), examples(2)
        settings.load_profile("explore")
        assert ((75, 1), 300) == (few, examples(300))
    finally:
        settings.load_profile(before)
