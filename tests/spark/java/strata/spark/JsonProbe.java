package strata.spark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.json.JsonProgram;
import strata.spark.json.JsonProgram.JsonReader;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.row.RowBuffer;

/**
 * Decodes JSON payloads with our program, and compares the values with Jackson's; reads and writes lines of JSON.
 *
 * <p>A line in: the function's name, payloads in hexadecimal.
 */
final class JsonProbe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectMapper JACKSON = new ObjectMapper(JsonFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxNestingDepth(1024)
                            .build())
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private JsonProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(JsonProbe::answer);
    }

    private static JsonNode answer(JsonNode task) throws JsonProcessingException {
        DecodePlan plan = DecodePlan.parse(FunctionName.parse(task.get("plan").asText()));
        DataType type = plan.dataType();
        RowBuffer buffer = new RowBuffer(1);
        Program program = new JsonProgram(1, new JsonReader(plan.reader()), buffer);
        JsonNode shape = JSON.readTree(plan.reader());
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ours = answer.putArray("ours");
        ArrayNode jackson = answer.putArray("jackson");
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            JsonNode one = read(program, buffer, type, bytes);
            ours.add(one);
            jackson.add(opinion(one, bytes, shape));
        }
        return answer;
    }

    private static JsonNode read(Program program, RowBuffer buffer, DataType type, byte[] payload) {
        try {
            program.read(Framed.alone(payload));
        } catch (Refusal refusal) {
            return JSON.createObjectNode().put("reason", refusal.reason);
        }
        UnsafeRow row = buffer.row();
        Layout.requireSame(row, type);
        return JSON.createObjectNode().set("value", Plain.spark(row.isNullAt(0) ? null : row.get(0, type), type));
    }

    private static String opinion(JsonNode ours, byte[] payload, JsonNode shape) {
        try {
            JsonNode theirs = JACKSON.readTree(payload);
            return ours.has("value") && isSame(ours.get("value"), theirs, shape) ? "same" : "another value";
        } catch (IOException error) {
            return "malformed";
        }
    }

    private static boolean isSame(JsonNode ours, JsonNode theirs, JsonNode shape) throws JsonProcessingException {
        if (ours.isNull()) {
            return theirs.isNull() || theirs.isMissingNode();
        }
        switch (shape.path("kind").asText()) {
            case "object":
                for (int i = 0; i < ours.size(); i++) {
                    JsonNode field = shape.path("fields").get(i);
                    if (!isSame(ours.get(i), theirs.path(field.get(0).asText()), field.get(1))) {
                        return false;
                    }
                }
                return theirs.isObject();
            case "array":
                for (int i = 0; i < ours.size(); i++) {
                    if (!isSame(ours.get(i), theirs.path(i), shape.path("item"))) {
                        return false;
                    }
                }
                return theirs.isArray() && theirs.size() == ours.size();
            case "map":
                for (var entries = ours.properties().iterator(); entries.hasNext(); ) {
                    var entry = entries.next();
                    if (!isSame(entry.getValue(), theirs.path(entry.getKey()), shape.path("item"))) {
                        return false;
                    }
                }
                return theirs.isObject() && theirs.size() == ours.size();
            case "integer":
                BigInteger number = theirs.isIntegralNumber()
                        ? theirs.bigIntegerValue()
                        : new BigDecimal(theirs.doubleValue()).toBigInteger();
                return theirs.isNumber() && number.equals(BigInteger.valueOf(ours.longValue()));
            case "number":
                return theirs.isNumber() && Double.doubleToLongBits(theirs.doubleValue()) == ours.longValue();
            case "text":
                return JSON.readTree(ours.asText()).equals(theirs);
            default:
                return ours.equals(theirs);
        }
    }
}
