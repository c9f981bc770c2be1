"""The rules of data contracts, which these columns do not run.

Rules of this file: it finds rules; the callers warn or raise.
"""

from strata.serdes.model import Rule, Schema

__all__ = ["client_rules"]

_AT_CLIENTS = (None, "ALL", "CLIENT")


def client_rules(schema: Schema) -> list[Rule]:
    """Return the enabled rules of a data contract that clients run, such as CSFLE encryption."""
    rules = schema.rule_set
    if rules is None or rules.enable_at not in _AT_CLIENTS:
        return []
    return [one for one in (*rules.migration_rules, *rules.domain_rules, *rules.encoding_rules) if not one.disabled]
