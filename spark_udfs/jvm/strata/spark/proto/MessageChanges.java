package strata.spark.proto;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import strata.spark.frame.Program.Changes;
import strata.spark.schema.ProtoSchema.Field;
import strata.spark.schema.ProtoSchema.Message;
import strata.spark.schema.ProtoSchema.Numbers;

/**
 * Finds where a reader of a message has another value than was written: what {@code serdes/protobuf/differences.py} does
 * for {@code strata replay}, over {@link ProtoTree}.
 *
 * <p>Names count, since code reads fields and symbols by name; one that only one of the two files knows is a renaming.
 */
final class MessageChanges {
    private static final int LONGEST = 200;

    private final Changes changes;

    MessageChanges(Changes changes) {
        this.changes = changes;
    }

    /**
     * Return the writer's field that a field of the reader stands for: that of its name, or that of its number if the
     * reader has no field of the other name; null if there is none.
     */
    static Field source(Message writer, Message reader, Field field) {
        Field other = writer.fields.get(field.number);
        if (other != null && other.name.equals(field.name)) {
            return other;
        }
        Field named = named(writer, field.name);
        return named != null || other == null || named(reader, other.name) != null ? named : other;
    }

    private static Field named(Message message, String name) {
        return message.fields.values().stream()
                .filter(field -> field.name.equals(name))
                .findFirst()
                .orElse(null);
    }

    /** Return the path of the first required field that a message lacks; null if it has all. */
    static String missing(ProtoTree read, String path) {
        for (Field field : read.type.fields.values()) {
            String inner = within(path, field.name);
            if (field.isRequired && !read.isSet(field)) {
                return inner;
            }
            for (Object item : read.isSet(field) ? items(field, read.get(field)) : List.of()) {
                String found = item instanceof ProtoTree tree
                        ? missing(tree, field.isMap() ? inner + "{}" : field.isRepeated ? inner + "[]" : inner)
                        : null;
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    private static List<?> items(Field field, Object value) {
        return field.isMap()
                ? List.copyOf(((Map<?, ?>) value).values())
                : field.isRepeated ? (List<?>) value : List.of(value);
    }

    // Messages

    void compare(ProtoTree written, ProtoTree read, String path) {
        for (Field field : read.watched()) {
            compare(written, read, field, within(path, field.name));
        }
    }

    /** Compare what one field of the reader holds. */
    void compare(ProtoTree written, ProtoTree read, Field field, String path) {
        Field source = source(written.type, read.type, field);
        boolean isSet = read.isSet(field);
        if (source == null) {
            if (isSet && written.type.fields.containsKey(field.number)) { // the bytes of another field
                changed(path, Changes::nothing, () -> shown(field, read.get(field)));
            }
            return;
        }
        boolean hasPresence = ProtoTree.hasPresence(read.type, field);
        Object value = written.get(source);
        Object other = read.get(field);
        if (ProtoTree.hasPresence(written.type, source) && !written.isSet(source)) {
            if (isSet || !(hasPresence || field.isRepeated)) {
                changed(path, Changes::nothing, () -> shown(field, other));
            } else if (hasPresence && isScalar(source) && isScalar(field)) { // defaults of proto2
                compareValue(source, value, field, other, path);
            }
        } else if (ProtoTree.hasPresence(written.type, source) && hasPresence && !isSet) {
            changed(path, () -> shown(source, value), Changes::nothing);
        } else if (source.isRepeated && !field.isRepeated && !written.isSet(source)) {
            if (isSet || !hasPresence) {
                changed(path, () -> "[]", () -> shown(field, other));
            }
        } else if (source.isMap() && field.isMap()) {
            compareMaps(source, (Map<?, ?>) value, field, (Map<?, ?>) other, path);
        } else if (source.isMap() || field.isMap()) {
            Map<String, String> before = entries(source, value);
            Map<String, String> after = entries(field, other);
            if (!Objects.equals(before, after) || before == null && (written.isSet(source) || isSet)) {
                changed(path, () -> shown(source, value), () -> shown(field, other));
            }
        } else {
            compareItems(source, items(source, value), field, items(field, other), path);
        }
    }

    /** Tell that a field at the top has another value of the same bits. */
    void changed(Field source, Field field, long bits) {
        changed(
                field.name,
                () -> shown(source, ProtoTree.whole(source.type, bits)),
                () -> shown(field, ProtoTree.whole(field.type, bits)));
    }

    private void compareItems(Field source, List<?> values, Field field, List<?> others, String path) {
        if (values.size() != others.size()) {
            changed(path, () -> shown(source, values), () -> shown(field, others));
            return;
        }
        String item = field.isRepeated ? path + "[]" : path;
        for (int place = 0; place < values.size(); place++) {
            compareValue(source, values.get(place), field, others.get(place), item);
        }
    }

    private void compareMaps(Field source, Map<?, ?> value, Field field, Map<?, ?> other, String path) {
        Field before = source.message.fields.get(ProtoTree.VALUE);
        Field after = field.message.fields.get(ProtoTree.VALUE);
        Map<Object, Object> read = new LinkedHashMap<>(other);
        value.forEach((key, written) -> {
            if (read.containsKey(key)) {
                compareValue(before, written, after, read.remove(key), path + "{}");
            } else {
                changed(path + "{}", () -> text(key), Changes::nothing);
            }
        });
        read.keySet().forEach(key -> changed(path + "{}", Changes::nothing, () -> text(key)));
    }

    /** Return the entries of a map, or of a list of messages in its place, as texts; null if it is neither. */
    private static Map<String, String> entries(Field field, Object value) {
        Map<String, String> entries = new HashMap<>();
        if (field.isMap()) {
            ((Map<?, ?>) value).forEach((key, part) -> entries.put(text(key), text(part)));
            return entries;
        }
        if (field.isRepeated && ((List<?>) value).isEmpty()) {
            return entries;
        }
        if (!field.isRepeated || field.messageOrKnown() == null) {
            return null;
        }
        Field key = field.messageOrKnown().fields.get(ProtoTree.KEY);
        Field part = field.messageOrKnown().fields.get(ProtoTree.VALUE);
        if (key == null || part == null) {
            return null;
        }
        int place = 0;
        for (Object item : (List<?>) value) {
            ProtoTree entry = (ProtoTree) item;
            String name = text(entry.get(key));
            // two messages with one key are one entry of a map
            entries.put(entries.containsKey(name) ? name + '\0' + place : name, text(entry.get(part)));
            place++;
        }
        return entries;
    }

    // Values

    private void compareValue(Field source, Object value, Field field, Object other, String path) {
        if (value instanceof ProtoTree before && other instanceof ProtoTree after) {
            compare(before, after, path);
        } else if (!isSame(source, value, field, other)) {
            changed(path, () -> shown(source, value), () -> shown(field, other));
        }
    }

    private static boolean isSame(Field source, Object value, Field field, Object other) {
        if (source.numbers != null && field.numbers != null) {
            return isSameSymbol(source.numbers, ((Long) value).intValue(), field.numbers, ((Long) other).intValue());
        }
        if (value instanceof Double || other instanceof Double) {
            return isSameNumber(value, other);
        }
        return value != null && value.equals(other);
    }

    private static boolean isSameNumber(Object value, Object other) {
        if (!(value instanceof Number before && other instanceof Number after)) {
            return false;
        }
        if (value instanceof Double one && other instanceof Double two) {
            return one.doubleValue() == two.doubleValue() || one.isNaN() && two.isNaN();
        }
        double real = value instanceof Double ? before.doubleValue() : after.doubleValue();
        Number whole = value instanceof Double ? after : before;
        boolean isWhole = real == Math.rint(real) && !Double.isInfinite(real);
        return isWhole && new BigDecimal(real).toBigInteger().equals(big(whole));
    }

    private static BigInteger big(Number whole) {
        return whole instanceof BigInteger big ? big : BigInteger.valueOf(whole.longValue());
    }

    /** Return whether two numbers stand for one symbol, or for one that only has another name. */
    static boolean isSameSymbol(Numbers source, int value, Numbers reader, int other) {
        Set<String> names = names(source, value);
        Set<String> others = names(reader, other);
        if (names.isEmpty() || others.isEmpty()) {
            return names.isEmpty() && others.isEmpty() && value == other;
        }
        if (names.stream().anyMatch(others::contains)) {
            return true;
        }
        boolean isRenamed = names.stream().noneMatch(reader.values()::containsKey)
                && others.stream().noneMatch(source.values()::containsKey);
        return isRenamed && value == other;
    }

    private static Set<String> names(Numbers numbers, int value) {
        Set<String> names = new HashSet<>();
        numbers.values().forEach((name, number) -> {
            if (number == value) {
                names.add(name);
            }
        });
        return names;
    }

    private static boolean isScalar(Field field) {
        return !field.type.isMessage() && !field.isRepeated;
    }

    // Texts

    private void changed(String path, Supplier<String> written, Supplier<String> read) {
        changes.changed(path, () -> shortened(written.get()), () -> shortened(read.get()));
    }

    static String within(String path, String name) {
        return path.isEmpty() ? name : path + "." + name;
    }

    private static String shortened(String text) {
        return text == null || text.length() <= LONGEST ? text : text.substring(0, LONGEST - 1) + "…";
    }

    private static String shown(Field field, Object value) {
        if (value instanceof List<?> items) {
            return items.stream().map(item -> shown(field, item)).toList().toString();
        }
        if (field.numbers != null && value instanceof Long number) {
            Set<String> names = names(field.numbers, number.intValue());
            return names.isEmpty() ? number.toString() : names.iterator().next();
        }
        return switch (field.type) {
            case BOOL -> String.valueOf(Long.valueOf(1).equals(value));
            case STRING -> value instanceof ByteBuffer bytes ? utf8(bytes) : text(value);
            default -> text(value);
        };
    }

    private static String utf8(ByteBuffer bytes) {
        return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }

    /** Return a text that is the same for equal values. */
    private static String text(Object value) {
        if (value instanceof ByteBuffer bytes) {
            byte[] content = new byte[bytes.remaining()];
            bytes.duplicate().get(content);
            return HexFormat.of().formatHex(content);
        }
        if (value instanceof ProtoTree tree) {
            List<String> parts = new ArrayList<>();
            for (Field field : tree.type.fields.values()) {
                if (tree.isSet(field)) {
                    parts.add(field.name + ": " + text(tree.get(field)));
                }
            }
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof List<?> items) {
            return items.stream().map(MessageChanges::text).toList().toString();
        }
        if (value instanceof Map<?, ?> entries) {
            List<String> parts = new ArrayList<>();
            entries.forEach((key, part) -> parts.add(text(key) + ": " + text(part)));
            return "{" + String.join(", ", parts) + "}";
        }
        return String.valueOf(value);
    }
}
