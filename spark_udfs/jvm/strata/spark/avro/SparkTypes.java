package strata.spark.avro;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The Spark type of an Avro schema.
 *
 * <p>The mapping is that of {@code strata.serdes.arrow.layout}, in the style of Spark.
 */
public final class SparkTypes {
    private static final int MAX_TYPES = 10_000;
    private static final int MAX_DIGITS = 38;
    private static final Set<Set<Schema.Type>> WIDER =
            Set.of(Set.of(Schema.Type.INT, Schema.Type.LONG), Set.of(Schema.Type.FLOAT, Schema.Type.DOUBLE));
    private static final Map<String, DataType> TIMES = Map.of(
            "date", DataTypes.DateType,
            "timestamp-millis", DataTypes.TimestampType,
            "timestamp-micros", DataTypes.TimestampType,
            "local-timestamp-millis", DataTypes.TimestampNTZType,
            "local-timestamp-micros", DataTypes.TimestampNTZType);

    private record Column(DataType type, boolean nullable) {}

    private final Map<Schema, Boolean> inside = new IdentityHashMap<>();
    private final String role;
    private final boolean membersByType;
    private int left = MAX_TYPES;

    private SparkTypes(String role, boolean membersByType) {
        this.role = role;
        this.membersByType = membersByType;
    }

    /**
     * Return the type of a schema.
     *
     * @param role what the schema is to the caller, for errors
     * @param membersByType whether the members of a union are named by their types, instead of {@code member0} and so on
     * @throws IllegalArgumentException if Spark has no type for a part of it
     */
    public static DataType of(Schema schema, String role, boolean membersByType) {
        return new SparkTypes(role, membersByType).column(schema, "").type();
    }

    private Column column(Schema schema, String path) {
        if (--left < 0) {
            throw unsupported(path, "it has more than " + MAX_TYPES + " types");
        }
        return switch (schema.getType()) {
            case UNION -> union(schema, path);
            case RECORD -> present(record(schema, path));
            case ARRAY -> {
                Column item = column(schema.getElementType(), path + "[]");
                yield present(DataTypes.createArrayType(item.type(), item.nullable()));
            }
            case MAP -> {
                Column value = column(schema.getValueType(), path + "{}");
                yield present(DataTypes.createMapType(DataTypes.StringType, value.type(), value.nullable()));
            }
            case NULL -> new Column(DataTypes.NullType, true);
            default -> present(single(schema, path));
        };
    }

    private static Column present(DataType type) {
        return new Column(type, false);
    }

    private DataType single(Schema schema, String path) {
        Logical logical = Logical.of(schema);
        if (logical != null && logical.name().equals("decimal")) {
            if (logical.precision() > MAX_DIGITS) {
                throw unsupported(
                        path, "a decimal of precision " + logical.precision() + ", and Spark allows " + MAX_DIGITS);
            }
            return DataTypes.createDecimalType(logical.precision(), logical.scale());
        }
        if (logical != null && TIMES.containsKey(logical.name())) {
            return TIMES.get(logical.name());
        }
        return plain(schema.getType());
    }

    private static DataType plain(Schema.Type type) {
        return switch (type) {
            case BOOLEAN -> DataTypes.BooleanType;
            case INT -> DataTypes.IntegerType;
            case LONG -> DataTypes.LongType;
            case FLOAT -> DataTypes.FloatType;
            case DOUBLE -> DataTypes.DoubleType;
            case STRING, ENUM -> DataTypes.StringType;
            default -> DataTypes.BinaryType;
        };
    }

    private DataType record(Schema schema, String path) {
        if (inside.put(schema, true) != null) {
            throw unsupported(path, "the record " + schema.getFullName() + " contains itself");
        }
        List<StructField> fields = new ArrayList<>();
        for (Schema.Field field : schema.getFields()) {
            Column column = column(field.schema(), path.isEmpty() ? field.name() : path + "." + field.name());
            fields.add(DataTypes.createStructField(field.name(), column.type(), column.nullable()));
        }
        inside.remove(schema);
        return new StructType(fields.toArray(StructField[]::new));
    }

    /** Return the column of a union without null: one type, the wider number type, or one member for each. */
    private Column union(Schema union, String path) {
        List<Schema> others = union.getTypes().stream()
                .filter(one -> one.getType() != Schema.Type.NULL)
                .toList();
        boolean nullable = others.size() < union.getTypes().size();
        if (others.isEmpty()) {
            return new Column(DataTypes.NullType, true);
        }
        if (others.size() == 1) {
            Column only = column(others.get(0), path);
            return new Column(only.type(), only.nullable() || nullable);
        }
        Set<Schema.Type> types = others.stream().map(Schema::getType).collect(Collectors.toSet());
        if (others.size() == 2 && WIDER.contains(types)) {
            boolean whole = types.contains(Schema.Type.LONG);
            return new Column(whole ? DataTypes.LongType : DataTypes.DoubleType, nullable);
        }
        List<StructField> members = new ArrayList<>();
        for (Schema other : others) {
            int number = members.size();
            DataType type = column(other, path + "|" + number).type();
            String name = membersByType ? typeName(other, others) : "member" + number;
            members.add(DataTypes.createStructField(name, type, true));
        }
        return new Column(new StructType(members.toArray(StructField[]::new)), nullable);
    }

    /** Return the name of a type, with its namespace if another of the types has the same. */
    private static String typeName(Schema type, List<Schema> types) {
        long alike = types.stream()
                .filter(one -> one.getName().equals(type.getName()))
                .count();
        boolean isNamed =
                !Compiler.isPrimitive(type) && type.getType() != Schema.Type.ARRAY && type.getType() != Schema.Type.MAP;
        return isNamed && alike > 1 ? type.getFullName().replace('.', '_') : type.getName();
    }

    private IllegalArgumentException unsupported(String path, String why) {
        String place = path.isEmpty() ? "as a whole" : "at " + path;
        return new IllegalArgumentException("no Spark type for the " + role + " " + place + ": " + why);
    }

    /**
     * A logical type that fits its underlying type; one that does not is ignored, as the specification requires.
     *
     * @param name such as {@code timestamp-millis}
     */
    record Logical(String name, int precision, int scale) {
        private static final Map<String, Schema.Type> BASES = Map.ofEntries(
                Map.entry("date", Schema.Type.INT),
                Map.entry("time-millis", Schema.Type.INT),
                Map.entry("time-micros", Schema.Type.LONG),
                Map.entry("timestamp-millis", Schema.Type.LONG),
                Map.entry("timestamp-micros", Schema.Type.LONG),
                Map.entry("timestamp-nanos", Schema.Type.LONG),
                Map.entry("local-timestamp-millis", Schema.Type.LONG),
                Map.entry("local-timestamp-micros", Schema.Type.LONG),
                Map.entry("local-timestamp-nanos", Schema.Type.LONG),
                Map.entry("uuid", Schema.Type.STRING),
                Map.entry("decimal", Schema.Type.BYTES));
        private static final Map<String, Long> PER_SECOND =
                Map.of("millis", 1_000L, "micros", 1_000_000L, "nanos", 1_000_000_000L);
        private static final int UUID_SIZE = 16;

        /** Return the logical type of a schema, null if it has none. */
        public static Logical of(Schema schema) {
            if (!(schema.getObjectProp("logicalType") instanceof String name)) {
                return null;
            }
            if (schema.getType() == Schema.Type.FIXED) {
                return ofFixed(schema, name);
            }
            if (BASES.get(name) != schema.getType()) {
                return null;
            }
            return name.equals("decimal") ? decimal(schema) : new Logical(name, 0, 0);
        }

        private static Logical ofFixed(Schema schema, String name) {
            if (name.equals("uuid")) {
                return schema.getFixedSize() == UUID_SIZE ? new Logical(name, 0, 0) : null;
            }
            Logical decimal = name.equals("decimal") ? decimal(schema) : null;
            double mostDigits = Math.floor(Math.log10(2) * (8.0 * schema.getFixedSize() - 1));
            return decimal != null && decimal.precision <= mostDigits ? decimal : null;
        }

        private static Logical decimal(Schema schema) {
            int precision = whole(schema.getObjectProp("precision"), -1);
            int scale = whole(schema.getObjectProp("scale"), 0);
            return precision > 0 && scale >= 0 && scale <= precision ? new Logical("decimal", precision, scale) : null;
        }

        private static int whole(Object number, int missing) {
            return number == null ? missing : number instanceof Integer whole ? whole : -1;
        }

        /**
         * Return the conversion from the writer's to the reader's time unit: a factor, or a negative divisor; 1 for
         * neither.
         */
        static long rescale(Logical writer, Logical reader) {
            if (writer == null || reader == null || !writer.kind().equals(reader.kind())) {
                return 1;
            }
            Long have = PER_SECOND.get(writer.unit());
            Long want = PER_SECOND.get(reader.unit());
            if (have == null || want == null || have.equals(want)) {
                return 1;
            }
            return want > have ? want / have : -(have / want);
        }

        private String kind() {
            return name.substring(0, Math.max(name.lastIndexOf('-'), 0));
        }

        private String unit() {
            return name.substring(name.lastIndexOf('-') + 1);
        }
    }
}
