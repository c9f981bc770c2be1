package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.AnyProto;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.WrappersProto;
import java.io.IOException;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.ProtoProgram;
import strata.spark.proto.ProtoReader;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema;

/**
 * Decodes Protobuf messages with our program, and with Google's own library as messages of the reader schema.
 *
 * <p>A line in: the function's name, the writer's and the reader's file as descriptors in base64, payloads in
 * hexadecimal.
 */
final class ProtobufProbe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final FileDescriptor[] KNOWN = {
        TimestampProto.getDescriptor(),
        DurationProto.getDescriptor(),
        WrappersProto.getDescriptor(),
        AnyProto.getDescriptor()
    };

    private ProtobufProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(ProtobufProbe::answer);
    }

    private static JsonNode answer(JsonNode task) throws IOException, DescriptorValidationException {
        DecodePlan plan = DecodePlan.parse(FunctionName.parse(task.get("plan").asText()));
        RowBuffer buffer = new RowBuffer(1);
        ProtoSchema writer = ProtoSchema.parse(List.of(task.get("writer").asText()));
        Program program = new ProtoProgram(1, writer, new ProtoReader(plan.reader()), buffer, null);
        byte[] descriptor = Base64.getDecoder().decode(task.get("reader").asText());
        FileDescriptor reader = FileDescriptor.buildFrom(FileDescriptorProto.parseFrom(descriptor), KNOWN);
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ours = answer.putArray("ours");
        ArrayNode google = answer.putArray("google");
        for (JsonNode payload : task.get("payloads")) {
            byte[] bytes = HexFormat.of().parseHex(payload.asText());
            ours.add(read(program, buffer, plan.dataType(), bytes));
            google.add(google(reader, bytes));
        }
        return answer;
    }

    private static JsonNode read(Program program, RowBuffer buffer, DataType type, byte[] payload) {
        byte[] indexed = new byte[payload.length + 1];
        System.arraycopy(payload, 0, indexed, 1, payload.length);
        try {
            program.read(Framed.alone(indexed));
        } catch (Refusal refusal) {
            return JSON.createObjectNode().put("reason", refusal.reason);
        }
        Layout.requireSame(buffer.row(), type);
        return JSON.createObjectNode().set("value", Plain.spark(buffer.row().get(0, type), type));
    }

    private static JsonNode google(FileDescriptor reader, byte[] payload) {
        try {
            DynamicMessage message =
                    DynamicMessage.parseFrom(reader.getMessageTypes().get(0), payload);
            return JSON.createObjectNode().set("value", message(message));
        } catch (InvalidProtocolBufferException refused) {
            return JSON.createObjectNode().put("reason", refused.getMessage());
        } catch (ArithmeticException tooFar) { // Spark's times are microseconds of 64 bits
            return JSON.createObjectNode().put("reason", Damage.OUT_OF_RANGE);
        }
    }

    private static JsonNode message(Message message) {
        ArrayNode fields = NODES.arrayNode();
        message.getDescriptorForType().getFields().stream()
                .sorted(Comparator.comparingInt(FieldDescriptor::getNumber))
                .forEach(field -> fields.add(field(message, field)));
        return fields;
    }

    private static JsonNode field(Message message, FieldDescriptor field) {
        if (field.isMapField()) {
            ObjectNode entries = NODES.objectNode();
            for (Object one : (List<?>) message.getField(field)) {
                ArrayNode entry = (ArrayNode) message((Message) one);
                entries.set(entry.get(0).asText(), entry.get(1).isNull() ? absent((Message) one) : entry.get(1));
            }
            return entries;
        }
        if (field.isRepeated()) {
            ArrayNode items = NODES.arrayNode();
            ((List<?>) message.getField(field)).forEach(one -> items.add(value(one, field)));
            return items;
        }
        boolean isAbsent = field.hasPresence() && !message.hasField(field);
        return isAbsent ? NODES.nullNode() : value(message.getField(field), field);
    }

    /** Return the value of a map's entry that has none: a message without fields. */
    private static JsonNode absent(Message entry) {
        FieldDescriptor value = entry.getDescriptorForType().findFieldByNumber(2);
        return value(entry.getField(value), value);
    }

    private static JsonNode value(Object value, FieldDescriptor field) {
        switch (field.getType()) {
            case MESSAGE:
                return known((Message) value);
            case ENUM:
                EnumValueDescriptor chosen = (EnumValueDescriptor) value;
                boolean isUnknown = chosen.getIndex() < 0;
                return NODES.textNode(isUnknown ? Integer.toString(chosen.getNumber()) : chosen.getName());
            case BYTES:
                return NODES.textNode(HexFormat.of().formatHex(((ByteString) value).toByteArray()));
            case UINT32, FIXED32:
                return NODES.numberNode(Integer.toUnsignedLong((Integer) value));
            case UINT64, FIXED64:
                return NODES.textNode(Long.toUnsignedString((Long) value));
            case DOUBLE:
                return NODES.numberNode(Double.doubleToLongBits((Double) value));
            case FLOAT:
                return NODES.numberNode(Float.floatToIntBits((Float) value));
            case BOOL:
                return NODES.booleanNode((Boolean) value);
            case STRING:
                return NODES.textNode((String) value);
            default:
                return NODES.numberNode(((Number) value).longValue());
        }
    }

    private static JsonNode known(Message message) {
        String name = message.getDescriptorForType().getFullName();
        if (name.equals("google.protobuf.Timestamp") || name.equals("google.protobuf.Duration")) {
            ArrayNode parts = (ArrayNode) message(message);
            int nanos = parts.get(1).asInt();
            int micros = name.endsWith("Duration") ? nanos / 1000 : Math.floorDiv(nanos, 1000);
            return NODES.numberNode(
                    Math.addExact(Math.multiplyExact(parts.get(0).asLong(), 1_000_000L), micros));
        }
        boolean isWrapper = name.startsWith("google.protobuf.") && name.endsWith("Value");
        return isWrapper ? message(message).get(0) : message(message);
    }
}
