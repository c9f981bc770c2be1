"""Asks AWS Glue for schema versions, for readers of its frames whose schemas were not migrated.

Needs the extra `glue`. botocore finds the credentials as all AWS tools do. Source: GetSchemaVersion of the Glue API.

Rules of this file: one call in, one schema out; the client of the registry caches.
"""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from strata.imports import require
from strata.serdes.errors import ErrorCode, RegistryError, RegistryUnavailable
from strata.serdes.model import Schema
from strata.serdes.settings import ClientSettings

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

__all__ = ["find_glue_version"]

_NOT_FOUND = 404
_LATER = frozenset({429, 500, 502, 503, 504})
_THROTTLED = frozenset({"ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException"})


def find_glue_version(settings: ClientSettings, version: str) -> Schema:
    """Return the schema of a version in AWS Glue.

    Args:
        settings: the region, timeouts and retries.
        version: the UUID of the schema version.

    Raises:
        MissingExtra: If botocore is not installed.
        RegistryError: With error code 40403 if Glue does not know the version; another one if it rejects the request.
        RegistryUnavailable: If Glue gives no answer after all retries, or there are no credentials.
    """
    require("glue", "the setting glue_region", "botocore")
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = _client(settings.glue_region, settings.timeout, settings.retries, settings.proxy, os.getpid())
        answer = client.get_schema_version(SchemaVersionId=version)
    except ClientError as error:
        raise _refusal(error, version) from None
    except BotoCoreError as error:
        raise RegistryUnavailable(f"AWS Glue in {settings.glue_region} does not answer: {error}") from None
    return Schema(answer["SchemaDefinition"], answer["DataFormat"])


@lru_cache(maxsize=4)
def _client(region: str, timeout: float, retries: int, proxy: str | None, process: int) -> "BaseClient":  # noqa: ARG001
    """Return a client of Glue, which threads may share; a forked process gets its own."""
    from botocore.config import Config
    from botocore.session import get_session

    config = Config(
        connect_timeout=timeout,
        read_timeout=timeout,
        retries={"total_max_attempts": retries + 1, "mode": "standard"},
        proxies=None if proxy is None else {"https": proxy, "http": proxy},
    )
    return get_session().create_client("glue", region_name=region, config=config)


def _refusal(error: "ClientError", version: str) -> RegistryError | RegistryUnavailable:
    code = str(error.response["Error"]["Code"])
    status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    if code == "EntityNotFoundException":
        message = f"AWS Glue does not know the schema version {version}"
        return RegistryError(_NOT_FOUND, ErrorCode.SCHEMA_NOT_FOUND, message)
    if code in _THROTTLED or status in _LATER:
        return RegistryUnavailable(f"AWS Glue keeps answering: {error}")
    return RegistryError(status, status, str(error))
