package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import java.util.List;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.proto.MessageJudge;
import strata.spark.schema.ProtoSchema;

/**
 * Says which values of messages a candidate has otherwise. Each line holds the writer's and the candidate's descriptor,
 * the name of a message, and payloads; the answer has, for each, whether it may change, and the paths that do.
 */
final class ChangesProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ChangesProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(ChangesProbe::answer);
    }

    private static JsonNode answer(JsonNode task) {
        String name = task.get("message").asText();
        ProtoSchema writer =
                ProtoSchema.parseWithKnown(List.of(task.get("writer").asText()));
        ProtoSchema candidate =
                ProtoSchema.parseWithKnown(List.of(task.get("reader").asText()));
        MessageJudge judge = new MessageJudge(candidate, name);
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            ObjectNode answer = answers.addObject();
            answer.put("doubt", judge.mayChange(writer.named(name), bytes, 0));
            for (boolean isDecoded : new boolean[] {false, true}) {
                ArrayNode paths = answer.putArray(isDecoded ? "watched" : "paths");
                try {
                    judge.find(1, writer.named(name), bytes, 0, (path, written, read) -> paths.add(path), isDecoded);
                } catch (Refusal refusal) {
                    answer.put("refused", refusal.reason);
                    paths.add(refusal.reason);
                }
            }
        }
        return answers;
    }
}
