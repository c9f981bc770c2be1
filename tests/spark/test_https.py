"""A registry behind https that asks for a certificate works on both paths."""

import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession, functions

from harness.certificates import Authority, certificate_files
from strata.serdes.client import ClientSettings
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

Way = Literal["jvm", "python"]
DAY = timedelta(days=1)
MakeFrame = Callable[[int, Any, Any], bytes]


@pytest.mark.parametrize(("path", "kind"), [("jvm", "EC"), ("jvm", "RSA"), ("python", "EC")])
def test_https_with_certificates_on_both_sides(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, tmp_path: Path, path: Way, kind: str
) -> None:
    """Client and registry must trust each other's certificates; otherwise the task fails with an error that says so."""
    cert_file, key_file = certificate_files(tmp_path, kind)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    context.load_verify_locations(cert_file)
    context.verify_mode = ssl.CERT_REQUIRED
    scripted_registry.wrap(context)
    schema_id = scripted_registry.add("string")
    rows = spark.createDataFrame(pa.table({"value": [frame(schema_id, "string", "secret")]})).coalesce(1)

    def decoded(**files: str) -> DataFrame:
        settings = ClientSettings.of(scripted_registry.url, retries=0, timeout=60.0, **files)
        install(spark, registry=settings)
        column = decode("value", registry=settings, reader_schema='"string"', mode="PERMISSIVE", path=path)
        return rows.select(functions.upper(column).alias("text"))

    assert [("SECRET",)] == decoded(ca_file=cert_file, cert_file=cert_file, key_file=key_file).collect()
    for stranger, why in (({}, "is not accepted: "), ({"ca_file": cert_file}, "does not answer")):
        with pytest.raises((Py4JJavaError, PythonException), match=rf"could not be looked up: .*{why}"):
            decoded(**stranger).collect()
    assert {schema_id: 1} == dict(scripted_registry.asked)


@pytest.mark.parametrize(
    ("of", "valid", "trusted", "why"),
    [
        ("registry", (-2 * DAY, -DAY), "ca", "certificate has expired"),
        ("registry", (DAY, 2 * DAY), "ca", "certificate is not yet valid"),
        ("registry", (-DAY, DAY), "other", "unable to get local issuer certificate"),
        ("token endpoint", (-2 * DAY, -DAY), "ca", "certificate has expired"),
    ],
    ids=["expired", "not yet valid", "unknown authority", "expired, of the token endpoint"],
)
def test_a_certificate_that_is_not_accepted_fails_at_once(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    tmp_path: Path,
    of: str,
    valid: tuple[timedelta, timedelta],
    trusted: str,
    why: str,
) -> None:
    """At the first contact the JVM names the certificate and what is wrong, and does not wait for another one."""
    files = {name: Authority(tmp_path, name) for name in ("ca", "other")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files["ca"].issue("registry", valid=valid))
    scripted_registry.wrap(context)
    named, login = scripted_registry.url, {}
    if of == "token endpoint":
        named = f"the token endpoint {scripted_registry.url}/token"
        login = {"token_url": f"{scripted_registry.url}/token", "client_id": "me", "client_secret": "secret"}
        login["token_ca_file"] = files[trusted].file
    settings = ClientSettings.of(
        scripted_registry.url, wait=3600, retries=10_000, timeout=60.0, ca_file=files[trusted].file, **login
    )
    install(spark, registry=settings)
    rows = spark.createDataFrame(pa.table({"value": [frame(1, "string", "a")]})).coalesce(1)
    column = decode("value", registry=settings, reader_schema='"string"', mode="PERMISSIVE", path="jvm")

    with pytest.raises(Py4JJavaError, match=f"the certificate of {named} is not accepted: {why}"):
        rows.select(functions.upper(column)).collect()


def test_files_that_are_no_certificates(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, tmp_path: Path
) -> None:
    """The JVM names the file that it cannot use."""
    for name in ("missing.pem", "text.pem"):
        file = tmp_path / name
        if name == "text.pem":
            file.write_text("no certificate")
        settings = ClientSettings.of(scripted_registry.url, retries=0, ca_file=str(file))
        install(spark, registry=settings)
        rows = spark.createDataFrame(pa.table({"value": [frame(1, "string", "a")]})).coalesce(1)
        column = decode("value", registry=settings, reader_schema='"string"', path="jvm")
        with pytest.raises(Py4JJavaError, match="the certificates for https cannot be used: "):
            rows.select(column).collect()
