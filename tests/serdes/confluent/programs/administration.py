"""Registers, looks up, configures and deletes."""

import json

from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, SchemaRegistryClient, ServerConfig


def fields(count):
    return Schema(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": f"f{n}", "type": "int", "default": 0} for n in range(count)],
            }
        )
    )


def main(url):
    with SchemaRegistryClient({"url": url}) as client:
        print([client.register_schema("admin", fields(n)) > 0 for n in (1, 2, 3)])
        answer = client.register_schema_full_response("admin", fields(3), normalize_schemas=True)
        print(answer.subject, answer.version, answer.guid)
        schema_id = answer.schema_id
        print(
            client.get_schema(schema_id), client.get_schema(schema_id, "admin"), client.get_schema_by_guid(answer.guid)
        )
        print(
            client.lookup_schema("admin", fields(2)).version,
            client.get_version("admin", 1).schema,
            client.get_version("admin").version,
        )
        print(
            client.get_schema_versions(schema_id),
            client.get_subjects_by_schema_id(schema_id),
            client.get_versions("admin"),
        )
        print(
            client.get_subjects("adm"),
            client.get_subjects(subject_prefix="nope"),
            client.get_subjects("adm", offset=0, limit=1),
        )
        print(client.get_schema_types(), client.get_contexts(), client.get_referenced_by("admin", 1))
        print(client.set_compatibility("admin", "FULL"), client.get_compatibility("admin"), client.get_compatibility())
        config = ServerConfig(compatibility=ConfigCompatibilityLevel.FORWARD, compatibility_group="app")
        print(client.set_config("admin", config), client.get_config("admin"), client.delete_config("admin"))
        print(
            client.update_mode("admin", "READONLY"),
            client.get_mode("admin"),
            client.delete_mode("admin"),
            client.get_global_mode(),
        )
        print(
            client.test_compatibility("admin", fields(4)),
            client.test_compatibility_all_versions("admin", Schema('"int"'), verbose=True),
        )
        print(
            client.delete_version("admin", 1), client.get_versions("admin"), client.get_versions("admin", deleted=True)
        )
        print(
            client.delete_subject("admin"),
            client.delete_subject("admin", permanent=True),
            client.get_subjects("adm", deleted=True),
        )
        client.clear_caches()
        client.clear_latest_caches()
