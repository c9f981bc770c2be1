"""Each limit that refuses a connection, a request or a login is counted once for each refusal."""

import base64
import http.client
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path

from cryptography import x509

from harness.certificates import Authority
from harness.metric_samples import samples_in
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.settings import Settings

LIMITS = "strata_limits_hit_total"
TRUSTSTORE = "kafka_schema_registry_certificate_expiration_truststore"
MOST_CONNECTIONS = 4


def samples(text):
    """Return the values of a scrape, by name and value of the label."""
    return {(one.name, *one.labels.values()): one.value for one in samples_in(text)}


# What the node does with the connection of a client that pauses for a second before it sends.
CUT_OFF = ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected


def status_of(port, sent):
    """Return the status of the answer to some bytes; None if the node closes the connection without an answer."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as wire, wire.makefile("rb") as stream:
        with suppress(ConnectionResetError, BrokenPipeError):  # the node reads no more for long once it has answered
            wire.sendall(sent)
        line = stream.readline()
    return int(line.split()[1]) if line else None


def test_limits_of_connections_and_requests():
    """A connection too many, a request that takes too long and a target that is too long count as one each."""
    options = f"--max-connections={MOST_CONNECTIONS}", "--request-seconds=1", "--metrics-listen=127.0.0.1:0"
    with RegistryNode("memory:", *options) as node, ExitStack() as stack:
        port = int(until(lambda: re.search(r"metrics at 127\.0\.0\.1:(\d+)", node.output))[1])

        def scraped():
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as scraper:
                scraper.request("GET", "/metrics")
                return samples(scraper.getresponse().read().decode())

        def now():
            return until(scraped, *CUT_OFF)

        def held():
            with ExitStack() as attempt:
                connection = attempt.enter_context(closing(node.connect()))
                connection.request("GET", "/")
                assert 200 == connection.getresponse().status
                stack.push(attempt.pop_all())
            return True

        until(lambda: now()["strata_connections",] == 0)  # of the harness, which has waited for the node
        before = now()
        assert 408 == until(lambda: status_of(node.port, b"GET / HTTP/1.1\r\n"), *CUT_OFF)
        assert 414 == until(lambda: status_of(node.port, b"GET /" + b"x" * 100_000), *CUT_OFF)
        until(lambda: now()["strata_connections",] == 0)
        for _ in range(MOST_CONNECTIONS):  # they stay open after their first request
            until(held, *CUT_OFF)
        until(lambda: now()["strata_connections",] == MOST_CONNECTIONS)
        assert 503 == until(lambda: status_of(node.port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), *CUT_OFF)

        limits = ("request_time", "target_size", "connections")
        until(lambda: (found := now()) and [1, 1, 1] == [found[LIMITS, one] - before[LIMITS, one] for one in limits])


def test_refused_logins_are_counted(configured, tmp_path):
    """Wrong passwords sent at once fill the bucket of their user; those that are not even checked count."""
    users = tmp_path / "auth.yaml"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    api = configured(Settings(log="memory:", auth_file=users, superusers="User:root"))

    def basic(password):
        return {"Authorization": "Basic " + base64.b64encode(f"root:{password}".encode()).decode()}

    # The right password is remembered from now on, so the scrapes below pass the full bucket.
    before = samples(api.get("/metrics", **basic("root"))[1])
    with ThreadPoolExecutor(24) as pool:
        statuses = list(pool.map(lambda number: api.get("/subjects", **basic(str(number)))[0], range(24)))
    after = samples(api.get("/metrics", **basic("root"))[1])

    assert {401, 429} == set(statuses)
    assert statuses.count(429) == after[LIMITS, "login_rate"] - before[LIMITS, "login_rate"]


def test_rejected_credentials_count_for_their_mechanism(configured, tmp_path):
    """A wrong password counts as Basic, and only a request without credentials as none."""
    users = tmp_path / "auth.yaml"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    api = configured(Settings(log="memory:", auth_file=users, superusers="User:root"))
    given = {"basic": f"Basic {base64.b64encode(b'root:no').decode()}", "bearer": "Bearer x", "other": "Digest x"}

    for credentials in given.values():
        assert 401 == api.get("/subjects", Authorization=credentials)[0]
    assert 401 == api.get("/subjects")[0]
    root = base64.b64encode(b"root:root").decode()
    after = samples(api.get("/metrics", Authorization=f"Basic {root}")[1])

    for mechanism in (*given, "none"):
        assert 1 == after["strata_access_requests_total", mechanism, "unauthorized"], mechanism


def test_the_certificates_that_clients_are_verified_by(tmp_path):
    """The end of the first of several trusted certificates is the one that shows."""
    authority = Authority(tmp_path)
    pair, short = authority.issue("registry"), authority.issue("short", valid=(-timedelta(1), timedelta(hours=5)))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Path(authority.file).read_bytes() + Path(short.cert).read_bytes())
    end = x509.load_pem_x509_certificate(Path(short.cert).read_bytes()).not_valid_after_utc.timestamp()
    options = [f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}", f"--tls-client-ca={trusted}"]
    given = [*options, "--tls-client-auth=optional"]
    with RegistryNode("memory:", *given, tls=authority.context()) as node, closing(node.connect()) as connection:
        connection.request("GET", "/metrics")
        found = samples(connection.getresponse().read().decode())

    assert end == found[TRUSTSTORE,] == found["strata_certificate_expiry_timestamp_seconds", "client_ca"]
    assert end < found["kafka_schema_registry_certificate_expiration_keystore",]
