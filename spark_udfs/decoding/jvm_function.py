"""The JVM function: frames become Spark rows inside the executor, without a Python worker.

Each registry is a function catalog of the session (`spark.sql.catalog.strata`), whose options hold its URLs and the
client settings. A decode is a function of that catalog, which `strata_decode(frames, name)` calls. The name says what
it reads and holds the plan, so the call is plain SQL and needs nothing from the session except its configuration. That
is why it also works through Spark Connect. Names are the same in each process, so that views can keep them.

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
from dataclasses import asdict, fields
from itertools import count
from pathlib import Path

from pyspark.sql import Column, SparkSession, functions

from strata.serdes.model import AVRO
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Registry, active_session, settings_of
from strata.spark_udfs.decoding.payload_formats import inputs_for_jvm
from strata.spark_udfs.decoding.plan import DecodePlan, reader_type

__all__ = [
    "JAR",
    "MISSING",
    "NotInstalled",
    "a_catalog_of",
    "catalog_of",
    "function_name",
    "install",
    "is_installed",
    "is_installed_otherwise",
    "jvm_path",
    "packed",
    "replay_in_jvm",
]

JAR = Path(__file__).parents[1] / "strata-spark.jar"
"""The jar in the wheel; `make setup` builds it in a checkout."""

MISSING = "call strata.spark_udfs.install(spark, registry=…) with these registry settings first"
_REMEDY = f"Start the session with spark.jars={JAR}, or call decode with path='python'"
_CLASS = "strata.spark.StrataCatalog"
_PREFIX = "spark.sql.catalog."
_OUTSIDE_JOBS = "strata."
"""The prefix of settings that Spark does not copy into the properties of jobs."""
_INSTALLED = f"{_OUTSIDE_JOBS}installed"
_VERSION = 3
"""The version of plans, by `strata.spark.plan.FunctionName`, which reads those of older versions from views."""
_SECRETS = ("password", "token", "client_secret")
_KEY = secrets.token_bytes(16)
"""Key of the digests of this process, which keeps passwords from being guessed from the names of settings."""


class NotInstalled(RuntimeError):
    """A session that cannot use the JVM function; the message gives the reason and the remedy."""


def install(spark: SparkSession, *, registry: Registry, jar: str | Path | None = None, name: str | None = None) -> None:
    """Make `decode` run inside Spark's own executors, for one registry, in this session.

    Call it again for another registry and for another session. It adds the jar to the session, unless the session
    already has it (from `spark.jars`, or on the server of Spark Connect).

    Args:
        spark: the session, classic or Spark Connect.
        registry: the registry, as for `decode`; pass the same settings to both.
        jar: the jar to add; by default the one in this package.
        name: the name of the registry in SQL. By default the first registry is `strata`, the next one `strata_2`. A
            name that is in use gets these settings.

    Raises:
        NotInstalled: If the jar does not exist, the session rejects it, or only the Python path supports a setting.
        TypeError: If `registry` is neither a URL nor several URLs nor `ClientSettings`.
        ValueError: If `registry` is not a valid URL, or `name` is not an identifier.
    """
    settings = settings_of(registry)
    _check(settings)
    if name is not None and not name.isidentifier():
        raise ValueError(f"name is {name!r}; allowed are letters, digits and underscores")
    catalog = name or _name_of(spark, settings) or _free_name(spark, settings)
    digest = _digest(settings)
    configuration = {
        f"{_OUTSIDE_JOBS if option in _SECRETS else _PREFIX}{catalog}.{option}": value
        for option, value in _options(settings).items()
    } | {
        _PREFIX + catalog: _CLASS,
        f"{_OUTSIDE_JOBS}{catalog}.settings": digest,
        f"{_OUTSIDE_JOBS}catalog.{digest}": catalog,
    }
    before = {f"{prefix}{catalog}.{field.name}" for field in fields(settings) for prefix in (_OUTSIDE_JOBS, _PREFIX)}
    for key in before - configuration.keys():
        spark.conf.unset(key)
    for key, value in configuration.items():
        spark.conf.set(key, value)
    try:
        _ensure_jar(spark, catalog, JAR if jar is None else Path(jar))
    except NotInstalled:
        for key in configuration:  # otherwise decodes would choose a path that does not work
            spark.conf.unset(key)
        raise
    spark.conf.set(_INSTALLED, catalog)


def is_installed(spark: SparkSession | None, settings: ClientSettings) -> bool:
    """Return whether `install` succeeded in this session for these settings; False without a session."""
    return spark is not None and _name_of(spark, settings) is not None


def is_installed_otherwise(spark: SparkSession | None) -> bool:
    """Return whether `install` succeeded in this session for any registry; False without a session."""
    return spark is not None and a_catalog_of(spark) is not None


def a_catalog_of(spark: SparkSession) -> str | None:
    """Return the name of a catalog that `install` has made in a session, None if there is none."""
    return spark.conf.get(_INSTALLED, None)


def catalog_of(settings: ClientSettings) -> str:
    """Return the name of the catalog that has these settings, in the active session.

    Raises:
        NotInstalled: If `install` was not called for them.
    """
    session = active_session()
    name = None if session is None else _name_of(session, settings)
    if name is None:
        raise NotInstalled(MISSING)
    return name


def _name_of(spark: SparkSession, settings: ClientSettings) -> str | None:
    digest = _digest(settings)
    name = spark.conf.get(f"{_OUTSIDE_JOBS}catalog.{digest}", None)
    is_current = name is not None and spark.conf.get(f"{_OUTSIDE_JOBS}{name}.settings", None) == digest
    return name if is_current else None


def _free_name(spark: SparkSession, settings: ClientSettings) -> str:
    """Return the first free name, or one that the configuration gives to this registry without settings of ours."""
    for number in count(1):
        name = "strata" if number == 1 else f"strata_{number}"
        if spark.conf.get(_PREFIX + name, None) is None:
            return name
        is_ours = spark.conf.get(f"{_OUTSIDE_JOBS}{name}.settings", None) is not None
        if not is_ours and spark.conf.get(f"{_PREFIX}{name}.urls", None) == ",".join(settings.urls):
            return name
    raise AssertionError


def _digest(settings: ClientSettings) -> str:
    options = repr(sorted(_options(settings).items()))
    return hashlib.blake2b(options.encode(), digest_size=6, key=_KEY).hexdigest()


def jvm_path(plan: DecodePlan, columns: Sequence[Column]) -> Column:
    """Return a call of the catalog's function.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.

    Raises:
        NotInstalled: If `install` was not called for the registry.
    """
    frames, *origin = columns
    more = [functions.struct(*origin)] if origin else []
    return functions.call_function(
        f"{catalog_of(plan.registry)}_decode", frames, functions.lit(function_name(plan)), *more
    )


def replay_in_jvm(plan: DecodePlan, frames: Column, place: Column) -> Column:
    """Return the aggregate that counts what a plan's reader schema makes of frames: an array of outcomes.

    Args:
        plan: the plan of the decode.
        frames: the column of frames.
        place: a struct that says where a record is, or a column of another type.

    Raises:
        NotInstalled: If `install` was not called for the registry.
    """
    name = functions.lit(function_name(plan))
    return functions.call_function(f"{catalog_of(plan.registry)}_replay", frames, name, place)


def function_name(plan: DecodePlan) -> str:
    """Return the name of a plan's function, which holds all that executors need except the registry.

    It begins with what people want to know; the rest is compressed, because Spark shows it in parsed plans.
    """
    label = plan.label or "?"
    return f"{label}{'' if label.endswith('?') else '&'}mode={plan.mode}&plan={packed(_content(plan))}"


def _content(plan: DecodePlan) -> dict[str, object]:
    return {
        "format": AVRO if plan.payload is None else plan.payload.schema.format,
        **_inputs(plan),
        "mode": plan.mode.value,
        "origin": list(plan.origin),
    }


def packed(content: Mapping[str, object]) -> str:
    """Return what a function's name holds for the JVM, compressed."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps({"version": _VERSION, **content}).encode(), 9)).decode()


def _inputs(plan: DecodePlan) -> dict[str, object]:
    """Return what the JVM makes its plan from."""
    reader_type(plan)  # rejects what has no Spark type
    if plan.payload is None:
        return {"text": plan.reader_schema} | ({"members_by_type": True} if plan.members_by_type else {})
    return inputs_for_jvm(plan.payload)


def _check(settings: ClientSettings) -> None:
    # Without a proxy, requests would bypass it; only Python has a client of AWS.
    for name in ("proxy", "glue_region", "ca_data", "key_password"):
        if getattr(settings, name) is not None:
            raise NotInstalled(
                f"the JVM path does not support the setting {name}: do not call install, and call decode with "
                "path='python'"
            )


def _options(settings: ClientSettings) -> Mapping[str, str]:
    fields = asdict(settings) | {"urls": ",".join(settings.urls)}
    return {name: _text(value) for name, value in fields.items() if value is not None}


def _text(value: object) -> str:
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
        spark.sql(f"SHOW USER FUNCTIONS IN {name}")  # a command runs at once
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
