package strata.spark;

import java.util.Arrays;
import java.util.Comparator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import strata.spark.row.RowBuffer;

/**
 * The order of the places of records: that of Spark.
 *
 * <p>The last part of a place is mostly a long, such as an offset. Places that differ in nothing else are compared by it,
 * because Spark's order would compare the text of the topic for each record.
 */
final class Places {
    private final Comparator<InternalRow> order;
    private final boolean endsWithLong;
    /** The last part, and the distance of its slot from the start of a row. */
    private final int last;

    private final int slot;

    Places(StructType type) {
        StructField[] fields = type.fields();
        order = Scala.of(
                "org.apache.spark.sql.catalyst.expressions.RowOrdering",
                "createNaturalAscendingOrdering",
                Scala.list(Arrays.stream(fields).map(StructField::dataType).toList()));
        last = fields.length - 1;
        slot = RowBuffer.nullBytes(fields.length) + Long.BYTES * last;
        endsWithLong = fields[last].dataType() instanceof LongType;
    }

    boolean isBefore(InternalRow place, InternalRow other) {
        return endsWithLong && place instanceof UnsafeRow row && other instanceof UnsafeRow than && isAlike(row, than)
                ? row.getLong(last) < than.getLong(last)
                : order.compare(place, other) < 0;
    }

    /** Return whether all but the last part is the same, byte by byte, and the last is not null. */
    private boolean isAlike(UnsafeRow place, UnsafeRow other) {
        int size = place.getSizeInBytes();
        if (size != other.getSizeInBytes() || place.isNullAt(last)) {
            return false;
        }
        for (int at = 0; at < size; at += Long.BYTES) {
            if (at != slot && word(place, at) != word(other, at)) {
                return false;
            }
        }
        return true;
    }

    private static long word(UnsafeRow place, int at) {
        return Platform.getLong(place.getBaseObject(), place.getBaseOffset() + at);
    }
}
