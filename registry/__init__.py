"""The REST service and the command line; README.md in this folder explains the path of a request."""

from strata.imports import require

require(
    "server",
    "strata.registry",
    "click",
    "fastapi",
    "google.protobuf",
    "immutables",
    "jsonschema_rs",
    "orjson",
    "pydantic",
    "rich",
    "sqlalchemy",
    "uvicorn",
)
