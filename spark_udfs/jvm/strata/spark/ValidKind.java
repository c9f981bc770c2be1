package strata.spark;

import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;

/** The types of JSON Schema, and what errors call them. */
enum ValidKind {
    NULL("null", "null"),
    BOOLEAN("a boolean", "another boolean"),
    INTEGER("an integer", "another integer"),
    NUMBER("a number", "another number"),
    STRING("a string", "another string"),
    ARRAY("an array", "another array"),
    OBJECT("an object", "another object");

    /** The names of the types, in the order in which the validator of Python gives them. */
    static final List<String> TITLES = Arrays.stream(values()).map(ValidKind::title).toList();

    final String got;
    final String other;

    ValidKind(String got, String other) {
        this.got = got;
        this.other = other;
    }

    /** Return the words for some types: {@code a string, an integer or null}. */
    static String words(Collection<String> titles) {
        return PythonText.anyOf(titles.stream()
            .map(one -> valueOf(one.toUpperCase(Locale.ROOT)).got)
            .sorted(Comparator.comparing(NULL.got::equals))
            .toList());
    }

    String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Return the type that the values of a column have in JSON. */
    static ValidKind of(DataType column) {
        if (column instanceof NullType) {
            return NULL;
        }
        if (column instanceof BooleanType) {
            return BOOLEAN;
        }
        if (column instanceof StructType || column instanceof MapType) {
            return OBJECT;
        }
        if (column instanceof ArrayType) {
            return ARRAY;
        }
        boolean hasPoint = column instanceof DecimalType decimal && decimal.scale() > 0;
        if (hasPoint || column instanceof FloatType || column instanceof DoubleType) {
            return NUMBER;
        }
        return column instanceof DecimalType || EncodeSource.plain(column) != null ? INTEGER : STRING;
    }
}
