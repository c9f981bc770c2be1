"""The packages of Java have arrows downwards only."""

import pytest

from harness.java_check import LAYERS, wrong_arrows

LISTED = "   strata.spark{} -> strata.spark{}                 classes\n"


@pytest.mark.parametrize(
    ("user", "used", "expected"),
    [
        ("", ".avro", []),
        (".plan", ".bytes", []),
        (".json", ".valid", []),
        (".row", ".row", []),
        (".avro", "", ["strata.spark.avro must not use strata.spark"]),
        (".bytes", ".row", ["strata.spark.bytes must not use strata.spark.row"]),
        (".avro", ".proto", ["strata.spark.avro must not use strata.spark.proto"]),
        (".avro", ".other", ["strata.spark.other is not a package of harness/java_check.py"]),
    ],
)
def test_an_arrow_upwards_or_sideways_is_found(user, used, expected):
    """A package may use itself and those of lower layers; a package without a layer is an error."""
    assert expected == list(wrong_arrows("classes -> classes\n" + LISTED.format(user, used)))


def test_each_package_has_one_layer():
    """No package stands in two layers."""
    packages = [package for layer in LAYERS for package in layer]
    assert sorted(set(packages)) == sorted(packages)
