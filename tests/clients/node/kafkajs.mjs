// @kafkajs/confluent-schema-registry runs its part of the story: `node kafkajs.mjs story URL PREFIX STORY.json`, reads
// frames: `… read URL`, or is refused what it asks for: `… access URL NAME STORY.json ID FRAME`.
import { readFileSync } from "node:fs";
import kafkajs from "@kafkajs/confluent-schema-registry";

const { SchemaRegistry, SchemaType, COMPATIBILITY } = kafkajs;
const [mode, url, prefix, storyFile, deniedId, deniedFrame] = process.argv.slice(2);
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

async function shown(call) {
  try {
    return { answered: await call() };
  } catch (error) {
    return { status: error.status, text: String(error) };
  }
}

async function access({ avro, passwords }) {
  const as = (username, password) => new SchemaRegistry({ host: url, auth: { username, password } });
  const [open, closed] = [`open-${prefix}`, `closed-${prefix}`];
  const [first, second] = [avro.first, avro.second].map((each) => ({ type: SchemaType.AVRO, schema: JSON.stringify(each) }));

  const { id } = await as("owner", passwords.right).register(first, { subject: open });
  say("registered", id);
  const reader = as("reader", passwords.right);
  say("read", JSON.parse(JSON.stringify(await reader.getSchema(id))).fields);
  const decode = () => reader.decode(Buffer.from(deniedFrame, "hex"));

  const wrong = as(prefix, passwords.wrong);
  say("wrong password", await shown(() => wrong.getLatestSchemaId(open)));
  say("wrong password, registration", await shown(() => wrong.register(second, { subject: open })));
  say("id", await shown(() => reader.getSchema(Number(deniedId))));
  say("latest", await shown(() => reader.getLatestSchemaId(closed)));
  say("registration", await shown(() => reader.register(first, { subject: closed })));
  say("next version", await shown(() => reader.register(second, { subject: open })));
  say("frame", await shown(decode));
  // After it has registered the first version, the client sets the subject's level, unless it is told not to.
  const unset = { subject: `${open}-unset` };
  say("level", await shown(() => as("producer", passwords.right).register(first, unset)));
  await as("producer", passwords.right).register(second, { ...unset, updateConfig: false });
  say("waiting", null);
  readFileSync(0);
  await reader.getSchema(Number(deniedId));
  await decode();
  say("after the grant", [1, await reader.getLatestSchemaId(closed)]);
}

const story = storyFile && JSON.parse(readFileSync(storyFile, "utf8"));
await { read, story: tell, access }[mode](story);
