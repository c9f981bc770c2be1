"""Every name that a live node exports is moved by traffic in a test, which this file names; it names no other."""

import ast
import base64
import json
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.access_questions import QUESTIONS
from harness.certificates import Authority
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.features.metrics.confluent import ENDPOINTS

TESTS = Path(__file__).parents[1]
JERSEY = "kafka_schema_registry_jersey_metrics_"
ROOT = {"Authorization": "Basic " + base64.b64encode(b"root:root").decode(), "Content-Type": "application/json"}
# By test: the prefix of names, and what follows it.
MOVED = {
    "registry/test_metrics.py::test_counts_of_requests_are_exact": ("strata_", {
        "requests_total", "request_bytes_total", "response_bytes_total", "errors_total",
    }),
    "registry/test_metrics.py::test_durations_are_below_those_of_the_client": ("strata_", {
        "request_duration_seconds",
    }),
    "registry/test_metrics_moves.py::test_what_is_done_moves_what_it_should": ("strata_", {
        "subjects", "versions", "schemas", "contexts", "log_records_read", "log_records_written_total", "log_offset",
        "log_end_offset", "write_group_requests", "schema_parse_duration_seconds",
        "compatibility_check_duration_seconds", "cache_hits_total", "cache_misses_total", "cache_entries",
    }),
    "registry/test_metrics_moves.py::test_what_is_done_moves_what_it_should ": ("kafka_schema_registry_", {
        "registered_count", "deleted_count", "schemas", "schemas_created", "schemas_deleted", "api_success_count",
        "api_failure_count", "association_batch_get_success_count", "association_batch_get_failure_count",
        "association_batch_mutate_success_count", "association_batch_mutate_failure_count",
    }),
    "registry/test_metrics_moves.py::test_failures_of_the_log_are_counted": ("strata_", {
        "log_append_duration_seconds", "log_read_duration_seconds", "log_conflicts_total", "log_records_set_aside",
        "log_behind_offsets", "log_read_age_seconds", "ready", "write_ready", "build_info",
    }),
    "registry/test_metrics_moves.py::test_waiting_writes_and_groups": ("strata_", {
        "requests_in_flight", "limits_hit_total",
    }),
    "registry/test_metrics_moves.py::test_counts_of_caches_add_up": ("strata_", {
        "cache_evictions_total", "cache_bytes",
    }),
    "registry/test_metrics_of_a_node.py::test_workers_are_one_answer": ("strata_", {
        "workers", "connections_opened_total",
    }),
    "registry/test_metrics_of_a_node.py::test_access_audit_and_files": ("strata_", {
        "access_requests_total", "audit_lines_total", "auth_file_in_force", "auth_file_failures_total",
        "certificate_expiry_timestamp_seconds",
    }),
    "registry/test_metrics_of_a_node.py::test_access_audit_and_files ": ("kafka_schema_registry_", {
        "certificate_expiration_keystore",
    }),
    "registry/test_metrics_of_limits.py::test_limits_of_connections_and_requests": ("strata_", {"connections"}),
    "registry/test_metrics_of_limits.py::test_the_certificates_that_clients_are_verified_by": (
        "kafka_schema_registry_", {"certificate_expiration_truststore"},
    ),
    "registry/test_metrics_of_confluent.py::test_figures_of_requests_are_those_of_the_client": (JERSEY, {
        "request_rate", "request_byte_rate", "request_size_avg", "request_size_max", "response_rate",
        "response_byte_rate", "response_size_avg", "response_size_max", "request_latency_avg", "request_latency_max",
        "request_latency_95", "request_latency_99", "request_error_rate",
    }),
    "registry/test_metrics_of_confluent.py::test_keys_and_formats": ("kafka_schema_registry_", {
        "dek_registry_num_keks", "dek_registry_num_keks_shared", "dek_registry_num_deks", "app_info",
        "custom_schema_provider_count",
    }),
    "registry/test_metrics_of_confluent.py::test_rates_of_connections": ("kafka_schema_registry_jetty_metrics_", {
        "connections_active", "connections_opened_rate", "connections_accepted_rate", "connections_closed_rate",
    }),
    "registry/test_metrics_of_confluent.py::test_figures_of_the_process": ("", {
        "process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
        "process_start_time_seconds", "process_open_fds", "process_max_fds", "python_info",
        "python_gc_collections_total", "python_gc_objects_collected_total", "python_gc_objects_uncollectable_total",
    }),
    "neighbours/test_many_subjects.py::test_progress_is_in_the_metrics": ("strata_", {
        "standby_reading_done", "standby_reading_total",
    }),
    "neighbours/test_standby.py::test_a_standby_says_how_old_its_copy_is": ("strata_", {
        "standby", "standby_behind_seconds",
    }),
    "neighbours/test_standby.py::test_a_source_that_lost_everything_is_not_followed": ("strata_", {
        "standby_failures_total",
    }),
    "neighbours/test_exporters.py::test_exporters_are_counted": ("strata_", {"exporters", "exporter_failures_total"}),
    "kafka/test_metrics_of_the_pen.py::test_the_pen_and_other_writers": ("strata_log_", {
        "holds_pen", "pen_taken_total", "pen_lost_total", "foreign_records",
    }),
    "kafka/test_metrics_of_the_pen.py::test_the_pen_and_other_writers ": ("kafka_schema_registry_", {
        "master_slave_role", "node_count", "leader_initialization_latency",
    }),
}  # fmt: skip
ONLY_ELSEWHERE = {"strata_log_holds_pen", "kafka_schema_registry_leader_initialization_latency"}


def plain(name):
    """Return the name of a family, without the endpoint in it."""
    endpoint = next((one for one in ENDPOINT_NAMES if name.startswith(f"{JERSEY}{one}_")), None)
    return name.replace(f"{endpoint}_", "", 1) if endpoint else name


ENDPOINT_NAMES = sorted((one.lower().replace(".", "_").replace("-", "_") for one in ENDPOINTS), key=len, reverse=True)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return the names of all families of a node on which everything is on, after requests to every route."""
    folder = tmp_path_factory.mktemp("names")
    authority = Authority(folder)
    pair = authority.issue("registry")
    folder.joinpath("auth.yaml").write_text(
        json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]})
    )
    options = [f"--auth-file={folder}/auth.yaml", "--superusers=User:root", f"--audit={folder}/audit.jsonl",
               f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}", f"--tls-client-ca={authority.file}",
               "--tls-client-auth=optional"]  # fmt: skip
    with RegistryNode("memory:", *options, tls=authority.context()) as node, closing(node.connect()) as connection:
        for method, path, body in [*QUESTIONS, ("GET", "/metrics", None)]:
            connection.request(method, path, None if body is None else json.dumps(body), ROOT)
            answer = connection.getresponse()
            text = answer.read().decode()
    assert 200 == answer.status
    return {
        family.name + ("_total" if family.type == "counter" and f"{family.name}_total" in text else "")
        for family in text_string_to_metric_families(text)
    }


def test_every_name_is_moved_in_a_test(exported):
    """The names that a node exports are those of the table above."""
    moved = [prefix + name for prefix, names in MOVED.values() for name in names]

    assert sorted(moved) == sorted({*map(plain, exported), *ONLY_ELSEWHERE})


@pytest.mark.parametrize(("place", "names"), MOVED.items(), ids=MOVED)
def test_the_tests_are_there_and_name_what_they_move(place, names):
    """Each test of the table exists, and its file has each name; perhaps without its prefix."""
    file, _, test = place.strip().partition("::")
    text = TESTS.joinpath(file).read_text()
    _, found = names

    assert test in {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    assert [] == [name for name in found if shortest(name) not in text]


def shortest(name):
    """Return the part of a name that tests which build names from parts have in full."""
    for prefix in ("log_", "process_", "python_gc_", "connections_", "dek_registry_num_", "association_"):
        name = name.removeprefix(prefix)
    return name.removeprefix("request_latency_").removesuffix("_total")
