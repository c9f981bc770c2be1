import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.flink.avro.shaded.org.apache.avro.Conversions;
import org.apache.flink.avro.shaded.org.apache.avro.LogicalType;
import org.apache.flink.avro.shaded.org.apache.avro.LogicalTypes;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumReader;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumWriter;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.shaded.org.apache.avro.io.BinaryEncoder;
import org.apache.flink.avro.shaded.org.apache.avro.io.DecoderFactory;
import org.apache.flink.avro.shaded.org.apache.avro.io.EncoderFactory;
import org.apache.flink.formats.avro.AvroToRowDataConverters;
import org.apache.flink.formats.avro.typeutils.AvroSchemaConverter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.SmallIntType;
import org.apache.flink.table.types.logical.TinyIntType;
import org.apache.flink.table.types.logical.utils.LogicalTypeCasts;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/**
 * Judges changes of tables with Flink's own types and its Avro format. Each line names the row types before and after.
 * The answer says where Flink's type system has no implicit cast (`cast`), and why its Avro format cannot read with
 * the new type what was written with the old one, or what differs in the values (`read`). It cannot have a table
 * whose rows it does not read as they were written (`create`).
 *
 * <p>With `writer`, an Avro schema, rows are written with it instead; the row type before is not needed then. With
 * `keep` the table may keep a column or its type, and must read the rows of both types.
 */
public final class FlinkTables {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Conversions.DecimalConversion DECIMALS = new Conversions.DecimalConversion();

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    String line;
    while ((line = lines.readLine()) != null) {
      out.println(answer(JSON.readTree(line)));
    }
    out.flush();
  }

  private static ObjectNode answer(JsonNode question) {
    ObjectNode answer = JSON.createObjectNode();
    RowType before = null;
    try {
      if (question.has("before")) {
        before = row(question.get("before").asText());
      }
      if (!question.has("after")) {
        return answer;
      }
      RowType after = row(question.get("after").asText());
      for (RowType table : before == null ? List.<RowType>of() : List.of(before, after)) {
        put(answer, "create", read(JSON.createObjectNode(), table, table));
        if (answer.has("create")) {
          return answer;
        }
      }
      if (question.path("keep").asBoolean()) {
        RowType table;
        try {
          table = (RowType) holding("", before, after);
        } catch (IllegalArgumentException error) {
          return answer.put("cast", said(error));
        }
        put(answer, "read", read(question, before, table));
        put(answer, "new", read(question, after, table));
        return answer;
      }
      if (before != null) {
        put(answer, "cast", cast("", before, after));
      }
      put(answer, "read", read(question, before, after));
    } catch (Throwable error) {
      answer.put("create", said(error));
    }
    return answer;
  }

  private static void put(ObjectNode answer, String name, String value) {
    if (value != null) {
      answer.put(name, value);
    }
  }

  private static RowType row(String text) {
    return (RowType) LogicalTypeParser.parse(text, FlinkTables.class.getClassLoader());
  }

  // ---- Flink's type system

  /** Returns where a value has no implicit cast; rows match by name, as in Flink's formats. */
  private static String cast(
      String path,
      org.apache.flink.table.types.logical.LogicalType before,
      org.apache.flink.table.types.logical.LogicalType after) {
    if (before instanceof RowType && after instanceof RowType) {
      for (RowType.RowField field : ((RowType) after).getFields()) {
        int place = ((RowType) before).getFieldIndex(field.getName());
        String here = path + "." + field.getName();
        String found = place < 0 ? null : cast(here, ((RowType) before).getTypeAt(place), field.getType());
        if (found != null) {
          return found;
        }
      }
      return nulls(path, before, after);
    }
    if (before instanceof ArrayType && after instanceof ArrayType) {
      String found = cast(path + "[]", ((ArrayType) before).getElementType(), ((ArrayType) after).getElementType());
      return found != null ? found : nulls(path, before, after);
    }
    if (before instanceof MapType && after instanceof MapType) {
      String found = cast(path + "{key}", ((MapType) before).getKeyType(), ((MapType) after).getKeyType());
      if (found == null) {
        found = cast(path + "{}", ((MapType) before).getValueType(), ((MapType) after).getValueType());
      }
      return found != null ? found : nulls(path, before, after);
    }
    return LogicalTypeCasts.supportsImplicitCast(before, after) ? null : path + ": " + before + " to " + after;
  }

  private static String nulls(
      String path,
      org.apache.flink.table.types.logical.LogicalType before,
      org.apache.flink.table.types.logical.LogicalType after) {
    return before.isNullable() && !after.isNullable() ? path + ": " + before + " to " + after : null;
  }

  /** Returns the type of a table that has every column of two, each of the one type that holds the values of both. */
  private static org.apache.flink.table.types.logical.LogicalType holding(
      String path,
      org.apache.flink.table.types.logical.LogicalType before,
      org.apache.flink.table.types.logical.LogicalType after) {
    if (before instanceof RowType && after instanceof RowType) {
      List<RowType.RowField> fields = new ArrayList<>();
      for (RowType.RowField field : ((RowType) before).getFields()) {
        int place = ((RowType) after).getFieldIndex(field.getName());
        org.apache.flink.table.types.logical.LogicalType type =
            place < 0
                ? field.getType()
                : holding(path + "." + field.getName(), field.getType(), ((RowType) after).getTypeAt(place));
        fields.add(new RowType.RowField(field.getName(), type.copy(true)));
      }
      for (RowType.RowField field : ((RowType) after).getFields()) {
        if (((RowType) before).getFieldIndex(field.getName()) < 0) {
          fields.add(new RowType.RowField(field.getName(), field.getType().copy(true)));
        }
      }
      return new RowType(true, fields);
    }
    if (before instanceof ArrayType && after instanceof ArrayType) {
      return new ArrayType(
          holding(path + "[]", ((ArrayType) before).getElementType(), ((ArrayType) after).getElementType()));
    }
    if (before instanceof MapType && after instanceof MapType) {
      return new MapType(
          holding(path + "{key}", ((MapType) before).getKeyType(), ((MapType) after).getKeyType()),
          holding(path + "{}", ((MapType) before).getValueType(), ((MapType) after).getValueType()));
    }
    for (org.apache.flink.table.types.logical.LogicalType table : List.of(before, after)) {
      if (holds(table, before) && holds(table, after)) {
        return table;
      }
    }
    throw new IllegalArgumentException(path + ": neither " + before + " nor " + after + " holds both");
  }

  private static boolean holds(
      org.apache.flink.table.types.logical.LogicalType table, org.apache.flink.table.types.logical.LogicalType values) {
    if (table.copy(true).equals(values.copy(true))) {
      return true;
    }
    RowType rows = RowType.of(values.copy(true));
    RowType columns = RowType.of(table.copy(true));
    return LogicalTypeCasts.supportsImplicitCast(values.copy(true), table.copy(true))
        && read(JSON.createObjectNode(), rows, columns) == null;
  }

  // ---- Its Avro format

  private static String read(JsonNode question, RowType before, RowType after) {
    try {
      Schema reader = notNull(AvroSchemaConverter.convertToSchema(after, false));
      Schema writer =
          question.has("writer")
              ? new Schema.Parser().parse(question.get("writer").asText())
              : notNull(AvroSchemaConverter.convertToSchema(before, false));
      AvroToRowDataConverters.AvroToRowDataConverter rows = AvroToRowDataConverters.createRowConverter(after, false);
      for (int which = 0; which < 3; which++) {
        GenericRecord written = (GenericRecord) value(writer, question.has("writer") ? null : before, which);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<GenericRecord>(writer).write(written, encoder);
        encoder.flush();
        GenericRecord found =
            new GenericDatumReader<GenericRecord>(writer, reader)
                .read(null, DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null));
        RowData row = (RowData) rows.convert(found);
        String differs = differs("", writer, written, after, row);
        if (differs != null) {
          return differs;
        }
      }
      return null;
    } catch (Throwable error) {
      return said(error);
    }
  }

  private static Schema notNull(Schema schema) {
    if (schema.getType() != Schema.Type.UNION) {
      return schema;
    }
    List<Schema> branches = new ArrayList<>(schema.getTypes());
    branches.removeIf(branch -> branch.getType() == Schema.Type.NULL);
    return branches.size() == 1 ? branches.get(0) : schema;
  }

  /** Returns the largest value of a type (0), the smallest (1), or one with every null that it may have (2). */
  private static Object value(Schema schema, org.apache.flink.table.types.logical.LogicalType type, int which) {
    boolean largest = which == 0;
    if (type instanceof TinyIntType && schema.getType() == Schema.Type.INT) {
      return largest ? (int) Byte.MAX_VALUE : (int) Byte.MIN_VALUE;
    }
    if (type instanceof SmallIntType && schema.getType() == Schema.Type.INT) {
      return largest ? (int) Short.MAX_VALUE : (int) Short.MIN_VALUE;
    }
    LogicalType logical = schema.getLogicalType();
    if (logical instanceof LogicalTypes.Decimal) {
      LogicalTypes.Decimal decimal = (LogicalTypes.Decimal) logical;
      BigInteger most = BigInteger.TEN.pow(decimal.getPrecision()).subtract(BigInteger.ONE);
      BigDecimal number = new BigDecimal(largest ? most : most.negate(), decimal.getScale());
      return schema.getType() == Schema.Type.FIXED
          ? DECIMALS.toFixed(number, schema, logical)
          : DECIMALS.toBytes(number, schema, logical);
    }
    switch (schema.getType()) {
      case BOOLEAN:
        return largest;
      case INT:
        return logical == null ? largest ? Integer.MAX_VALUE : Integer.MIN_VALUE : largest ? 86_399_999 : 0;
      case LONG:
        return logical == null ? largest ? Long.MAX_VALUE : Long.MIN_VALUE : largest ? 86_399_999_999L : 0L;
      case FLOAT:
        return largest ? Float.MAX_VALUE : -0.1f;
      case DOUBLE:
        return largest ? Double.MAX_VALUE : -0.1;
      case STRING:
        return largest ? "\u00fc".repeat(40) : "";
      case BYTES:
        return ByteBuffer.wrap(largest ? new byte[] {-1, 0, 127} : new byte[0]);
      case FIXED:
        byte[] bytes = new byte[schema.getFixedSize()];
        Arrays.fill(bytes, (byte) (largest ? -1 : 7));
        return new GenericData.Fixed(schema, bytes);
      case ENUM:
        List<String> symbols = schema.getEnumSymbols();
        return new GenericData.EnumSymbol(schema, symbols.get(largest ? symbols.size() - 1 : 0));
      case ARRAY:
        return new ArrayList<>(Collections.singletonList(value(schema.getElementType(), type instanceof ArrayType ? ((ArrayType) type).getElementType() : null, which)));
      case MAP:
        Map<String, Object> map = new TreeMap<>();
        map.put("\u00fc", value(schema.getValueType(), type instanceof MapType ? ((MapType) type).getValueType() : null, which));
        return map;
      case RECORD:
        GenericRecord record = new GenericData.Record(schema);
        RowType row = type instanceof RowType ? (RowType) type : null;
        for (Schema.Field field : schema.getFields()) {
          record.put(field.pos(), value(field.schema(), row == null ? null : row.getTypeAt(field.pos()), which));
        }
        return record;
      case UNION:
        List<Schema> branches = schema.getTypes();
        boolean hasNull = branches.stream().anyMatch(branch -> branch.getType() == Schema.Type.NULL);
        return which == 2 && hasNull ? null : value(notNull(schema, largest), type, which);
      default:
        return null;
    }
  }

  private static Schema notNull(Schema union, boolean last) {
    List<Schema> branches = new ArrayList<>(union.getTypes());
    branches.removeIf(branch -> branch.getType() == Schema.Type.NULL);
    return branches.get(last ? branches.size() - 1 : 0);
  }

  private static String differs(
      String path, Schema writer, Object written, org.apache.flink.table.types.logical.LogicalType type, Object value) {
    Schema schema = writer;
    if (writer.getType() == Schema.Type.UNION) {
      schema = writer.getTypes().get(GenericData.get().resolveUnion(writer, written));
    }
    if (written == null || value == null) {
      return written == value ? null : path + " was " + written + ", is " + value;
    }
    if (type instanceof RowType) {
      if (schema.getType() != Schema.Type.RECORD) {
        return path + " was " + written + ", is a row";
      }
      List<RowType.RowField> fields = ((RowType) type).getFields();
      for (int i = 0; i < fields.size(); i++) {
        String here = path + "." + fields.get(i).getName();
        Object found = get((RowData) value, i, fields.get(i).getType());
        Schema.Field field = schema.getField(fields.get(i).getName());
        String differs =
            field != null
                ? differs(here, field.schema(), ((GenericRecord) written).get(field.pos()), fields.get(i).getType(), found)
                : found == null ? null : here + " was not there, is " + found;
        if (differs != null) {
          return differs;
        }
      }
      return null;
    }
    if (type instanceof ArrayType) {
      org.apache.flink.table.types.logical.LogicalType element = ((ArrayType) type).getElementType();
      List<?> items = (List<?>) written;
      ArrayData array = (ArrayData) value;
      for (int i = 0; i < items.size(); i++) {
        Object found = ArrayData.createElementGetter(element).getElementOrNull(array, i);
        String differs = differs(path + "[]", schema.getElementType(), items.get(i), element, found);
        if (differs != null) {
          return differs;
        }
      }
      return null;
    }
    if (type instanceof MapType || type instanceof MultisetType) {
      org.apache.flink.table.types.logical.LogicalType item =
          type instanceof MapType ? ((MapType) type).getValueType() : new IntType(false);
      Object found = ArrayData.createElementGetter(item).getElementOrNull(((MapData) value).valueArray(), 0);
      return differs(path + "{}", schema.getValueType(), ((Map<?, ?>) written).get("\u00fc"), item, found);
    }
    String before = text(schema, written);
    String after = text(value);
    return Objects.equals(before, after) ? null : path + " was " + before + ", is " + after;
  }

  private static Object get(RowData row, int place, org.apache.flink.table.types.logical.LogicalType type) {
    return RowData.createFieldGetter(type, place).getFieldOrNull(row);
  }

  /** Returns what was written as a text; times in nanoseconds, so that units do not matter. */
  private static String text(Schema schema, Object value) {
    LogicalType logical = schema.getLogicalType();
    if (logical instanceof LogicalTypes.Decimal) {
      BigDecimal number =
          schema.getType() == Schema.Type.FIXED
              ? DECIMALS.fromFixed((GenericData.Fixed) value, schema, logical)
              : DECIMALS.fromBytes((ByteBuffer) value, schema, logical);
      return number.stripTrailingZeros().toPlainString();
    }
    if (logical != null && logical.getName().contains("timestamp")) {
      long unit = logical.getName().endsWith("millis") ? 1_000_000 : logical.getName().endsWith("micros") ? 1_000 : 1;
      return BigInteger.valueOf((Long) value).multiply(BigInteger.valueOf(unit)).toString();
    }
    if (value instanceof ByteBuffer) {
      ByteBuffer buffer = ((ByteBuffer) value).duplicate();
      byte[] bytes = new byte[buffer.remaining()];
      buffer.get(bytes);
      return Arrays.toString(bytes);
    }
    if (value instanceof GenericData.Fixed) {
      return Arrays.toString(((GenericData.Fixed) value).bytes());
    }
    return text(value);
  }

  private static String text(Object value) {
    if (value instanceof Float || value instanceof Double) {
      return new BigDecimal(((Number) value).doubleValue()).stripTrailingZeros().toPlainString();
    }
    if (value instanceof org.apache.flink.table.data.DecimalData) {
      BigDecimal number = ((org.apache.flink.table.data.DecimalData) value).toBigDecimal();
      return number.stripTrailingZeros().toPlainString();
    }
    if (value instanceof org.apache.flink.table.data.TimestampData) {
      org.apache.flink.table.data.TimestampData time = (org.apache.flink.table.data.TimestampData) value;
      BigInteger millis = BigInteger.valueOf(time.getMillisecond()).multiply(BigInteger.valueOf(1_000_000));
      return millis.add(BigInteger.valueOf(time.getNanoOfMillisecond())).toString();
    }
    return value instanceof byte[] ? Arrays.toString((byte[]) value) : String.valueOf(value);
  }

  private static String said(Throwable error) {
    return String.valueOf(error.getMessage() == null ? error : error.getMessage()).lines().findFirst().orElse("");
  }
}
