package strata.compat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;

/**
 * Parses and compares schemas with Avro's own library: a line of JSON in, a line out.
 *
 * <p>In: {schema, references}; references are texts, each after those that it needs. Out: `strict` and `lenient`, each
 * the canonical text or {reason}. In: {reader, writer}, texts that parse, and their references. Out: the
 * incompatibilities, or {reason}.
 */
public final class AvroSchemas {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final Set<Schema.Type> NAMED = EnumSet.of(Schema.Type.RECORD, Schema.Type.ENUM, Schema.Type.FIXED);

    private AvroSchemas() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonNode task = JSON.readTree(line);
                JsonNode answer = task.has("schema") ? parsed(task) : compared(task);
                out.println(ascii(answer.toString()));
            }
        }
    }

    private static JsonNode parsed(JsonNode task) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("strict", tried(() -> canonical(task, true)));
        answer.set("lenient", tried(() -> canonical(task, false)));
        return answer;
    }

    private static JsonNode canonical(JsonNode task, boolean strict) {
        Schema.Parser parser = parser(strict);
        List<Schema> references = references(parser, task.path("references"));
        Schema schema = parser.parse(task.get("schema").asText());
        return JSON.getNodeFactory().textNode(schema.toString(references, false));
    }

    private static List<Schema> references(Schema.Parser parser, JsonNode texts) {
        List<Schema> schemas = new ArrayList<>();
        texts.forEach(text -> schemas.add(parser.parse(text.asText())));
        return schemas;
    }

    private static Schema referring(JsonNode task, String whose) {
        Schema.Parser parser = parser(false);
        references(parser, task.path(whose + " references"));
        return parser.parse(task.get(whose).asText());
    }

    private static JsonNode compared(JsonNode task) {
        return tried(() -> {
            Schema reader = referring(task, "reader");
            Schema writer = referring(task, "writer");
            ArrayNode found = JSON.createArrayNode();
            for (Incompatibility each : SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
                    .getResult().getIncompatibilities()) {
                found.addArray()
                    .add(each.getType().name())
                    .add(each.getLocation())
                    .add(each.getMessage())
                    .add(name(each.getReaderFragment()))
                    .add(name(each.getWriterFragment()));
            }
            return found;
        });
    }

    private static String name(Schema fragment) {
        String kind = fragment.getType().getName();
        return NAMED.contains(fragment.getType()) ? kind + " " + fragment.getFullName() : kind;
    }

    private static Schema.Parser parser(boolean strict) {
        return new Schema.Parser(strict ? NameValidator.STRICT_VALIDATOR : NameValidator.NO_VALIDATION)
            .setValidateDefaults(strict);
    }

    private interface Step {
        JsonNode run();
    }

    private static JsonNode tried(Step step) {
        try {
            return step.run();
        } catch (RuntimeException | StackOverflowError failure) {
            String reason = failure.getClass().getSimpleName() + ": " + failure.getMessage();
            return JSON.createObjectNode().put("reason", reason);
        }
    }

    /** Write JSON with escapes for characters beyond ASCII, lone surrogates included. */
    private static String ascii(String text) {
        StringBuilder escaped = new StringBuilder();
        for (char unit : text.toCharArray()) {
            escaped.append(unit < 0x7F ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
        }
        return escaped.toString();
    }
}
