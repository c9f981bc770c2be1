"""Requests generated from the OpenAPI document: none gives a 5xx, and every answer matches the document."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

QUICK = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
LONG = settings(QUICK, max_examples=3_000)

_ANSWER_S = 120  # schemathesis waits for 10 s, which is less than a busy machine may take


@pytest.fixture
def operations(api, document):
    """Return the operations of a live registry's document, with some data in the registry."""
    api.placed("s", '"int"')
    api.placed("t", '{"type":"string"}', schemaType="JSON")
    import schemathesis  # here, for its import takes long

    loaded = schemathesis.openapi.from_dict(document)
    loaded.config.update(base_url=f"http://127.0.0.1:{api.port}")
    return [found.ok() for found in loaded.get_all_operations()]


def _ask(operations, data):
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    checks = (not_a_server_error, status_code_conformance, response_schema_conformance)
    case = data.draw(data.draw(st.sampled_from(operations)).as_strategy())
    case.call_and_validate(checks=checks, timeout=_ANSWER_S)


@QUICK
@given(data=st.data())
def test_answers_are_documented(operations, data):
    """A few requests for some of the routes get documented answers."""
    _ask(operations, data)


@pytest.mark.slow
@LONG
@given(data=st.data())
def test_answers_are_documented_at_length(operations, data):
    """Dozens of requests for each route give documented answers."""
    _ask(operations, data)
