"""Every event of docs/logs.md is caused in a test, which this table names, and no other event is here.

Changes are not: `test_every_change_leaves_a_line` makes one of each kind.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)` \| [A-Z]+ \|", re.MULTILINE)
LOG, SERVICE, TOPICS = "registry/test_operator_log.py", "events/test_service.py", "kafka/test_events.py"
IDENTITY = "access/test_identity_of_a_node.py"
CAUSED = {
    f"{LOG}::test_start_and_end": ["log_opening", "log_created", "log_replayed", "ready", "signal", "stopped"],
    f"{LOG}::test_a_request_is_logged_with_its_facts": ["request", "request_slow"],
    f"{LOG}::test_a_request_that_cannot_be_read_is_logged": ["request_refused"],
    f"{LOG}::test_a_start_that_fails_says_why_in_json": ["serve_failed"],
    f"{LOG}::test_a_record_that_is_set_aside_is_named": ["record_set_aside"],
    f"{LOG}::test_events_of_access": ["variable_unknown", "login_failed", "audit_unwritable", "file_exposed"],
    f"{IDENTITY}::test_a_broken_file_changes_nothing": ["auth_file_rejected"],
    f"{IDENTITY}::test_a_user_is_removed": ["auth_file_read"],
    f"{LOG}::test_a_log_that_goes_and_comes_back": [
        "log_unreadable", "cannot_write", "write_failed", "log_readable", "can_write_again",
    ],
    "registry/test_health.py::test_a_standby_that_waits_for_its_first_copy_is_not_ready": ["not_ready", "ready_again"],
    f"{LOG}::test_a_worker_that_dies_is_named": ["worker_ended"],
    f"{SERVICE}::test_a_node_that_the_network_can_reach": ["access_open", "tls_missing"],
    f"{SERVICE}::test_traces_by_another_protocol": ["trace_protocol_unsupported"],
    f"{SERVICE}::test_files_and_connections_that_run_out": ["too_few_files", "metrics_at", "accept_failed"],
    f"{SERVICE}::test_a_worker_that_fails": ["worker_failed"],
    f"{SERVICE}::test_a_log_that_was_compacted": ["log_read_again"],
    f"{SERVICE}::test_a_rule_of_a_later_release": ["rule_unreadable"],
    f"{SERVICE}::test_a_standby_that_loses_its_source_and_is_promoted": ["following", "follow_failed", "promoted"],
    "neighbours/test_many_subjects.py::test_progress_is_in_the_log_and_in_the_health": ["follow_progress"],
    f"{SERVICE}::test_an_exporter_that_fails_and_recovers": ["exporter_failed", "exporter_running"],
    "events/test_tls.py::test_certificates_that_clients_reject": [
        "certificate_expired", "certificate_not_yet_valid", "tls_files_loaded",
    ],
    "events/test_tls.py::test_certificates_and_files_that_are_refused": [
        "certificate_expires", "tls_files_rejected", "client_certificate_invalid",
    ],
    "events/test_access.py::test_a_provider_that_goes_away": [
        "provider_keys_read", "provider_keys_unreadable", "provider_keys_missing", "sign_in_failed",
    ],
    "events/test_access.py::test_a_signature_that_is_not_of_a_node": ["signature_invalid"],
    f"{TOPICS}::test_a_topic_that_is_not_safe": [
        "too_few_replicas", "topic_retention_short", "fencing_off", "node_secret_missing",
    ],
    f"{TOPICS}::test_other_writers": ["pen_taken", "foreign_writer", "node_url_shared", "pen_holder_silent"],
    "kafka/test_pen.py::test_losing_the_pen_is_no_error": ["pen_lost"],
    "kafka/test_lease.py::test_what_forbids_leases": ["lease_suspended"],
    f"{TOPICS}::test_a_topic_that_delivers_nothing": ["reader_stuck"],
    # At the lowest level, for the reasons in these tests: defects, 200 lost races in a row, and the like.
    "events/test_defects.py::test_a_defect_is_logged_with_its_traceback": [
        "request_failed", "login_broken", "watch_failed", "follow_broken", "exporter_broken", "auth_file_broken",
        "provider_keys_broken", "audit_line_missing",
    ],
    f"{TOPICS}::test_settings_that_cannot_be_read": ["topic_unchecked"],
    "registry/test_writer.py::test_races_without_end_are_given_up": ["races_lost"],
    "registry/test_forward.py::test_a_holder_that_has_lost_the_pen_is_named": ["pen_moved"],
}  # fmt: skip


def test_every_event_is_caused():
    """The events of the document are those of the table above, each once."""
    documented = ROW.findall((TESTS.parent / "docs/logs.md").read_text())

    assert sorted(documented) == sorted(event for events in CAUSED.values() for event in events)


@pytest.mark.parametrize(("place", "events"), CAUSED.items(), ids=CAUSED)
def test_the_tests_name_their_events(place, events):
    """Each test is there, and names its events."""
    file, _, name = place.partition("::")
    text = TESTS.joinpath(file).read_text()
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    [found] = [node for node in ast.parse(text).body if isinstance(node, kinds) and node.name == name]
    first = min(node.lineno for node in (found, *found.decorator_list))
    lines = "\n".join(text.splitlines()[first - 1 : found.end_lineno])

    assert [] == [event for event in events if f'"{event}"' not in lines]
