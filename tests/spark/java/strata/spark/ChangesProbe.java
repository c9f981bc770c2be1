package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.MessageJudge;
import strata.spark.proto.ProtoProgram;
import strata.spark.proto.ProtoReader;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema;

/**
 * Says which values of messages a candidate has otherwise. Each line holds the writer's and the candidate's descriptor,
 * the name of a message, and payloads, perhaps a function's name and what precedes messages in frames; the answer has, for
 * each, whether it may change, and the paths that do, and the same of a message that was decoded before.
 *
 * <p>Payloads that may be damaged follow, of which the answer has whether they can be read. A program that only checks them
 * must refuse the same ones, for the same reasons, as one that builds rows.
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
        ProtoProgram program = null;
        ProtoProgram builder = null;
        if (task.has("plan")) {
            DecodePlan plan =
                    DecodePlan.parse(FunctionName.parse(task.get("plan").asText()));
            program = new ProtoProgram(1, writer, new ProtoReader(plan.reader()), new RowBuffer(1), judge);
            builder = new ProtoProgram(1, writer, new ProtoReader(plan.reader()), new RowBuffer(1), null);
        }
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            ObjectNode answer = answers.addObject();
            answer.put("doubt", judge.mayChange(writer.named(name), bytes, 0, bytes.length, false));
            ArrayNode paths = answer.putArray("paths");
            try {
                judge.find(
                        1, writer.named(name), bytes, 0, bytes.length, (path, written, read) -> paths.add(path), false);
            } catch (Refusal refusal) {
                answer.put("refused", refusal.reason);
            }
            if (program != null) {
                byte[] indexed = HexFormat.of().parseHex(task.get("indexes").asText() + payload.asText());
                decode(program, judge, Framed.between(indexed, new Random(bytes.length)), answer);
            }
        }
        if (program != null) {
            for (JsonNode damaged : task.get("damaged")) {
                byte[] indexed = HexFormat.of().parseHex(task.get("indexes").asText() + damaged.asText());
                answers.addObject().put("read", isRead(program, builder, indexed));
            }
        }
        return answers;
    }

    private static boolean isRead(ProtoProgram program, ProtoProgram builder, byte[] indexed) {
        FrameHeader frame = Framed.between(indexed, new Random(indexed.length));
        String refused = refused(program, frame);
        String expected = refused(builder, frame);
        if (!Objects.equals(refused, expected)) {
            throw new AssertionError(HexFormat.of().formatHex(indexed) + " is refused for " + refused
                    + " if it is checked, and for " + expected + " if its row is built");
        }
        return refused == null;
    }

    private static String refused(ProtoProgram program, FrameHeader frame) {
        try {
            program.read(frame);
            return null;
        } catch (Refusal refusal) {
            return refusal.reason + ", " + refusal.path + ": " + refusal.getMessage();
        }
    }

    /** Add the same of a message that was decoded before, whose fields may be marked. */
    private static void decode(ProtoProgram program, MessageJudge judge, FrameHeader frame, ObjectNode answer) {
        try {
            program.read(frame);
        } catch (Refusal refusal) {
            return;
        }
        ObjectNode decoded = answer.putObject("decoded");
        decoded.put("doubt", judge.mayChange(program.written(), frame.bytes(), program.payload(), frame.end(), true));
        ArrayNode paths = decoded.putArray("paths");
        try {
            judge.find(
                    1,
                    program.written(),
                    frame.bytes(),
                    program.payload(),
                    frame.end(),
                    (path, written, read) -> paths.add(path),
                    true);
        } catch (Refusal refusal) {
            decoded.put("refused", refusal.reason);
        }
    }
}
