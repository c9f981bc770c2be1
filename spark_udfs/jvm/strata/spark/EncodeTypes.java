package strata.spark;

import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Spark's types by the names that Arrow gives them, which errors mention, and checks of structs.
 *
 * @param zone the session's time zone
 */
record EncodeTypes(String zone) {
    private static final int LONGEST_NAME = 40;

    /** Return the name of a column's type in Arrow. */
    String name(DataType type) {
        if (type instanceof StructType struct) {
            return Arrays.stream(struct.fields()).map(this::field).collect(Collectors.joining(", ", "struct<", ">"));
        }
        if (type instanceof ArrayType array) {
            return "list<element: " + name(array.elementType()) + (array.containsNull() ? ">" : " not null>");
        }
        if (type instanceof MapType map) {
            return "map<" + name(map.keyType()) + ", " + name(map.valueType()) + ">";
        }
        if (type instanceof DecimalType decimal) {
            return "decimal128(" + decimal.precision() + ", " + decimal.scale() + ")";
        }
        return scalar(type);
    }

    private String field(StructField field) {
        return field.name() + ": " + name(field.dataType()) + (field.nullable() ? "" : " not null");
    }

    private String scalar(DataType type) {
        if (type instanceof TimestampType) {
            return "timestamp[us, tz=" + zone + "]";
        }
        for (Map.Entry<Class<?>, String> one : NAMES.entrySet()) {
            if (one.getKey().isInstance(type)) {
                return one.getValue();
            }
        }
        return isTime(type) ? "time64[ns]" : type.simpleString();
    }

    private static final Map<Class<?>, String> NAMES = Map.ofEntries(
        Map.entry(NullType.class, "null"),
        Map.entry(BooleanType.class, "bool"),
        Map.entry(ByteType.class, "int8"),
        Map.entry(ShortType.class, "int16"),
        Map.entry(IntegerType.class, "int32"),
        Map.entry(LongType.class, "int64"),
        Map.entry(FloatType.class, "float"),
        Map.entry(DoubleType.class, "double"),
        Map.entry(StringType.class, "string"),
        Map.entry(BinaryType.class, "binary"),
        Map.entry(DateType.class, "date32[day]"),
        Map.entry(TimestampNTZType.class, "timestamp[us]"),
        Map.entry(DayTimeIntervalType.class, "duration[us]"));

    /** Return whether a type is Spark 4.1's time of day, in nanoseconds. */
    static boolean isTime(DataType type) {
        return type.typeName().startsWith("time(");
    }

    /**
     * Return the place of each field of a struct.
     *
     * @param known the fields of the schema
     * @throws EncodeFailure if the struct has a field that the schema lacks
     */
    static Map<String, Integer> places(StructType struct, Collection<String> known, String path) {
        Map<String, Integer> places = new LinkedHashMap<>();
        for (int i = 0; i < struct.size(); i++) {
            places.put(struct.fields()[i].name(), i);
        }
        for (String name : places.keySet()) {
            if (!known.contains(name)) {
                String shown = name.length() > LONGEST_NAME ? name.substring(0, LONGEST_NAME) : name;
                throw new EncodeFailure("the schema has no such field", EncodeFailure.within(path, "." + shown));
            }
        }
        return places;
    }
}
