package strata.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/**
 * Schemas and payloads in, values out, as lines of JSON: by our program, and by Avro's own reader when it is asked for.
 *
 * <p>A line in: the function's name, the writer schema, payloads in hexadecimal, and for Avro the reader schema.
 */
final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Probe() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(answer(JSON.readTree(line)));
            }
        }
    }

    private static JsonNode answer(JsonNode task) throws JsonProcessingException {
        Plan plan = Plan.parse(task.get("plan").asText());
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ours = answer.putArray("ours");
        ArrayNode avro = answer.putArray("avro");
        Schema writer = parse(task.get("writer").asText());
        RowBuffer row = new RowBuffer(1);
        Program program = new Program(1, writer, plan.readerSchema(), plan.dataType(), row);
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            ours.add(ours(program, row, plan.dataType(), bytes));
            if (task.has("reader")) {
                avro.add(avro(writer, parse(task.get("reader").asText()), plan.dataType(), bytes));
            }
        }
        return answer;
    }

    private static Schema parse(String text) {
        return new Schema.Parser(NameValidator.NO_VALIDATION).setValidateDefaults(false).parse(text);
    }

    private static JsonNode ours(Program program, RowBuffer buffer, DataType type, byte[] payload) {
        try {
            program.read(payload, 0);
            UnsafeRow row = buffer.row();
            Layout.requireSame(row, type);
            return JSON.createObjectNode().set("value", Plain.spark(row.get(0, type), type));
        } catch (Refusal refusal) {
            return JSON.createObjectNode().put("reason", refusal.reason);
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
