import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.RestService;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.avro.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumReader;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumWriter;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.shaded.org.apache.avro.io.DecoderFactory;
import org.apache.flink.avro.shaded.org.apache.avro.io.EncoderFactory;
import org.apache.flink.formats.avro.registry.confluent.ConfluentSchemaRegistryCoder;

/**
 * Confluent's Java client, as Flink carries it, runs the story (story URL PREFIX STORY.json), reads frames (read URL), or
 * is refused what it asks for (access URL NAME STORY.json ID FRAME).
 */
public final class Story {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final String url;
    private final String prefix;

    private Story(String url, String prefix) {
        this.url = url;
        this.prefix = prefix;
    }

    public static void main(String[] args) throws Exception {
        System.setOut(new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8));
        if (args[0].equals("read")) {
            new Story(args[1], "").read();
        } else if (args[0].equals("access")) {
            JsonNode story = JSON.readTree(Files.readString(Path.of(args[3])));
            new Story(args[1], args[2]).access(story, Integer.parseInt(args[4]), HexFormat.of().parseHex(args[5]));
        } else {
            new Story(args[1], args[2]).tell(JSON.readTree(Files.readString(Path.of(args[3]))));
        }
    }

    private void tell(JsonNode story) throws Exception {
        CachedSchemaRegistryClient client = client(url);
        AvroSchema first = avro(story.at("/avro/first"));
        AvroSchema second = avro(story.at("/avro/second"));
        AvroSchema incompatible = avro(story.at("/avro/incompatible"));

        int id = client.register(subject("avro"), first);
        say("register avro", id);
        RestService rest = new RestService(url);
        say("register json", rest.registerSchema(story.get("json").toString(), "JSON", List.of(), subject("json")).getId());
        say("register protobuf",
            rest.registerSchema(story.get("protobuf").asText(), "PROTOBUF", List.of(), subject("protobuf")).getId());
        say("look up", client(url).getId(subject("avro"), first));
        say("by id", JSON.readTree(client(url).getSchemaById(id).canonicalString()));
        say("register second", client.register(subject("avro"), second));
        say("versions", client.getAllVersions(subject("avro")));
        SchemaMetadata latest = client.getLatestSchemaMetadata(subject("avro"));
        say("latest", List.of(latest.getVersion(), latest.getId()));
        references(client, story.get("references"));

        say("incompatible", refusal(() -> client.register(subject("avro"), incompatible)));
        say("unknown subject", refusal(() -> client.getLatestSchemaMetadata(subject("unknown"))));
        say("unknown version", refusal(() -> client.getSchemaMetadata(subject("avro"), 99)));
        say("unknown id", refusal(() -> client.getSchemaById(1 << 30)));
        say("compatible", List.of(
            client.testCompatibility(subject("avro"), second), client.testCompatibility(subject("avro"), incompatible)));
        say("config unset", refusal(() -> client.getCompatibility(subject("config"))));
        client.updateCompatibility(subject("config"), "FULL");
        say("config", client.getCompatibility(subject("config")));
        say("read-only", List.of(client.setMode("READONLY", subject("mode")), client.getMode(subject("mode")),
            refusal(() -> client.register(subject("mode"), first))));

        for (JsonNode odd : story.get("odd")) {
            // This release of the client does not send other names as UTF-8 (`%F6` for ö).
            if (StandardCharsets.US_ASCII.newEncoder().canEncode(odd.asText())) {
                client.register(subject("odd-" + odd.asText()), first);
            }
        }
        say("odd subjects", client.getAllSubjects().stream()
            .filter(name -> name.startsWith(subject("odd-"))).sorted().collect(Collectors.toList()));
        deletes(client, first);

        CachedSchemaRegistryClient inside = client(url + "/contexts/." + prefix);
        say("context", List.of(inside.register("inner", first), inside.getLatestSchemaMetadata("inner").getVersion()));
        say("frame avro", write(client, first.rawSchema(), story.get("value")));
    }

    private void references(CachedSchemaRegistryClient client, JsonNode story) throws Exception {
        client.register(subject("dependency"), avro(story.get("dependency")));
        SchemaReference reference = new SchemaReference(story.get("name").asText(), subject("dependency"), 1);
        AvroSchema dependent = new AvroSchema(story.get("dependent").toString(), List.of(reference),
            Map.of(reference.getName(), story.get("dependency").toString()), null);
        int id = client.register(subject("dependent"), dependent);
        List<Object> found = new ArrayList<>();
        for (SchemaReference each : client(url).getSchemaById(id).references()) {
            found.add(Map.of("name", each.getName(), "subject", each.getSubject(), "version", each.getVersion()));
        }
        say("references", found);
    }

    private void deletes(CachedSchemaRegistryClient client, AvroSchema schema) throws Exception {
        client.register(subject("gone"), schema);
        say("soft delete", client.deleteSubject(subject("gone")));
        say("after soft delete", refusal(() -> client(url).getLatestSchemaMetadata(subject("gone"))));
        say("hard delete", client.deleteSubject(subject("gone"), true));
    }

    private String write(CachedSchemaRegistryClient client, Schema schema, JsonNode value) throws Exception {
        GenericRecord order = new GenericData.Record(schema);
        order.put("id", value.get("id").asText());
        order.put("amount", value.get("amount").asInt());
        order.put("note", value.get("note").asText());
        ByteArrayOutputStream frame = new ByteArrayOutputStream();
        new ConfluentSchemaRegistryCoder(subject("frame-avro-value"), client).writeSchema(schema, frame);
        var encoder = EncoderFactory.get().directBinaryEncoder(frame, null);
        new GenericDatumWriter<GenericRecord>(schema).write(order, encoder);
        return HexFormat.of().formatHex(frame.toByteArray());
    }

    private void read() throws Exception {
        ConfluentSchemaRegistryCoder coder = new ConfluentSchemaRegistryCoder(client(url));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines();
        for (String line : lines.collect(Collectors.toList())) {
            JsonNode frame = JSON.readTree(line);
            var bytes = new ByteArrayInputStream(HexFormat.of().parseHex(frame.get("hex").asText()));
            Schema schema = coder.readSchema(bytes);
            var decoder = DecoderFactory.get().directBinaryDecoder(bytes, null);
            GenericRecord order = new GenericDatumReader<GenericRecord>(schema).read(null, decoder);
            Map<String, Object> value = new LinkedHashMap<>();
            value.put("id", order.get("id").toString());
            value.put("amount", order.get("amount"));
            value.put("note", order.get("note").toString());
            say(frame.get("step").asText(), value);
        }
    }

    private void access(JsonNode story, int id, byte[] frame) throws Exception {
        String right = story.at("/passwords/right").asText();
        String open = "open-" + prefix;
        String closed = "closed-" + prefix;
        AvroSchema first = avro(story.at("/avro/first"));
        AvroSchema second = avro(story.at("/avro/second"));

        int made = clientAs("owner", right).register(open, first);
        say("registered", made);
        CachedSchemaRegistryClient reader = clientAs("reader", right);
        say("read", JSON.readTree(reader.getSchemaById(made).canonicalString()).get("fields"));
        ConfluentSchemaRegistryCoder coder = new ConfluentSchemaRegistryCoder(reader);
        Callable<Schema> decode = () -> coder.readSchema(new ByteArrayInputStream(frame));

        CachedSchemaRegistryClient wrong = clientAs(prefix, story.at("/passwords/wrong").asText());
        say("wrong password", shown(() -> wrong.getLatestSchemaMetadata(open)));
        say("wrong password, registration", shown(() -> wrong.register(open, second)));
        say("id", shown(() -> reader.getSchemaById(id)));
        say("latest", shown(() -> reader.getLatestSchemaMetadata(closed)));
        say("registration", shown(() -> reader.register(closed, first)));
        say("next version", shown(() -> reader.register(open, second)));
        say("frame", shown(decode));
        say("waiting", null);
        System.in.readAllBytes();
        reader.getSchemaById(id);
        decode.call();
        SchemaMetadata latest = reader.getLatestSchemaMetadata(closed);
        say("after the grant", List.of(latest.getVersion(), latest.getId()));
    }

    private CachedSchemaRegistryClient clientAs(String user, String password) {
        return new CachedSchemaRegistryClient(url, 1000,
            Map.of("basic.auth.credentials.source", "USER_INFO", "basic.auth.user.info", user + ":" + password));
    }

    /** What an error shows; Flink's coder wraps that of the client. */
    private static Object shown(Callable<?> call) {
        StringBuilder text = new StringBuilder();
        try {
            return Map.of("answered", String.valueOf(call.call()));
        } catch (Exception error) {
            for (Throwable each = error; each != null; each = each.getCause()) {
                text.append(each).append('\n');
                if (each instanceof RestClientException) {
                    RestClientException refused = (RestClientException) each;
                    return Map.of("status", refused.getStatus(), "code", refused.getErrorCode(), "text", text.toString());
                }
            }
            return Map.of("text", text.toString());
        }
    }

    private String subject(String name) {
        return prefix + "-" + name;
    }

    private static CachedSchemaRegistryClient client(String base) {
        return new CachedSchemaRegistryClient(base, 1000);
    }

    private static AvroSchema avro(JsonNode schema) {
        return new AvroSchema(schema.toString());
    }

    private static Object refusal(Callable<?> call) throws Exception {
        try {
            return Map.of("answered", String.valueOf(call.call()));
        } catch (RestClientException refused) {
            return refused.getErrorCode();
        }
    }

    private static void say(String step, Object got) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("step", step);
        line.put("got", got);
        System.out.println(JSON.writeValueAsString(line));
    }
}
