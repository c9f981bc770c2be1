"""The ways in which Spark encodes rows: rules in, answers out, all rules and ways in one query."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from harness.encode_rules import Answer, Rule
from strata.serdes.client import RegistryClient
from strata.spark_udfs import encode, encoder
from strata.spark_udfs.encoding.row_encoder import RowEncoder

__all__ = ["Rows", "by", "by_sql"]

_Options: TypeAlias = dict[str, Any]
_Encoded: TypeAlias = Callable[[str, _Options], Column]
_FIXED = ("registry", "schema_id", "mode")


class Rows:
    """The values of rules as a table of one row, with a column for each.

    Args:
        client: registers the schemas.
        rules: the rules.
    """

    def __init__(self, client: RegistryClient, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._columns: dict[str, _Options] = {}
        for number, rule in enumerate(rules):
            schema_id = client.register("rules", rule.schema).schema_id
            fixed = {"registry": client.settings, "schema_id": schema_id, "mode": "DEADLETTER"}
            self._columns[f"c{number}"] = {**fixed, **rule.options}

    @property
    def table(self) -> pa.Table:
        """Return the values."""
        return pa.table([rule.column for rule in self._rules], names=list(self._columns))

    def encoded(self, values: DataFrame, ways: Mapping[str, _Encoded]) -> DataFrame:
        """Return what each way makes of each rule, all of them in one query.

        Args:
            values: the table.
            ways: by name: what encodes the column of a name, with its options.
        """
        columns = [
            encode_column(name, options).alias(f"{way} {name}")
            for way, encode_column in ways.items()
            for name, options in self._columns.items()
        ]
        return values.select(*columns)

    def answers(self, encoded: DataFrame, ways: Iterable[str]) -> dict[str, dict[str, Answer]]:
        """Return what the only row of an encoded table says of each rule, by way."""
        [row] = encoded.collect()
        return {way: self._answers([row[f"{way} {name}"].asDict() for name in self._columns]) for way in ways}

    def outside_spark(self) -> dict[str, Answer]:
        """Return what a Python worker makes of each rule."""
        plans = [encoder(**options).plan for options in self._columns.values()]
        encoded = (RowEncoder(plan).encode(rule.column) for plan, rule in zip(plans, self._rules, strict=True))
        return self._answers([array.to_pylist()[0] for array in encoded])

    def _answers(self, encoded: Sequence[Any]) -> dict[str, Answer]:
        ids = (options["schema_id"] for options in self._columns.values())
        return {
            rule.name: _answer(row["frame"], row["error"], schema_id)
            for rule, row, schema_id in zip(self._rules, encoded, ids, strict=True)
        }


def by(path: Any) -> _Encoded:
    """Return the column that `encode` makes on a path."""
    return lambda name, options: encode(name, path=path, **options)


def by_sql(catalog: str) -> _Encoded:
    """Return the column that the function of SQL makes."""

    def encoded(name: str, options: _Options) -> Column:
        settings = {"id": options["schema_id"], **{key: value for key, value in options.items() if key not in _FIXED}}
        call = "&".join(f"{key}={str(value).lower()}" for key, value in settings.items())
        return functions.expr(f"{catalog}_encode({name}, '?{call}&mode=DEADLETTER')")

    return encoded


def _answer(frame: bytes | None, error: Any, schema_id: int) -> Answer:
    if error is not None:
        assert frame is None
        return error["reason"], error["path"]
    if frame is None:
        return None
    assert bytes(frame[:5]) == b"\0" + schema_id.to_bytes(4, "big")
    return bytes(frame[5:])
