"""The JVM function: frames become Spark rows inside the executor, without a Python worker.

Each registry is a function catalog of the session (`spark.sql.catalog.strata_…`), whose options hold its URLs and the
client settings. A decode is a function of that catalog. The name of the function holds the plan, so the call is plain
SQL and needs nothing from the session except its configuration. That is why it also works through Spark Connect.

Spark copies session settings whose names begin with `spark` into the properties of each job, and so writes them to its
event log in plain text, passwords included. Secrets are therefore stored under other names, where the catalog finds
them.

Rules of this file: public calls of Spark only; no schema is inspected; no secret leaves the session's configuration,
where `SET` redacts it.
"""

import base64
import hashlib
import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession, functions

from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Registry, settings_of
from strata.spark_udfs.decoding.plan import DecodePlan, reader_type
from strata.spark_udfs.decoding.reader_schema import write_with_defaults

__all__ = ["JAR", "NotInstalled", "catalog_of", "function_name", "install", "is_installed", "is_installed_otherwise"]
__all__ += ["jvm_path"]

JAR = Path(__file__).parents[1] / "strata-spark.jar"
"""The jar in the wheel; `make setup` builds it in a checkout."""

_REMEDY = f"Start the session with spark.jars={JAR}, or call decode with path='python'"
_CLASS = "strata.spark.StrataCatalog"
_PREFIX = "spark.sql.catalog."
_OUTSIDE_JOBS = "strata."
"""The prefix of settings that Spark does not copy into the properties of jobs."""
_SECRETS = ("password", "token", "client_secret")
_KEY = secrets.token_bytes(16)
"""Key of the digests of this process, which keeps passwords from being guessed from a catalog name in a query plan."""


class NotInstalled(RuntimeError):
    """A session that cannot use the JVM function; the message gives the reason and the remedy."""


def install(spark: SparkSession, *, registry: Registry, jar: str | Path | None = None) -> None:
    """Make `decode` run inside Spark's own executors, for one registry, in this session.

    Call it again for another registry and for another session. It adds the jar to the session, unless the session
    already has it (from `spark.jars`, or on the server of Spark Connect).

    Args:
        spark: the session, classic or Spark Connect.
        registry: the registry, as for `decode`; pass the same settings to both.
        jar: the jar to add; by default the one in this package.

    Raises:
        NotInstalled: If the jar does not exist, the session rejects it, or only the Python path supports a setting.
        TypeError: If `registry` is neither a URL nor several URLs nor `ClientSettings`.
        ValueError: If `registry` is not a valid URL.
    """
    settings = settings_of(registry)
    _check(settings)
    name = catalog_of(settings)
    configuration = {
        f"{_OUTSIDE_JOBS if option in _SECRETS else _PREFIX}{name}.{option}": value
        for option, value in _options(settings).items()
    } | {f"{_PREFIX}{name}": _CLASS}
    for key, value in configuration.items():
        spark.conf.set(key, value)
    try:
        _ensure_jar(spark, name, JAR if jar is None else Path(jar))
    except NotInstalled:
        for key in configuration:  # otherwise decodes would choose a path that does not work
            spark.conf.unset(key)
        raise


def is_installed(spark: SparkSession | None, settings: ClientSettings) -> bool:
    """Return whether `install` succeeded in this session for these settings; False without a session."""
    return spark is not None and spark.conf.get(_PREFIX + catalog_of(settings), None) is not None


def is_installed_otherwise(spark: SparkSession | None) -> bool:
    """Return whether `install` succeeded in this session for any registry; False without a session."""
    return spark is not None and _CLASS in spark.conf.getAll.values()


def catalog_of(settings: ClientSettings) -> str:
    """Return the name of a registry's catalog; different settings give different names."""
    digest = hashlib.blake2b(repr(sorted(_options(settings).items())).encode(), digest_size=6, key=_KEY)
    return f"strata_{digest.hexdigest()}"


def jvm_path(plan: DecodePlan, columns: Sequence[Column]) -> Column:
    """Return a call of the catalog's function.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.
    """
    frames, *origin = columns
    arguments = [frames, functions.struct(*origin)] if origin else [frames]
    return functions.call_function(f"{catalog_of(plan.registry)}.`{function_name(plan)}`", *arguments)


def function_name(plan: DecodePlan) -> str:
    """Return the name of a plan's function, which holds all that executors need except the registry.

    It is compressed, because Spark shows it in parsed plans and in errors of the analyzer.
    """
    content = {
        "reader": write_with_defaults(plan.reader_schema),
        "type": reader_type(plan).spark.jsonValue(),
        "mode": plan.mode.value,
        "origin": list(plan.origin),
    }
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(content).encode(), 9)).decode()


def _check(settings: ClientSettings) -> None:
    if settings.proxy is not None:  # without it, requests would bypass the proxy
        raise NotInstalled(
            "the JVM path does not support the setting proxy: do not call install, and call decode with path='python'"
        )


def _options(settings: ClientSettings) -> Mapping[str, str]:
    fields = asdict(settings) | {"urls": ",".join(settings.urls)}
    return {name: _text(value) for name, value in fields.items() if value is not None}


def _text(value: Any) -> str:
    """Return a value as text; equal values give the same text."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _ensure_jar(spark: SparkSession, name: str, jar: Path) -> None:
    """Add the jar unless the catalog already works."""
    if _problem(spark, name) is None:
        return
    _add(spark, jar)
    problem = _problem(spark, name)
    if problem is not None:
        raise NotInstalled(f"the session has the jar but cannot use it: {problem}. {_REMEDY}")


def _problem(spark: SparkSession, name: str) -> str | None:
    """Return why the catalog does not work, or None if it does."""
    try:
        spark.sql(f"SHOW USER FUNCTIONS IN {name}").collect()
    except Exception as error:  # noqa: BLE001 - each kind of session raises something else for a missing class
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _add(spark: SparkSession, jar: Path) -> None:
    if not jar.is_file():
        raise NotInstalled(f"no jar at {jar}; in a checkout, `make setup` builds it")
    try:
        _upload(spark, jar)
    except Exception as error:
        raise NotInstalled(f"the session rejected the jar: {_first_line(error)}. {_REMEDY}") from error


def _upload(spark: SparkSession, jar: Path) -> None:
    if type(spark).__module__.startswith("pyspark.sql.connect."):  # the client uploads the jar to the server
        spark.addArtifacts(str(jar))
    else:
        spark.sql(f"ADD JAR '{jar.as_uri()}'")
