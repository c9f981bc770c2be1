"""The form of a finding in an answer; `registry/findings.py` fills it in."""

from typing import Any

from pydantic import Field

from strata.registry.wire.contracts import Answer

__all__ = ["FindingAnswer"]


class FindingAnswer(Answer):
    """A reason for a verdict."""

    rule: str = Field(
        description="the errorType of the messages; or one of this registry's own, see docs/compatibility.md"
    )
    path: str = Field(description="where, as the messages have it; may be empty")
    field: str = Field(description="the same place by the names of fields; may be empty")
    direction: str | None = Field(description="BACKWARD: the new schema reads; FORWARD: the previous version reads")
    version: int | None = Field(description="the version that the schema was compared with")
    previous: Any = Field(None, description="what that version has there; null: nothing")
    new: Any = Field(None, description="what the new schema has there; null: nothing")
    advice: str = Field(description="what is wrong, and what would be accepted")
