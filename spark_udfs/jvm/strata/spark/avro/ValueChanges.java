package strata.spark.avro;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.avro.SparkTypes.Logical;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.Program.Changes;
import strata.spark.row.RowBuffer;

/**
 * Finds the values that a reader gets otherwise than they were written, without an error: a long that a double rounds, a
 * symbol of an enum that falls to the default, a number that becomes a time.
 *
 * <p>What only one of the two schemas has is left out: a default, or a field that is not read.
 */
public final class ValueChanges {
    private static final int LONGEST = 200;
    private static final double TOO_LARGE = 0x1p63;
    private static final double EXACT_DOUBLE = 0x1p53;
    private static final float EXACT_FLOAT = 0x1p24f;

    /** A value with its schema, which is not a union. */
    private record Value(Schema schema, DataType type, Object value) {}

    /**
     * Where values may change.
     *
     * @param exist whether some may
     * @param fields the positions of the reader's fields that may, if both schemas are records; null: anywhere
     */
    public record Places(boolean exist, Set<Integer> fields) {}

    private final Schema writer;
    private final Schema reader;
    private final DataType writtenType;
    private final DataType readType;
    private final RowBuffer row = new RowBuffer(1);
    private final AvroProgram program;
    private final Map<Schema, Integer> times = new IdentityHashMap<>();
    /** The reader's fields that may change; null if the reader is not a record. */
    private final List<Schema.Field> fields;
    /** What shows that a field has not changed, for each of these fields. */
    private final List<Doubt> doubts = new ArrayList<>();

    /** @throws IllegalArgumentException if Spark has no type for the writer schema */
    public ValueChanges(Object name, Schema writer, Schema reader, DataType readType) {
        this.writer = writer;
        this.reader = reader;
        this.readType = readType;
        writtenType = SparkTypes.of(writer, "writer schema", false);
        Set<Integer> positions = places(writer, reader).fields();
        Set<Integer> sources = null;
        if (positions == null) {
            fields = null;
        } else {
            fields = positions.stream().map(reader.getFields()::get).toList();
            sources = new TreeSet<>();
            for (Schema.Field field : fields) {
                sources.add(source(writer, field).pos());
                doubts.add(Doubt.of(source(writer, field).schema(), field));
            }
        }
        program = new AvroProgram(name, writer, writer, writtenType, sources, row);
    }

    /** Return where a reader may get another value than was written. */
    public static Places places(Schema writer, Schema reader) {
        if (writer.getType() != Schema.Type.RECORD || reader.getType() != Schema.Type.RECORD) {
            boolean exist = mayChange(writer, reader, new HashSet<>());
            return new Places(exist, exist ? null : Set.of());
        }
        Set<Integer> fields = new TreeSet<>();
        for (Schema.Field field : reader.getFields()) {
            Schema.Field source = source(writer, field);
            if (source != null && mayChange(source.schema(), field.schema(), new HashSet<>())) {
                fields.add(field.pos());
            }
        }
        return new Places(!fields.isEmpty(), fields);
    }

    /**
     * Find the changes of one record.
     *
     * @param read the row whose field 0 is what the reader gets, or those of its fields that may change
     * @throws strata.spark.frame.FrameHeader.Refusal if the record cannot be read as it was written
     */
    public void find(FrameHeader frame, InternalRow read, Changes changes) {
        if (fields != null && !isInDoubt(read.getStruct(0, reader.getFields().size()))) {
            return;
        }
        program.read(frame);
        Value before = value(writer, writtenType, row.row(), 0);
        Value after = value(reader, readType, read, 0);
        if (fields == null) {
            compare(before, after, "", changes);
        } else {
            compareFields(fields, before, after, "", changes);
        }
    }

    // Doubts

    private boolean isInDoubt(InternalRow read) {
        for (Doubt doubt : doubts) {
            if (!read.isNullAt(doubt.position) && doubt.isAbout(read)) {
                return true;
            }
        }
        return false;
    }

    /**
     * What is read from a field tells whether it may have been written otherwise: a small number was not rounded, and a
     * symbol other than the default was written. So most records need not be read as they were written.
     *
     * @param type the reader's type, if it decides; null: whatever is read is in doubt
     * @param fallback the default of an enum
     */
    private record Doubt(int position, Schema.Type type, UTF8String fallback) {
        static Doubt of(Schema writer, Schema.Field field) {
            List<Schema> types = new ArrayList<>(branches(field.schema()));
            types.removeIf(branch -> branch.getType() == Schema.Type.NULL);
            boolean isPlain = types.size() == 1
                    && Logical.of(types.get(0)) == null
                    && branches(writer).stream().allMatch(one -> Logical.of(one) == null);
            Schema.Type type = isPlain ? types.get(0).getType() : null;
            String fallback = type == Schema.Type.ENUM ? types.get(0).getEnumDefault() : null;
            boolean isKnown = type == Schema.Type.DOUBLE || type == Schema.Type.FLOAT || fallback != null;
            return new Doubt(field.pos(), isKnown ? type : null, UTF8String.fromString(fallback));
        }

        boolean isAbout(InternalRow read) {
            if (type == Schema.Type.DOUBLE) {
                return !(Math.abs(read.getDouble(position)) < EXACT_DOUBLE);
            }
            if (type == Schema.Type.FLOAT) {
                return !(Math.abs(read.getFloat(position)) < EXACT_FLOAT);
            }
            return type == null || read.getUTF8String(position).equals(fallback);
        }
    }

    // Schemas

    private record Pair(Schema writer, Schema reader) {}

    private static boolean mayChange(Schema writer, Schema reader, Set<Pair> seen) {
        if (writer.getType() == Schema.Type.UNION || reader.getType() == Schema.Type.UNION) {
            for (Schema one : branches(writer)) {
                for (Schema other : branches(reader)) {
                    if (mayChange(one, other, seen)) {
                        return true;
                    }
                }
            }
            return false;
        }
        Schema.Type from = writer.getType();
        Schema.Type to = reader.getType();
        if (from == Schema.Type.RECORD && to == from) {
            return seen.add(new Pair(writer, reader)) && fieldMayChange(writer, reader, seen);
        }
        if (from == to && from == Schema.Type.ARRAY) {
            return mayChange(writer.getElementType(), reader.getElementType(), seen);
        }
        if (from == to && from == Schema.Type.MAP) {
            return mayChange(writer.getValueType(), reader.getValueType(), seen);
        }
        if (from == to && from == Schema.Type.ENUM) {
            return !reader.getEnumSymbols().containsAll(writer.getEnumSymbols());
        }
        boolean isRounded =
                to == Schema.Type.FLOAT && from != to || to == Schema.Type.DOUBLE && from == Schema.Type.LONG;
        return isRounded || !same(Logical.of(writer), Logical.of(reader));
    }

    private static boolean fieldMayChange(Schema writer, Schema reader, Set<Pair> seen) {
        for (Schema.Field field : reader.getFields()) {
            Schema.Field source = source(writer, field);
            if (source != null && mayChange(source.schema(), field.schema(), seen)) {
                return true;
            }
        }
        return false;
    }

    private static boolean same(Logical one, Logical other) {
        return one == null ? other == null : one.equals(other);
    }

    /** Return the writer's field that a field of the reader is read from; null if there is none. */
    private static Schema.Field source(Schema writer, Schema.Field field) {
        Schema.Field same = writer.getField(field.name());
        if (same != null) {
            return same;
        }
        return field.aliases().stream()
                .map(writer::getField)
                .filter(found -> found != null)
                .findFirst()
                .orElse(null);
    }

    private static List<Schema> branches(Schema schema) {
        return schema.getType() == Schema.Type.UNION ? schema.getTypes() : List.of(schema);
    }

    // Values

    /** Return a value, or null; of a union the branch that it has. */
    private static Value value(Schema schema, DataType type, SpecializedGetters row, int index) {
        if (row.isNullAt(index)) {
            return null;
        }
        Object value = row.get(index, type);
        if (schema.getType() != Schema.Type.UNION) {
            return new Value(schema, type, value);
        }
        List<Schema> others = new ArrayList<>(schema.getTypes());
        others.removeIf(branch -> branch.getType() == Schema.Type.NULL);
        if (others.size() == 1) {
            return new Value(others.get(0), type, value);
        }
        if (!(type instanceof StructType members)) { // the wider of two types of numbers
            return new Value(Schema.create(others.get(0).getType()), type, value);
        }
        for (int member = 0; member < others.size(); member++) {
            InternalRow fields = (InternalRow) value;
            if (!fields.isNullAt(member)) {
                return value(others.get(member), members.fields()[member].dataType(), fields, member);
            }
        }
        return null;
    }

    private void compare(Value written, Value read, String path, Changes changes) {
        if (written == null && read == null) {
            return;
        }
        if (written == null || read == null || !alike(written.value(), read.value())) {
            changes.changed(path, () -> shown(written), () -> shown(read));
        } else if (written.value() instanceof InternalRow && read.value() instanceof InternalRow) {
            compareFields(read.schema().getFields(), written, read, path, changes);
        } else if (written.value() instanceof ArrayData before && read.value() instanceof ArrayData after) {
            compareItems(
                    new Items(written.schema().getElementType(), ((ArrayType) written.type()).elementType(), before),
                    new Items(read.schema().getElementType(), ((ArrayType) read.type()).elementType(), after),
                    path + "[]",
                    changes);
        } else if (written.value() instanceof MapData before && read.value() instanceof MapData after) {
            compareItems(
                    new Items(
                            written.schema().getValueType(),
                            ((MapType) written.type()).valueType(),
                            before.valueArray()),
                    new Items(read.schema().getValueType(), ((MapType) read.type()).valueType(), after.valueArray()),
                    path + "{}",
                    changes);
        } else if (!isSame(written, read)) {
            changes.changed(path, () -> shown(written), () -> shown(read));
        }
    }

    private void compareFields(List<Schema.Field> fields, Value written, Value read, String path, Changes changes) {
        InternalRow before = (InternalRow) written.value();
        InternalRow after = (InternalRow) read.value();
        StructType writtenType = (StructType) written.type();
        StructType readType = (StructType) read.type();
        for (Schema.Field field : fields) {
            Schema.Field source = source(written.schema(), field);
            if (source != null) {
                int from = source.pos();
                int to = field.pos();
                compare(
                        value(source.schema(), writtenType.fields()[from].dataType(), before, from),
                        value(field.schema(), readType.fields()[to].dataType(), after, to),
                        path.isEmpty() ? field.name() : path + "." + field.name(),
                        changes);
            }
        }
    }

    private record Items(Schema schema, DataType type, ArrayData values) {}

    private void compareItems(Items written, Items read, String path, Changes changes) {
        for (int index = 0; index < written.values().numElements(); index++) {
            compare(
                    value(written.schema(), written.type(), written.values(), index),
                    value(read.schema(), read.type(), read.values(), index),
                    path,
                    changes);
        }
    }

    /** Return whether two values can be compared part by part: both are rows, arrays or maps, or neither is. */
    private static boolean alike(Object written, Object read) {
        return written instanceof InternalRow == read instanceof InternalRow && size(written) == size(read);
    }

    private static int size(Object value) {
        if (value instanceof ArrayData items) {
            return items.numElements();
        }
        return value instanceof MapData entries ? entries.numElements() : -1;
    }

    private boolean isSame(Value written, Value read) {
        if (kindOfTime(written.schema()) != kindOfTime(read.schema())) {
            return false;
        }
        Object one = written.value();
        Object other = read.value();
        if (one instanceof Number before && other instanceof Number after) {
            return isSameNumber(before, after);
        }
        if (one instanceof byte[] || other instanceof byte[]) {
            return bytes(one) != null && Arrays.equals(bytes(one), bytes(other));
        }
        return one.equals(other);
    }

    private int kindOfTime(Schema schema) {
        Integer known = times.get(schema);
        if (known == null) {
            known = timeOf(schema);
            times.put(schema, known);
        }
        return known;
    }

    /** Return what a number counts: moments, moments without a zone, dates, times of a day, or nothing of time. */
    private static int timeOf(Schema schema) {
        Logical logical = Logical.of(schema);
        String name = logical == null ? "" : logical.name();
        return name.startsWith("timestamp")
                ? 1
                : name.startsWith("local-timestamp")
                        ? 2
                        : name.equals("date") ? 3 : name.startsWith("time-") ? name.hashCode() : 0;
    }

    private static byte[] bytes(Object value) {
        return value instanceof UTF8String text ? text.getBytes() : value instanceof byte[] bytes ? bytes : null;
    }

    private static boolean isSameNumber(Number one, Number other) {
        boolean isWhole = !isFloating(one);
        if (isWhole && isFloating(other)) {
            double read = other.doubleValue();
            return Math.abs(read) < TOO_LARGE
                    ? (long) read == one.longValue() && read == Math.rint(read)
                    : read == -TOO_LARGE && one.longValue() == Long.MIN_VALUE;
        }
        return isWhole
                ? one.longValue() == other.longValue()
                : Double.compare(one.doubleValue(), other.doubleValue()) == 0;
    }

    private static boolean isFloating(Number number) {
        return number instanceof Double || number instanceof Float;
    }

    private static String shown(Value value) {
        Object shown = value == null ? null : value.value();
        String text = shown instanceof byte[] bytes ? Arrays.toString(bytes) : String.valueOf(shown);
        return text.length() <= LONGEST ? text : text.substring(0, LONGEST - 1) + "…";
    }
}
