package strata.serdes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Reads and writes payloads with Avro's own library: a line of JSON in, a line out.
 *
 * <p>In: {writer, reader, payload}. Out: `written`, the payload read and written again with the writer schema, and
 * `value`, the payload read with the reader schema; each may be {reason} instead. Values are JSON in which no bit is
 * lost: records are lists, floats are their bits, a value of a union comes with the index of its branch.
 */
public final class AvroJava {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final GenericData DATA = new InOrder();
    /** Reads decimals as numbers and encodes their bytes again; of two decimals in a union it takes the first. */
    private static final GenericData NUMBERS = new InOrder();

    static {
        DATA.addLogicalTypeConversion(new Conversions.UUIDConversion());
        NUMBERS.addLogicalTypeConversion(new Conversions.UUIDConversion());
        NUMBERS.addLogicalTypeConversion(new Conversions.DecimalConversion());
    }

    private AvroJava() {}

    /** Keeps the entries of maps in the order of their bytes. */
    private static final class InOrder extends GenericData {
        @Override
        public Object newMap(Object old, int size) {
            return new LinkedHashMap<>();
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(answer(JSON.readTree(line)));
            }
        }
    }

    private static JsonNode answer(JsonNode task) {
        Schema writer = parse(task.get("writer").asText());
        Schema reader = parse(task.get("reader").asText());
        byte[] payload = HexFormat.of().parseHex(task.get("payload").asText());
        ObjectNode answer = JSON.createObjectNode();
        answer.set("written", tried(() -> JSON.getNodeFactory().textNode(
            HexFormat.of().formatHex(write(read(payload, writer, writer, NUMBERS), writer)))));
        answer.set("read", tried(() -> plain(read(payload, writer, reader, DATA), reader)));
        return answer;
    }

    private static Schema parse(String text) {
        return new Schema.Parser(NameValidator.NO_VALIDATION).setValidateDefaults(false).parse(text);
    }

    private interface Step {
        JsonNode run() throws IOException;
    }

    private static JsonNode tried(Step step) {
        try {
            return JSON.createObjectNode().set("value", step.run());
        } catch (IOException | RuntimeException error) {
            return JSON.createObjectNode().put("reason", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
    }

    private static Object read(byte[] payload, Schema writer, Schema reader, GenericData data) throws IOException {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(payload, null);
        Object datum = new GenericDatumReader<>(writer, reader, data).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IOException("trailing bytes");
        }
        return datum;
    }

    private static byte[] write(Object datum, Schema schema) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<>(schema, NUMBERS).write(datum, encoder);
        encoder.flush();
        return bytes.toByteArray();
    }

    private static JsonNode plain(Object datum, Schema schema) {
        ArrayNode items = JSON.createArrayNode();
        switch (schema.getType()) {
            case UNION:
                int index = DATA.resolveUnion(schema, datum);
                return items.add(index).add(plain(datum, schema.getTypes().get(index)));
            case RECORD:
                for (Schema.Field field : schema.getFields()) {
                    items.add(plain(((IndexedRecord) datum).get(field.pos()), field.schema()));
                }
                return items;
            case ARRAY:
                ((Collection<?>) datum).forEach(item -> items.add(plain(item, schema.getElementType())));
                return items;
            case MAP:
                ObjectNode entries = JSON.createObjectNode();
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) datum).entrySet()) {
                    entries.set(entry.getKey().toString(), plain(entry.getValue(), schema.getValueType()));
                }
                return entries;
            default:
                return scalar(datum, schema);
        }
    }

    private static JsonNode scalar(Object datum, Schema schema) {
        JsonNodeFactory json = JSON.getNodeFactory();
        switch (schema.getType()) {
            case BYTES:
                return bytes(((ByteBuffer) datum).array(), schema);
            case FIXED:
                return bytes(((GenericFixed) datum).bytes(), schema);
            case FLOAT:
                return json.numberNode(Float.floatToIntBits((Float) datum));
            case DOUBLE:
                return json.numberNode(Double.doubleToLongBits((Double) datum));
            case INT:
                return json.numberNode((Integer) datum);
            case LONG:
                return json.numberNode((Long) datum);
            case BOOLEAN:
                return json.booleanNode((Boolean) datum);
            case NULL:
                return json.nullNode();
            default:
                return json.textNode(datum.toString());
        }
    }

    private static JsonNode bytes(byte[] bytes, Schema schema) {
        boolean isNumber = schema.getLogicalType() instanceof LogicalTypes.Decimal;
        return JSON.getNodeFactory().textNode(isNumber
            ? new BigDecimal(new BigInteger(bytes), ((LogicalTypes.Decimal) schema.getLogicalType()).getScale())
                .toPlainString()
            : HexFormat.of().formatHex(bytes));
    }
}
