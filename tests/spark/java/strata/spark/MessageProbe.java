package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.proto.EncodeProto.EncodeMessages;
import strata.spark.schema.ProtoSchema;

/** Writes out a message to encode. A line in: descriptors in base64, and the full name of a message. */
final class MessageProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private MessageProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(MessageProbe::answer);
    }

    private static JsonNode answer(JsonNode task) throws IOException {
        ProtoSchema schema = ProtoSchema.parseWithKnown(JSON.convertValue(
                task.get("files"), JSON.getTypeFactory().constructCollectionType(List.class, String.class)));
        ObjectNode answer = JSON.createObjectNode();
        List<Integer> indexes = schema.indexes(task.get("name").asText());
        answer.set("indexes", JSON.valueToTree(indexes));
        try {
            answer.set(
                    "written",
                    JSON.readTree(
                            EncodeMessages.write(schema.named(task.get("name").asText()))));
        } catch (UnusableSchema unusable) {
            answer.put("refused", unusable.getMessage());
        }
        return answer;
    }
}
