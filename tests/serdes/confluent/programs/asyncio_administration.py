"""Calls every method of the client for asyncio."""

import asyncio

from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaRegistryError,
    ServerConfig,
)


def schema(fields, metadata=None):
    names = ", ".join(f'{{"name": "f{n}", "type": "int", "default": 0}}' for n in range(fields))
    return Schema(f'{{"type": "record", "name": "R", "fields": [{names}]}}', "AVRO", metadata=metadata)


async def run(url):
    client = AsyncSchemaRegistryClient.new_client({"url": url})
    async with client:
        print(client.config() == {"url": url}, await client.get_schema_types(), await client.get_contexts())
        first = await client.register_schema("things", schema(1))
        full = await client.register_schema_full_response("things", schema(2), normalize_schemas=True)
        tagged = schema(3, Metadata(None, MetadataProperties({"major": "3"}), None))
        print(first > 0, full.version, full.guid, await client.register_schema("things", tagged) > full.schema_id)
        print(await client.get_schema(full.schema_id), await client.get_schema(full.schema_id, "things", None))
        print(await client.get_schema_by_guid(full.guid), await client.get_subjects(subject_prefix="thin"))
        print(await client.get_schema_versions(full.schema_id), await client.get_subjects_by_schema_id(full.schema_id))
        print((await client.lookup_schema("things", schema(2))).version, await client.get_versions("things"))
        print((await client.get_version("things", 1)).schema, (await client.get_latest_version("things")).version)
        print((await client.get_latest_with_metadata("things", {"major": "3"})).version)
        print(await client.get_referenced_by("things", 1))
        print(await client.set_compatibility("things", "FULL"), await client.get_compatibility("things"))
        print(await client.test_compatibility("things", schema(4)))
        print(await client.test_compatibility_all_versions("things", Schema('"int"'), verbose=True))
        config = ServerConfig(compatibility=ConfigCompatibilityLevel.NONE)
        print(await client.set_config("things", config), await client.get_config("things"))
        print(await client.delete_config("things"), await client.get_global_mode())
        print(await client.update_mode("things", "READONLY"), await client.get_mode("things"))
        print(await client.delete_mode("things"), await client.update_global_mode("READWRITE"))
        info = AssociationCreateOrUpdateInfo(subject="things", association_type="value", lifecycle="WEAK")
        request = AssociationCreateOrUpdateRequest("things", "lkc-2", "lkc-2:things", "topic", [info])
        print((await client.create_association(request)).resource_id)
        print([one.subject for one in await client.get_associations_by_resource_name("things", "lkc-2")])
        print(await client.delete_associations("lkc-2:things"))
        print(await client.delete_version("things", 1), await client.get_versions("things", deleted=True))
        print(
            await client.delete_version("things", 1, permanent=True), await client.get_versions("things", deleted=True)
        )
        print(await client.delete_subject("things"), await client.delete_subject("things", permanent=True))
        await client.clear_latest_caches()
        try:
            await client.get_latest_version("things")
        except SchemaRegistryError as error:
            print(error.http_status_code, error.error_code, error.error_message)
        await client.clear_caches()


def main(url):
    asyncio.run(run(url))
