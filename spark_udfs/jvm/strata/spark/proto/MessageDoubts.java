package strata.spark.proto;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.ProtoWire;
import strata.spark.frame.Program.Changes;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.ProtoSchema.Field;
import strata.spark.schema.ProtoSchema.Message;
import strata.spark.schema.ProtoSchema.Numbers;
import strata.spark.schema.ProtoSchema.ProtoType;

/**
 * Says of the bytes of a message whether a reader may have another value than was written, so that most messages need
 * not be compared: an int32 that is not negative is the same uint32.
 *
 * <p>Each pair of messages has a table: what a field's bytes have to be, which fields have to be there, and which must
 * not be there together.
 */
final class MessageDoubts {
    private static final int DENSE = 1024;
    private static final int MAX_BITS = 63;
    private static final long IN_DOUBT = -1;
    private static final int MAX_DEPTH = 100;

    private record Pair(Message writer, Message reader) {}

    /** What is looked at of a field. */
    private enum Look {
        AT_ITS_PRESENCE,
        AT_NUMBERS,
        AT_SYMBOLS,
        INSIDE
    }

    /** A field of which something is looked at. */
    private static final class Part {
        Look look = Look.AT_ITS_PRESENCE;
        /** Whether any value is in doubt. */
        boolean isDoubt;

        /** The field of the writer and that of the reader; null if only one of them has it. */
        Field source;

        Field field;
        int wire;
        /** The numbers of an enum that are not one symbol. */
        Set<Integer> symbols = Set.of();

        MessageDoubts inner;
        /** The bit to set when the field is met, or 0. */
        long own;
        /** The bits of the members that must not be met too. */
        long rivals;
        /** The bit to set when a message is met that must not be met again, since the two are one; or 0. */
        long once;
        /** The bits of the value that was met last, if one was. */
        long value;

        boolean isMet;

        boolean isIdle() {
            boolean isCalm = look == Look.AT_ITS_PRESENCE || look == Look.INSIDE && !inner.mayChange;
            return !isDoubt && isCalm && own == 0;
        }

        /** Return whether the bits of its last value say whether it changes, whatever else is in the message. */
        boolean isFlat() {
            boolean isBits = look == Look.AT_NUMBERS || look == Look.AT_SYMBOLS;
            return isBits && !isDoubt && own == 0 && !field.isRepeated && source.oneof < 0 && field.oneof < 0;
        }
    }

    private final Message writer;
    private final Message reader;
    private final Part[] dense;
    private final Map<Integer, Part> others = new HashMap<>();
    /** Whether each message is in doubt. */
    private boolean isAlways;
    /** The bits of the fields that have to be there. */
    private long obliged;

    private int bits;
    private boolean mayChange;
    /** Whether a field of the two messages, or of those inside, is required. */
    private boolean isRequiring;
    /** The reader's fields that may change. */
    private List<Field> watched = List.of();
    /** The other fields as the writer and as the reader checks them, by number. */
    private ProtoTree.Idle[] idleOfWriter = {};

    private ProtoTree.Idle[] idleOfReader = {};
    private ProtoMessage.Marks marks;
    /** The parts of {@link #watched}, if all that is marked are numbers and symbols; else empty. */
    private Part[] flat = {};

    private MessageDoubts(Message writer, Message reader) {
        this.writer = writer;
        this.reader = reader;
        int most = fields().stream()
                .filter(number -> number < DENSE)
                .max(Integer::compare)
                .orElse(0);
        dense = new Part[most + 1];
    }

    /**
     * Return what says whether messages of a writer are in doubt.
     *
     * @throws IllegalArgumentException if one of the two is an edition of Protobuf
     */
    static MessageDoubts of(Message writer, Message reader) {
        Map<Pair, MessageDoubts> made = new HashMap<>();
        MessageDoubts first = of(writer, reader, made);
        boolean isGrowing = true;
        while (isGrowing) { // until no message has a changing one inside that it did not know of
            isGrowing = false;
            for (MessageDoubts doubts : made.values()) {
                boolean before = doubts.mayChange;
                doubts.mayChange |= doubts.isAlways
                        || doubts.obliged != 0
                        || doubts.parts().stream().anyMatch(part -> !part.isIdle());
                isGrowing |= doubts.mayChange != before;
            }
        }
        made.values().forEach(MessageDoubts::forbidParts);
        made.values().forEach(MessageDoubts::forgetIdle);
        first.isRequiring = isRequiring(writer, new HashSet<>()) || isRequiring(reader, new HashSet<>());
        if (first.canMark()) {
            first.mark();
        }
        return first;
    }

    private static MessageDoubts of(Message writer, Message reader, Map<Pair, MessageDoubts> made) {
        Pair pair = new Pair(writer, reader);
        MessageDoubts known = made.get(pair);
        if (known != null) {
            return known;
        }
        for (Message side : List.of(writer, reader)) {
            if (side.syntax.equals(ProtoSchema.EDITIONS)) {
                throw new IllegalArgumentException("an edition of Protobuf (" + side.name + ")");
            }
        }
        MessageDoubts doubts = new MessageDoubts(writer, reader);
        made.put(pair, doubts);
        doubts.fill(made);
        return doubts;
    }

    /** Return whether some message may be in doubt. */
    boolean mayChange() {
        return mayChange;
    }

    // Tables

    private Set<Integer> fields() {
        Set<Integer> numbers = new TreeSet<>(writer.fields.keySet());
        numbers.addAll(reader.fields.keySet());
        return numbers;
    }

    private List<Part> parts() {
        List<Part> parts = new ArrayList<>(others.values());
        for (Part part : dense) {
            if (part != null) {
                parts.add(part);
            }
        }
        return parts;
    }

    /** Let messages that come in several parts be in doubt: together, the parts may have two members of a oneof. */
    private void forbidParts() {
        for (Part part : parts()) {
            if (!part.isIdle() && part.look == Look.INSIDE && !part.field.isRepeated) {
                part.isDoubt |= bits == MAX_BITS;
                part.once = bits == MAX_BITS ? 0 : 1L << bits++;
            }
        }
    }

    private void forgetIdle() {
        for (int number = 0; number < dense.length; number++) {
            if (dense[number] != null && dense[number].isIdle()) {
                dense[number] = null;
            }
        }
        others.values().removeIf(Part::isIdle);
        watched = reader.fields.values().stream()
                .filter(field -> isAlways || find(field.number) != null)
                .toList();
        idleOfWriter = idleFields(writer);
        idleOfReader = idleFields(reader);
    }

    private ProtoTree.Idle[] idleFields(Message side) {
        ProtoTree.Idle[] idle = new ProtoTree.Idle[isAlways ? 0 : dense.length];
        for (int number = 0; number < idle.length; number++) {
            Field field = side.fields.get(number);
            idle[number] = field == null || dense[number] != null ? null : ProtoTree.Idle.of(field, side);
        }
        return idle;
    }

    /** Return whether decoding checks all fields that are not watched, as both messages have them. */
    private boolean canMark() {
        return mayChange
                && !isAlways
                && !isRequiring
                && others.isEmpty()
                && writer.fields.keySet().equals(reader.fields.keySet())
                && reader.fields.values().stream()
                        .allMatch(field -> find(field.number) != null
                                || isSame(writer.fields.get(field.number), field, new HashSet<>()));
    }

    private static boolean isSame(Field source, Field field, Set<Pair> seen) {
        if (source.type != field.type || source.type == ProtoType.GROUP || source.isRepeated != field.isRepeated) {
            return false;
        }
        if (source.type != ProtoType.MESSAGE) {
            return true;
        }
        Message before = source.messageOrKnown();
        Message after = field.messageOrKnown();
        if (before == null || after == null || !before.fields.keySet().equals(after.fields.keySet())) {
            return false;
        }
        return !seen.add(new Pair(before, after))
                || after.fields.values().stream().allMatch(part -> isSame(before.fields.get(part.number), part, seen));
    }

    /** Mark the fields that may change, and the other members of their oneofs, which unset them. */
    private void mark() {
        boolean[] marked = new boolean[dense.length];
        for (Field field : watched) {
            for (Message side : List.of(writer, reader)) {
                for (int member : members(side, field.number)) {
                    if (member >= marked.length) {
                        return;
                    }
                    marked[member] = true;
                }
            }
        }
        marks = new ProtoMessage.Marks(marked);
        Part[] parts = watched.stream()
                .map(field -> dense[field.number])
                .filter(Part::isFlat)
                .toArray(Part[]::new);
        flat = parts.length == watched.size() ? parts : flat;
    }

    /** Return what marks the fields that may change; null if that does not do. */
    ProtoMessage.Marks marks() {
        return marks;
    }

    private static boolean isRequiring(Message message, Set<Message> seen) {
        return seen.add(message)
                && message.fields.values().stream()
                        .anyMatch(field -> field.isRequired
                                || field.messageOrKnown() != null && isRequiring(field.messageOrKnown(), seen));
    }

    // What is kept of a message

    /** Return whether a message may lack a field that is required. */
    boolean isRequiring() {
        return isRequiring;
    }

    /** Return the reader's fields that may change. */
    List<Field> watched() {
        return watched;
    }

    /** Return what is checked of the other fields of one of the two messages, by number. */
    ProtoTree.Idle[] idle(Message side) {
        return side.equals(writer) ? idleOfWriter : idleOfReader;
    }

    /** Return the same of the messages in a field; null if all of their fields count, since they may be shown. */
    MessageDoubts inside(int number) {
        Part part = find(number);
        return isAlways || part == null || part.isDoubt || part.own != 0 ? null : part.inner;
    }

    private Part find(int number) {
        return number < dense.length ? dense[number] : others.get(number);
    }

    private Part part(int number) {
        Part part = find(number);
        if (part == null) {
            part = new Part();
            if (number < dense.length) {
                dense[number] = part;
            } else {
                others.put(number, part);
            }
        }
        return part;
    }

    private long bit(Part part) {
        if (part.own == 0) {
            if (bits == MAX_BITS) {
                isAlways = true;
                return 0;
            }
            part.own = 1L << bits++;
        }
        return part.own;
    }

    private void fill(Map<Pair, MessageDoubts> made) {
        ProtoTree written = new ProtoTree(writer);
        ProtoTree read = new ProtoTree(reader);
        for (Field field : reader.fields.values()) {
            Field source = MessageChanges.source(writer, reader, field);
            boolean isMoved = source == null ? writer.fields.containsKey(field.number) : source.number != field.number;
            if (isMoved) {
                isAlways = true;
                return;
            }
            if (source == null) {
                isAlways |= field.isRequired;
                continue;
            }
            Part part = part(field.number);
            look(part, source, field, made);
            boolean[] differ = {field.isRequired && !source.isRequired};
            new MessageChanges((path, before, after) -> differ[0] = true).compare(written, read, field, "");
            if (differ[0]) {
                obliged |= bit(part);
                part.isDoubt |= ProtoTree.isClosed(source); // a number that it does not have is not there
            }
        }
        for (Message side : List.of(writer, reader)) {
            Message other = Objects.equals(side, writer) ? reader : writer;
            for (Field field : side.fields.values()) {
                if (field.oneof >= 0 && !members(side, field.number).equals(members(other, field.number))) {
                    addRivals(members(side, field.number));
                }
            }
        }
    }

    private static Set<Integer> members(Message message, int number) {
        Field field = message.fields.get(number);
        Set<Integer> members = new TreeSet<>(Set.of(number));
        if (field != null && field.oneof >= 0) {
            message.fields.values().stream()
                    .filter(other -> other.oneof == field.oneof)
                    .forEach(other -> members.add(other.number));
        }
        return members;
    }

    private void addRivals(Set<Integer> numbers) {
        long all = 0;
        for (int number : numbers) {
            all |= bit(part(number));
        }
        for (int number : numbers) {
            Part part = part(number);
            part.rivals |= all & ~part.own;
            part.wire = (writer.fields.containsKey(number) ? writer : reader).fields.get(number).type.wire;
        }
    }

    private static void look(Part part, Field source, Field field, Map<Pair, MessageDoubts> made) {
        part.source = source;
        part.field = field;
        part.wire = source.type.wire;
        boolean isSameCount = source.isRepeated == field.isRepeated && source.isMap() == field.isMap();
        boolean isClosed = ProtoTree.isClosed(source) || ProtoTree.isClosed(field);
        if (!isSameCount || source.type.wire != field.type.wire || isClosed && !sameEnum(source, field)) {
            part.isDoubt = true;
        } else if (source.type == ProtoType.MESSAGE && field.type == ProtoType.MESSAGE) {
            part.isDoubt =
                    source.messageOrKnown() == null || field.messageOrKnown() == null || keysDiffer(source, field);
            if (!part.isDoubt) {
                part.look = Look.INSIDE;
                part.inner = of(source.messageOrKnown(), field.messageOrKnown(), made);
            }
        } else if (source.type == ProtoType.ENUM && field.type == ProtoType.ENUM) {
            part.symbols = changed(source.numbers, field.numbers);
            part.look = part.symbols.isEmpty() ? Look.AT_ITS_PRESENCE : Look.AT_SYMBOLS;
        } else if (source.type.wire == ProtoWire.VARINT) {
            part.look = source.type == field.type ? Look.AT_ITS_PRESENCE : Look.AT_NUMBERS;
        } else {
            boolean isKept =
                    source.type == field.type || source.type == ProtoType.STRING && field.type == ProtoType.BYTES;
            part.isDoubt = !isKept || source.type == ProtoType.GROUP;
        }
    }

    private static boolean keysDiffer(Field source, Field field) {
        return source.isMap()
                && source.message.fields.get(ProtoTree.KEY).type != field.message.fields.get(ProtoTree.KEY).type;
    }

    private static boolean sameEnum(Field source, Field field) {
        return source.numbers != null && source.numbers.equals(field.numbers);
    }

    private static Set<Integer> changed(Numbers source, Numbers field) {
        Set<Integer> numbers = new HashSet<>(source.values().values());
        numbers.addAll(field.values().values());
        numbers.removeIf(number -> MessageChanges.isSameSymbol(source, number, field, number));
        return numbers;
    }

    // Bytes

    /** Return whether the reader may have another value of the bytes that are left. */
    boolean isInDoubt(Cursor in) {
        return isInDoubt(in, MAX_DEPTH);
    }

    /** Return the same, of the fields that are marked. */
    boolean isInDoubtWhereMarked(Cursor in) {
        long met = 0;
        for (int index = 0; index < marks.count(); index++) {
            in.at = marks.place(index);
            int tag = ProtoWire.tag(in);
            Part part = dense[tag >>> 3];
            met = part == null ? met : meet(part, tag, in, MAX_DEPTH, met);
            if (met == IN_DOUBT) {
                return true;
            }
        }
        return (met & obliged) != obliged;
    }

    /** Tell the changes of a message of which all fields that may change are marked; return false if that does not do. */
    boolean tellWhereMarked(Cursor in, Changes changes) {
        for (int index = 0; index < marks.count() && flat.length > 0; index++) {
            in.at = marks.place(index);
            Part part = dense[ProtoWire.tag(in) >>> 3];
            part.value = ProtoWire.varint(in);
            part.isMet = true;
        }
        for (Part part : flat) {
            if (part.isMet && isInDoubt(part, part.value)) {
                new MessageChanges(changes).changed(part.source, part.field, part.value);
            }
            part.isMet = false;
        }
        return flat.length > 0;
    }

    private boolean isInDoubt(Cursor in, int depth) {
        if (isAlways || depth == 0) {
            return true;
        }
        long met = 0;
        while (in.at < in.end) {
            int tag = ProtoWire.tag(in);
            Part part = find(tag >>> 3);
            if (part == null) {
                ProtoWire.skip(in, tag);
                continue;
            }
            met = meet(part, tag, in, depth, met);
            if (met == IN_DOUBT) {
                return true;
            }
        }
        return (met & obliged) != obliged;
    }

    /** Look at a field; return the bits of the fields that were met, or {@link #IN_DOUBT}. */
    private static long meet(Part part, int tag, Cursor in, int depth, long met) {
        boolean isMisfit = part.own != 0 && (tag & 7) != part.wire;
        if (part.isDoubt || isMisfit || (met & (part.rivals | part.once)) != 0) {
            return IN_DOUBT;
        }
        if (part.look == Look.AT_ITS_PRESENCE) {
            ProtoWire.skip(in, tag);
        } else if (isInDoubt(part, tag, in, depth)) {
            return IN_DOUBT;
        }
        return met | part.own | part.once;
    }

    private static boolean isInDoubt(Part part, int tag, Cursor in, int depth) {
        int wire = tag & 7;
        if (wire == part.wire && part.look != Look.INSIDE) {
            return isInDoubt(part, ProtoWire.varint(in));
        }
        if (wire != ProtoWire.BYTES) {
            return true;
        }
        int outer = in.end;
        int length = ProtoWire.length(in);
        in.end = in.at + length;
        boolean isDoubt = false;
        if (part.look == Look.INSIDE) {
            isDoubt = part.inner.isInDoubt(in, depth - 1);
        } else {
            while (in.at < in.end && !isDoubt) { // packed
                isDoubt = isInDoubt(part, ProtoWire.varint(in));
            }
        }
        in.end = outer;
        return isDoubt;
    }

    private static boolean isInDoubt(Part part, long bits) {
        if (part.look == Look.AT_SYMBOLS) {
            return part.symbols.contains((int) bits);
        }
        ProtoType before = part.source.type;
        ProtoType after = part.field.type;
        long written = ProtoTree.plain(before, bits);
        boolean isBig = written < 0 && (before == ProtoType.UINT64) != (after == ProtoType.UINT64);
        return isBig || written != ProtoTree.plain(after, bits);
    }
}
