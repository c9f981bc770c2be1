package strata.spark.proto;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.ProtoWire;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.Field;
import strata.spark.schema.ProtoSchema.Message;
import strata.spark.schema.ProtoSchema.ProtoType;

/**
 * A message as Protobuf's parsers have it: a field whose wire type does not fit is unknown, the last member of a oneof
 * counts, and an unknown number of a closed enum is an unknown field.
 *
 * <p>A value is a Long or BigInteger, a Double, a ByteBuffer of a text or of bytes, or a tree; of a repeated field a list
 * of them, of a map a map.
 */
final class ProtoTree {
    private static final int END_GROUP = 4;
    private static final int MAX_DEPTH = 100;
    private static final Idle[] NONE = {};
    static final int KEY = 1;
    static final int VALUE = 2;

    final Message type;
    private final MessageDoubts watch;
    private final Idle[] idle;
    private final Map<Integer, Object> values = new LinkedHashMap<>();
    /** Whether it had a field that is unknown, or a number that a closed enum does not have. */
    private boolean hasUnknown;

    ProtoTree(Message type) {
        this(type, null);
    }

    /** @param watch says which fields are kept; the others are checked only. Null: all */
    ProtoTree(Message type, MessageDoubts watch) {
        this.type = type;
        this.watch = watch;
        this.idle = watch == null ? NONE : watch.idle(type);
    }

    /**
     * Parse all bytes that are left.
     *
     * @param marks the places of the fields that are kept, if all others are sound; null: they are looked for
     */
    void readAll(Cursor in, ProtoMessage.Marks marks) {
        if (marks == null) {
            read(in, 0, MAX_DEPTH);
            return;
        }
        for (int index = 0; index < marks.count(); index++) {
            in.at = marks.place(index);
            int tag = ProtoWire.tag(in);
            Field field = type.fields.get(tag >>> 3);
            if (field != null) {
                put(field, tag & 7, in, MAX_DEPTH);
            }
        }
    }

    /** Return the fields that can be compared. */
    Collection<Field> watched() {
        return watch == null ? type.fields.values() : watch.watched();
    }

    // Fields

    static boolean hasPresence(Message owner, Field field) {
        boolean knowsAbsence = field.type.isMessage() || field.oneof >= 0 || !owner.syntax.equals(ProtoSchema.PROTO3);
        return knowsAbsence && !field.isRepeated;
    }

    /** Return whether unknown numbers of an enum are unknown fields. */
    static boolean isClosed(Field field) {
        return field.numbers != null && !field.numbers.syntax().equals(ProtoSchema.PROTO3);
    }

    /** Return whether a field has a value, one without presence another than zero. */
    boolean isSet(Field field) {
        Object value = values.get(field.number);
        if (value == null || hasPresence(type, field)) {
            return value != null;
        }
        if (field.isRepeated) {
            return !(value instanceof List<?> items ? items.isEmpty() : ((Map<?, ?>) value).isEmpty());
        }
        return value instanceof Double number
                ? Double.doubleToRawLongBits(number) != 0
                : !value.equals(zero(type, field));
    }

    /** Return the value of a field, or its default; null for a message that is not set. */
    Object get(Field field) {
        Object value = values.get(field.number);
        return value == null ? zero(type, field) : value;
    }

    private static Object zero(Message owner, Field field) {
        if (field.isRepeated) {
            return field.isMap() ? Map.of() : List.of();
        }
        if (field.type.isMessage()) {
            Message message = field.messageOrKnown();
            return message == null ? null : new ProtoTree(message);
        }
        String text = field.defaultValue;
        if (text == null || owner.syntax.equals(ProtoSchema.PROTO3)) {
            return switch (field.type) {
                case STRING, BYTES -> ByteBuffer.allocate(0);
                case FLOAT, DOUBLE -> 0.0;
                case ENUM -> isClosed(field) ? (long) first(field) : 0L;
                default -> 0L;
            };
        }
        Cursor in = new Cursor();
        in.open(ProtoColumns.ProtoDefaults.of(field, owner.name), 0, false);
        return scalar(field, in, owner);
    }

    private static int first(Field field) {
        return field.numbers.values().isEmpty()
                ? 0
                : field.numbers.values().values().iterator().next();
    }

    // Bytes

    private void read(Cursor in, int group, int depth) {
        if (depth == 0) {
            throw ProtoWire.malformed();
        }
        while (in.at < in.end) {
            int tag = ProtoWire.tag(in);
            if ((tag & 7) == END_GROUP) {
                if (tag >>> 3 != group) {
                    throw ProtoWire.malformed();
                }
                return;
            }
            if (tag >>> 3 < idle.length && check(idle[tag >>> 3], tag & 7, in)) {
                continue;
            }
            Field field = type.fields.get(tag >>> 3);
            if (field == null || !put(field, tag & 7, in, depth)) {
                hasUnknown = true;
                ProtoWire.skip(in, tag);
            }
        }
        if (group != 0) {
            throw ProtoWire.malformed();
        }
    }

    /** A field that is checked only: its wire type, whether it is a text, and whether it may be packed. */
    record Idle(int wire, boolean isText, boolean isPackable) {
        /** Return what is checked of a field; null if more depends on it than its own value. */
        static Idle of(Field field, Message owner) {
            boolean isText = field.type == ProtoType.STRING && owner.syntax.equals(ProtoSchema.PROTO3);
            boolean isPackable = field.isRepeated && !field.type.isSized();
            return field.oneof >= 0 || field.type.isMessage() ? null : new Idle(field.type.wire, isText, isPackable);
        }
    }

    /** Check a value as {@link #put} does; return false, and read nothing, if that has to be asked. */
    private static boolean check(Idle field, int wire, Cursor in) {
        if (field == null || wire != field.wire && !(field.isPackable && wire == ProtoWire.BYTES)) {
            return false;
        }
        if (field.isText) {
            ProtoWire.checkText(in);
        } else if (wire == field.wire) {
            ProtoWire.skip(in, wire);
        } else {
            ProtoWire.skipPacked(in, field.wire);
        }
        return true;
    }

    /** Read a value; return false, and read nothing, if its wire type does not fit. */
    private boolean put(Field field, int wire, Cursor in, int depth) {
        boolean isSized = field.type.isSized();
        if (wire == ProtoWire.BYTES && field.isRepeated && !isSized) {
            putPacked(field, in);
            return true;
        }
        Message message = field.messageOrKnown();
        if (wire != field.type.wire || field.type.isMessage() && message == null) {
            return false;
        }
        if (field.isMap()) {
            ProtoTree entry = new ProtoTree(message);
            entry.readInside(in, depth);
            putEntry(field, entry);
        } else if (field.type.isMessage()) {
            ProtoTree inner = !field.isRepeated && values.get(field.number) instanceof ProtoTree known
                    ? known
                    : new ProtoTree(message, watch == null ? null : watch.inside(field.number));
            if (field.type == ProtoType.GROUP) {
                inner.read(in, field.number, depth - 1);
            } else {
                inner.readInside(in, depth);
            }
            keep(field, inner);
        } else {
            Object value = scalar(field, in, type);
            if (isKnown(field, value)) {
                keep(field, value);
            }
        }
        return true;
    }

    private void readInside(Cursor in, int depth) {
        int outer = in.end;
        int length = ProtoWire.length(in);
        in.end = in.at + length;
        read(in, 0, depth - 1);
        in.end = outer;
    }

    private void putPacked(Field field, Cursor in) {
        int outer = in.end;
        int length = ProtoWire.length(in);
        in.end = in.at + length;
        while (in.at < in.end) {
            Object value = scalar(field, in, type);
            if (isKnown(field, value)) {
                keep(field, value);
            }
        }
        in.end = outer;
    }

    private void putEntry(Field field, ProtoTree entry) {
        Field value = field.message.fields.get(VALUE);
        if (!entry.hasUnknown) { // as Python's parser has it; Java's keeps the rest of such an entry
            @SuppressWarnings("unchecked")
            Map<Object, Object> map =
                    (Map<Object, Object>) values.computeIfAbsent(field.number, number -> new LinkedHashMap<>());
            map.put(entry.get(field.message.fields.get(KEY)), entry.get(value));
        }
    }

    private boolean isKnown(Field field, Object value) {
        boolean isKnown = !isClosed(field) || field.numbers.values().containsValue(((Long) value).intValue());
        hasUnknown |= !isKnown;
        return isKnown;
    }

    private void keep(Field field, Object value) {
        if (field.isRepeated) {
            @SuppressWarnings("unchecked")
            List<Object> items = (List<Object>) values.computeIfAbsent(field.number, number -> new ArrayList<>());
            items.add(value);
            return;
        }
        if (field.oneof >= 0) {
            type.fields.values().forEach(other -> {
                if (other.oneof == field.oneof && other.number != field.number) {
                    values.remove(other.number);
                }
            });
        }
        values.put(field.number, value);
    }

    private static Object scalar(Field field, Cursor in, Message owner) {
        return switch (field.type.wire) {
            case ProtoWire.VARINT -> whole(field.type, ProtoWire.varint(in));
            case ProtoWire.FIXED32 -> {
                int bits = ProtoWire.fixed32(in);
                yield field.type == ProtoType.FLOAT
                        ? (Object) (double) Float.intBitsToFloat(bits)
                        : whole(field.type, bits);
            }
            case ProtoWire.FIXED64 -> {
                long bits = ProtoWire.fixed64(in);
                yield field.type == ProtoType.DOUBLE ? (Object) Double.longBitsToDouble(bits) : whole(field.type, bits);
            }
            default -> {
                int start = in.at;
                if (field.type == ProtoType.STRING && owner.syntax.equals(ProtoSchema.PROTO3)) {
                    ProtoWire.checkText(in);
                    in.at = start;
                }
                int length = ProtoWire.length(in);
                in.at += length;
                yield ByteBuffer.wrap(in.bytes, in.at - length, length);
            }
        };
    }

    /** Return the number that a type makes of the bits of a value. */
    static Object whole(ProtoType type, long bits) {
        long number = plain(type, bits);
        boolean isBig = (type == ProtoType.UINT64 || type == ProtoType.FIXED64) && number < 0;
        return isBig ? (Object) BigInteger.valueOf(number).add(BigInteger.ONE.shiftLeft(Long.SIZE)) : (Object) number;
    }

    /** Return the number that a type makes of the bits of a value, without regard to a sign of 64 bits. */
    static long plain(ProtoType type, long bits) {
        return switch (type) {
            case INT32, ENUM, SFIXED32 -> (int) bits;
            case UINT32, FIXED32 -> bits & 0xFFFFFFFFL;
            case BOOL -> bits != 0 ? 1 : 0;
            case SINT32 -> (int) bits >>> 1 ^ -((int) bits & 1);
            case SINT64 -> Cursor.zigzag(bits);
            default -> bits;
        };
    }
}
