package strata.spark.proto;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits.Budget;
import strata.spark.bytes.ProtoWire;
import strata.spark.proto.ProtoField.Check;
import strata.spark.proto.ProtoField.ProtoMap;
import strata.spark.row.Node;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.ProtoType;

/**
 * The reader schema's message, as the driver describes it, and the nodes that read it from a writer's messages.
 *
 * <p>Fields match by number. Protobuf itself drops a field that the schemas encode differently, and truncates a wider
 * number; here the first is an error, and the second is read as the writer's type and must fit the column.
 */
public final class ProtoReader {
    /** A field of the reader; {@code message} is null unless the type is a message. */
    private record Field(
            String owner,
            String name,
            int number,
            ProtoType type,
            String label,
            boolean hasPresence,
            byte[] zero,
            Map<Integer, String> names,
            boolean isText,
            String message,
            String kind,
            int slot,
            int oneof) {
        public boolean isMap() {
            return label.equals("map");
        }

        public boolean isRepeated() {
            return !label.equals("one");
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    public final String message;
    private final Map<String, List<Field>> messages = new HashMap<>();

    /** @param text the description that {@code strata.spark_udfs.decoding.protobuf_jvm} makes */
    public ProtoReader(String text) {
        try {
            JsonNode root = JSON.readTree(text);
            this.message = root.path("message").asText();
            root.path("messages").properties().forEach(one -> {
                List<Field> fields = new ArrayList<>();
                one.getValue().forEach(field -> fields.add(field(one.getKey(), field)));
                messages.put(one.getKey(), fields);
            });
        } catch (IOException error) {
            throw new IllegalArgumentException("not a reader schema of Strata");
        }
    }

    private static Field field(String owner, JsonNode node) {
        Map<Integer, String> names = new HashMap<>();
        node.path("names")
                .properties()
                .forEach(name -> names.put(
                        Integer.valueOf(name.getKey()), name.getValue().asText()));
        return new Field(
                owner,
                node.path("name").asText(),
                node.path("number").asInt(),
                ProtoType.of(node.path("type").asInt()),
                node.path("label").asText(),
                node.path("presence").asBoolean(),
                HexFormat.of().parseHex(node.path("zero").asText()),
                names,
                node.path("text").asBoolean(),
                node.path("message").asText(null),
                node.path("kind").asText(""),
                node.path("slot").asInt(),
                node.path("oneof").asInt(-1));
    }

    /**
     * Return the node that reads a writer's message.
     *
     * @throws Damage if the writer encodes a field differently; the path is that of the field
     */
    public ProtoMessage compile(ProtoSchema.Message writer) {
        Map<String, ProtoType> written = new HashMap<>();
        Map<String, Boolean> seen = new HashMap<>();
        for (Field field : messages.get(message)) {
            compare(field, writer, field.name(), written, seen);
        }
        return node(message, written, new Budget());
    }

    // Comparison

    private void compare(
            Field reader,
            ProtoSchema.Message owner,
            String path,
            Map<String, ProtoType> written,
            Map<String, Boolean> seen) {
        ProtoSchema.Field writer = owner.fields.get(reader.number());
        if (writer == null) {
            return;
        }
        boolean isAlike = reader.type().encoding.equals(writer.type.encoding)
                && cardinality(reader).equals(cardinality(writer));
        if (!isAlike) {
            throw mismatch(path, reader, describe(writer));
        }
        if (reader.type().isWhole && writer.type.isWhole) {
            ProtoType known = written.putIfAbsent(reader.owner() + "." + reader.name(), writer.type);
            if (known != null && known != writer.type) {
                throw mismatch(path, reader, "several types");
            }
        }
        if (reader.message() != null
                && writer.message != null
                && messages.containsKey(reader.message())
                && seen.put(reader.message() + " " + writer.message.name, true) == null) {
            for (Field inner : messages.get(reader.message())) {
                compare(inner, writer.message, path + "." + inner.name(), written, seen);
            }
        }
    }

    private static Damage mismatch(String path, Field reader, String writer) {
        String place = " (at field " + path + ")";
        return new Damage(
                Damage.RESOLUTION,
                "the reader schema has " + describe(reader) + " where the writer schema has " + writer + place);
    }

    private static String cardinality(Field field) {
        return field.isMap() ? "map" : cardinality(field.isRepeated(), field.type());
    }

    private static String cardinality(ProtoSchema.Field field) {
        return field.isMap() ? "map" : cardinality(field.isRepeated, field.type);
    }

    /** Single and repeated bytes or messages can be read as each other; numbers, which may be packed, cannot. */
    private static String cardinality(boolean isRepeated, ProtoType type) {
        return !isRepeated || type.isSized() ? "" : "repeated ";
    }

    private static String describe(Field field) {
        return describe(field.isMap(), field.isRepeated(), field.message(), field.type());
    }

    private static String describe(ProtoSchema.Field field) {
        boolean isMessage = field.type.isMessage();
        return describe(field.isMap(), field.isRepeated, isMessage ? field.typeName : null, field.type);
    }

    private static String describe(boolean isMap, boolean isRepeated, String message, ProtoType type) {
        return isMap ? "a map" : (isRepeated ? "repeated " : "") + (message != null ? message : type.title());
    }

    // Nodes

    private ProtoMessage node(String name, Map<String, ProtoType> written, Budget budget) {
        List<ProtoField> fields = new ArrayList<>();
        Map<Integer, List<ProtoField>> oneofs = new HashMap<>();
        for (Field one : messages.get(name)) {
            budget.spend();
            ProtoField made = field(one, written, budget);
            fields.add(made);
            if (one.oneof() >= 0) {
                oneofs.computeIfAbsent(one.oneof(), key -> new ArrayList<>()).add(made);
            }
        }
        for (List<ProtoField> members : oneofs.values()) {
            for (ProtoField member : members) {
                member.rivals =
                        members.stream().filter(other -> other != member).toArray(ProtoField[]::new);
            }
        }
        return new ProtoMessage(fields);
    }

    private ProtoField field(Field one, Map<String, ProtoType> written, Budget budget) {
        if (one.isMap()) {
            List<Field> entry = messages.get(one.message());
            Field key = entry.stream()
                    .filter(part -> part.number() == 1)
                    .findFirst()
                    .orElseThrow();
            Field value = entry.stream()
                    .filter(part -> part.number() == 2)
                    .findFirst()
                    .orElseThrow();
            boolean isFixed = ProtoScalars.isPlain(key.type(), key.type()) && key.type() != ProtoType.STRING;
            return new ProtoMap(
                    one.name(),
                    one.number(),
                    one.slot(),
                    part(key, written, budget),
                    part(value, written, budget),
                    width(key),
                    width(value),
                    !isFixed);
        }
        Node value = value(one, written, budget);
        int wire = one.type().wire;
        Check check = check(one, value);
        if (one.isRepeated()) {
            return new ProtoField.Many(one.name(), one.number(), one.slot(), value, wire, width(one), check);
        }
        ProtoType as = type(one, written);
        boolean isZero = isAllZero(one.zero());
        if (one.message() == null && ProtoScalars.isPlain(one.type(), as) && isZero) {
            return new ProtoField.Direct(one.name(), one.number(), one.slot(), one.hasPresence(), value, wire);
        }
        Node absent = one.hasPresence() ? null : new Node.Default(value, one.zero());
        return new ProtoField.Deferred(
                one.name(), one.number(), one.slot(), value, absent, wire, one.message() != null, check);
    }

    private ProtoField.Deferred part(Field one, Map<String, ProtoType> written, Budget budget) {
        Node value = value(one, written, budget).asItem();
        Node absent = new Node.Default(value, one.zero());
        return new ProtoField.Deferred(
                one.name(), one.number(), 0, value, absent, one.type().wire, one.message() != null, check(one, value));
    }

    private static boolean isAllZero(byte[] bytes) {
        for (byte one : bytes) {
            if (one != 0) {
                return false;
            }
        }
        return true;
    }

    private static ProtoType type(Field one, Map<String, ProtoType> written) {
        return one.type().isWhole ? written.getOrDefault(one.owner() + "." + one.name(), one.type()) : one.type();
    }

    private Node value(Field one, Map<String, ProtoType> written, Budget budget) {
        if (one.message() == null) {
            return one.type() == ProtoType.ENUM
                    ? new ProtoScalars.Names(one.names(), one.type())
                    : ProtoScalars.of(one.type(), type(one, written));
        }
        return switch (one.kind()) {
            case "timestamp" -> ProtoScalars.micros(true);
            case "duration" -> ProtoScalars.micros(false);
            case "wrapper" -> {
                Field inner = messages.get(one.message()).get(0);
                yield ProtoScalars.wrapped(value(inner, written, budget), inner.type().wire, inner.zero());
            }
            default -> node(one.message(), written, budget);
        };
    }

    private int width(Field one) {
        if (one.message() == null) {
            return one.type().width;
        }
        return one.kind().equals("wrapper") ? width(messages.get(one.message()).get(0)) : 8;
    }

    private Check check(Field one, Node value) {
        if (value instanceof ProtoMessage inner) {
            return (in, tag) -> inner.check(in);
        }
        if (one.kind().equals("wrapper")
                || one.kind().equals("timestamp")
                || one.kind().equals("duration")) {
            List<Field> parts = messages.get(one.message());
            return (in, tag) -> ProtoMessage.within(in, () -> checkParts(in, parts));
        }
        if (one.type() == ProtoType.STRING && one.isText()) {
            return (in, tag) -> {
                ProtoWire.checkText(in);
                return true;
            };
        }
        return (in, tag) -> {
            ProtoWire.skip(in, tag);
            return true;
        };
    }

    private boolean checkParts(Cursor in, List<Field> parts) {
        boolean isRight = true;
        while (in.at < in.end) {
            int tag = ProtoWire.tag(in);
            Field part = parts.stream()
                    .filter(one -> one.number() == tag >>> 3)
                    .findFirst()
                    .orElse(null);
            if (part != null && part.type().wire == (tag & 7)) {
                check(part, null).check(in, tag);
            } else {
                isRight &= part == null;
                ProtoWire.skip(in, tag);
            }
        }
        return isRight;
    }
}
