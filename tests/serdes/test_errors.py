"""Exceptions have clear sentences and survive pickling between processes."""

import pickle

import pytest

from strata.serdes.errors import (
    DecodeError,
    DecodeReason,
    EncodeError,
    FrameError,
    RegistryError,
    RegistryUnavailable,
    SchemaError,
    SerdeError,
)

ERRORS = [
    (FrameError("frame too short"), "frame too short"),
    (FrameError("frame too short", topic="t"), "frame too short (topic t)"),
    (
        FrameError("frame too short", topic="t", partition=0, offset=0),
        "frame too short (topic t, partition 0, offset 0)",
    ),
    (DecodeError(DecodeReason.TRUNCATED), "truncated"),
    (
        DecodeError("limit", "too deep", path="a.b[3]", offset=0, schema_id=7, topic="t"),
        "limit: too deep (at field a.b[3], near byte 0, schema id 7, topic t)",
    ),
    (EncodeError("a string expected, found int", path="a"), "a string expected, found int (at field a)"),
    (EncodeError("a mapping expected, found int"), "a mapping expected, found int"),
    (RegistryError(404, 40403, "Schema 7 not found"), "Schema 7 not found (HTTP 404, error code 40403)"),
    (RegistryUnavailable("no answer"), "no answer"),
    (SchemaError("no JSON"), "no JSON"),
]


@pytest.mark.parametrize(
    ("error", "sentence"), ERRORS, ids=[type(row[0]).__name__ + str(n) for n, row in enumerate(ERRORS)]
)
def test_errors_are_sentences_and_pickle(error, sentence):
    """An error prints as one sentence and arrives in another process with all its parts."""
    copy = pickle.loads(pickle.dumps(error))

    assert sentence == str(error) == str(copy)
    assert vars(error) == vars(copy)
    assert isinstance(copy, SerdeError)
    assert type(error) is type(copy)
