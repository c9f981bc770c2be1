"""Subject name strategies give the subjects of Confluent's clients."""

import pytest
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.serdes.errors import SerdeError
from strata.serdes.subject_name_strategies import STRATEGIES, Context, record_name, topic_name, topic_record_name

SUBJECTS = [
    ("topic, value", topic_name, Context("orders"), "a.Order", "orders-value"),
    ("topic, key", topic_name, Context("orders", "key"), None, "orders-key"),
    ("record", record_name, Context("orders", "key"), "a.Order", "a.Order"),
    ("record without topic", record_name, Context(), "a.Order", "a.Order"),
    ("topic and record", topic_record_name, Context("orders"), "a.Order", "orders-a.Order"),
    ("a Kafka client's context", topic_name, SerializationContext("t", MessageField.KEY), None, "t-key"),
    ("a Kafka client's value", topic_name, SerializationContext("t", MessageField.VALUE), None, "t-value"),
]


@pytest.mark.parametrize(
    ("strategy", "context", "record", "subject"), [row[1:] for row in SUBJECTS], ids=[row[0] for row in SUBJECTS]
)
def test_the_subject_of_a_record(strategy, context, record, subject):
    """Each strategy names the subject as Confluent's clients do."""
    assert subject == strategy(context, record)


@pytest.mark.parametrize(
    ("strategy", "context", "record", "says"),
    [
        (topic_name, Context(), "a.Order", "needs a topic"),
        (topic_record_name, Context(None), "a.Order", "needs a topic"),
        (record_name, Context("t"), None, "needs a named record"),
        (topic_record_name, Context("t"), "", "needs a named record"),
        (topic_name, Context("t", "header"), None, "'key' or 'value', got 'header'"),
    ],
)
def test_what_a_strategy_lacks_is_said(strategy, context, record, says):
    """A missing part is an error: no subject is ever made without it."""
    with pytest.raises(SerdeError, match=says):
        strategy(context, record)


def test_usual_names_are_known():
    """The names in the configurations of other clients select the same functions."""
    assert topic_record_name is STRATEGIES["TopicRecordNameStrategy"] is STRATEGIES["TOPIC_RECORD"]
