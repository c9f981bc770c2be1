"""The requests that Confluent's command line and Terraform provider make for exporters, and the rules of the copying.

Nothing is copied here: the node looks for exporters once an hour.
"""

from dataclasses import replace

import pytest

from harness.neighbours import served
from strata.registry.features.exporters.choice import Choice
from strata.registry.features.exporters.destination import destination_of
from strata.registry.features.exporters.job import Job
from strata.registry.features.exporters.plan import held_after, plan
from strata.registry.transfer.copies import TransferError
from strata.storage.records import ExporterValue, ExportValue, SchemaValue

URL, USER = "schema.registry.url", "basic.auth.user.info"
THERE = {URL: "http://127.0.0.1:1"}
CONFIG = {**THERE, "basic.auth.credentials.source": "USER_INFO", USER: "key:opensesame"}
SHOWN = {**CONFIG, USER: "[hidden]"}
NAME = {"name": "my-exporter"}
AUTO = {
    **NAME,
    "subjects": ["*"],
    "contextType": "AUTO",
    "context": ".strata",
    "subjectRenameFormat": "${subject}",
    "kekRenameFormat": "${kek}",
    "config": SHOWN,
}
CUSTOM = {
    **AUTO,
    "subjects": ["a", "b*"],
    "contextType": "CUSTOM",
    "context": "dr",
    "subjectRenameFormat": "d_${subject}",
}
STARTING = {**NAME, "state": "STARTING", "offset": -1, "ts": 0, "trace": ""}
ONE = "/exporters/my-exporter"
# who asks for what, method, path, body, and the answer, or the code of the error
REQUESTS = [
    ("list: none yet", "GET", "/exporters", None, []),
    (
        "command line: create",
        "POST",
        "/exporters",
        {**NAME, "subjects": ["*"], "subjectRenameFormat": "${subject}", "contextType": "AUTO", "config": CONFIG},
        NAME,
    ),
    ("create a second time", "POST", "/exporters", {**NAME, "config": CONFIG}, 40960),
    ("command line: list", "GET", "/exporters", None, ["my-exporter"]),
    ("command line: describe", "GET", ONE, None, AUTO),
    ("command line: configuration describe", "GET", f"{ONE}/config", None, SHOWN),
    ("command line: for a cluster link", "GET", f"{ONE}/config/clusterlink", None, SHOWN),
    ("command line: status describe", "GET", f"{ONE}/status", None, STARTING),
    ("update before a pause", "PUT", ONE, {"subjects": ["a"]}, 40963),
    ("configure before a pause", "PUT", f"{ONE}/config", CONFIG, 40963),
    ("command line: pause", "PUT", f"{ONE}/pause", None, NAME),
    ("Terraform: pause before each change", "PUT", f"{ONE}/pause", None, NAME),
    ("status: paused", "GET", f"{ONE}/status", None, {**STARTING, "state": "PAUSED"}),
    (
        "command line: update",
        "PUT",
        ONE,
        {"subjects": ["a", "b*"], "subjectRenameFormat": "d_${subject}", "contextType": "CUSTOM", "context": "dr"},
        NAME,
    ),
    ("describe: what was not given stays", "GET", ONE, None, CUSTOM),
    (
        "Terraform: update",
        "PUT",
        ONE,
        {"contextType": "CUSTOM", "context": "dr", "subjects": [], "config": CONFIG},
        NAME,
    ),
    ("describe: an empty list changes nothing", "GET", ONE, None, CUSTOM),
    ("set what was shown", "PUT", f"{ONE}/config", SHOWN, NAME),
    ("hide what has no value", "PUT", f"{ONE}/config", {**THERE, "bearer.auth.token": "[hidden]"}, 40951),
    ("Terraform: reset on update", "PUT", f"{ONE}/reset", None, NAME),
    ("Terraform: resume", "PUT", f"{ONE}/resume", None, NAME),
    ("Terraform: resume again", "PUT", f"{ONE}/resume", None, NAME),
    ("Terraform: no trace, so it runs", "GET", f"{ONE}/status", None, STARTING),
    ("Terraform: pause before the deletion", "PUT", f"{ONE}/pause", None, NAME),
    ("Terraform: delete", "DELETE", ONE, None, NAME),
    (
        "Terraform: create without optional parts",
        "POST",
        "/exporters",
        {**NAME, "subjects": None, "config": CONFIG},
        NAME,
    ),
    ("Terraform: read", "GET", ONE, None, AUTO),
    ("command line: delete", "DELETE", ONE, None, NAME),
    ("no name", "POST", "/exporters", {"config": CONFIG}, 40950),
    ("a name of control characters", "POST", "/exporters", {"name": "a\n", "config": CONFIG}, 40950),
    ("no destination", "POST", "/exporters", {**NAME, "config": {}}, 40951),
    ("no configuration", "POST", "/exporters", NAME, 40951),
    ("an unknown type", "POST", "/exporters", {**NAME, "contextType": "ALL", "config": THERE}, 40951),
    ("no context", "POST", "/exporters", {**NAME, "contextType": "CUSTOM", "config": THERE}, 40951),
    ("other names of keys", "POST", "/exporters", {**NAME, "kekRenameFormat": "x", "config": THERE}, 40951),
    ("a star in the middle", "POST", "/exporters", {**NAME, "subjects": ["a*b"], "config": THERE}, 40952),
    ("one name for all", "POST", "/exporters", {**NAME, "subjectRenameFormat": "x", "config": THERE}, 40952),
    ("a body that is not an object", "POST", "/exporters", [], 400),
    ("a configuration of other things than texts", "POST", "/exporters", {**NAME, "config": {"a": []}}, 400),
    ("describe none", "GET", ONE, None, 40450),
    ("update none", "PUT", ONE, {"subjects": ["a"]}, 40450),
    ("delete none", "DELETE", ONE, None, 40450),
    ("the configuration of none", "GET", f"{ONE}/config", None, 40450),
    ("configure none", "PUT", f"{ONE}/config", THERE, 40450),
    ("the cluster link of none", "GET", f"{ONE}/config/clusterlink", None, 40450),
    ("the status of none", "GET", f"{ONE}/status", None, 40450),
    ("pause none", "PUT", f"{ONE}/pause", None, 40450),
    ("resume none", "PUT", f"{ONE}/resume", None, 40450),
    ("reset none", "PUT", f"{ONE}/reset", None, 40450),
]


def test_the_requests_of_confluents_clients(tmp_path):
    """Each request, in this order, gets the answer or the error that the clients expect."""
    secret = tmp_path / "secret"
    secret.write_text("s" * 32)
    with served("memory:", exporter_secret=secret, exporter_seconds=3600) as registry:
        for what, method, path, body, expected in REQUESTS:
            status, answer = registry.ask(method, path, body)
            found = answer["error_code"] if status >= 300 else answer

            assert (what, expected) == (what, found), answer
            assert status == 200 or int(str(found)[:3]) == status


CERTIFICATES = "ssl.truststore.certificates"
BEARER, TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
ENDPOINT, CLIENT_ID = "bearer.auth.issuer.endpoint.url", "bearer.auth.client.id"
OAUTH = {**THERE, BEARER: "OAUTHBEARER", ENDPOINT: "https://id/t", CLIENT_ID: "c", "bearer.auth.client.secret": "s"}
REFUSED = [
    ({}, f"{URL} is missing"),
    ({URL: "ftp://a"}, "expected a URL"),
    ({URL: "http://u:p@a"}, "must not hold a password"),
    ({URL: "http://"}, "is not the URL of a registry"),
    ({**THERE, "basic.auth.credentials.source": "SASL_INHERIT"}, "must be USER_INFO"),
    ({**THERE, "basic.auth.credentials.source": "USER_INFO"}, "must be USER:PASSWORD"),
    ({**THERE, USER: "key"}, "must be USER:PASSWORD"),
    ({**THERE, BEARER: "CUSTOM"}, "must be STATIC_TOKEN or OAUTHBEARER"),
    ({**THERE, BEARER: "OAUTHBEARER"}, f"OAUTHBEARER needs {ENDPOINT}, {CLIENT_ID}, bearer.auth.client.secret"),
    ({**OAUTH, ENDPOINT: "ftp://id"}, "token_url: expected a URL"),
    ({**THERE, "proxy": "ftp://p"}, "proxy: expected a URL"),
    ({**THERE, "proxy": "http://u:p@p"}, "proxy must not hold a password"),
    ({**THERE, "proxy.host": "p"}, "expected proxy.host with proxy.port"),
    ({**THERE, BEARER: "STATIC_TOKEN"}, f"{TOKEN} is missing"),
    ({**THERE, "ssl.truststore.location": "/a"}, "ssl.truststore.location is not supported"),
    ({URL: "https://a", CERTIFICATES: "x"}, "expected certificates in PEM"),
]


@pytest.mark.parametrize(("config", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_a_configuration_cannot_be(config, reason):
    """A configuration that would not work is refused when it is set, with the reason."""
    with pytest.raises(TransferError, match=reason):
        destination_of(config)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (THERE, {}),
        (CONFIG, {"username": "key", "password": "opensesame"}),
        ({**THERE, USER: "u:p"}, {"username": "u", "password": "p"}),
        ({**THERE, BEARER: "STATIC_TOKEN", TOKEN: "t:t"}, {"token": "t:t"}),
        (
            {**OAUTH, "bearer.auth.scope": "r", "bearer.auth.logical.cluster": "l"},
            {
                "token_url": "https://id/t",
                "client_id": "c",
                "client_secret": "s",
                "scope": "r",
                "logical_cluster": "l",
            },
        ),
        ({**THERE, "proxy.host": "p", "proxy.port": "3128"}, {"proxy": "http://p:3128"}),
        ({**THERE, "proxy": "http://p:3128"}, {"proxy": "http://p:3128"}),
    ],
)
def test_the_settings_of_a_configuration(config, expected):
    """Credentials are a user with a password, a token, or an OAuth client; a proxy may be between."""
    assert expected == destination_of(config).settings


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("*", ["a", "ab"]),
        (":*:", ["a", "ab", ":.c:a", ":.c.d:a"]),
        ("a", ["a"]),
        ("a*", ["a", "ab"]),
        (":.:a*", ["a", "ab"]),
        (":.c:*", [":.c:a"]),
        (":.c:", [":.c:a"]),
        (":.c:a", [":.c:a"]),
        (":.c.d:a*", [":.c.d:a"]),
        ("b*", []),
    ],
)
def test_the_patterns_of_subjects(pattern, chosen):
    """A pattern names subjects of one context, or all of them."""
    choice = Choice((pattern,))

    assert chosen == [one for one in ("a", "ab", ":.c:a", ":.c.d:a") if choice.chooses(one)]


@pytest.mark.parametrize("context", [".dr", ".dr.a", ".b.dr", ".b.dr.a"])
def test_what_came_below_the_context_is_not_sent_again(context):
    """Two registries that export everything to each other below contexts come to an end."""
    assert not Choice((":*:",), ".dr").chooses(f":{context}:a")
    assert Choice((":*:",), ".d").chooses(f":{context}:a")
    assert Choice((":*:",)).chooses(f":{context}:a")


@pytest.mark.parametrize("pattern", [":.dr:*", ":.dr:", ":.dr:a", ":.b.dr:a*", ":.dr.a:*"])
def test_a_pattern_that_would_never_be_sent_is_refused(pattern):
    """A pattern whose context is taken for a copy is refused when it is set, instead of sending nothing."""
    asked = {"name": "e", "subjects": ["a", pattern], "contextType": "CUSTOM", "context": "dr", "config": THERE}
    with served("memory:", exporter_seconds=3600) as registry:
        status, answer = registry.ask("POST", "/exporters", asked)
        assert (409, 40952) == (status, answer["error_code"])
        assert pattern in answer["message"]
        assert "contextType NONE" in answer["message"]

        assert 200 == registry.ask("POST", "/exporters", asked | {"contextType": "NONE"})[0]
        assert 200 == registry.ask("POST", "/exporters", asked | {"name": "f", "subjects": [":*:", "dr*"]})[0]


def version(subject, number, schema_id, text='"int"', *, deleted=False):
    """Return a version that a destination must hold, by its place."""
    return {(subject, number): SchemaValue(subject, number, schema_id, text, deleted=deleted)}


A1, A1_GONE, A1_SOFT = version("a", 1, 1), frozenset({("a", 1)}), version("a", 1, 1, deleted=True)
PLANS = [
    ("nothing is there", A1, {}, (), [], [(1, "a", 1, 0)]),
    ("a deleted version is registered, then deleted", A1_SOFT, {}, (), [], [(1, "a", 1, 0), (1, "a", 1, 1)]),
    ("everything is there", A1, A1, (), [], []),
    ("a deletion follows", A1_SOFT, A1, (), [], [(1, "a", 1, 1)]),
    ("a version comes back", A1, A1_SOFT, (), [], [(1, "a", 1, 0)]),
    ("a version that only the destination has stays", {}, A1, (), [], []),
    ("a version that was deleted for good goes", {}, A1, A1_GONE, [("a", 1)], []),
    ("another schema in its place", version("a", 1, 2), A1, A1_GONE, [("a", 1)], [(2, "a", 1, 0)]),
    ("deleted for good, and there again", A1, A1, A1_GONE, [], []),
    ("another text is for the destination to judge", A1, version("a", 1, 1, '"long"'), (), [], [(1, "a", 1, 0)]),
    ("but not that of a deleted version", A1_SOFT, version("a", 1, 1, '"long"', deleted=True), (), [], []),
    (
        "what may refer to others goes first",
        {},
        A1 | version("b", 1, 2),
        {("a", 1), ("b", 1)},
        [("b", 1), ("a", 1)],
        [],
    ),
]


@pytest.mark.parametrize(
    ("wanted", "held", "gone", "drops", "steps"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS]
)
def test_what_a_destination_needs(wanted, held, gone, drops, steps):
    """A plan brings a destination to what is wanted, and leaves what others may have written."""
    found = plan(wanted, held_after(held), gone)

    assert (drops, steps) == (found.drops, found.steps)


def test_another_id_at_the_destination_is_refused():
    """A version with another id is in the way; the message says which."""
    with pytest.raises(TransferError, match="a version 1: id 1, expected 2"):
        plan(version("a", 1, 2), held_after(A1), ())


OWNED = ExportValue("RUNNING", 7, owner="other")


@pytest.mark.parametrize(
    ("progress", "after_s", "expected"),
    [
        (ExportValue("STARTING"), 0, True),
        (ExportValue("RUNNING", 7, owner="me"), 0, True),
        (OWNED, 19, False),
        (OWNED, 21, True),
        (replace(OWNED, trace="not now"), 21, False),
        (replace(OWNED, trace="not now"), 301, True),
    ],
)
def test_whose_turn_it_is(progress, after_s, expected):
    """A node copies if no other does, or if the owner has been silent for too long."""
    job = Job("e", ExporterValue(("*",), "NONE"), Choice())
    job.note(progress, 100.0)

    assert expected == job.is_mine("me", 100.0 + after_s)
