package strata.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.AvroProgram;
import strata.spark.avro.AvroProgram.Defaults;
import strata.spark.avro.FieldReader.FieldReaders;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.row.RowBuffer;

/**
 * Decodes payloads with our program, and on request with Avro's own reader; reads and writes lines of JSON.
 *
 * <p>A line in: the function's name, the writer schema, payloads in hexadecimal, and for Avro the reader schema. With
 * the reader schema, programs for some of the columns read too.
 */
final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Probe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(Probe::answer);
        if (FieldReaders.haveFailed()) {
            throw new AssertionError("some of the code that was made does not compile");
        }
    }

    private static JsonNode answer(JsonNode task) throws JsonProcessingException {
        DecodePlan plan = DecodePlan.parse(FunctionName.parse(task.get("plan").asText()));
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ours = answer.putArray("ours");
        ArrayNode avro = answer.putArray("avro");
        Schema writer = parse(task.get("writer").asText());
        Reading plain = new Reading(plan, writer, null);
        Reading made = new Reading(plan, writer, null);
        List<Reading> pruned = task.has("reader") ? pruned(plan, writer) : List.of();
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            JsonNode one = plain.read(bytes, Integer.MAX_VALUE);
            ours.add(one);
            // The first record is still decoded by nodes, before code is generated.
            made.read(bytes, 0);
            requireSame(one, made.read(bytes, 0), plain, made);
            for (Reading some : pruned) {
                requireSameOf(one, some.read(bytes, some == pruned.get(0) ? Integer.MAX_VALUE : 0), some.fields);
            }
            if (task.has("reader")) {
                avro.add(avro(writer, parse(task.get("reader").asText()), plan.dataType(), bytes));
            }
        }
        return answer;
    }

    private static Schema parse(String text) {
        return new Schema.Parser(NameValidator.NO_VALIDATION)
                .setValidateDefaults(false)
                .parse(text);
    }

    /** Check that generated code gives the same results, and the same bytes, as the nodes that it comes from. */
    private static void requireSame(JsonNode one, JsonNode other, Reading plain, Reading made) {
        if (!one.equals(other) || one.has("value") && !plain.buffer.row().equals(made.buffer.row())) {
            throw new AssertionError("by nodes: " + one + ", by code made for the schemas: " + other);
        }
    }

    /** Return programs that build every other field, or none, by nodes and by generated code, and check all. */
    private static List<Reading> pruned(DecodePlan plan, Schema writer) {
        if (!(plan.dataType() instanceof StructType type)) {
            return List.of();
        }
        Set<Integer> some =
                IntStream.range(0, type.size()).filter(i -> i % 2 == 1).boxed().collect(Collectors.toSet());
        return List.of(
                new Reading(plan, writer, some), new Reading(plan, writer, some), new Reading(plan, writer, Set.of()));
    }

    /** Check that a program that builds only some fields refuses the same payloads, and has the same values for these. */
    private static void requireSameOf(JsonNode one, JsonNode other, Set<Integer> fields) {
        boolean isSame = one.has("value") ? other.has("value") : one.equals(other);
        for (int i = 0; isSame && i < one.path("value").size(); i++) {
            JsonNode found = other.get("value").get(i);
            isSame = found.equals(one.get("value").get(i)) || found.isNull() && !fields.contains(i);
        }
        if (!isSame) {
            throw new AssertionError("all fields: " + one + ", only " + fields + ": " + other);
        }
    }

    /** A program with its row buffer. */
    private static final class Reading {
        private final DataType type;
        private final RowBuffer buffer = new RowBuffer(1);
        private final Program program;
        private final Set<Integer> fields;

        Reading(DecodePlan plan, Schema writer, Set<Integer> fields) {
            type = plan.dataType();
            this.fields = fields;
            program = new AvroProgram(1, writer, Defaults.readerSchema(plan.reader()), type, fields, buffer);
        }

        /** Return a value or a reason; code is generated after this many records. */
        JsonNode read(byte[] payload, int worthwhile) {
            FieldReaders.worthwhile = worthwhile;
            try {
                program.read(Framed.alone(payload));
            } catch (Refusal refusal) {
                return JSON.createObjectNode().put("reason", refusal.reason);
            }
            UnsafeRow row = buffer.row();
            Layout.requireSame(row, type);
            return JSON.createObjectNode().set("value", Plain.spark(row.get(0, type), type));
        }
    }

    private static JsonNode avro(Schema writer, Schema reader, DataType type, byte[] payload) {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(payload, null);
        try {
            Object datum = new GenericDatumReader<>(writer, reader).read(null, decoder);
            return JSON.createObjectNode().set("value", Plain.avro(datum, reader, type));
        } catch (IOException | RuntimeException error) {
            return JSON.createObjectNode().put("reason", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
    }
}
