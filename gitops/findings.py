"""A finding as JSON, for reports and plans."""

from strata.compat.proofs import as_json
from strata.compat.result import Finding

__all__ = ["finding_json"]


def finding_json(finding: Finding) -> dict[str, object]:
    """Return where a finding is, what both schemas have there, and its proof."""
    return {
        "path": finding.path, "field": finding.field, "direction": finding.direction,
        "version": finding.version, "previous": finding.previous, "new": finding.new,
        **({"table": finding.table} if finding.table else {}),
        **({} if finding.proof is None else as_json(finding.proof)),
    }  # fmt: skip
