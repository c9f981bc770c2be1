"""The records' JSON: each kind byte for byte, old forms that must be read, and damaged ones that must be refused."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.storage.log import Record
from strata.storage.record_json import RecordError, decode_key, decode_value, encode
from strata.storage.records import (
    AclKey,
    AclValue,
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    ExporterKey,
    ExporterValue,
    ExportKey,
    ExportValue,
    HighWaterKey,
    KekKey,
    KekValue,
    LoweredKey,
    LoweredValue,
    ModeKey,
    NoopKey,
    Reference,
    SchemaKey,
    SchemaValue,
    StandbyKey,
    StandbyValue,
    context_of,
)

PLAIN = SchemaValue("foo-value", 1, 7, '"string"')
FULL = SchemaValue(
    "foo-value",
    2,
    8,
    'syntax = "proto3";\n',
    "PROTOBUF",
    (Reference("a.proto", "a", 3),),
    {"tags": {"t": ["PII"]}, "properties": {"owner": "é"}},
    {"domainRules": [{"name": "r"}]},
    deleted=True,
)

# name, key, value, key bytes, value bytes
RECORDS = [
    (
        "a schema",
        SchemaKey("foo-value", 1),
        PLAIN,
        '{"keytype":"SCHEMA","subject":"foo-value","version":1,"magic":1}',
        '{"subject":"foo-value","version":1,"id":7,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}',
    ),
    (
        "a schema with everything",
        SchemaKey("foo-value", 2),
        FULL,
        '{"keytype":"SCHEMA","subject":"foo-value","version":2,"magic":1}',
        (
            '{"subject":"foo-value","version":2,"id":8,"schemaType":"PROTOBUF","references":[{"name":"a.proto",'
            '"subject":"a","version":3}],"metadata":{"tags":{"t":["PII"]},"properties":{"owner":"é"}},'
            '"ruleSet":{"domainRules":[{"name":"r"}]},"schema":"syntax = \\"proto3\\";\\n","deleted":true}'
        ),
    ),
    (
        "a schema's tombstone",
        SchemaKey("foo-value", 1),
        None,
        '{"keytype":"SCHEMA","subject":"foo-value","version":1,"magic":1}',
        None,
    ),
    (
        "a subject's configuration",
        ConfigKey("s"),
        ConfigValue({"compatibilityLevel": "FULL", "normalize": True}),
        '{"keytype":"CONFIG","subject":"s","magic":0}',
        '{"subject":"s","normalize":true,"compatibilityLevel":"FULL"}',
    ),
    (
        "the registry's configuration",
        ConfigKey(None),
        ConfigValue({"compatibilityLevel": "NONE"}),
        '{"keytype":"CONFIG","magic":0}',
        '{"compatibilityLevel":"NONE"}',
    ),
    (
        "a subject's mode",
        ModeKey("s"),
        "READONLY",
        '{"keytype":"MODE","subject":"s","magic":0}',
        '{"subject":"s","mode":"READONLY"}',
    ),
    ("the registry's mode", ModeKey(None), "IMPORT", '{"keytype":"MODE","magic":0}', '{"mode":"IMPORT"}'),
    ("nothing", NoopKey(), None, '{"keytype":"NOOP","magic":0}', None),
    (
        "the highest id",
        HighWaterKey("."),
        12,
        '{"keytype":"NOOP","context":".","magic":0}',
        '{"context":".","maxId":12}',
    ),
    (
        "a lowered highest id",
        LoweredKey("."),
        LoweredValue(12, 1),
        '{"keytype":"NOOP","kind":"LOWERED","context":".","magic":0}',
        '{"context":".","maxId":12,"count":1}',
    ),
    (
        "a subject's soft delete",
        DeleteSubjectKey("s/é"),
        3,
        '{"keytype":"DELETE_SUBJECT","subject":"s/é","magic":0}',
        '{"subject":"s/é","version":3}',
    ),
    ("a purge", ClearSubjectKey("s"), None, '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', '{"subject":"s"}'),
    (
        "a context",
        ContextKey(".c"),
        ".c",
        '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        '{"tenant":"default","context":".c"}',
    ),
    (
        "a context's tombstone",
        ContextKey(".c"),
        None,
        '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        None,
    ),
    (
        "an association",
        AssociationKey("lkc-1", "orders", "topic", "value", "orders-value"),
        AssociationValue("g", "t-1", "STRONG", frozen=True, created=17),
        (
            '{"keytype":"ASSOC","tenant":"default","resourceName":"orders","resourceNamespace":"lkc-1",'
            '"resourceType":"topic","associationType":"value","subject":"orders-value","magic":0}'
        ),
        (
            '{"guid":"g","tenant":"default","resourceName":"orders","resourceNamespace":"lkc-1","resourceId":"t-1",'
            '"resourceType":"topic","associationType":"value","subject":"orders-value","lifecycle":"STRONG",'
            '"frozen":true,"createTs":17}'
        ),
    ),
    (
        "a key encryption key",
        KekKey("payments"),
        KekValue("aws-kms", "arn:aws:kms:1", {"KeyState": "Enabled"}, "é", shared=False, deleted=False, created=17),
        '{"keytype":"NOOP","kind":"KEK","name":"payments","magic":0}',
        (
            '{"name":"payments","kmsType":"aws-kms","kmsKeyId":"arn:aws:kms:1","kmsProps":{"KeyState":"Enabled"},'
            '"doc":"é","shared":false,"deleted":false,"createTs":17}'
        ),
    ),
    (
        "a rule of access",
        AclKey("User:ä", "*", "SUBJECT", "orders-", "PREFIXED", "READ", "ALLOW"),
        AclValue(created=17),
        (
            '{"keytype":"NOOP","kind":"ACL","principal":"User:ä","host":"*","resourceType":"SUBJECT",'
            '"resource":"orders-","patternType":"PREFIXED","operation":"READ","permission":"ALLOW","magic":0}'
        ),
        (
            '{"principal":"User:ä","host":"*","resourceType":"SUBJECT","resource":"orders-",'
            '"patternType":"PREFIXED","operation":"READ","permission":"ALLOW","createTs":17}'
        ),
    ),
    (
        "a copy of another registry",
        StandbyKey(".dr"),
        StandbyValue("http://a:8081", 7, copied_at=17, subjects="a,b*"),
        '{"keytype":"NOOP","kind":"STANDBY","scope":".dr","magic":0}',
        '{"scope":".dr","source":"http://a:8081","position":7,"copiedAt":17,"promotedAt":0,"subjects":"a,b*","contexts":""}',
    ),
    (
        "an exporter",
        ExporterKey("dr"),
        ExporterValue(("a", "b*"), "CUSTOM", ".dr", "dr_${subject}", "", {"schema.registry.url": "http://a"}),
        '{"keytype":"NOOP","kind":"EXPORTER","name":"dr","magic":0}',
        (
            '{"name":"dr","subjects":["a","b*"],"contextType":"CUSTOM","context":".dr",'
            '"subjectRenameFormat":"dr_${subject}","kekRenameFormat":"","config":{"schema.registry.url":"http://a"},'
            '"paused":false}'
        ),
    ),
    (
        "the progress of an exporter",
        ExportKey("dr"),
        ExportValue("RUNNING", 7, 17, "", "node:8081", 3),
        '{"keytype":"NOOP","kind":"EXPORT","name":"dr","magic":0}',
        '{"name":"dr","state":"RUNNING","offset":7,"ts":17,"trace":"","owner":"node:8081","beat":3}',
    ),
    (
        "a key encryption key of few words",
        KekKey("k"),
        KekValue("hcvault", "http://vault/k", {}, None, shared=False, deleted=True, created=0),
        '{"keytype":"NOOP","kind":"KEK","name":"k","magic":0}',
        '{"name":"k","kmsType":"hcvault","kmsKeyId":"http://vault/k","shared":false,"deleted":true,"createTs":0}',
    ),
    (
        "a data encryption key",
        DekKey("payments", "orders-value", "AES256_GCM", 2),
        DekValue("QUJD", deleted=False, created=18),
        (
            '{"keytype":"NOOP","kind":"DEK","kekName":"payments","subject":"orders-value","algorithm":"AES256_GCM",'
            '"version":2,"magic":0}'
        ),
        (
            '{"kekName":"payments","subject":"orders-value","algorithm":"AES256_GCM","version":2,'
            '"encryptedKeyMaterial":"QUJD","deleted":false,"createTs":18}'
        ),
    ),
    (
        "the tombstone of a data encryption key",
        DekKey("payments", "s", "AES256_SIV", 1),
        None,
        '{"keytype":"NOOP","kind":"DEK","kekName":"payments","subject":"s","algorithm":"AES256_SIV","version":1,"magic":0}',
        None,
    ),
]


@pytest.mark.parametrize(
    ("key", "value", "key_text", "value_text"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS]
)
def test_record_is_written_as_the_topic_holds_it(key, value, key_text, value_text):
    """Each kind of record is written byte for byte as the reference writes it."""
    expected = Record(key_text.encode(), None if value_text is None else value_text.encode())

    assert expected == encode(key, value)


@pytest.mark.parametrize(
    ("key", "value", "key_text", "value_text"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS]
)
def test_record_is_read_back(key, value, key_text, value_text):
    """Every record survives a round trip."""
    decoded = decode_key(key_text.encode())

    assert key == decoded
    assert value == decode_value(decoded, None if value_text is None else value_text.encode())


# name, key, value, the record as read
OLD_FORMS = [
    (
        "magic 0, no type, no subject, no deleted",
        {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 0},
        {"id": 3, "schema": '"int"'},
        SchemaValue("s", 1, 3, '"int"'),
    ),
    (
        "an md5 and a property of the future",
        {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1, "later": 1},
        {"subject": "s", "version": 1, "id": 3, "md5": "abcd", "schema": '"int"', "deleted": False, "later": {}},
        SchemaValue("s", 1, 3, '"int"'),
    ),
    (
        "properties in another order",
        {"magic": 0, "keytype": "CONFIG", "subject": "s"},
        {"compatibilityLevel": "FULL"},
        ConfigValue({"compatibilityLevel": "FULL"}),
    ),
]


@pytest.mark.parametrize(
    ("key", "value", "expected"), [row[1:] for row in OLD_FORMS], ids=[row[0] for row in OLD_FORMS]
)
def test_old_forms_are_read(key, value, expected):
    """Records of older registries can be read, and unknown properties are ignored."""
    decoded = decode_key(json.dumps(key).encode())

    assert expected == decode_value(decoded, json.dumps(value).encode())


DAMAGED = [
    ("no key", None, b"{}"),
    ("not JSON", b"\x00\x01", b"{}"),
    ("JSON of another shape", b"[1]", b"{}"),
    ("a nest of arrays", b"[" * 100_000, b"{}"),
    ("an unknown kind", b'{"keytype":"TEAPOT","magic":0}', b"{}"),
    ("a kind that is not a string", b'{"keytype":["SCHEMA"]}', b"{}"),
    ("a subject that is a number", b'{"keytype":"SCHEMA","subject":1,"version":1,"magic":1}', b"{}"),
    ("a version that is true", b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}', b"{}"),
    ("no id", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"schema":"x"}'),
    (
        "an id out of range",
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        b'{"schema":"x","id":4294967296}',
    ),
    ("no text", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1}'),
    (
        "a reference that is a string",
        b'{"keytype":"SCHEMA","subject":"s","version":1}',
        b'{"id":1,"schema":"x","references":["a"]}',
    ),
    ("a truncated value", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":1,"sch'),
    ("a mode that is a number", b'{"keytype":"MODE","magic":0}', b'{"mode":4}'),
    ("a level that is a number", b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":4}'),
    ("a flag that is a word", b'{"keytype":"CONFIG","magic":0}', b'{"normalize":"true"}'),
    ("a group that is a list", b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityGroup":["a"]}'),
    ("metadata that is a number", b'{"keytype":"CONFIG","magic":0}', b'{"defaultMetadata":7}'),
    ("properties that are a number", b'{"keytype":"CONFIG","magic":0}', b'{"overrideMetadata":{"properties":5}}'),
    ("a property that is null", b'{"keytype":"CONFIG","magic":0}', b'{"overrideMetadata":{"properties":{"a":null}}}'),
    ("tags that are null", b'{"keytype":"CONFIG","magic":0}', b'{"defaultMetadata":{"tags":{"a":null}}}'),
    ("a rule that is a number", b'{"keytype":"CONFIG","magic":0}', b'{"defaultRuleSet":{"domainRules":[5]}}'),
    ("enableAt that is a number", b'{"keytype":"CONFIG","magic":0}', b'{"overrideRuleSet":{"enableAt":5}}'),
]


@pytest.mark.parametrize(("key", "value"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_damaged_record_is_refused_with_a_reason(key, value):
    """A damaged record raises only RecordError."""
    with pytest.raises(RecordError, match=r"\w"):
        decode_value(decode_key(key), value)


@given(st.binary() | st.none(), st.binary() | st.none())
def test_no_bytes_raise_anything_else(key, value):
    """Any bytes can be read or raise RecordError."""
    with contextlib.suppress(RecordError):
        decode_value(decode_key(key), value)


@pytest.mark.parametrize(
    ("subject", "context"),
    [("s", "."), ("", "."), (":.c:s", ".c"), (":.c:", ".c"), (":.:s", "."), (":s", "."), (":.c", ".")],
)
def test_context_of_a_subject(subject, context):
    """A qualified subject names its context, every other one is in the default context."""
    assert context == context_of(subject)
