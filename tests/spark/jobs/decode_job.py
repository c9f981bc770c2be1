"""A Spark job like a user's: it decodes on both paths, as a batch and as a stream, and prints the results.

It also encodes the values again, with their schema in a header, and decodes them a second time.

The tests run it as its own process; the first argument is a JSON object with its options.
"""

import json
import sys
from typing import Any

OPTIONS = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["packages"])

from pyspark.sql import DataFrame, Observation, SparkSession, functions  # noqa: E402

from strata import spark_udfs  # noqa: E402
from strata.serdes.client import ClientSettings  # noqa: E402
from strata.spark_udfs import decode, encoder, install, observe_dead_letters, split_dead_letters  # noqa: E402

SETTINGS = ClientSettings.of(OPTIONS["registry"])


def session() -> SparkSession:
    """Return the session that the options ask for."""
    builder = SparkSession.builder
    for name, value in OPTIONS["conf"].items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def ship(spark: SparkSession) -> None:
    """Ship the packages to the executors."""
    if "spark.remote" in OPTIONS["conf"]:
        spark.addArtifacts(OPTIONS["ship"], pyfile=True)
    else:
        spark.sparkContext.addPyFile(OPTIONS["ship"])


def rows(df: DataFrame) -> list[Any]:
    """Return all rows, in order, as JSON has them."""
    text = functions.to_json(functions.struct("*"))
    return sorted((json.loads(row[0]) for row in df.select(text).collect()), key=lambda one: int(one["offset"]))


def parts(df: DataFrame) -> dict[str, Any]:
    """Return the decoded rows and the dead letters."""
    good, dead = split_dead_letters(df)
    return {"good": rows(good), "dead": rows(dead.drop("frame"))}


def stream(spark: SparkSession, path: Any, table: str) -> DataFrame:
    """Return the same for a streaming query over the same frames."""
    source = spark.readStream.schema("offset long, value binary").parquet(OPTIONS["frames"])
    column = decode("value", registry=SETTINGS, subject=OPTIONS["subject"], path=path)
    decoded = source.select("offset", column.alias("decoded"))
    query = decoded.writeStream.format("memory").queryName(table).trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.table(table)


def failure(df: DataFrame) -> str:
    """Return why a query fails."""
    try:
        df.collect()
    except Exception as error:  # noqa: BLE001 - each kind of session raises another one
        return str(error)
    return ""


def observed(df: DataFrame, name: str) -> list[Any]:
    """Return the metrics of a query: its rows, and how many requests to the registry it has sent again."""
    numbers = Observation(name)
    observe_dead_letters(df, name=numbers).collect()
    return [numbers.get["rows"], numbers.get.get("registry_retries")]


def decoded(spark: SparkSession, path: Any, **options: Any) -> DataFrame:
    """Return the decoded frames of a batch."""
    frames = spark.read.schema("offset long, value binary").parquet(OPTIONS["frames"]).repartition(OPTIONS["tasks"])
    column = decode("value", registry=SETTINGS, subject=OPTIONS["subject"], path=path, **options)
    return frames.select("offset", column.alias("decoded"))


def on_path(spark: SparkSession, path: Any) -> dict[str, Any]:
    """Return all results on one path."""
    answer = {
        "type": decoded(spark, path).schema["decoded"].dataType.simpleString(),
        "batch": parts(decoded(spark, path)),
        "observed": observed(decoded(spark, path), f"numbers {path}"),
        "failure": failure(decoded(spark, path, mode="FAILFAST", origin=["offset"])),
    }
    if OPTIONS["streams"]:
        answer["stream"] = parts(stream(spark, path, f"stream_{path}"))
    return answer


def again(spark: SparkSession) -> list[Any]:
    """Encode the decoded values, and return the payloads and what is read from them by their headers."""
    common: dict[str, Any] = {"registry": SETTINGS, "subject": OPTIONS["subject"]}
    frames = spark.read.schema("offset long, value binary").parquet(OPTIONS["frames"])
    values = frames.select("offset", decode("value", mode="PERMISSIVE", **common).alias("value"))
    write = encoder(version="latest", framing="header", **common)
    payloads = write.with_column(values, "payload", "value").select("offset", "payload", write.headers.alias("headers"))
    read = decode("payload", headers="headers", mode="FAILFAST", **common)
    return rows(payloads.select("offset", functions.hex("payload").alias("hex"), read.alias("value")))


def in_sql(spark: SparkSession) -> list[Any]:
    """Return what a query without a data frame finds: the delays in which it groups frames by their decode."""
    frames = spark.read.schema("offset long, value binary").parquet(OPTIONS["frames"])
    frames.createOrReplaceTempView("frames")
    call = f"strata_decode(value, '{OPTIONS['subject']}').value.delay"
    return [row[0] for row in spark.sql(f"SELECT {call} AS delay FROM frames GROUP BY {call} ORDER BY 1").collect()]


def replayed_in_sql(spark: SparkSession) -> list[Any]:
    """Return what the subject's latest schema makes of the frames: the reasons, how many have each, and where."""
    call = f"strata_replay(value, '{OPTIONS['subject']}', struct(offset))"
    outcomes = spark.sql(f"SELECT inline({call}) FROM frames")
    return [*map(list, outcomes.select("reason", "count", "first.offset", "last.offset").orderBy("reason").collect())]


def written_in_sql(spark: SparkSession) -> list[Any]:
    """Return the frames that a query without a data frame writes of the decoded values, in hexadecimal digits."""
    subject = OPTIONS["subject"]
    call = f"strata_encode(strata_decode(value, '{subject}').value, '{subject}')"
    return [row[0] for row in spark.sql(f"SELECT hex({call}) FROM frames GROUP BY 1 ORDER BY 1").collect()]


def other_formats(spark: SparkSession) -> list[str]:
    """Return payloads of Protobuf and JSON as SQL writes them, the length of a header, and values that SQL reads.

    The last is JSON as the JVM writes it for `encoder`, which asks the session whether it validates with the schema.
    """
    value = "named_struct('n', 7)"
    [row] = spark.sql(
        f"""SELECT hex(strata_encode({value}, 'connect-proto?framing=header')),
        hex(strata_encode({value}, 'connect-json?framing=header')),
        hex(strata_headers('connect-proto')[0].value),
        string(strata_decode(strata_encode({value}, 'connect-proto'), 'connect-proto?message=M').value),
        string(strata_decode(strata_encode({value}, 'connect-json'), 'connect-json').value)"""
    ).collect()
    write = encoder(registry=SETTINGS, subject="connect-json", version="latest", framing="header", path="jvm")
    [[encoded]] = spark.sql(f"SELECT {value} AS n").select(functions.hex(write("n"))).collect()
    return [*row[:2], str(len(row[2])), *row[3:], encoded]


def places(spark: SparkSession) -> list[list[str]]:
    """Return where workers run, and where they import the code from."""

    def place(_: Any) -> str:
        import time
        from pathlib import Path

        import strata.spark_udfs

        time.sleep(0.2)  # or one executor might take all tasks
        return f"{Path.cwd()} {strata.spark_udfs.__file__}"

    found = spark.range(8).repartition(8).select(functions.udf(place, "string")("id").alias("place"))
    return sorted({tuple(row["place"].split(" ")) for row in found.collect()})  # type: ignore[return-value]


def everything(spark: SparkSession) -> dict[str, Any]:
    """Return what each kind of call answers, on both paths."""
    answer: dict[str, Any] = {}
    if OPTIONS["ship"]:
        ship(spark)
        answer["places"] = places(spark)
        answer["driver"] = spark_udfs.__file__
    for path in ("jvm", "python"):
        if path == "jvm":
            install(spark, registry=SETTINGS)
        answer[path] = on_path(spark, path)
    answer["again"] = again(spark)
    answer["sql"] = in_sql(spark)
    answer["replayed"] = replayed_in_sql(spark)
    answer["written"] = written_in_sql(spark)
    answer["formats"] = other_formats(spark)
    return answer


def batch(spark: SparkSession, path: Any) -> dict[str, Any]:
    """Return the decoded rows and the dead letters on a path."""
    if path == "jvm":
        install(spark, registry=SETTINGS)
    return parts(decoded(spark, path))


def main() -> None:
    """Run the job."""
    spark = session()
    paths = OPTIONS.get("batches")
    answer = {path: batch(spark, path) for path in paths} if paths else everything(spark)
    spark.stop()
    print(json.dumps(answer))  # noqa: T201 - the job reports on standard output


if __name__ == "__main__":
    main()
