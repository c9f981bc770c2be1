"""A registry behind https that asks for a certificate, on both paths."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession, functions

from serdes.client import ClientSettings
from spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves that to the collector
]

Way = Literal["jvm", "python"]
MakeFrame = Callable[[int, Any, Any], bytes]
Files = tuple[str, str]

KEYS: dict[str, Callable[[], Any]] = {
    "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
}


def _certificate(kind: str, tmp_path: Path) -> Files:
    """Files with a certificate for 127.0.0.1 that is its own authority, and its key."""
    key = KEYS[kind]()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert_file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    return str(cert_file), str(key_file)


@pytest.mark.parametrize(("path", "kind"), [("jvm", "EC"), ("jvm", "RSA"), ("python", "EC")])
def test_https_with_certificates_on_both_sides(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, tmp_path: Path, path: Way, kind: str
) -> None:
    """The registry is asked when it can be trusted and is shown a certificate; otherwise the task fails and says so."""
    cert_file, key_file = _certificate(kind, tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    context.load_verify_locations(cert_file)
    context.verify_mode = ssl.CERT_REQUIRED
    scripted_registry.wrap(context)
    schema_id = scripted_registry.add("string")
    rows = spark.createDataFrame(pa.table({"value": [frame(schema_id, "string", "secret")]})).coalesce(1)

    def decoded(**files: str) -> DataFrame:
        settings = ClientSettings.of(scripted_registry.url, retries=0, timeout=5.0, **files)
        install(spark, registry=settings)
        column = decode("value", registry=settings, reader_schema='"string"', mode="PERMISSIVE", path=path)
        return rows.select(functions.upper(column).alias("text"))

    assert [("SECRET",)] == decoded(ca_file=cert_file, cert_file=cert_file, key_file=key_file).collect()
    for stranger in ({}, {"ca_file": cert_file}):
        with pytest.raises((Py4JJavaError, PythonException), match=r"could not be looked up: .*does not answer"):
            decoded(**stranger).collect()
    assert {schema_id: 1} == dict(scripted_registry.asked)


def test_files_that_are_no_certificates(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, tmp_path: Path
) -> None:
    """The JVM says which file it cannot use."""
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
