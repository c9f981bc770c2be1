package strata.spark.proto;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import strata.spark.bytes.UnusableSchema;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoType;

/**
 * Writes a message out for {@link EncodeProto}, from the descriptors of a registry: what
 * {@code spark_udfs/encoding/protobuf_jvm.py} does for {@code encode}.
 */
public final class EncodeMessages {
    /** The well-known messages that become columns of their own kind. */
    static final Map<String, String> KINDS = kinds();

    private static final ObjectMapper JSON = new ObjectMapper();

    private final ObjectNode messages = JSON.createObjectNode();

    private EncodeMessages() {}

    /**
     * Return a message, and those inside it, as JSON.
     *
     * @throws UnusableSchema if the JVM does not encode a part of it
     */
    public static String write(ProtoSchema.Message message) {
        EncodeMessages made = new EncodeMessages();
        made.add(message);
        return JSON.createObjectNode()
                .put("message", message.name)
                .set("messages", made.messages)
                .toString();
    }

    private void add(ProtoSchema.Message message) {
        if (messages.has(message.name)) {
            return;
        }
        if (message.syntax.equals(ProtoSchema.EDITIONS)) {
            throw onlyInPython("an edition of Protobuf (" + message.name + ")");
        }
        ObjectNode written = messages.putObject(message.name);
        written.put("kind", KINDS.getOrDefault(message.name, ""));
        ArrayNode fields = written.putArray("fields");
        message.fields.values().forEach(one -> fields.add(field(message, one)));
        addChoices(message, written.putArray("choices"));
        for (ProtoSchema.Field field : message.fields.values()) {
            if (field.message != null) {
                add(field.message);
            }
        }
    }

    private static ObjectNode field(ProtoSchema.Message owner, ProtoSchema.Field field) {
        String full = owner.name + "." + field.name;
        if (field.type == ProtoType.GROUP) {
            throw onlyInPython("the group " + full);
        }
        if (field.isRequired) {
            throw onlyInPython("the required field " + full);
        }
        boolean isMessage = field.type == ProtoType.MESSAGE;
        boolean hasPresence = isMessage || field.oneof >= 0 || !owner.syntax.equals(ProtoSchema.PROTO3);
        ObjectNode written = JSON.createObjectNode();
        written.put("name", field.name).put("number", field.number).put("type", field.type.ordinal());
        written.put("label", field.isMap() ? "map" : field.isRepeated ? "many" : "one");
        written.put("presence", hasPresence && !field.isRepeated);
        written.put("packed", isPacked(owner, field));
        if (isMessage) {
            if (field.message == null) {
                throw new UnusableSchema("the registry has no type " + field.typeName + " of " + full);
            }
            written.put("message", field.message.name);
        } else if (field.type == ProtoType.ENUM) {
            addNumbers(field, full, written);
        }
        return written;
    }

    private static boolean isPacked(ProtoSchema.Message owner, ProtoSchema.Field field) {
        return field.isRepeated
                && !field.type.isSized()
                && (field.packed == null ? owner.syntax.equals(ProtoSchema.PROTO3) : field.packed);
    }

    private static void addNumbers(ProtoSchema.Field field, String full, ObjectNode written) {
        if (field.numbers == null) {
            throw new UnusableSchema("the registry has no type " + field.typeName + " of " + full);
        }
        if (field.numbers.syntax().equals(ProtoSchema.EDITIONS)) {
            throw onlyInPython("an edition of Protobuf (" + full + ")");
        }
        written.put("enum", field.numbers.name());
        ObjectNode numbers = written.putObject("numbers");
        field.numbers.values().forEach(numbers::put);
        written.put("closed", !field.numbers.syntax().equals(ProtoSchema.PROTO3));
    }

    /** Add the names of each oneof of several fields. */
    private static void addChoices(ProtoSchema.Message message, ArrayNode choices) {
        Map<Integer, List<String>> names = new TreeMap<>();
        for (ProtoSchema.Field field : message.fields.values()) {
            if (field.oneof >= 0) {
                names.computeIfAbsent(field.oneof, oneof -> new ArrayList<>()).add(field.name);
            }
        }
        names.values().stream().filter(one -> one.size() > 1).forEach(one -> one.forEach(choices.addArray()::add));
    }

    private static UnusableSchema onlyInPython(String part) {
        return new UnusableSchema("SQL does not encode " + part + "; make the column by strata.spark_udfs.encode");
    }

    private static Map<String, String> kinds() {
        Map<String, String> kinds = new HashMap<>();
        kinds.put("google.protobuf.Timestamp", "timestamp");
        kinds.put("google.protobuf.Duration", "duration");
        for (String type :
                List.of("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")) {
            kinds.put("google.protobuf." + type + "Value", "wrapper");
        }
        return kinds;
    }
}
