package strata.spark.avro;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import strata.spark.avro.RecordNode.Step;
import strata.spark.avro.SparkTypes.Logical;
import strata.spark.bytes.Limits;
import strata.spark.bytes.Limits.Budget;
import strata.spark.row.Containers;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;
import strata.spark.row.Skip;

/**
 * Avro's schema resolution, decided once for a writer schema and a reader schema.
 *
 * <p>The rules are those of {@code strata.serdes.avro.resolution}: fields by name and alias, skipped fields, defaults, promotions,
 * branches of unions, symbols of enums. Where the specification leaves a choice, schemas that the registry calls
 * compatible must decode: record, enum and fixed are matched by name without namespace, or by the reader's aliases;
 * outside a union the names of records do not matter. A type that cannot be resolved fails only the records that
 * contain a value of it.
 */
final class Compiler {
    /** The properties of a field that have its default: its bytes in hexadecimal, or its error message. */
    static final String DEFAULT = "strata-default";

    static final String BAD_DEFAULT = "strata-bad-default";

    /** The error of a default that is a number of its type, but too large. */
    static final String OUT_OF_RANGE = "a default of the reader schema is out of range";

    private static final Map<Schema.Type, Set<Schema.Type>> PROMOTIONS = Map.of(
            Schema.Type.INT, Set.of(Schema.Type.LONG, Schema.Type.FLOAT, Schema.Type.DOUBLE),
            Schema.Type.LONG, Set.of(Schema.Type.FLOAT, Schema.Type.DOUBLE),
            Schema.Type.FLOAT, Set.of(Schema.Type.DOUBLE),
            Schema.Type.STRING, Set.of(Schema.Type.BYTES),
            Schema.Type.BYTES, Set.of(Schema.Type.STRING));

    private static final Set<Schema.Type> NAMED = Set.of(Schema.Type.RECORD, Schema.Type.ENUM, Schema.Type.FIXED);
    private static final Set<Schema.Type> COMPLEX = Set.of(Schema.Type.ARRAY, Schema.Type.MAP, Schema.Type.UNION);

    private final Budget budget = new Budget();
    private Growth growth = new Growth();
    private final Skip.Maker skips = new Skip.Maker(budget);

    /** The type of the columns of the outermost record. */
    private final DataType outermost;
    /** The positions of its fields to build; null for all. */
    private final Set<Integer> fields;

    /**
     * @param outermost the type of the column
     * @param fields the positions of the fields to build, while others are checked; null for all
     */
    Compiler(DataType outermost, Set<Integer> fields) {
        this.outermost = outermost;
        this.fields = fields;
    }

    /** Return the node that reads a payload; a top-level {@code bytes} has no length. */
    public Node compile(Schema writer, Schema reader) {
        boolean bare = writer.getType() == Schema.Type.BYTES;
        return resolve(writer, reader, outermost, bare ? Scalars.REST : Scalars.PREFIXED);
    }

    /** Return the size of the largest payload of which the node may check fields. */
    long largestPayload() {
        return growth.largestPayload();
    }

    private Node resolve(Schema writer, Schema reader, DataType column) {
        return resolve(writer, reader, column, Scalars.PREFIXED);
    }

    private Node resolve(Schema writer, Schema reader, DataType column, int extent) {
        budget.spend();
        growth.value();
        if (writer.getType() == Schema.Type.UNION) {
            return new Node.Branches(IntStream.range(0, writer.getTypes().size())
                    .mapToObj(i -> branch(writer, i, reader, column))
                    .toArray(Node[]::new));
        }
        if (reader.getType() == Schema.Type.UNION) {
            return inUnion(writer, reader, column, extent);
        }
        if (isPrimitive(writer) && isPrimitive(reader)) {
            return primitive(writer, reader, column, extent);
        }
        if (writer.getType() != reader.getType()) {
            return mismatch(writer, reader);
        }
        return switch (writer.getType()) {
            case FIXED -> fixed(writer, reader, column);
            case ENUM -> symbols(writer, reader);
            case ARRAY -> array(writer, reader, (ArrayType) column);
            case MAP -> map(writer, reader, (MapType) column);
            case RECORD -> record(writer, reader, (StructType) column);
            default -> mismatch(writer, reader);
        };
    }

    // Unions

    /** Return the node for a branch of the writer. In a default, which the reader wrote, it is the same branch. */
    private Node branch(Schema writer, int index, Schema reader, DataType column) {
        Schema branch = writer.getTypes().get(index);
        return writer == reader
                ? inBranch(branch, reader, index, column, Scalars.PREFIXED)
                : resolve(branch, reader, column);
    }

    private Node inUnion(Schema writer, Schema reader, DataType column, int extent) {
        int index = choose(writer, reader, column);
        return index < 0 ? mismatch(writer, reader) : inBranch(writer, reader, index, column, extent);
    }

    private Node inBranch(Schema writer, Schema reader, int index, DataType column, int extent) {
        Schema branch = reader.getTypes().get(index);
        if (branch.getType() == Schema.Type.NULL) {
            return new Node.Null();
        }
        return asMember(reader, index, column, inner -> resolve(writer, branch, inner, extent));
    }

    private Node asMember(Schema reader, int index, DataType column, Function<DataType, Node> value) {
        int members = members(reader.getTypes());
        if (members < 2 || !(column instanceof StructType struct)) {
            return value.apply(column);
        }
        int member = members(reader.getTypes().subList(0, index));
        growth.row(members);
        return new Containers.MemberNode(members, member, value.apply(struct.fields()[member].dataType()));
    }

    private static int members(List<Schema> branches) {
        return (int) branches.stream()
                .filter(branch -> branch.getType() != Schema.Type.NULL)
                .count();
    }

    /**
     * Return the reader's branch for a type of the writer: the same type first, then one that it can be promoted to.
     */
    private int choose(Schema writer, Schema reader, DataType column) {
        List<Integer> same = branches(reader, Set.of(writer.getType()));
        if (isNamed(writer)) {
            return chooseNamed(writer, reader, same, column);
        }
        Set<Schema.Type> promoted = PROMOTIONS.getOrDefault(writer.getType(), Set.of());
        List<Integer> found = same.isEmpty() ? branches(reader, promoted) : same;
        return found.isEmpty() ? -1 : found.get(0);
    }

    private static List<Integer> branches(Schema union, Set<Schema.Type> types) {
        List<Schema> branches = union.getTypes();
        return IntStream.range(0, branches.size())
                .filter(i -> types.contains(branches.get(i).getType()))
                .boxed()
                .toList();
    }

    private int chooseNamed(Schema writer, Schema reader, List<Integer> same, DataType column) {
        List<Integer> alike = new ArrayList<>();
        for (int i : same) {
            Schema branch = reader.getTypes().get(i);
            if (branch.getFullName().equals(writer.getFullName())
                    || branch.getAliases().contains(writer.getFullName())) {
                return i;
            }
            if (sameName(writer, branch)) {
                alike.add(i);
            }
        }
        if (writer.getType() == Schema.Type.RECORD) {
            List<Integer> fitting =
                    same.stream().filter(i -> fits(writer, reader, i, column)).toList();
            List<Integer> both = alike.stream().filter(fitting::contains).toList();
            if (!fitting.isEmpty()) {
                return (both.isEmpty() ? fitting : both).get(0);
            }
        }
        return alike.isEmpty() ? -1 : alike.get(0);
    }

    private boolean fits(Schema writer, Schema reader, int index, DataType column) {
        return !inBranch(writer, reader, index, column, Scalars.PREFIXED).failsAlways();
    }

    // Types without others inside

    private Node primitive(Schema writer, Schema reader, DataType column, int extent) {
        Schema.Type from = writer.getType();
        Schema.Type to = reader.getType();
        if (from != to && !PROMOTIONS.getOrDefault(from, Set.of()).contains(to)) {
            return mismatch(writer, reader);
        }
        return switch (to) {
            case NULL -> new Node.Null();
            case BOOLEAN -> Scalars.flag();
            case INT, LONG -> whole(writer, reader, column);
            case FLOAT, DOUBLE -> column instanceof FloatType ? Scalars.toFloat(from) : Scalars.toDouble(from);
            case STRING -> Scalars.text(extent);
            default -> column instanceof DecimalType decimal ? decimal(writer, decimal, extent) : Scalars.bytes(extent);
        };
    }

    private Node whole(Schema writer, Schema reader, DataType column) {
        boolean narrow = writer.getType() == Schema.Type.INT;
        boolean narrowOut = column instanceof IntegerType || column instanceof DateType;
        Logical logical = Logical.of(reader);
        long rescale = Logical.rescale(Logical.of(writer), logical);
        boolean isInstant = column instanceof TimestampType || column instanceof TimestampNTZType;
        // Spark's timestamps are in microseconds.
        long toMicros = isInstant && logical != null && logical.name().endsWith("-millis") ? 1_000 : 1;
        if (rescale != 1 || toMicros != 1) {
            return Scalars.time(narrow, narrowOut, rescale, toMicros);
        }
        return Scalars.integer(narrow, narrowOut);
    }

    private Node fixed(Schema writer, Schema reader, DataType column) {
        if (writer.getFixedSize() != reader.getFixedSize() || !sameName(writer, reader)) {
            return mismatch(writer, reader);
        }
        return column instanceof DecimalType decimal
                ? decimal(writer, decimal, writer.getFixedSize())
                : Scalars.bytes(writer.getFixedSize());
    }

    private static Node decimal(Schema writer, DecimalType column, int extent) {
        Logical written = Logical.of(writer);
        int scale = written != null && written.name().equals("decimal") ? written.scale() : column.scale();
        return new Scalars.DecimalNode(extent, column.precision(), column.scale(), scale);
    }

    private Node symbols(Schema writer, Schema reader) {
        if (!sameName(writer, reader)) {
            return mismatch(writer, reader);
        }
        String[] written = writer.getEnumSymbols().toArray(String[]::new);
        String[] read = new String[written.length];
        for (int i = 0; i < written.length; i++) {
            read[i] = reader.hasEnumSymbol(written[i]) ? written[i] : reader.getEnumDefault();
            growth.add(read[i] == null ? 0 : 4L * read[i].length());
        }
        return new Scalars.EnumNode(written, read);
    }

    // Types with others inside

    private Node array(Schema writer, Schema reader, ArrayType column) {
        DataType inner = column.elementType();
        growth.openContainer();
        Node item = resolve(writer.getElementType(), reader.getElementType(), inner);
        growth.closeContainer();
        int weightless = skips.weight(writer.getElementType());
        return new Containers.ArrayNode(width(inner), item, skips.of(writer.getElementType()), weightless);
    }

    private Node map(Schema writer, Schema reader, MapType column) {
        DataType inner = column.valueType();
        growth.openContainer();
        Node value = resolve(writer.getValueType(), reader.getValueType(), inner);
        growth.closeContainer();
        return new Containers.MapNode(width(inner), value, skips.of(writer.getValueType()));
    }

    private Node record(Schema writer, Schema reader, StructType column) {
        if (writer != reader) {
            skips.weight(writer); // rejects a type that holds too many values
        }
        growth.row(column.size());
        Map<String, String> sources = sources(writer, reader);
        List<Step> defaults = new ArrayList<>();
        Map<String, List<Integer>> targets = new HashMap<>();
        for (Schema.Field field : reader.getFields()) {
            String source = sources.get(field.name());
            if (source != null) {
                targets.computeIfAbsent(source, name -> new ArrayList<>()).add(field.pos());
                continue;
            }
            String problem = missing(field, reader);
            if (problem != null) {
                return new Node.Fail(problem);
            }
            defaults.add(Step.read(field.name(), defaultOf(field, column), field.pos()));
        }
        List<Step> steps = new ArrayList<>();
        for (Schema.Field field : writer.getFields()) {
            List<Integer> slots = targets.getOrDefault(field.name(), List.of());
            if (slots.size() > 1) {
                growth.exceed();
            }
            for (int slot : slots) {
                Schema.Field target = reader.getFields().get(slot);
                Node value = resolve(field.schema(), target.schema(), column.fields()[slot].dataType());
                steps.add(
                        slots.size() == 1
                                ? Step.read(field.name(), value, slot)
                                : Step.share(field.name(), value, slot, slot == slots.get(0)));
            }
            if (slots.isEmpty()) {
                steps.add(Step.skip(field.name(), skips.of(field.schema())));
            }
        }
        Set<Integer> built = column == outermost ? fields : null;
        return RecordNode.of(column, steps, defaults, built);
    }

    private static String missing(Schema.Field field, Schema reader) {
        if (field.getObjectProp(BAD_DEFAULT) instanceof String problem) {
            return problem.equals(OUT_OF_RANGE)
                    ? problem
                    : "the default of the reader's field " + field.name() + " of " + reader.getFullName()
                            + " is not valid: " + problem;
        }
        if (field.getObjectProp(DEFAULT) instanceof String) {
            return null;
        }
        return "the reader's field " + field.name() + " of " + reader.getFullName()
                + " is not in the writer schema and has no default";
    }

    private Node defaultOf(Schema.Field field, StructType column) {
        byte[] encoded = HexFormat.of().parseHex((String) field.getObjectProp(DEFAULT));
        DataType inner = column.fields()[field.pos()].dataType();
        Growth outside = growth;
        growth = new Growth();
        Node value = resolve(field.schema(), field.schema(), inner);
        outside.add(growth.of(encoded.length));
        growth = outside;
        return new Node.Default(value, encoded);
    }

    // Names

    /**
     * Return the writer's field for each field of the reader: the one with the same name, else with one of its aliases.
     *
     * <p>If a writer's field is already used, a field that matches it only by alias takes its default, or shares the
     * field if it has no default.
     */
    private static Map<String, String> sources(Schema writer, Schema reader) {
        Map<String, String> sources = new LinkedHashMap<>();
        for (Schema.Field field : reader.getFields()) {
            if (writer.getField(field.name()) != null) {
                sources.put(field.name(), field.name());
            }
        }
        for (Schema.Field field : reader.getFields()) {
            if (writer.getField(field.name()) != null) {
                continue;
            }
            List<String> known = field.aliases().stream()
                    .filter(alias -> writer.getField(alias) != null)
                    .toList();
            List<String> free = known.stream()
                    .filter(alias -> !sources.containsValue(alias))
                    .toList();
            boolean hasDefault = field.getObjectProp(DEFAULT) != null || field.getObjectProp(BAD_DEFAULT) != null;
            if (!free.isEmpty()) {
                sources.put(field.name(), free.get(0));
            } else if (!known.isEmpty() && !hasDefault) {
                sources.put(field.name(), known.get(0));
            }
        }
        return sources;
    }

    private static boolean sameName(Schema writer, Schema reader) {
        return writer.getName().equals(reader.getName())
                || reader.getAliases().stream().anyMatch(alias -> simple(alias).equals(writer.getName()));
    }

    private static String simple(String name) {
        return name.substring(name.lastIndexOf('.') + 1);
    }

    // Words

    private static Node mismatch(Schema writer, Schema reader) {
        return new Node.Fail(
                "the reader schema has " + describe(reader) + " where the writer schema has " + describe(writer));
    }

    static String describe(Schema schema) {
        return switch (schema.getType()) {
            case RECORD, ENUM, FIXED -> schema.getType().getName() + " " + schema.getFullName();
            case ARRAY, MAP -> schema.getType().getName();
            case UNION -> "union of "
                    + schema.getTypes().stream().map(Compiler::describe).collect(Collectors.joining(", "));
            default -> {
                Logical logical = Logical.of(schema);
                yield schema.getType().getName() + (logical == null ? "" : " (" + logical.name() + ")");
            }
        };
    }

    private static boolean isNamed(Schema schema) {
        return NAMED.contains(schema.getType());
    }

    static boolean isPrimitive(Schema schema) {
        return !isNamed(schema) && !COMPLEX.contains(schema.getType());
    }

    /** Return the size in bytes of a value in one of Spark's arrays. */
    private static int width(DataType type) {
        if (type instanceof BooleanType) {
            return 1;
        }
        if (type instanceof IntegerType || type instanceof DateType || type instanceof FloatType) {
            return 4;
        }
        return 8;
    }

    /**
     * An upper bound of the bytes that the rows of a program take, so that {@link Limits#OUTPUT} needs no count where values
     * are checked but not built.
     */
    static final class Growth {
        /** A slot, and the padding, null bit and count of what is in it. */
        private static final int VALUE = 32;

        /** What all values outside of arrays and maps take. */
        private long once;
        /** What an item of every array and map takes, with all that is in it. */
        private long each;

        private int containers;

        /** Note a value of any type. */
        public void value() {
            add(VALUE);
        }

        /** Note so many bytes that a value takes at most, besides bytes of the payload. */
        public void add(long bytes) {
            if (containers == 0) {
                once += bytes;
            } else {
                each += bytes;
            }
        }

        /** Note a row of so many fields. */
        public void row(int size) {
            add(RowBuffer.nullBytes(size) + 8L * size);
        }

        void openContainer() {
            containers++;
            value();
        }

        void closeContainer() {
            containers--;
        }

        /** Note that values have no bound. */
        void exceed() {
            once = Limits.OUTPUT;
        }

        /** Return the bound for a payload of so many bytes: each of them may be an item, or a part of a text. */
        public long of(long payload) {
            return once + each * (payload + Limits.WEIGHTLESS) + payload;
        }

        /** Return the size of the largest payload whose value is within {@link Limits#OUTPUT}; negative if none is. */
        long largestPayload() {
            return (Limits.OUTPUT - once - each * Limits.WEIGHTLESS) / (each + 1) - 1;
        }
    }
}
