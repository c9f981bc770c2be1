package strata.spark;

import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** Checks that our row equals Spark's row of the same value byte for byte: Spark compares and hashes the bytes. */
final class Layout {
    /** Spark's projections keep sixteen bytes free for a null wide decimal, and Spark's sources do not. */
    private boolean hasRoomForNull;

    private Layout() {}

    static void requireSame(UnsafeRow row, DataType type) {
        Layout layout = new Layout();
        List<Expression> fields = List.of(new BoundReference(0, type, true));
        UnsafeRow theirs = InterpretedUnsafeProjection.createProjection(
                        CollectionConverters.asScala(fields).toList())
                .apply(new GenericInternalRow(new Object[] {layout.item(row, 0, type)}));
        if (!layout.hasRoomForNull && !theirs.equals(row)) {
            throw new IllegalStateException(type.json() + " is " + hex(row) + ", and Spark's is " + hex(theirs));
        }
    }

    private static String hex(UnsafeRow row) {
        return HexFormat.of().formatHex(row.getBytes());
    }

    /** Copy to objects, which hold none of our bytes. */
    private Object item(SpecializedGetters holder, int index, DataType type) {
        if (holder.isNullAt(index)) {
            hasRoomForNull |= type instanceof DecimalType decimal && decimal.precision() > 18;
            return null;
        }
        Object value = holder.get(index, type);
        if (type instanceof StructType struct) {
            StructField[] fields = struct.fields();
            return new GenericInternalRow(IntStream.range(0, fields.length)
                    .mapToObj(i -> item((SpecializedGetters) value, i, fields[i].dataType()))
                    .toArray());
        }
        if (type instanceof MapType map) {
            MapData data = (MapData) value;
            return new ArrayBasedMapData(
                    items(data.keyArray(), map.keyType()), items(data.valueArray(), map.valueType()));
        }
        return type instanceof ArrayType array ? items((ArrayData) value, array.elementType()) : value;
    }

    private ArrayData items(ArrayData array, DataType type) {
        return new GenericArrayData(IntStream.range(0, array.numElements())
                .mapToObj(i -> item(array, i, type))
                .toArray());
    }
}
