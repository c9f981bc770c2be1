"""Every public name, parameter, default and setting of confluent-kafka exists here, or has a reason why it does not."""

import importlib
import inspect
import re
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from strata.serdes.confluent import SchemaRegistryClient
from strata.serdes.confluent.settings import CLIENT_SETTINGS

THEIRS, OURS = "confluent_kafka.schema_registry", "strata.serdes.confluent"

MODULES = [
    "",
    ".avro",
    ".error",
    ".json_schema",
    ".protobuf",
    ".rule_registry",
    ".rules.cel.cel_executor",
    ".rules.cel.cel_field_executor",
    ".rules.dlq.dlq_action",
    ".rules.encryption.awskms.aws_driver",
    ".rules.encryption.azurekms.azure_driver",
    ".rules.encryption.hcvault.hcvault_driver",
    ".rules.encryption.encrypt_executor",
    ".rules.encryption.localkms.local_driver",
    ".rules.jsonata.jsonata_executor",
    ".schema_registry_client",
    ".serde",
]

_INLINE = "inline validation rules are not documented; write domain rules of type CEL"
_INNER = "a helper of confluent-kafka's own modules"
_TYPE = "confluent-kafka's own protobuf type; a program imports its generated module"
ABSENT = {
    "AssociatedNameStrategy": "set subject.name.strategy.type to ASSOCIATED, which is also the default",
    "AsyncAssociatedNameStrategy": "set subject.name.strategy.type to ASSOCIATED, which is also the default",
    "AsyncBaseSerde": _INNER,
    "LocalSchemaRepository": _INNER,
    "Migration": _INNER,
    "ParsedSchemaCache": _INNER,
    "VALID_AUTH_PROVIDERS": _INNER,
    "async_build_serde": _INNER,
    "build_serde": _INNER,
    "full_jitter": _INNER,
    "get_inline_tags": _INNER,
    "get_versioned_key_id": _INNER,
    "is_versionless": _INNER,
    "with_version": _INNER,
    "get_type": _INNER,
    "is_map_field": _INNER,
    "is_retriable": _INNER,
    "is_success": _INNER,
    "normalize_identity_pool": _INNER,
    "parse_schema_with_repo": _INNER,
    "transform": _INNER,
    "validate_message": _INNER,
    "decimal_to_protobuf": _TYPE,
    "protobuf_to_decimal": _TYPE,
    "variant_to_protobuf": _TYPE,
    "protobuf_to_variant": _TYPE,
    "ValidationRule": _INLINE,
    "ValidationRuleError": _INLINE,
    "ValidationRuleExecutor": _INLINE,
    "ValidationRulesExecution": _INLINE,
    "VALIDATION_RULES_PROP": _INLINE,
    "default_validation_rule_executor": _INLINE,
    "evaluate_validation_rule": _INLINE,
    "parse_validation_rules": _INLINE,
    "FieldRedactionExecutor": "the action DLQ redacts what rules of dlq.redact.rule.types select",
    "AeadWrapper": _INNER,
    "Clock": _INNER,
    "Cryptor": _INNER,
    "EncryptionExecutorTransform": _INNER,
    "FieldEncryptionExecutorTransform": _INNER,
    "field_value_to_cel": _INNER,
    "msg_to_cel": _INNER,
}
"""The names that are missing on purpose, with the reason."""
ABSENT_METHODS = {
    "register_with_clock": _INNER,
    "configure": _INNER,
    "execute": _INNER,
    "execute_rule": _INNER,
    "clear_cache": _INNER,
    "new_transform": _INNER,
    "set_cluster_id_resolver": "of the forms for asyncio: await set_async_cluster_id_resolver",
    "configure_subject_name_strategy": "of the forms for asyncio: set it by conf",
    "configure_validation_rules": _INLINE,
    "close": "of the forms for asyncio: await aclose",
    "new_kms_client": _INNER,
    "are_transforms_with_same_tag": _INNER,
}
"""The methods that are missing on purpose, with the reason."""


def _public(module: Any) -> list[str]:
    """Return the names that a module defines or documents."""
    names = getattr(module, "__all__", None) or vars(module)
    own = module.__name__ if ".rules." in module.__name__ else THEIRS  # modules of rules only define what is registered
    found = []
    for name in names:
        home = str(getattr(getattr(module, name), "__module__", "" if own != THEIRS else THEIRS))
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name)) and home.startswith(own):
            found.append(name)
    return sorted(found)


def _parameters(function: Any) -> list[tuple[str, Any]]:
    """Return names and defaults of parameters; a default of None means that there is one, or none."""
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    return [(one.name, _plain(one.default)) for one in parameters]


def _plain(default: Any) -> Any:
    kind = type(default).__name__
    return (
        "factory"
        if kind in ("_Nothing", "NothingType", "_HAS_DEFAULT_FACTORY_CLASS") or "NOTHING" in repr(default)
        else default
    )


@pytest.mark.parametrize("module", MODULES)
def test_names(module):
    """The names of a module of confluent-kafka can be imported from the module of the same name, or have a reason."""
    theirs, ours = importlib.import_module(THEIRS + module), importlib.import_module(OURS + module)

    for name in _public(theirs):
        assert hasattr(ours, name) != (name in ABSENT), f"{name} is missing without a reason, or has one and exists"
        if name not in ABSENT:
            _compare(getattr(theirs, name), getattr(ours, name))


def _compare(theirs: Any, mine: Any) -> None:
    if isinstance(theirs, str | int):
        assert theirs == mine
    elif inspect.isfunction(theirs):
        assert _parameters(theirs) == _parameters(mine), theirs.__name__
    elif inspect.isclass(theirs):
        _compare_classes(theirs, mine)


def _compare_classes(theirs: type, mine: type) -> None:
    if issubclass(theirs, str):  # an enum
        assert {str(one): one.value for one in theirs} == {str(one): one.value for one in mine}
        return
    if not issubclass(theirs, Exception) or theirs.__init__ is not Exception.__init__:
        constructor = theirs.__init__ if theirs.__name__.startswith("Async") else theirs
        if not inspect.isabstract(theirs) and "clock" not in inspect.signature(constructor).parameters:
            assert _parameters(constructor) == _parameters(mine), theirs.__name__
    for name, member in inspect.getmembers(theirs, inspect.isroutine):
        if name.startswith("_") or name in dir(Exception) or (name in ABSENT_METHODS and not hasattr(mine, name)):
            continue
        assert hasattr(mine, name), f"{theirs.__name__}.{name} is missing"
        assert not inspect.iscoroutinefunction(member) or inspect.iscoroutinefunction(getattr(mine, name)), name
        if ".rules." not in theirs.__module__ or name == "register":  # what else they have is the engine's to call
            assert _parameters(member) == _parameters(getattr(mine, name)), name


@pytest.mark.parametrize("kind", ["_async", "_sync"])
@pytest.mark.parametrize("module", ["avro", "json_schema", "protobuf", "schema_registry_client"])
def test_inner_paths(kind, module):
    """The paths inside confluent-kafka that its guides import from lead to the same classes."""
    theirs, ours = (importlib.import_module(f"{one}.{kind}.{module}") for one in (THEIRS, OURS))
    public = importlib.import_module(f"{OURS}.{module}")

    assert [] == [name for name in ours.__all__ if not hasattr(theirs, name)]
    assert all(getattr(public, name) is getattr(ours, name) for name in ours.__all__)


def test_reasons_are_needed():
    """No reason is given for a name that confluent-kafka lacks."""
    named = {name for module in MODULES for name in _public(importlib.import_module(THEIRS + module))}

    assert set() == ABSENT.keys() - named


DOCUMENTED = re.compile(r"^\|\s*``([a-z.]+)``", re.MULTILINE)
SERDES = {
    (".avro", "AvroSerializer"): lambda kind, client, conf: kind(client, '"string"', conf=conf),
    (".avro", "AvroDeserializer"): lambda kind, client, conf: kind(client, conf=conf),
    (".json_schema", "JSONSerializer"): lambda kind, client, conf: kind('{"title": "T"}', client, conf=conf),
    (".json_schema", "JSONDeserializer"): lambda kind, client, conf: kind(None, None, client, conf),
    (".protobuf", "ProtobufSerializer"): lambda kind, client, conf: kind(Timestamp, client, conf),
    (".protobuf", "ProtobufDeserializer"): lambda kind, client, conf: kind(Timestamp, conf, client),
}
VALUES = {
    "auto.register.schemas": False,
    "normalize.schemas": True,
    "use.schema.id": 1,
    "use.latest.version": False,
    "use.latest.with.metadata": {"a": "b"},
    "subject.name.strategy.type": "RECORD",
    "subject.name.strategy.conf": {},
    "subject.name.strategy": lambda ctx, name: "subject",
    "schema.id.serializer": lambda payload, ctx, schema_id: schema_id.id_to_bytes() + payload,
    "schema.id.deserializer": lambda payload, ctx, schema_id: schema_id.from_bytes(payload),
    "validate": False,
    "validate.strict": True,
    "validate.strict.allow.default": True,
    "validation.rules.execution": "DISABLED",
    "validation.rules.executor": None,
    "validation.rules.fail.fast": False,
    "skip.known.types": False,
    "use.deprecated.format": False,
    "reference.subject.name.strategy": lambda ctx, file: file.name,
}


def _settings(module: str, name: str) -> list[str]:
    kind = getattr(importlib.import_module(THEIRS + module), name)
    documented = set(DOCUMENTED.findall(kind.__doc__))
    return sorted(documented | set(getattr(kind, "_default_conf", {})))


@pytest.mark.parametrize(("module", "name"), SERDES, ids=[name for _, name in SERDES])
def test_settings(module, name):
    """The settings that confluent-kafka documents, or has defaults for, are taken by name."""
    client = SchemaRegistryClient({"url": "http://127.0.0.1:9"})
    class_ = getattr(importlib.import_module(OURS + module), name)

    for setting in _settings(module, name):
        assert SERDES[module, name](class_, client, {setting: VALUES[setting]}) is not None


def test_client_settings():
    """All settings of confluent-kafka's client are known."""
    theirs = set(DOCUMENTED.findall(importlib.import_module(THEIRS).SchemaRegistryClient.__doc__))
    read = inspect.getsource(importlib.import_module(f"{THEIRS}._sync.schema_registry_client"))
    read += inspect.getsource(importlib.import_module(f"{THEIRS}.common._oauthbearer"))
    theirs |= set(re.findall(r"""['"]((?:bearer|ssl|retries|max|cache|basic)\.[a-z.]+)['"]""", read))

    assert set() == theirs - CLIENT_SETTINGS
