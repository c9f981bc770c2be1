package strata.spark;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.array.ByteArrayMethods;

/**
 * The places of records: their order, which is Spark's, and copies of them, since Spark overwrites its rows.
 *
 * <p>Numbers, times and texts, such as topic, partition and offset, are compared where the row has them. With a column of
 * another type, Spark compares whole places.
 */
final class Places {
    private enum Form {
        INT,
        LONG,
        TEXT
    }

    private static final Map<DataType, Form> FORMS = Map.of(
            DataTypes.IntegerType, Form.INT,
            DataTypes.DateType, Form.INT,
            DataTypes.LongType, Form.LONG,
            DataTypes.TimestampType, Form.LONG,
            DataTypes.TimestampNTZType, Form.LONG,
            DataTypes.StringType, Form.TEXT);

    private final Comparator<InternalRow> order;
    /** Where a row has the parts of its place. */
    private final int[] columns;
    /** How the parts are compared; null if Spark compares them. */
    private final Form[] forms;
    /** Returns the place of a row as a row of its own. */
    private final UnaryOperator<InternalRow> whole;

    private Places(StructType type, int[] columns, UnaryOperator<InternalRow> whole) {
        List<DataType> types =
                Arrays.stream(type.fields()).map(StructField::dataType).toList();
        this.order = order(type);
        this.columns = columns;
        this.forms = FORMS.keySet().containsAll(types)
                ? types.stream().map(FORMS::get).toArray(Form[]::new)
                : null;
        this.whole = whole;
    }

    /** Return those of rows that are places. */
    static Places ofRows(StructType type) {
        return new Places(type, IntStream.range(0, type.size()).toArray(), row -> row);
    }

    /** Return those of rows whose columns are the parts of a place; null if any part is computed. */
    static Places ofColumns(CreateNamedStruct place) {
        List<Expression> parts = Scala.list(place, "children"); // names and values in turn
        List<Expression> values = IntStream.range(0, parts.size() / 2)
                .mapToObj(part -> parts.get(2 * part + 1))
                .toList();
        if (!values.stream().allMatch(BoundReference.class::isInstance)) {
            return null;
        }
        int[] columns = values.stream()
                .mapToInt(column -> ((BoundReference) column).ordinal())
                .toArray();
        UnsafeProjection projection = UnsafeProjection.create(Scala.list(values));
        return new Places(place.dataType(), columns, projection::apply);
    }

    /** Return the order of kept places. */
    static Comparator<InternalRow> order(StructType type) {
        return Scala.of(
                "org.apache.spark.sql.catalyst.expressions.RowOrdering",
                "createNaturalAscendingOrdering",
                Scala.list(
                        Arrays.stream(type.fields()).map(StructField::dataType).toList()));
    }

    /** Compare the place of a row with a kept one. */
    int compare(InternalRow row, InternalRow kept) {
        if (forms == null) {
            return order.compare(whole.apply(row), kept);
        }
        boolean hasNulls = row.anyNull() || kept.anyNull();
        for (int part = 0; part < columns.length; part++) {
            int compared = compare(row, kept, part, hasNulls);
            if (compared != 0) {
                return compared;
            }
        }
        return 0;
    }

    private int compare(InternalRow row, InternalRow kept, int part, boolean hasNulls) {
        int column = columns[part];
        if (hasNulls && (row.isNullAt(column) || kept.isNullAt(part))) {
            return Boolean.compare(kept.isNullAt(part), row.isNullAt(column)); // nulls come first
        }
        return switch (forms[part]) {
            case INT -> Integer.compare(row.getInt(column), kept.getInt(part));
            case LONG -> Long.compare(row.getLong(column), kept.getLong(part));
            case TEXT -> isSame(row, column, kept, part)
                    ? 0
                    : row.getUTF8String(column).compareTo(kept.getUTF8String(part));
        };
    }

    /** Return whether two texts are the same bytes of Spark's rows, without making objects of them. */
    private static boolean isSame(InternalRow row, int column, InternalRow kept, int part) {
        if (!(row instanceof UnsafeRow one && kept instanceof UnsafeRow other)) {
            return false;
        }
        long here = one.getLong(column);
        long there = other.getLong(part);
        int size = (int) here;
        return size == (int) there
                && ByteArrayMethods.arrayEquals(
                        one.getBaseObject(),
                        one.getBaseOffset() + (here >>> 32),
                        other.getBaseObject(),
                        other.getBaseOffset() + (there >>> 32),
                        size);
    }

    /** Return the place of a row, to keep. */
    InternalRow copy(InternalRow row) {
        return whole.apply(row).copy();
    }

    /** Return the place of a row, to keep in the memory of one that was kept. */
    InternalRow copy(InternalRow row, InternalRow kept) {
        if (!(kept instanceof UnsafeRow memory)) {
            return copy(row);
        }
        if (forms == null || !isWritten(row, memory)) {
            if (!(whole.apply(row) instanceof UnsafeRow place)) {
                return copy(row);
            }
            memory.copyFrom(place);
        }
        return memory;
    }

    /** Write the numbers of a place over those of a kept one; return whether it has the same texts. */
    private boolean isWritten(InternalRow row, UnsafeRow kept) {
        for (int part = 0; part < columns.length; part++) {
            if (forms[part] == Form.TEXT) {
                if (compare(row, kept, part, true) != 0) {
                    return false;
                }
            } else if (row.isNullAt(columns[part])) {
                kept.setNullAt(part);
            } else if (forms[part] == Form.INT) {
                kept.setInt(part, row.getInt(columns[part]));
            } else {
                kept.setLong(part, row.getLong(columns[part]));
            }
        }
        return true;
    }
}
