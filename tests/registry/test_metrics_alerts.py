"""The alert rules are valid, each fires on what it is for and on nothing else, and each has a section in the docs."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from harness.prometheus import find_tool
from strata.gitops.reports import _HOME
from strata.registry.core.metric_table import METRICS
from strata.serdes.prometheus_observer import PrometheusObserver

# Prometheus, of the boards' tests, looks for its targets after five seconds: these tests run meanwhile.
pytestmark = pytest.mark.usefixtures("scraped")

DOCS = Path(__file__).parents[2] / "docs"
RULES = DOCS / "grafana" / "alerts.yml"
ALERTS = {rule["alert"]: rule for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]}
NODE = 'instance="n:1",job="schema-registry"'

# Each alert with series that make it fire after half an hour, and series that do not; one sample a minute.
CASES = [
    ("StrataDown", {f"up{{{NODE}}}": "0x40"}, {f"up{{{NODE}}}": "1x40"}),
    ("StrataNotReady", {f"strata_ready{{{NODE}}}": "0x40"}, {f"strata_ready{{{NODE}}}": "1x40"}),
    ("StrataCannotWrite",
     {f"strata_write_ready{{{NODE}}}": "0x40", f"strata_standby{{{NODE}}}": "0x40"},
     {f"strata_write_ready{{{NODE}}}": "0x40", f"strata_standby{{{NODE}}}": "1x40"}),
    # One write of a thousand requests fails each minute, and nothing is written.
    ("StrataWritesFail",
     {f'strata_errors_total{{{NODE},code="50004"}}': "0+1x40", f"strata_log_records_written_total{{{NODE}}}": "7x40",
      f'strata_requests_total{{{NODE},status="2xx"}}': "0+1000x40"},
     {f'strata_errors_total{{{NODE},code="50302"}}': "0+1x40", f"strata_log_records_written_total{{{NODE}}}": "0+9x40",
      f'strata_errors_total{{{NODE},code="50301"}}': "0+99x40"}),
    ("StrataBehind",
     {f"strata_log_behind_offsets{{{NODE}}}": "5x40", f"strata_log_read_age_seconds{{{NODE}}}": "60x40"},
     {f"strata_log_behind_offsets{{{NODE}}}": "5x40", f"strata_log_read_age_seconds{{{NODE}}}": "1x40"}),
    ("StrataRecordsSetAside",
     {f"strata_log_records_set_aside{{{NODE}}}": "1x40"}, {f"strata_log_records_set_aside{{{NODE}}}": "0x40"}),
    ("StrataForeignWriter",
     {f"strata_log_foreign_records{{{NODE}}}": "0+1x40"}, {f"strata_log_foreign_records{{{NODE}}}": "7x40"}),
    ("StrataPenMoves",
     {f"strata_log_pen_taken_total{{{NODE}}}": "0+5x40"}, {f"strata_log_pen_taken_total{{{NODE}}}": "1x40"}),
    ("StrataStandbyBehind",
     {f"strata_standby_behind_seconds{{{NODE}}}": "200+60x40"}, {f"strata_standby_behind_seconds{{{NODE}}}": "9x40"}),
    ("StrataServerErrors",
     {f'strata_requests_total{{{NODE},status="5xx"}}': "0+2x40",
      f'strata_requests_total{{{NODE},status="2xx"}}': "0+9x40"},
     {f'strata_requests_total{{{NODE},status="4xx"}}': "0+9x40",
      f'strata_requests_total{{{NODE},status="2xx"}}': "0+9x40"}),
    ("StrataSlow",
     {f'strata_request_duration_seconds_bucket{{{NODE},le="2.0"}}': "0x40",
      f'strata_request_duration_seconds_bucket{{{NODE},le="+Inf"}}': "0+9x40"},
     {f'strata_request_duration_seconds_bucket{{{NODE},le="0.001"}}': "0+9x40",
      f'strata_request_duration_seconds_bucket{{{NODE},le="+Inf"}}': "0+9x40"}),
    ("StrataLimitsHit",
     {f'strata_limits_hit_total{{{NODE},limit="connections"}}': "0+99x40"},
     {f'strata_limits_hit_total{{{NODE},limit="connections"}}': "0+9x40"}),
    ("StrataCertificateEnds",
     {f'strata_certificate_expiry_timestamp_seconds{{{NODE},certificate="server"}}': "1000000x40"},
     {f'strata_certificate_expiry_timestamp_seconds{{{NODE},certificate="server"}}': "9000000x40"}),
    ("StrataAuthFileNotUsed",
     {f"strata_auth_file_in_force{{{NODE}}}": "0x40"}, {f"strata_auth_file_in_force{{{NODE}}}": "1x40"}),
    ("StrataLoginsFail",
     {f'strata_access_requests_total{{{NODE},outcome="unauthorized"}}': "0+99x40"},
     {f'strata_access_requests_total{{{NODE},outcome="allowed"}}': "0+99x40"}),
    ("StrataAuditDropped",
     {f'strata_audit_lines_total{{{NODE},outcome="dropped"}}': "0+1x40"},
     {f'strata_audit_lines_total{{{NODE},outcome="written"}}': "0+1x40"}),
    ("StrataDeadLetters",
     {f'strata_serde_records_total{{{NODE},operation="decode",outcome="no_frame"}}': "0+1x40"},
     {f'strata_serde_records_total{{{NODE},operation="decode",outcome="ok"}}': "0+1x40"}),
]  # fmt: skip


def promtool(*arguments):
    """Run promtool, and return what it says if it fails."""
    tool = find_tool("promtool")
    if tool is None:
        pytest.skip("there is no promtool, and Debian's package cannot be installed: no alert was checked")
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_rules_are_valid():
    """Prometheus accepts the rules."""
    assert "" == promtool("check", "rules", RULES)


def test_each_alert_fires_on_what_it_is_for(tmp_path):
    """Each alert is silent on one set of series and fires on the other."""
    assert [name for name, *_ in CASES] == list(ALERTS)
    tests = []
    for name, bad, good in CASES:
        for series, fires in ((bad, True), (good, False)):
            values = [{"series": key, "values": value} for key, value in series.items()]
            expression = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
            expected = {"expr": expression, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}
            tests.append({"interval": "1m", "input_series": values, "promql_expr_test": [expected]})
    case = tmp_path / "alerts_test.yml"
    case.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "5m", "tests": tests}))

    assert "" == promtool("test", "rules", case)


def test_alerts_name_metrics_that_exist():
    """Every metric in a rule is one that a node or a client exports."""
    clients = CollectorRegistry()
    PrometheusObserver(clients).record("decode", "AVRO", "ok")
    known = {metric.name for metric in METRICS} | {one.name for family in clients.collect() for one in family.samples}
    for rule in ALERTS.values():
        for name in re.findall(r"\bstrata_\w+", rule["expr"]):
            assert name.removesuffix("_bucket") in known


def test_each_alert_leads_to_its_section():
    """docs/alerts.md has a section on each alert, in their order, to which the alert's runbook_url leads."""
    sections = re.findall(r"^## (\w+)$", DOCS.joinpath("alerts.md").read_text(), re.MULTILINE)

    assert list(ALERTS) == sections
    assert {name: f"{_HOME}/blob/main/docs/alerts.md#{name.lower()}" for name in sections} == {
        name: rule["annotations"]["runbook_url"] for name, rule in ALERTS.items()
    }
