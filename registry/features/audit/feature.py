"""The audit as a feature."""

from strata.registry.features.audit.lines import Audit, open_sink
from strata.registry.features.audit.settings import AuditFailure, AuditSettings
from strata.registry.features.feature import Counted, Feature, Node, Part, settings_of
from strata.registry.node.settings import CoreSettings, SettingRefused

__all__ = ["AUDIT"]


def _part(node: Node) -> Part | None:
    settings = settings_of(node.settings, AuditSettings)
    if not settings.audit:
        return None
    refuses = settings.audit_on_failure is AuditFailure.REFUSE
    audit = Audit(open_sink(settings.audit), refuses=refuses, reads=settings.audit_reads)
    counted: Counted = {
        ("strata_audit_lines_total", "written"): lambda: audit.written,
        ("strata_audit_lines_total", "dropped"): lambda: audit.dropped,
    }
    return Part(close=audit.close, counted=counted, audit=audit)


def _check(settings: CoreSettings) -> None:
    own = settings_of(settings, AuditSettings)
    try:
        if own.audit:  # here, because a worker that fails is started again and again
            open_sink(own.audit).close()
    except OSError as error:
        raise SettingRefused(
            f"--audit (or STRATA_AUDIT) is {own.audit!r}, which cannot be opened: {error.strerror or error}"
        ) from None


AUDIT = Feature("audit", _part, AuditSettings, check=_check)
