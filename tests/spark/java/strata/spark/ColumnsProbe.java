package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.json.JsonColumns;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.ProtoColumns;
import strata.spark.schema.Columns;
import strata.spark.schema.ProtoSchema;

/**
 * Makes the columns of reader schemas. A line in: descriptors in base64 and a message, or the text of a JSON Schema and
 * its references by name; and the columns asked for. Or the name of a function, for the type of its column.
 */
final class ColumnsProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ColumnsProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(ColumnsProbe::answer);
    }

    private static JsonNode answer(JsonNode task) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        try {
            if (task.has("plan")) {
                FunctionName name = FunctionName.parse(task.get("plan").asText());
                answer.set("type", JSON.readTree(DecodePlan.parse(name).type()));
                return answer;
            }
            Columns columns = columns(task);
            answer.set("reader", JSON.readTree(columns.reader()));
            answer.set("type", JSON.readTree(columns.type().json()));
        } catch (UnusableSchema | IllegalArgumentException refused) {
            answer.put("refused", refused.getMessage());
        }
        return answer;
    }

    private static Columns columns(JsonNode task) {
        List<String> names = task.path("columns").isArray() ? texts(task.get("columns")) : null;
        if (task.has("files")) {
            return ProtoColumns.of(
                    ProtoSchema.parseWithKnown(texts(task.get("files"))),
                    task.path("message").textValue(),
                    names);
        }
        Map<String, String> references = new LinkedHashMap<>();
        task.path("references")
                .properties()
                .forEach(one -> references.put(one.getKey(), one.getValue().asText()));
        return JsonColumns.of(task.path("text").asText(), references, names);
    }

    private static List<String> texts(JsonNode array) {
        return JSON.convertValue(array, JSON.getTypeFactory().constructCollectionType(List.class, String.class));
    }
}
