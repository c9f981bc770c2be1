package strata.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.AvroProgram;
import strata.spark.avro.AvroProgram.Defaults;
import strata.spark.avro.FieldReader.FieldReaders;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.json.JsonProgram;
import strata.spark.json.JsonProgram.JsonReader;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.ProtoProgram;
import strata.spark.proto.ProtoReader;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.SchemaTexts;

/**
 * Decodes hostile payloads: good ones that were changed, joined or cut, and random bytes. Each must give a row that can
 * be read in full, or a refusal; and the same, word for word, when other bytes surround it.
 *
 * <p>A line in: the function's name, the texts of the writer schema, good payloads in hexadecimal, how many payloads to
 * try, and a seed. A line out: how many had values or which reason, or the first defect.
 */
final class Hostile {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_BYTES = 4096;
    private static final byte[][] PIECES = {
        {0},
        {(byte) 0xFF},
        {(byte) 0x80, (byte) 0x80},
        bytes(0xFF, 0xFF, 0xFF, 0xFF, 0x0F),
        bytes(0xFE, 0xFF, 0xFF, 0xFF, 0x0F),
        bytes(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01),
        bytes(0x80, 0x80, 0x80, 0x80, 0x08),
        bytes(0x7F, 0xFF, 0xFF, 0xFF),
        bytes(0xC3),
        bytes(0xED, 0xA0, 0x80),
        "\"".getBytes(StandardCharsets.UTF_8),
        "\\ud800".getBytes(StandardCharsets.UTF_8),
        "{\"a\":".getBytes(StandardCharsets.UTF_8),
        "[[[[".getBytes(StandardCharsets.UTF_8),
        "]".getBytes(StandardCharsets.UTF_8),
        "}".getBytes(StandardCharsets.UTF_8),
        ",".getBytes(StandardCharsets.UTF_8),
        "1e400".getBytes(StandardCharsets.UTF_8),
        "99999999999999999999".getBytes(StandardCharsets.UTF_8),
        "null".getBytes(StandardCharsets.UTF_8),
        "-".getBytes(StandardCharsets.UTF_8),
        ":".getBytes(StandardCharsets.UTF_8)
    };

    private final Random chance;
    private final List<byte[]> good = new ArrayList<>();

    private Hostile(JsonNode task) {
        this.chance = new Random(task.get("seed").asLong());
        task.get("payloads").forEach(one -> good.add(HexFormat.of().parseHex(one.asText())));
    }

    private static byte[] bytes(int... values) {
        byte[] made = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            made[i] = (byte) values[i];
        }
        return made;
    }

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(Hostile::answer);
    }

    private static JsonNode answer(JsonNode task) throws JsonProcessingException {
        DecodePlan plan = DecodePlan.parse(FunctionName.parse(task.get("plan").asText()));
        RowBuffer row = new RowBuffer(1);
        List<Program> programs = programs(plan, task.get("writer"), row);
        Hostile hostile = new Hostile(task);
        FieldReaders.worthwhile = task.get("payloads").size();
        ObjectNode answer = JSON.createObjectNode();
        TreeMap<String, Integer> outcomes = new TreeMap<>();
        int widest = 0;
        for (int i = 0; i < task.get("count").asInt(); i++) {
            byte[] payload = hostile.next();
            try {
                outcomes.merge(outcome(programs.get(0), row, plan.dataType(), payload), 1, Integer::sum);
                widest = Math.max(widest, row.at);
                for (Program program : programs) {
                    hostile.requireSameBetween(program, row, payload);
                }
            } catch (RuntimeException | StackOverflowError | OutOfMemoryError | AssertionError defect) {
                answer.put("defect", defect + " at " + Arrays.toString(Arrays.copyOf(defect.getStackTrace(), 3)));
                return answer.put("input", HexFormat.of().formatHex(payload));
            }
        }
        answer.set("outcomes", JSON.valueToTree(outcomes));
        return answer.put("widest", widest);
    }

    /** Return the program, and in Avro one that checks all fields of a record and builds none. */
    private static List<Program> programs(DecodePlan plan, JsonNode writer, RowBuffer row) {
        List<String> texts = new ArrayList<>();
        writer.forEach(text -> texts.add(text.asText()));
        return switch (plan.format()) {
            case AVRO -> plan.dataType() instanceof StructType
                    ? List.of(avro(plan, texts, null, row), avro(plan, texts, Set.of(), row))
                    : List.of(avro(plan, texts, null, row));
            case PROTOBUF -> List.of(
                    new ProtoProgram(1, ProtoSchema.parse(texts), new ProtoReader(plan.reader()), row, null));
            case JSON -> List.of(new JsonProgram(1, new JsonReader(plan.reader()), row));
        };
    }

    private static Program avro(DecodePlan plan, List<String> texts, Set<Integer> fields, RowBuffer row) {
        Schema reader = Defaults.readerSchema(plan.reader());
        return new AvroProgram(1, SchemaTexts.parse(texts), reader, plan.dataType(), fields, row);
    }

    private void requireSameBetween(Program program, RowBuffer row, byte[] payload) {
        String alone = words(program, row, Framed.alone(payload));
        String between = words(program, row, Framed.between(payload, chance));
        if (!alone.equals(between)) {
            throw new AssertionError("alone: " + alone + ", between other bytes: " + between);
        }
    }

    /** Return the bytes of the row that is read, or all that a refusal says. */
    private static String words(Program program, RowBuffer row, FrameHeader frame) {
        try {
            program.read(frame);
        } catch (Refusal refusal) {
            return refusal.reason + ", " + refusal.getMessage() + ", " + refusal.path;
        }
        return HexFormat.of().formatHex(row.row().getBytes());
    }

    private static String outcome(Program program, RowBuffer buffer, DataType type, byte[] payload) {
        try {
            program.read(Framed.alone(payload));
        } catch (Refusal refusal) {
            int colon = refusal.reason.indexOf(':');
            return colon < 0 ? refusal.reason : refusal.reason.substring(0, colon);
        }
        UnsafeRow row = buffer.row();
        Plain.spark(row.isNullAt(0) ? null : row.get(0, type), type); // reads every part of it
        return "value";
    }

    private byte[] next() {
        if (chance.nextInt(50) == 0) {
            byte[] any = new byte[chance.nextInt(64)];
            chance.nextBytes(any);
            return any;
        }
        byte[] made = pick();
        for (int i = chance.nextInt(5); i >= 0; i--) {
            made = changed(made);
        }
        return made;
    }

    private byte[] pick() {
        return good.get(chance.nextInt(good.size())).clone();
    }

    private byte[] changed(byte[] from) {
        int at = chance.nextInt(from.length + 1);
        int to = Math.min(from.length, at + chance.nextInt(9));
        switch (chance.nextInt(6)) {
            case 0:
                if (at < from.length) {
                    from[at] = (byte) chance.nextInt(256);
                }
                return from;
            case 1:
                return joined(from, at, new byte[0], to);
            case 2:
                return joined(from, at, Arrays.copyOfRange(from, at, to), at);
            case 3:
                return joined(from, at, PIECES[chance.nextInt(PIECES.length)], chance.nextBoolean() ? at : to);
            case 4:
                return Arrays.copyOf(from, chance.nextInt(8) == 0 ? at : from.length);
            default:
                byte[] other = pick();
                int start = chance.nextInt(other.length + 1);
                return joined(from, at, Arrays.copyOfRange(other, start, Math.min(other.length, start + 16)), to);
        }
    }

    /** Return the bytes up to a place, others, and the bytes after another place. */
    private static byte[] joined(byte[] from, int at, byte[] between, int after) {
        byte[] made = new byte[at + between.length + from.length - after];
        System.arraycopy(from, 0, made, 0, at);
        System.arraycopy(between, 0, made, at, between.length);
        System.arraycopy(from, after, made, at + between.length, from.length - after);
        return made.length > MOST_BYTES ? Arrays.copyOf(made, MOST_BYTES) : made;
    }
}
