package strata.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.math.BigDecimal;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.plan.EncodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.valid.ValidDocuments.OnlyInPython;

/**
 * Encodes values by our function, in mode DEADLETTER; reads and writes lines of JSON.
 *
 * <p>A line in: the function's name, the type of the values, and the values. Doubles are given as their bits, bytes and
 * text in hexadecimal digits, maps as pairs. A line out: what only Python encodes, or for each value its frame, or its error.
 */
final class EncodeProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private EncodeProbe() {}

    public static void main(String[] arguments) throws Exception {
        TaskLines.answerEach(EncodeProbe::answer);
    }

    private static JsonNode answer(JsonNode task) {
        try {
            return answer(
                    task, EncodePlan.parse(FunctionName.parse(task.get("plan").asText())));
        } catch (OnlyInPython part) {
            return TextNode.valueOf(part.getMessage());
        }
    }

    private static ArrayNode answer(JsonNode task, EncodePlan plan) {
        DataType type = DataType.fromJson(task.get("type").asText());
        Encode encode = new Encode("probe", plan, new StructType().add("value", type), "UTC");
        ArrayNode answer = JSON.createArrayNode();
        for (JsonNode value : task.get("values")) {
            InternalRow letter = (InternalRow) encode.call(new GenericInternalRow(new Object[] {of(value, type)}));
            ArrayNode one = answer.addArray();
            if (!letter.isNullAt(0)) {
                one.add(HexFormat.of().formatHex(letter.getBinary(0)));
            } else if (!letter.isNullAt(1)) {
                InternalRow error = letter.getStruct(1, 2);
                one.add(error.getUTF8String(0).toString())
                        .add(error.getUTF8String(1).toString());
            }
        }
        return answer;
    }

    private static Object of(JsonNode value, DataType type) {
        if (value.isNull()) {
            return null;
        }
        if (type instanceof StructType struct) {
            Object[] fields = new Object[struct.size()];
            for (int i = 0; i < fields.length; i++) {
                fields[i] = of(value.get(i), struct.fields()[i].dataType());
            }
            return new GenericInternalRow(fields);
        }
        if (type instanceof ArrayType array) {
            Object[] items = new Object[value.size()];
            for (int i = 0; i < items.length; i++) {
                items[i] = of(value.get(i), array.elementType());
            }
            return new GenericArrayData(items);
        }
        if (type instanceof MapType map) {
            Object[] keys = new Object[value.size()];
            Object[] values = new Object[value.size()];
            for (int i = 0; i < keys.length; i++) {
                keys[i] = of(value.get(i).get(0), map.keyType());
                values[i] = of(value.get(i).get(1), map.valueType());
            }
            return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
        }
        return scalar(value, type);
    }

    private static Object scalar(JsonNode value, DataType type) {
        if (type instanceof StringType) {
            return UTF8String.fromBytes(HexFormat.of().parseHex(value.asText()));
        }
        if (type instanceof BinaryType) {
            return HexFormat.of().parseHex(value.asText());
        }
        if (type instanceof BooleanType) {
            return value.asBoolean();
        }
        if (type instanceof DoubleType || type instanceof FloatType) {
            double number = Double.longBitsToDouble(value.asLong());
            return type instanceof DoubleType ? (Object) number : (Object) (float) number;
        }
        if (type instanceof DecimalType decimal) {
            return Decimal.apply(new BigDecimal(value.asText()), decimal.precision(), decimal.scale());
        }
        if (type instanceof ByteType) {
            return (byte) value.asInt();
        }
        if (type instanceof ShortType) {
            return (short) value.asInt();
        }
        return type instanceof IntegerType || type instanceof DateType
                ? (Object) value.asInt()
                : (Object) value.asLong();
    }
}
