import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.types.StructType;

/**
 * Judges changes of tables with Iceberg's own library: each line names the columns before and after, the answer says
 * why Iceberg refuses (`change`), or what differs in the rows that were written before (`read`).
 *
 * <p>Columns are the JSON of an Iceberg schema, or the DDL of columns as Spark reads it. With `keep` the table keeps
 * columns that are missing after, and types that hold the new ones, as Iceberg's own union of schemas does.
 */
public final class IcebergTables {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    InMemoryCatalog catalog = new InMemoryCatalog();
    catalog.initialize("judge", Map.of());
    catalog.createNamespace(Namespace.of("n"));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    String line;
    for (int number = 0; (line = lines.readLine()) != null; number++) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      TableIdentifier name = TableIdentifier.of("n", "t" + number);
      judge(catalog, name, question, answer);
      catalog.dropTable(name, false);
      out.println(answer);
    }
    out.flush();
  }

  private static void judge(InMemoryCatalog catalog, TableIdentifier name, JsonNode question, ObjectNode answer) {
    Table table;
    try {
      Map<String, String> version2 = Map.of("format-version", "2");
      table = catalog.createTable(name, schema(question.get("before")), PartitionSpec.unpartitioned(), null, version2);
    } catch (RuntimeException error) {
      answer.put("create", said(error));
      return;
    }
    List<Record> rows = rows(table.schema().asStruct());
    boolean reads = question.path("read").asBoolean();
    if (reads) {
      try {
        append(table, rows);
      } catch (Exception error) {
        answer.put("create", said(error));
        return;
      }
    }
    if (!question.has("after")) {
      return;
    }
    try {
      Schema after = schema(question.get("after"));
      UpdateSchema update = table.updateSchema();
      if (question.path("keep").asBoolean()) {
        StructType wanted = SparkSchemaUtil.convert(after);
        StructType kept = (StructType) SparkColumns.stored(SparkSchemaUtil.convert(table.schema()), wanted);
        update.caseSensitive(false).unionByNameWith(SparkSchemaUtil.convert(kept)).commit();
      } else {
        change(update, "", table.schema().asStruct(), after.asStruct());
        update.commit();
        if (!plain(table.schema().asStruct()).equals(plain(after.asStruct()))) {
          answer.put("change", "the table became " + plain(table.schema().asStruct()));
          return;
        }
      }
    } catch (RuntimeException error) {
      answer.put("change", said(error));
      return;
    }
    if (reads) {
      String differs = differences(table, rows);
      if (differs != null) {
        answer.put("read", differs);
      }
    }
  }

  private static Schema schema(JsonNode columns) {
    return columns.isTextual()
        ? SparkSchemaUtil.convert(StructType.fromDDL(columns.asText()))
        : SchemaParser.fromJson(columns.toString());
  }

  // ---- The change of the table

  private static void change(UpdateSchema update, String path, Types.StructType before, Types.StructType after) {
    String prefix = path.isEmpty() ? "" : path + ".";
    String parent = path.isEmpty() ? null : path;
    for (Types.NestedField field : after.fields()) {
      Types.NestedField old = before.field(field.name());
      if (old == null && field.isOptional()) {
        update.addColumn(parent, field.name(), field.type());
      } else if (old == null) {
        update.addRequiredColumn(parent, field.name(), field.type());
      } else {
        nullability(update, prefix + field.name(), old.isOptional(), field.isOptional());
        change(update, prefix + field.name(), old.type(), field.type());
      }
    }
    for (Types.NestedField old : before.fields()) {
      if (after.field(old.name()) == null) {
        update.deleteColumn(prefix + old.name());
      }
    }
    if (!sameOrder(before, after)) {
      String last = null;
      for (Types.NestedField field : after.fields()) {
        if (last == null) {
          update.moveFirst(prefix + field.name());
        } else {
          update.moveAfter(prefix + field.name(), prefix + last);
        }
        last = field.name();
      }
    }
  }

  private static boolean sameOrder(Types.StructType before, Types.StructType after) {
    List<String> wanted = new ArrayList<>();
    List<String> made = new ArrayList<>();
    after.fields().forEach(field -> wanted.add(field.name()));
    before.fields().stream().map(Types.NestedField::name).filter(wanted::contains).forEach(made::add);
    wanted.stream().filter(field -> before.field(field) == null).forEach(made::add);
    return wanted.equals(made);
  }

  private static void nullability(UpdateSchema update, String path, boolean before, boolean after) {
    if (before && !after) {
      update.requireColumn(path);
    } else if (!before && after) {
      update.makeColumnOptional(path);
    }
  }

  private static void change(UpdateSchema update, String path, Type before, Type after) {
    if (before.isStructType() && after.isStructType()) {
      change(update, path, before.asStructType(), after.asStructType());
    } else if (before.isListType() && after.isListType()) {
      Types.ListType old = before.asListType();
      Types.ListType made = after.asListType();
      nullability(update, path + ".element", old.isElementOptional(), made.isElementOptional());
      change(update, path + ".element", old.elementType(), made.elementType());
    } else if (before.isMapType() && after.isMapType()) {
      Types.MapType old = before.asMapType();
      Types.MapType made = after.asMapType();
      change(update, path + ".key", old.keyType(), made.keyType());
      nullability(update, path + ".value", old.isValueOptional(), made.isValueOptional());
      change(update, path + ".value", old.valueType(), made.valueType());
    } else if (before.isPrimitiveType() && after.isPrimitiveType()) {
      if (!before.equals(after)) {
        update.updateColumn(path, after.asPrimitiveType());
      }
    } else {
      throw new IllegalArgumentException("UpdateSchema has no change of " + plain(before) + " to " + plain(after));
    }
  }

  /** Returns a type as a text, without the ids of its fields. */
  private static String plain(Type type) {
    if (type.isStructType()) {
      StringBuilder text = new StringBuilder("struct<");
      for (Types.NestedField field : type.asStructType().fields()) {
        text.append(field.name()).append(field.isOptional() ? "?" : "").append(' ').append(plain(field.type()));
        text.append("; ");
      }
      return text.append('>').toString();
    }
    if (type.isListType()) {
      Types.ListType list = type.asListType();
      return "list<" + plain(list.elementType()) + (list.isElementOptional() ? "?>" : ">");
    }
    if (type.isMapType()) {
      Types.MapType map = type.asMapType();
      return "map<" + plain(map.keyType()) + ", " + plain(map.valueType()) + (map.isValueOptional() ? "?>" : ">");
    }
    return type.toString();
  }

  // ---- The rows that were written before

  private static List<Record> rows(Types.StructType struct) {
    List<Record> rows = new ArrayList<>();
    for (int which = 0; which < 3; which++) {
      rows.add((Record) value(struct, which));
    }
    return rows;
  }

  /** Returns the largest value of a type (0), the smallest (1), or one with every null that it may have (2). */
  private static Object value(Type type, int which) {
    boolean largest = which == 0;
    switch (type.typeId()) {
      case BOOLEAN:
        return largest;
      case INTEGER:
        return largest ? Integer.MAX_VALUE : Integer.MIN_VALUE;
      case LONG:
        return largest ? Long.MAX_VALUE : Long.MIN_VALUE;
      case FLOAT:
        return largest ? Float.MAX_VALUE : -0.1f;
      case DOUBLE:
        return largest ? Double.MAX_VALUE : -0.1;
      case DECIMAL:
        Types.DecimalType decimal = (Types.DecimalType) type;
        BigDecimal most = new BigDecimal(BigInteger.TEN.pow(decimal.precision()).subtract(BigInteger.ONE), decimal.scale());
        return largest ? most : most.negate();
      case STRING:
        return largest ? "\u00fc".repeat(40) : "";
      case BINARY:
        return ByteBuffer.wrap(largest ? new byte[] {-1, 0, 127} : new byte[0]);
      case FIXED:
        byte[] bytes = new byte[((Types.FixedType) type).length()];
        Arrays.fill(bytes, (byte) (largest ? -1 : 7));
        return bytes;
      case DATE:
        return LocalDate.ofEpochDay(largest ? 2932896 : -719162);
      case TIME:
        return largest ? LocalTime.of(23, 59, 59, 999_999_000) : LocalTime.MIDNIGHT;
      case TIMESTAMP:
        LocalDateTime when = LocalDateTime.of(largest ? 9999 : 1, 12, 31, 23, 59, 59, 999_999_000);
        return ((Types.TimestampType) type).shouldAdjustToUTC() ? when.atOffset(ZoneOffset.UTC) : when;
      case STRUCT:
        GenericRecord record = GenericRecord.create(type.asStructType());
        for (Types.NestedField field : type.asStructType().fields()) {
          record.setField(field.name(), which == 2 && field.isOptional() ? null : value(field.type(), which));
        }
        return record;
      case LIST:
        List<Object> list = new ArrayList<>();
        list.add(value(type.asListType().elementType(), which));
        if (which == 2 && type.asListType().isElementOptional()) {
          list.add(null);
        }
        return list;
      case MAP:
        Map<Object, Object> map = new java.util.HashMap<>();
        boolean isNull = which == 2 && type.asMapType().isValueOptional();
        map.put(value(type.asMapType().keyType(), which), isNull ? null : value(type.asMapType().valueType(), which));
        return map;
      default:
        throw new IllegalArgumentException("no value of " + type);
    }
  }

  private static void append(Table table, List<Record> rows) throws Exception {
    OutputFile file = table.io().newOutputFile(table.location() + "/data.parquet");
    FileAppender<Record> appender =
        Parquet.write(file).schema(table.schema()).createWriterFunc(GenericParquetWriter::create).build();
    try (appender) {
      appender.addAll(rows);
    }
    DataFile written =
        DataFiles.builder(table.spec())
            .withPath(file.location())
            .withFormat(FileFormat.PARQUET)
            .withFileSizeInBytes(appender.length())
            .withRecordCount(rows.size())
            .build();
    table.newAppend().appendFile(written).commit();
  }

  /** Returns what is wrong with the rows as the table reads them now, null if nothing is. */
  private static String differences(Table table, List<Record> rows) {
    try (CloseableIterable<Record> found = IcebergGenerics.read(table).build()) {
      int number = 0;
      for (Record row : found) {
        String path = differs("", rows.get(number++), row);
        if (path != null) {
          return path;
        }
      }
      return number == rows.size() ? null : "read " + number + " rows of " + rows.size();
    } catch (Exception error) {
      return said(error);
    }
  }

  private static String differs(String path, Object before, Object after) {
    if (before instanceof Record && after instanceof Record) {
      Record old = (Record) before;
      Record row = (Record) after;
      for (Types.NestedField field : row.struct().fields()) {
        Types.NestedField written = old.struct().field(field.name());
        Object value = written == null ? null : old.getField(field.name());
        String found = differs(path + "." + field.name(), value, row.getField(field.name()));
        if (found != null) {
          return found;
        }
      }
      return null;
    }
    if (before instanceof List && after instanceof List) {
      List<?> old = (List<?>) before;
      List<?> list = (List<?>) after;
      for (int i = 0; i < Math.max(old.size(), list.size()); i++) {
        Object ours = i < old.size() ? old.get(i) : "nothing";
        String found = differs(path + "[]", ours, i < list.size() ? list.get(i) : "nothing");
        if (found != null) {
          return found;
        }
      }
      return null;
    }
    if (before instanceof Map && after instanceof Map) {
      Map<String, Object> old = byText((Map<?, ?>) before);
      Map<String, Object> map = byText((Map<?, ?>) after);
      if (!old.keySet().equals(map.keySet())) {
        return path + " was " + old.keySet() + ", is " + map.keySet();
      }
      for (String key : old.keySet()) {
        String found = differs(path + "{}", old.get(key), map.get(key));
        if (found != null) {
          return found;
        }
      }
      return null;
    }
    return Objects.equals(text(before), text(after)) ? null : path + " was " + text(before) + ", is " + text(after);
  }

  private static Map<String, Object> byText(Map<?, ?> map) {
    Map<String, Object> sorted = new TreeMap<>();
    map.forEach((key, value) -> sorted.put(text(key), value));
    return sorted;
  }

  /** Returns a value as a text that values of other types share if they mean the same. */
  private static String text(Object value) {
    if (value instanceof Float || value instanceof Double) {
      return new BigDecimal(((Number) value).doubleValue()).stripTrailingZeros().toPlainString();
    }
    if (value instanceof BigDecimal) {
      return ((BigDecimal) value).stripTrailingZeros().toPlainString();
    }
    if (value instanceof ByteBuffer) {
      ByteBuffer buffer = ((ByteBuffer) value).duplicate();
      byte[] bytes = new byte[buffer.remaining()];
      buffer.get(bytes);
      return Arrays.toString(bytes);
    }
    if (value instanceof byte[]) {
      return Arrays.toString((byte[]) value);
    }
    if (value instanceof Record) {
      Map<String, String> fields = new TreeMap<>();
      Record record = (Record) value;
      record.struct().fields().forEach(field -> fields.put(field.name(), text(record.getField(field.name()))));
      return fields.toString();
    }
    return String.valueOf(value);
  }

  private static String said(Throwable error) {
    return String.valueOf(error.getMessage() == null ? error : error.getMessage()).lines().findFirst().orElse("");
  }
}
