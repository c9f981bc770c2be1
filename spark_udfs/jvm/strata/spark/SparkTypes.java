package strata.spark;

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
 * The Spark type of an Avro schema, for functions that SQL names by a subject.
 *
 * <p>The mapping is that of {@code strata.serdes.arrow.layout}, in the style of Spark.
 */
final class SparkTypes {
    private static final int MAX_TYPES = 10_000;
    private static final int MAX_DIGITS = 38;
    private static final Set<Set<Schema.Type>> WIDER = Set.of(
        Set.of(Schema.Type.INT, Schema.Type.LONG), Set.of(Schema.Type.FLOAT, Schema.Type.DOUBLE));
    private static final Map<String, DataType> TIMES = Map.of(
        "date", DataTypes.DateType,
        "timestamp-millis", DataTypes.TimestampType,
        "timestamp-micros", DataTypes.TimestampType,
        "local-timestamp-millis", DataTypes.TimestampNTZType,
        "local-timestamp-micros", DataTypes.TimestampNTZType);

    private record Column(DataType type, boolean nullable) {}

    private final Map<Schema, Boolean> inside = new IdentityHashMap<>();
    private final String role;
    private int left = MAX_TYPES;

    private SparkTypes(String role) {
        this.role = role;
    }

    /**
     * Return the type of a schema.
     *
     * @param role what the schema is to the caller, for errors
     * @throws IllegalArgumentException if Spark has no type for a part of it
     */
    static DataType of(Schema schema, String role) {
        return new SparkTypes(role).column(schema, "").type();
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
                throw unsupported(path, "a decimal of precision " + logical.precision() + ", and Spark allows " + MAX_DIGITS);
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
        List<Schema> others = union.getTypes().stream().filter(one -> one.getType() != Schema.Type.NULL).toList();
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
            members.add(DataTypes.createStructField("member" + number, type, true));
        }
        return new Column(new StructType(members.toArray(StructField[]::new)), nullable);
    }

    private IllegalArgumentException unsupported(String path, String why) {
        String place = path.isEmpty() ? "as a whole" : "at " + path;
        return new IllegalArgumentException("no Spark type for the " + role + " " + place + ": " + why);
    }
}
