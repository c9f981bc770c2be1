"""The rules for writing: on the driver what they need is asked for, in the workers they run over each row.

A row is first encoded without rules, so that its values are those of the schema. The payload is then decoded, the rules
run (conditions, transforms, encryption), and the serializer of `strata.serdes` encodes the result.

Rules of this file: workers send no requests; the registry's answers to the driver are replayed there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from strata.serdes.client import RegistryClient
from strata.serdes.errors import EncodeError, RegistryUnavailable, RuleError, SerdeError
from strata.serdes.functions import Decode
from strata.serdes.model import AVRO, JSON
from strata.serdes.serializer import Serializer
from strata.serdes.settings import ClientSettings
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs.encoding.plan import EncodePlan, Target
from strata.spark_udfs.rules import Answers, EncodeRules, serde_conf, token_of

__all__ = ["ask_for_rules", "ruled_payloads"]


def ask_for_rules(
    settings: ClientSettings,
    target: Target,
    subject: str,
    conf: Mapping[str, object],
    *,
    validate: bool,
    is_key: bool,
) -> EncodeRules | None:
    """Return the rules for writing with all that workers need, or None if there are none.

    Args:
        settings: the settings of the registry.
        target: the schema to write with.
        subject: the subject of the records.
        conf: the settings of rules.
        validate: whether to validate JSON against its schema.
        is_key: whether the column holds record keys.

    Raises:
        RuleError: If a data key is missing and cannot be added, or a library of a rule is not installed.
        RegistryError: If the registry rejects a request.
        RegistryUnavailable: If the registry does not answer.
    """
    answers = Answers(settings)
    with RegistryClient.from_settings(settings, transport=answers) as client:
        serializer, _ = _serializer(client, target, subject, conf, validate=validate)
        writing = serializer.target(_context(is_key)).rules
        if writing is None:
            return None
        writing.prepare()
    token = token_of(conf, answers.recorded)
    return EncodeRules(token, subject, is_key, conf, answers.recorded)


def ruled_payloads(plan: EncodePlan) -> Callable[[bytes], bytes]:
    """Return the function from a payload without rules to the payload to write, for a plan with rules.

    It raises `EncodeError` if a rule fails, or its result does not fit the schema.
    """
    rules = plan.rules
    if rules is None:
        raise TypeError("the plan has no rules")
    client = RegistryClient.from_settings(plan.registry, transport=Answers(plan.registry, rules.answers))
    serialize, parse = _serializer(client, plan.target, rules.subject, rules.conf, validate=plan.validate)
    context = _context(rules.is_key)

    def payload(plain: bytes) -> bytes:
        try:
            return serialize(parse(plain), context) or b""
        except (EncodeError, RegistryUnavailable):
            raise
        except RuleError as error:
            raise EncodeError(f"rule {error.rule}: {error.detail}") from None
        except SerdeError as error:  # such as a time that Python's types cannot hold
            raise EncodeError(str(error)) from None

    return payload


def _context(is_key: bool) -> Context:
    return Context(None, "key" if is_key else "value")


def _serializer(
    client: RegistryClient, target: Target, subject: str, conf: Mapping[str, object], *, validate: bool
) -> tuple[Serializer, Decode]:
    """Return the serializer that runs the rules, and the parser of payloads without rules."""
    fixed: Any = serde_conf(conf, subject) | {
        "auto.register.schemas": False,
        "use.schema.id": target.identity.id,
        "id.compatibility.strict": False,
        "schema.id.serializer": lambda payload, _context, _schema: payload,
    }
    if target.schema.format == AVRO:
        from strata.serdes.avro import AvroSerializer
        from strata.serdes.avro.decoder import compile_decoder
        from strata.serdes.avro.schema import parse

        return AvroSerializer(client, conf=fixed), compile_decoder(parse(target.schema.text))
    if target.schema.format == JSON:
        from strata.serdes.json_schema import JsonSerializer
        from strata.serdes.json_schema.json_text import load

        return JsonSerializer(client, conf=fixed | {"validate": validate}), load
    from google.protobuf.message_factory import GetMessageClass

    from strata.serdes.protobuf import ProtobufSerializer
    from strata.serdes.protobuf.files import find_message, link

    message_class = GetMessageClass(
        find_message(link(target.schema, dict(target.references)), target.identity.message_indexes)
    )
    return ProtobufSerializer(client, message_class, fixed), message_class.FromString
