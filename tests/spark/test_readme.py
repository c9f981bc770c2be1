"""The README's records in Python and in Spark, in the session of these tests; tests/docs runs the whole page."""

import io
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.registry import RegistryNode
from harness.snippets import parse

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]
README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_blocks_of_python(spark: SparkSession) -> None:
    """Each block of Python prints what the block after it shows."""
    shown = [pair for pair in pairwise(parse(README.read_text())) if pair[0].language == "python"]
    names: dict[str, Any] = {}
    with RegistryNode("memory:") as node:
        for block, expected in shown:
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(block.text.replace("http://localhost:8081", node.url), str(README), "exec"), names)
            assert expected.text.strip() == output.getvalue().strip()
        names["client"].close()
    assert 2 == len(shown)
    assert spark is names["spark"]
