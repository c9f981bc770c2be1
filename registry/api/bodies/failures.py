"""The JSON of errors, and of the findings that explain a verdict."""

from typing import Literal

from pydantic import Field

from strata.registry.api.bodies.contracts import Answer

__all__ = ["ErrorAnswer", "FindingAnswer"]


class FindingAnswer(Answer):
    """A reason for a verdict."""

    rule: str = Field(
        description="the errorType of the messages; or one of this registry's own, see docs/compatibility.md"
    )
    path: str = Field(description="the place in the form of the messages; may be empty")
    field: str = Field(description="the same place by the names of fields; may be empty")
    direction: str | None = Field(description="BACKWARD: the new schema reads; FORWARD: the previous version reads")
    version: int | None = Field(description="the version that the schema was compared with")
    previous: object = Field(None, description="the value in that version; null: none")
    new: object = Field(None, description="the value in the new schema; null: none")
    advice: str = Field(description="what is wrong, and what would be accepted")
    table: str | None = Field(None, description="the engine whose tables cannot follow (policy LOGICAL)")
    witness: dict[str, object] | None = Field(
        None,
        description="if the request asks for it: the record that shows the finding (`record`, `payload` in base64 "
        "without a frame, `error` or `writtenAs` and `readAs`), or `ruleOnly` and `because`",
    )
    no_witness: Literal["time", "size", "undecided"] | None = Field(
        None, alias="noWitness", description="why `witness` is null"
    )


class ErrorAnswer(Answer):
    """The body of an error; `findings` says why a schema is incompatible."""

    error_code: int = Field(alias="error_code")
    message: str
    findings: list[FindingAnswer] | None = None
