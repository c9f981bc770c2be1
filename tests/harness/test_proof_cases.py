"""The table of proofs names the rules that refuse much that no record breaks."""

from collections import Counter

from harness.proof_cases import table_rows


def test_a_rule_that_records_need_has_no_row_of_its_own():
    """Rules whose findings nearly all have a record share a row; a rule with a quarter without one has its own."""
    counts = {
        "A": Counter({"witness": 1000, "undecided": 2}),
        "B": Counter({"witness": 4, "rule only": 1}),
        "C": Counter({"witness": 3, "rule only": 1}),
    }

    assert ["| Avro | `C` | 3 | 1 | 0 |", "| Avro | the other 2 rules | 1,004 | 1 | 2 |"] == [
        *table_rows("Avro", counts)
    ]
