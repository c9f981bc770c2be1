"""Each metric moves with what it counts, by exactly as much."""

import json
import threading
from collections import Counter

import pytest

from harness.metric_samples import samples_in
from strata import __version__
from strata.registry.core.cache import Cache
from strata.registry.core.request_numbers import Requests
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.metrics.facts import Facts, fact
from strata.registry.node.board import Seat
from strata.registry.node.health import Health
from strata.registry.settings import Settings
from strata.storage.log import START, Conflict, Entry, LogError, MemoryLog, Record

CONFLUENT = "kafka_schema_registry_"
PROTOBUF = {"schema": 'syntax = "proto3"; message M { int32 a = 1; }', "schemaType": "PROTOBUF"}
REGISTER = ("POST", "/subjects/s/versions", {"schema": '"int"'})
BATCH = {"requests": [{"resourceName": "none"}]}
CHANGES = {"requests": [{"resourceName": "t", "resourceNamespace": "n", "resourceId": "r", "resourceType": "topic",
                         "operations": []}]}  # fmt: skip


def series(name, **labels):
    """Return the key of a series."""
    return name, frozenset(labels.items())


def scrape(api):
    """Return all samples of a node."""
    status, text = api.get("/metrics")
    assert 200 == status
    return Counter({
        series(one.name, **one.labels): one.value for one in samples_in(text) if one.value == one.value
    })  # fmt: skip


PARSES, CHECKS = "strata_schema_parse_duration_seconds_count", "strata_compatibility_check_duration_seconds_count"
# What is done before, what is done, and how much each series must move.
MOVES = {
    "a new subject": ([], [REGISTER], {
        series("strata_subjects", state="live"): 1,
        series("strata_versions", state="live", format="AVRO"): 1,
        series("strata_schemas"): 1,
        series("strata_log_records_read"): 1,
        series("strata_log_records_written_total"): 1,
        series("strata_log_offset"): 1,
        series("strata_log_end_offset"): 1,
        series("strata_log_append_duration_seconds_count", outcome="ok"): 1,
        series("strata_write_group_requests_count"): 1,
        series("strata_write_group_requests_sum"): 1,
        series("strata_write_group_requests_bucket", le="1.0"): 1,
        series(f"{CONFLUENT}registered_count"): 1,
        series(f"{CONFLUENT}schemas", schema_type="avro"): 1,
        series(f"{CONFLUENT}schemas_created", schema_type="avro"): 1,
        series(f"{CONFLUENT}api_success_count"): 1,
    }),
    "the same again": ([REGISTER], [REGISTER], {
        series("strata_versions", state="live", format="AVRO"): 0,
        series(f"{CONFLUENT}registered_count"): 0,
        series("strata_log_records_written_total"): 0,
        series("strata_write_group_requests_count"): 0,
        series(f"{CONFLUENT}api_success_count"): 1,
    }),
    "a soft deletion": ([REGISTER], [("DELETE", "/subjects/s")], {
        series("strata_subjects", state="live"): -1,
        series("strata_subjects", state="deleted"): 1,
        series("strata_versions", state="live", format="AVRO"): -1,
        series("strata_versions", state="deleted", format="AVRO"): 1,
        series(f"{CONFLUENT}deleted_count"): 1,
        series(f"{CONFLUENT}registered_count"): 0,
        series(f"{CONFLUENT}schemas_deleted", schema_type="avro"): 1,
        series(f"{CONFLUENT}schemas_created", schema_type="avro"): 0,
    }),
    "a hard deletion": ([REGISTER, ("DELETE", "/subjects/s")], [("DELETE", "/subjects/s?permanent=true")], {
        series("strata_subjects", state="deleted"): -1,
        series("strata_versions", state="deleted", format="AVRO"): -1,
        series("strata_schemas"): -1,
        series(f"{CONFLUENT}deleted_count"): 0,
    }),
    "a version that comes back": ([REGISTER, ("DELETE", "/subjects/s")], [REGISTER], {
        series("strata_versions", state="live", format="AVRO"): 1,
        series(f"{CONFLUENT}registered_count"): 1,
    }),
    "a context": ([], [("POST", "/subjects/:.c:s/versions", PROTOBUF)], {
        series("strata_contexts"): 1,
        series("strata_versions", state="live", format="PROTOBUF"): 1,
        series(f"{CONFLUENT}schemas", schema_type="protobuf"): 1,
    }),
    "a schema that does not parse": ([REGISTER], [
        ("POST", "/compatibility/subjects/s/versions/1", {"schema": '"unique to this test"'}),
    ], {
        series(PARSES, format="AVRO", outcome="invalid"): 1,
        series("strata_errors_total", code="42201"): 1,
        series(f"{CONFLUENT}api_failure_count"): 1,
    }),
    "checks": ([("POST", "/subjects/s/versions", {"schema": '{"type":"fixed","name":"F","size":3}'})], [
        ("POST", "/compatibility/subjects/s/versions/1", {"schema": '{"type":"fixed","name":"F","size":4}'}),
        ("POST", "/compatibility/subjects/s/versions/1",
         {"schema": '["null",{"type":"fixed","name":"F","size":3}]'}),
    ], {
        series(CHECKS, format="AVRO", verdict="incompatible"): 1,
        series(CHECKS, format="AVRO", verdict="compatible"): 1,
        series(f"{CONFLUENT}jersey_metrics_compatibility_subjects_versions_verify_request_rate"): 2 / 30,
    }),
    "kept answers": ([REGISTER], [("GET", "/subjects/s/versions")] * 3, {
        series("strata_cache_misses_total", cache="kept_answers"): 2,
        series("strata_cache_hits_total", cache="kept_answers"): 1,
        series("strata_cache_entries", cache="kept_answers"): 1,
    }),
    "hot answers": ([REGISTER], [("GET", "/schemas/ids/1")] * 3, {
        series("strata_cache_hits_total", cache="hot_answers"): 2,
        series("strata_cache_entries", cache="hot_answers"): 1,
    }),
    "batches": ([], [
        ("POST", "/associations:batchGet", BATCH), ("POST", "/associations:batchMutate", {"requests": 1}),
        *[("POST", "/associations:batchGet", {"requests": 1})] * 2,
        *[("POST", "/associations:batchMutate", CHANGES)] * 3,
    ], {
        series(f"{CONFLUENT}association_batch_get_success_count"): 1,
        series(f"{CONFLUENT}association_batch_get_failure_count"): 2,
        series(f"{CONFLUENT}association_batch_mutate_success_count"): 3,
        series(f"{CONFLUENT}association_batch_mutate_failure_count"): 1,
    }),
}  # fmt: skip


@pytest.mark.parametrize(("before", "done", "moved"), MOVES.values(), ids=MOVES)
def test_what_is_done_moves_what_it_should(api, before, done, moved):
    """The difference of two scrapes is what was done in between."""
    for method, path, *body in before:
        assert 200 == api.call(method, path, *body)[0]
    first = scrape(api)
    for method, path, *body in done:
        api.call(method, path, *body)
    second = scrape(api)

    assert moved == {key: pytest.approx(second[key] - first[key]) for key in moved}


class TroubledLog(MemoryLog):
    """A log in memory whose next calls fail."""

    def __init__(self):
        super().__init__()
        self.failures = []

    def append(self, after, records):
        """Append, or fail."""
        if self.failures:
            raise self.failures.pop(0)
        return super().append(after, records)


def test_failures_of_the_log_are_counted(start):
    """Lost races and failed appends count; records that cannot be read are set aside; the rest is as before."""
    log = TroubledLog()
    api = start(log)
    first = scrape(api)
    log.failures = [Conflict(), Conflict(), LogError("gone")]
    assert 500 <= api.register("a", '"int"')[0]
    assert 200 == api.register("a", '"int"')[0]
    log.append(log.end(), [Record(b"damaged", b"{}")])
    assert 200 == api.get("/subjects")[0]
    second = scrape(api)
    moved = {
        series("strata_log_append_duration_seconds_count", outcome="conflict"): 2,
        series("strata_log_append_duration_seconds_count", outcome="failed"): 1,
        series("strata_log_append_duration_seconds_count", outcome="ok"): 1,
        series("strata_log_conflicts_total"): 2,
        series("strata_log_records_set_aside"): 1,
        series("strata_errors_total", code="50302"): 1,
    }

    assert moved == {key: second[key] - first[key] for key in moved}
    assert second[series("strata_log_read_duration_seconds_count", outcome="ok")] > 0
    assert second[series("strata_log_read_duration_seconds_sum", outcome="ok")] > 0
    assert (0, 1) == (second[series("strata_log_behind_offsets")], second[series("strata_ready")])
    assert 1 == second[series("strata_write_ready")]
    assert 1 == second[series("strata_build_info", version=__version__)]
    assert 0 <= second[series("strata_log_read_age_seconds")] < 60


class SlowLog(MemoryLog):
    """A log in memory whose appends wait."""

    def __init__(self):
        super().__init__()
        self.may_go, self.waits = threading.Event(), threading.Event()

    def append(self, after, records):
        """Wait, then append."""
        self.waits.set()
        assert self.may_go.wait(60)
        return super().append(after, records)


def test_waiting_writes_and_groups(configured):
    """A write beyond those that may wait counts as a limit; the requests in flight are those that wait."""
    log = SlowLog()
    api = configured(Settings(log="memory:", max_waiting=1), log)
    writing = threading.Thread(target=lambda: api.register("a", '"int"'))
    writing.start()
    try:
        assert log.waits.wait(60)
        assert 503 == api.register("b", '"int"')[0]
        found = scrape(api)
        assert 2 == found[series("strata_requests_in_flight")]  # the write and the scrape
        assert 1 == found[series("strata_limits_hit_total", limit="waiting_writes")]
    finally:
        log.may_go.set()
        writing.join()


def test_expensive_schemas_are_counted(configured):
    """A schema that takes too long counts as given up, and as a limit."""
    api = configured(Settings(log="memory:", max_seconds=0.001))
    fields = [{"name": f"f{number}", "type": ["null", "string"]} for number in range(4000)]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    assert 422 == api.register("a", schema)[0]
    found = scrape(api)

    assert found[series(PARSES, format="AVRO", outcome="given_up")] >= 1
    assert found[series("strata_limits_hit_total", limit="computing_time")] >= 1


def test_entries_that_give_way_are_counted():
    """Entries beyond the size of a cache displace others; hits, misses and bytes are those of the look-ups."""
    cache = Cache(100)
    for number in range(5):
        cache.put(number, number, 40)
    found = [cache.get(number) for number in range(5)]

    assert [None, None, None, 3, 4] == found
    assert (2, 3, 3, 80, 2) == (cache.hits, cache.misses, cache.evictions, cache.size, cache.entries)


def test_counts_of_caches_add_up(api):
    """What a cache counts is added to the node's figures at each scrape; its size is that of the moment."""
    cache = Cache(100)
    tally = Tally()
    writer = Writer(MemoryLog(), tally=tally)
    facts = Facts(tally, Requests(tally), writer, Health(writer, Seat()), {"schemas": cache}, {}, {})
    for number in range(5):
        cache.put(number, number, 40)
        facts.publish()
    facts.publish()

    assert 3 == tally.value("strata_cache_evictions_total", "schemas")
    assert [80.0] == fact([tally.cells], "schemas_bytes")
    assert scrape(api)[series("strata_cache_bytes", cache="schemas")] > 0


def test_how_far_a_worker_has_read_is_known_at_once():
    """Otherwise a node of several workers would seem to be behind while it writes."""
    tally = Tally()
    writer = Writer(MemoryLog(), tally=tally)
    assert [-1.0] == fact([tally.cells], "offset")
    writer.follow(START, [Entry(0, 0, b"{}", None), Entry(1, 0, b"{}", None)])

    assert [1.0] == fact([tally.cells], "offset")


def test_metrics_can_be_off(configured):
    """Without metrics, the path is unknown and requests are answered as ever."""
    api = configured(Settings(log="memory:", metrics="off"))

    assert 200 == api.register("a", '"int"')[0]
    assert 404 == api.get("/metrics")[0]
