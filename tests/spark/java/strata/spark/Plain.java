package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Writes values as JSON in which no bit is lost: structs are lists, floats are their bits. */
final class Plain {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Plain() {}

    static JsonNode spark(Object value, DataType type) {
        if (value == null) {
            return JSON.nullNode();
        }
        ArrayNode items = JSON.arrayNode();
        if (type instanceof StructType struct) {
            for (int i = 0; i < struct.size(); i++) {
                items.add(item((SpecializedGetters) value, i, struct.fields()[i].dataType()));
            }
            return items;
        }
        if (type instanceof ArrayType array) {
            for (int i = 0; i < ((ArrayData) value).numElements(); i++) {
                items.add(item((ArrayData) value, i, array.elementType()));
            }
            return items;
        }
        if (type instanceof MapType map) {
            MapData data = (MapData) value;
            ObjectNode entries = JSON.objectNode();
            for (int i = 0; i < data.numElements(); i++) {
                JsonNode key = item(data.keyArray(), i, map.keyType());
                JsonNode twin = entries.replace(key.asText(), item(data.valueArray(), i, map.valueType()));
                if (twin != null) {
                    throw new IllegalStateException("the key " + key + " comes twice");
                }
            }
            return entries;
        }
        return scalar(value);
    }

    private static JsonNode item(SpecializedGetters holder, int index, DataType type) {
        return spark(holder.isNullAt(index) ? null : holder.get(index, type), type);
    }

    private static JsonNode scalar(Object value) {
        if (value instanceof byte[] bytes) {
            return JSON.textNode(HexFormat.of().formatHex(bytes));
        }
        if (value instanceof Float number) {
            return JSON.numberNode(Float.floatToIntBits(number));
        }
        if (value instanceof Double number) {
            return JSON.numberNode(Double.doubleToLongBits(number));
        }
        if (value instanceof Boolean || value instanceof CharSequence || value instanceof Enum) {
            return value instanceof Boolean truth ? JSON.booleanNode(truth) : JSON.textNode(value.toString());
        }
        if (value instanceof Integer || value instanceof Long) {
            return JSON.numberNode(((Number) value).longValue());
        }
        if (value instanceof org.apache.spark.sql.types.Decimal decimal) {
            return JSON.textNode(decimal.toJavaBigDecimal().toPlainString());
        }
        return JSON.textNode(value.toString());
    }

    /** Convert a value that Avro has read to the type of the column. */
    static JsonNode avro(Object datum, Schema schema, DataType type) {
        if (datum == null) {
            return JSON.nullNode();
        }
        ArrayNode items = JSON.arrayNode();
        switch (schema.getType()) {
            case UNION:
                return union(datum, schema, type);
            case RECORD:
                for (Schema.Field field : schema.getFields()) {
                    Object value = ((IndexedRecord) datum).get(field.pos());
                    items.add(avro(value, field.schema(), ((StructType) type).fields()[field.pos()].dataType()));
                }
                return items;
            case ARRAY:
                for (Object item : (Collection<?>) datum) {
                    items.add(avro(item, schema.getElementType(), ((ArrayType) type).elementType()));
                }
                return items;
            case MAP:
                ObjectNode entries = JSON.objectNode();
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) datum).entrySet()) {
                    JsonNode value = avro(entry.getValue(), schema.getValueType(), ((MapType) type).valueType());
                    entries.set(entry.getKey().toString(), value);
                }
                return entries;
            default:
                return avroScalar(datum, schema, type);
        }
    }

    private static JsonNode union(Object datum, Schema schema, DataType type) {
        int index = GenericData.get().resolveUnion(schema, datum);
        long members = schema.getTypes().stream()
                .filter(one -> one.getType() != Schema.Type.NULL)
                .count();
        if (members < 2 || !(type instanceof StructType struct)) {
            return avro(datum, schema.getTypes().get(index), type);
        }
        ArrayNode items = JSON.arrayNode();
        for (int i = 0; i < schema.getTypes().size(); i++) {
            Schema branch = schema.getTypes().get(i);
            if (branch.getType() != Schema.Type.NULL) {
                DataType member = struct.fields()[items.size()].dataType();
                items.add(i == index ? avro(datum, branch, member) : JSON.nullNode());
            }
        }
        return items;
    }

    private static JsonNode avroScalar(Object datum, Schema schema, DataType type) {
        byte[] bytes = datum instanceof ByteBuffer buffer
                ? copy(buffer)
                : datum instanceof GenericFixed fixed ? fixed.bytes() : null;
        if (bytes != null) {
            return type instanceof DecimalType decimal
                    ? JSON.textNode(
                            new BigDecimal(bytes.length == 0 ? BigInteger.ZERO : new BigInteger(bytes), decimal.scale())
                                    .toPlainString())
                    : scalar(bytes);
        }
        if (datum instanceof Number number) {
            if (type instanceof FloatType) {
                return scalar(number.floatValue());
            }
            if (type instanceof DoubleType) {
                return scalar(number.doubleValue());
            }
            boolean isInstant = type instanceof TimestampType || type instanceof TimestampNTZType;
            boolean isMillis = isInstant && schema.getProp("logicalType").endsWith("-millis");
            return isMillis
                    ? JSON.numberNode(Math.multiplyExact(number.longValue(), 1000L))
                    : type instanceof LongType || isInstant ? JSON.numberNode(number.longValue()) : scalar(datum);
        }
        return scalar(datum);
    }

    private static byte[] copy(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
