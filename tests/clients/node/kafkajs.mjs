// @kafkajs/confluent-schema-registry runs its part of the story: `node kafkajs.mjs story URL PREFIX STORY.json`, or reads frames: `… read URL`.
import { readFileSync } from "node:fs";
import kafkajs from "@kafkajs/confluent-schema-registry";

const { SchemaRegistry, SchemaType, COMPATIBILITY } = kafkajs;
const [mode, url, prefix, storyFile] = process.argv.slice(2);
const say = (step, got) => console.log(JSON.stringify({ step, got }));
const clientOf = (base) => new SchemaRegistry({ host: base });

async function refusal(call) {
  try {
    return { answered: await call() };
  } catch (error) {
    return error.status ?? String(error);
  }
}

async function tell(story) {
  const client = clientOf(url);
  const subject = (name) => `${prefix}-${name}`;
  const avro = (schema, more = {}) => ({ type: SchemaType.AVRO, schema: JSON.stringify(schema), ...more });
  const options = (name) => ({ subject: subject(name), compatibility: COMPATIBILITY.BACKWARD });
  const { first, second, incompatible } = story.avro;

  const ids = {};
  ids.avro = (await client.register(avro(first), options("avro"))).id;
  say("register avro", ids.avro);
  ids.json = (await client.register({ type: SchemaType.JSON, schema: JSON.stringify(story.json) }, options("json"))).id;
  say("register json", ids.json);
  ids.protobuf = (await client.register({ type: SchemaType.PROTOBUF, schema: story.protobuf }, options("protobuf"))).id;
  say("register protobuf", ids.protobuf);
  say("look up", await clientOf(url).getRegistryIdBySchema(subject("avro"), avro(first)));
  const later = (await client.register(avro(second), options("avro"))).id;
  say("register second", later);
  say("latest", [2, await client.getLatestSchemaId(subject("avro"))]);

  const reference = { name: story.references.name, subject: subject("dependency"), version: 1 };
  await client.register(avro(story.references.dependency), options("dependency"));
  await client.register(avro(story.references.dependent, { references: [reference] }), options("dependent"));
  const cart = { line: { sku: "a" } };
  const dependent = await client.getLatestSchemaId(subject("dependent"));
  say("through a reference", await clientOf(url).decode(await client.encode(dependent, cart)));

  const { id, amount, note } = await clientOf(url).decode(await client.encode(ids.protobuf, story.value));
  say("its own protobuf", { id, amount, note });

  say("incompatible", await refusal(() => client.register(avro(incompatible), options("avro"))));
  say("unknown subject", await refusal(() => client.getLatestSchemaId(subject("unknown"))));
  say("unknown id", await refusal(() => client.getSchema(2 ** 30)));

  const odd = [];
  for (const each of story.odd) {
    odd.push((await client.register(avro(first), options(`odd-${each}`))).id);
  }
  say("odd ids", odd);
  const inside = clientOf(`${url}/contexts/.${prefix}`);
  say("context", [(await inside.register(avro(first), { subject: "inner" })).id, 1]);
  for (const format of ["avro", "json"]) {
    say(`frame ${format}`, (await client.encode(ids[format], story.value)).toString("hex"));
  }
}

async function read() {
  const client = clientOf(url);
  for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const { step, hex } = JSON.parse(line);
    const { id, amount, note } = await client.decode(Buffer.from(hex, "hex"));
    say(step, { id, amount, note });
  }
}

await (mode === "read" ? read() : tell(JSON.parse(readFileSync(storyFile, "utf8"))));
