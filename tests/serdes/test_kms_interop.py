"""confluent-kafka and Strata read each other's records with keys of the same KMS, over the real registry."""

import base64
import json
import shutil
from contextlib import ExitStack
from uuid import uuid4

import boto3
import pytest
from azure.keyvault.keys import JsonWebKey, KeyOperation
from azure.keyvault.keys.crypto import CryptographyClient, EncryptionAlgorithm
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.awskms.aws_driver import AwsKmsDriver
from confluent_kafka.schema_registry.rules.encryption.azurekms.azure_aead import AzureKmsAead
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
from confluent_kafka.schema_registry.rules.encryption.hcvault.hcvault_driver import HcVaultKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext
from moto import mock_aws

from harness.fake_kms import fake_kms
from harness.transit import transit
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.encryption.azure_kms import AzureKms
from strata.serdes.encryption.ciphers import new_material
from strata.serdes.model import Rule, RuleSet
from tests_of_azure import azure_driver  # noqa: F401
