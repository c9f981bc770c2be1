import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor.Type;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Reads messages with Google's Java library: a line of JSON in, a line out.
 *
 * <p>In: {files, message, payload}: descriptors in base64, each after those that it imports, the full name of a message
 * and its bytes in hex. Out: {value} or {error}. A value is a list of the fields that are set: number and parts.
 */
public final class ProtobufMessages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Set<Type> UNSIGNED = EnumSet.of(Type.UINT32, Type.FIXED32, Type.UINT64, Type.FIXED64);
    private static final Map<String, Map<String, Descriptor>> LINKED = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(answer(JSON.readTree(line)));
        }
        out.flush();
    }

    private static JsonNode answer(JsonNode task) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        try {
            Descriptor type = linked(task.get("files")).get(task.get("message").asText());
            byte[] payload = HexFormat.of().parseHex(task.get("payload").asText());
            answer.set("value", fields(DynamicMessage.parseFrom(type, payload)));
        } catch (InvalidProtocolBufferException | DescriptorValidationException error) {
            answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        return answer;
    }

    private static Map<String, Descriptor> linked(JsonNode files) throws IOException, DescriptorValidationException {
        String key = files.toString();
        if (!LINKED.containsKey(key)) {
            Map<String, FileDescriptor> known = new HashMap<>();
            Map<String, Descriptor> types = new HashMap<>();
            for (JsonNode file : files) {
                FileDescriptorProto proto =
                        FileDescriptorProto.parseFrom(Base64.getDecoder().decode(file.asText()));
                FileDescriptor[] imports =
                        proto.getDependencyList().stream().map(known::get).toArray(FileDescriptor[]::new);
                FileDescriptor made = FileDescriptor.buildFrom(proto, imports);
                known.put(proto.getName(), made);
                made.getMessageTypes().forEach(type -> add(type, types));
            }
            LINKED.put(key, types);
        }
        return LINKED.get(key);
    }

    private static void add(Descriptor type, Map<String, Descriptor> types) {
        types.put(type.getFullName(), type);
        type.getNestedTypes().forEach(nested -> add(nested, types));
    }

    private static ArrayNode fields(Message message) {
        ArrayNode set = JSON.createArrayNode();
        for (Map.Entry<FieldDescriptor, Object> field : message.getAllFields().entrySet()) {
            List<?> parts = field.getValue() instanceof List<?> list ? list : List.of(field.getValue());
            ArrayNode shown = set.addArray().add(field.getKey().getNumber()).addArray();
            if (field.getKey().isMapField()) {
                Map<String, JsonNode> entries = new TreeMap<>(); // the last entry of a key counts
                parts.forEach(part -> entries.put(key((Message) part), fields((Message) part)));
                entries.values().forEach(shown::add);
            } else {
                parts.forEach(part -> shown.add(part(field.getKey(), part)));
            }
        }
        return set;
    }

    private static String key(Message entry) {
        FieldDescriptor key = entry.getDescriptorForType().findFieldByNumber(1);
        return part(key, entry.getField(key)).asText();
    }

    private static JsonNode part(FieldDescriptor field, Object value) {
        if (value instanceof Message message) {
            return fields(message);
        }
        String text = value.toString();
        if (value instanceof EnumValueDescriptor symbol) {
            text = Integer.toString(symbol.getNumber());
        } else if (value instanceof ByteString bytes) {
            text = HexFormat.of().formatHex(bytes.toByteArray());
        } else if (value instanceof String string) {
            text = HexFormat.of().formatHex(string.getBytes(StandardCharsets.UTF_8));
        } else if (value instanceof Float number) {
            text = Integer.toString(Float.floatToIntBits(number));
        } else if (value instanceof Double number) {
            text = Long.toString(Double.doubleToLongBits(number));
        } else if (value instanceof Integer number && UNSIGNED.contains(field.getType())) {
            text = Integer.toUnsignedString(number);
        } else if (value instanceof Long number && UNSIGNED.contains(field.getType())) {
            text = Long.toUnsignedString(number);
        }
        return JSON.getNodeFactory().textNode(text);
    }
}
