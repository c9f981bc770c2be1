"""Runs rules of a schema: CEL, encryption with a local key, and an executor and an action of its own."""

from confluent_kafka.schema_registry import Metadata, MetadataProperties, Rule, RuleKind, RuleMode
from confluent_kafka.schema_registry import RuleParams, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.rule_registry import RuleOverride, RuleRegistry
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.schema_registry.serde import FieldRuleExecutor, RuleAction, RuleExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

SCHEMA = """{"type": "record", "name": "Person", "fields": [
    {"name": "name", "type": "string", "confluent:tags": ["PII"]},
    {"name": "age", "type": "int"}]}"""
CONF = {"auto.register.schemas": False, "use.latest.version": True}
VALUE = {"name": "Ann", "age": 40}


class Shout(FieldRuleExecutor):
    def type(self):
        return "SHOUT"

    def new_transform(self, ctx):
        mark = ctx.get_parameter("mark")

        def transform(rule_ctx, field_ctx, value):
            print(
                field_ctx.full_name,
                field_ctx.name,
                field_ctx.type_name(),
                sorted(field_ctx.tags),
                field_ctx.is_primitive(),
            )
            return value.upper() + mark

        return transform


class Older(RuleExecutor):
    def configure(self, client_conf, rule_conf):
        self.years = rule_conf["years"]

    def type(self):
        return "OLDER"

    def transform(self, ctx, message):
        print(ctx.rule.name, ctx.rule_mode.value, ctx.subject, ctx.ser_ctx.topic)
        return {**message, "age": message["age"] + self.years}


class Note(RuleAction):
    def type(self):
        return "NOTE"

    def run(self, ctx, message, ex):
        print("noted", ctx.rule.name, ex is not None)


def ruled(client, topic, *rules, metadata=None):
    """Register a schema with rules, and return the context of its topic."""
    client.register_schema(f"{topic}-value", Schema(SCHEMA, "AVRO", [], metadata, RuleSet(None, list(rules))))
    return SerializationContext(topic, MessageField.VALUE)


def rule(
    name,
    type,
    kind=RuleKind.TRANSFORM,
    mode=RuleMode.WRITE,
    tags=None,
    params=None,
    expr=None,
    on_success=None,
    on_failure=None,
):
    return Rule(
        name, None, kind, mode, type, tags, RuleParams(params) if params else None, expr, on_success, on_failure, False
    )


def main(url):
    for one in (CelExecutor, CelFieldExecutor, FieldEncryptionExecutor, LocalKmsDriver):
        one.register()
    client = SchemaRegistryClient({"url": url})
    ctx = ruled(client, "cel", rule("adult", "CEL", RuleKind.CONDITION, expr="message.age >= 18"))
    serialize = AvroSerializer(client, SCHEMA, conf=CONF)
    print(serialize(dict(VALUE), ctx))
    try:
        serialize({**VALUE, "age": 3}, ctx)
    except SerializationError:
        print("refused")
    ctx = ruled(
        client, "cel-field", rule("upper", "CEL_FIELD", tags=["PII"], expr="typeName == 'STRING' ; value + '!'")
    )
    print(AvroSerializer(client, SCHEMA, conf=CONF)(dict(VALUE), ctx))

    registry = RuleRegistry()
    registry.register_executor(Shout())
    registry.register_executor(Older())
    registry.register_action(Note())
    tags = Metadata(None, MetadataProperties({"mark": "!"}), None)
    ctx = ruled(
        client, "own", rule("shout", "SHOUT", tags=["PII"], on_success="NOTE"), rule("older", "OLDER"), metadata=tags
    )
    serialize = AvroSerializer(client, SCHEMA, conf=CONF, rule_conf={"years": 2}, rule_registry=registry)
    print(serialize(dict(VALUE), ctx))
    registry.register_override(RuleOverride("OLDER", None, None, True))
    print(AvroSerializer(client, SCHEMA, conf=CONF, rule_conf={"years": 2}, rule_registry=registry)(dict(VALUE), ctx))

    params = {"encrypt.kek.name": "program-kek", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "key"}
    ctx = ruled(
        client,
        "secret",
        rule("hide", "ENCRYPT", mode=RuleMode.WRITEREAD, tags=["PII"], params=params, on_failure="ERROR,NONE"),
    )
    secret = {"secret": "of both sides; Tink keeps the first one that a process meets"}
    frame = AvroSerializer(client, SCHEMA, conf=CONF, rule_conf=secret)(dict(VALUE), ctx)
    print(b"Ann" in frame, len(frame), AvroDeserializer(client, rule_conf=secret)(frame, ctx))
    client.close()
