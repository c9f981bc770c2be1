"""The records of the log, the State that is their fold, and the logs that hold them."""

from strata.imports import require

require("server", "strata.storage", "immutables", "orjson", "sqlalchemy")
