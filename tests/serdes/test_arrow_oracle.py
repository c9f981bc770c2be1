"""Batch decoder and deserializer give the same value or both refuse, for random schemas, values and damage."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.arrow_examples import check
from harness.examples import examples


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**40))
def test_same_value_or_both_refuse(seed):
    """Both give the same values, reasons and places, with the deserializer of single records as the oracle."""
    check(seed)


@pytest.mark.slow
def test_same_value_or_both_refuse_in_thousands_of_cases():
    """The same holds over many more schemas, of which most decode."""
    assert 10_000 < sum(check(seed) for seed in range(3000))
