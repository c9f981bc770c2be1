// @confluentinc/schemaregistry runs the story: `node confluent.mjs story URL PREFIX STORY.json`, reads frames: `… read URL`,
// or is refused what it asks for: `… access URL NAME STORY.json ID FRAME`.
import { readFileSync } from "node:fs";
import sr from "@confluentinc/schemaregistry";
import { create, createFileRegistry, createMutableRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

const { SchemaRegistryClient, SerdeType, Compatibility } = sr;
const [mode, url, prefix, storyFile, deniedId, deniedFrame] = process.argv.slice(2);
const say = (step, got) => console.log(JSON.stringify({ step, got }));
const clientOf = (base) => new SchemaRegistryClient({ baseURLs: [base], cacheCapacity: 1000, cacheLatestTtlSecs: 1 });

async function refusal(call) {
  try {
    return { answered: await call() };
  } catch (error) {
    return error.errorCode ?? String(error);
  }
}

const field = (name, number, type) => ({ name, number, type, label: 1, jsonName: name });
const withId = (name, ...more) => ({ name, field: [field("id", 1, 9), ...more] });
const order = () => withId("Order", field("amount", 2, 5), field("note", 3, 9));

function descriptorOf(name, messageType, message) {
  const file = create(FileDescriptorProtoSchema, { name, package: "acme", syntax: "proto3", messageType });
  return createFileRegistry(file, () => undefined).getMessage(message);
}

async function tell(story) {
  const client = clientOf(url);
  const text = JSON.stringify;
  const avro = (schema, more = {}) => ({ schema: text(schema), schemaType: "AVRO", ...more });
  const subject = (name) => `${prefix}-${name}`;
  const { first, second, incompatible } = story.avro;

  const id = await client.register(subject("avro"), avro(first));
  say("register avro", id);
  say("register json", await client.register(subject("json"), { schema: text(story.json), schemaType: "JSON" }));
  say("register protobuf", await client.register(subject("protobuf"), { schema: story.protobuf, schemaType: "PROTOBUF" }));
  say("look up", await clientOf(url).getId(subject("avro"), avro(first)));
  say("by id", JSON.parse((await clientOf(url).getBySubjectAndId(subject("avro"), id)).schema));
  const later = await client.register(subject("avro"), avro(second));
  say("register second", later);
  say("versions", await client.getAllVersions(subject("avro")));
  const latest = await client.getLatestSchemaMetadata(subject("avro"));
  say("latest", [latest.version, latest.id]);

  const reference = { name: story.references.name, subject: subject("dependency"), version: 1 };
  await client.register(subject("dependency"), avro(story.references.dependency));
  await client.register(subject("dependent"), avro(story.references.dependent, { references: [reference] }));
  say("references", (await clientOf(url).getSchemaMetadata(subject("dependent"), 1)).references);

  say("incompatible", await refusal(() => client.register(subject("avro"), avro(incompatible))));
  say("unknown subject", await refusal(() => client.getLatestSchemaMetadata(subject("unknown"))));
  say("unknown version", await refusal(() => client.getSchemaMetadata(subject("avro"), 99)));
  say("unknown id", await refusal(() => client.getBySubjectAndId(subject("avro"), 2 ** 30)));
  say("compatible", [
    await client.testCompatibility(subject("avro"), 2, avro(second)),
    await client.testCompatibility(subject("avro"), 2, avro(incompatible)),
  ]);

  say("config unset", await refusal(() => client.getCompatibility(subject("config"))));
  await client.updateCompatibility(subject("config"), Compatibility.FULL);
  say("config", await client.getCompatibility(subject("config")));

  for (const odd of story.odd) await client.register(subject(`odd-${odd}`), avro(first));
  say("odd subjects", (await client.getAllSubjects()).filter((name) => name.startsWith(subject("odd-"))).sort());

  await client.register(subject("gone"), avro(first));
  say("soft delete", await client.deleteSubject(subject("gone")));
  say("after soft delete", await refusal(() => clientOf(url).getLatestSchemaMetadata(subject("gone"))));
  say("hard delete", await client.deleteSubject(subject("gone"), true));

  const inside = clientOf(`${url}/contexts/.${prefix}`);
  const inner = await inside.register("inner", avro(first));
  say("context", [inner, (await inside.getLatestSchemaMetadata("inner")).version]);
  await frames(client, story);
}

async function frames(client, story) {
  const latest = { useLatestVersion: true, autoRegisterSchemas: false };
  const topic = (format) => `${prefix}-frame-${format}`;
  const inHeader = { schemaIdSerializer: sr.HeaderSchemaIdSerializer };

  const give = async (format, Serializer, options, value) => {
    const plain = new Serializer(client, SerdeType.VALUE, options);
    say(`frame ${format}`, (await plain.serialize(topic(format), value)).toString("hex"));
    if (format === "nested") return;
    const headers = {};
    const bare = new Serializer(client, SerdeType.VALUE, { ...options, ...inHeader });
    const payload = await bare.serialize(topic(format), value, headers);
    say(`frame ${format}-header`, `${headers[sr.VALUE_SCHEMA_ID_HEADER].toString("hex")}:${payload.toString("hex")}`);
  };

  await client.register(`${topic("avro")}-value`, { schema: JSON.stringify(story.avro.first), schemaType: "AVRO" });
  await give("avro", sr.AvroSerializer, latest, story.value);
  await client.register(`${topic("json")}-value`, { schema: JSON.stringify(story.json), schemaType: "JSON" });
  await give("json", sr.JsonSerializer, latest, story.value);
  const whole = descriptorOf("order.proto", [order()], "acme.Order");
  const cart = { name: "Cart", nestedType: [withId("Line"), order()] };
  const inner = descriptorOf("cart.proto", [withId("Other"), cart], "acme.Cart.Order");
  const known = (message) => ({ registry: createMutableRegistry(message), autoRegisterSchemas: true });
  await give("protobuf", sr.ProtobufSerializer, known(whole), create(whole, story.value));
  await give("nested", sr.ProtobufSerializer, known(inner), create(inner, story.value));
}

async function read() {
  const client = clientOf(url);
  const protobuf = new sr.ProtobufDeserializer(client, SerdeType.VALUE, {});
  const readers = {
    avro: new sr.AvroDeserializer(client, SerdeType.VALUE, {}),
    json: new sr.JsonDeserializer(client, SerdeType.VALUE, {}),
    protobuf,
    nested: protobuf,
  };
  for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const { step, format, topic, header, hex } = JSON.parse(line);
    const headers = header ? { [sr.VALUE_SCHEMA_ID_HEADER]: Buffer.from(header, "hex") } : undefined;
    const value = await readers[format].deserialize(topic, Buffer.from(hex, "hex"), headers);
    const { id, amount, note } = value;
    say(step, { id, amount, note });
  }
}

async function shown(call) {
  try {
    return { answered: await call() };
  } catch (error) {
    return { status: error.status, code: error.errorCode, text: String(error) };
  }
}

async function access({ avro, passwords }) {
  const as = (user, password) =>
    new SchemaRegistryClient({
      baseURLs: [url],
      cacheCapacity: 1000,
      basicAuthCredentials: { credentialsSource: "USER_INFO", userInfo: `${user}:${password}` },
    });
  const [open, closed] = [`open-${prefix}`, `closed-${prefix}`];
  const [first, second] = [avro.first, avro.second].map((each) => ({ schema: JSON.stringify(each), schemaType: "AVRO" }));

  const id = await as("owner", passwords.right).register(open, first);
  say("registered", id);
  const reader = as("reader", passwords.right);
  say("read", JSON.parse((await reader.getBySubjectAndId(open, id)).schema).fields);
  const deserializer = new sr.AvroDeserializer(reader, SerdeType.VALUE, {});
  const decode = () => deserializer.deserialize("closed", Buffer.from(deniedFrame, "hex"));

  const wrong = as(prefix, passwords.wrong);
  say("wrong password", await shown(() => wrong.getLatestSchemaMetadata(open)));
  say("wrong password, registration", await shown(() => wrong.register(open, second)));
  say("id", await shown(() => reader.getBySubjectAndId(closed, Number(deniedId))));
  say("latest", await shown(() => reader.getLatestSchemaMetadata(closed)));
  say("registration", await shown(() => reader.register(closed, first)));
  say("next version", await shown(() => reader.register(open, second)));
  say("frame", await shown(decode));
  say("waiting", null);
  readFileSync(0);
  await reader.getBySubjectAndId(closed, Number(deniedId));
  await decode();
  const latest = await reader.getLatestSchemaMetadata(closed);
  say("after the grant", [latest.version, latest.id]);
}

const story = storyFile && JSON.parse(readFileSync(storyFile, "utf8"));
await { read, story: tell, access }[mode](story);
