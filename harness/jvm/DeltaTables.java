import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.spark.sql.delta.TypeWidening;
import org.apache.spark.sql.delta.schema.SchemaMergingUtils;
import org.apache.spark.sql.delta.schema.SchemaUtils;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Judges changes of tables with the code of Delta and Spark: each line names the columns before and after as DDL, the
 * answer says why neither Delta's type widening makes the table hold the new rows, nor it holds them as it is.
 *
 * <p>`change` is about `ALTER TABLE … ALTER COLUMN … TYPE` and about what Spark stores without a cast that may fail;
 * `merge` is about the option `mergeSchema` of a write.
 */
public final class DeltaTables {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    String line;
    while ((line = lines.readLine()) != null) {
      JsonNode question = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      try {
        StructType before = StructType.fromDDL(question.get("before").asText());
        SchemaMergingUtils.checkColumnNameDuplication(before, "in the table", false);
        if (question.has("after")) {
          StructType after = StructType.fromDDL(question.get("after").asText());
          SchemaMergingUtils.checkColumnNameDuplication(after, "in the rows", false);
          String change = change("", before, after);
          if (change != null) {
            answer.put("change", change);
          }
          merge(before, after, answer);
        }
      } catch (Throwable error) {
        answer.put("create", said(error));
      }
      out.println(answer);
    }
    out.flush();
  }

  private static void merge(StructType before, StructType after, ObjectNode answer) {
    try {
      SchemaMergingUtils.mergeSchemas(before, after, false, false, Modes.automatic(), false);
    } catch (Throwable error) {
      answer.put("merge", said(error));
    }
  }

  /** Returns where a table cannot hold the values of another type, null if it can; columns match without case. */
  private static String change(String path, DataType before, DataType after) {
    if (before instanceof StructType && after instanceof StructType) {
      for (StructField field : ((StructType) after).fields()) {
        for (StructField old : ((StructType) before).fields()) {
          if (old.name().equalsIgnoreCase(field.name())) {
            String found = change(path + "." + field.name(), old.dataType(), field.dataType());
            if (found != null) {
              return found;
            }
          }
        }
      }
      return null;
    }
    if (before instanceof ArrayType && after instanceof ArrayType) {
      return change(path + "[]", ((ArrayType) before).elementType(), ((ArrayType) after).elementType());
    }
    if (before instanceof MapType && after instanceof MapType) {
      String key = change(path + "{key}", ((MapType) before).keyType(), ((MapType) after).keyType());
      return key != null ? key : change(path + "{}", ((MapType) before).valueType(), ((MapType) after).valueType());
    }
    if (SparkColumns.holds(before, after) || widens(before, after)) {
      return null;
    }
    return path + ": neither widens " + before.sql() + " to " + after.sql() + " nor holds it";
  }

  private static boolean widens(DataType before, DataType after) {
    return before instanceof AtomicType
        && after instanceof AtomicType
        && TypeWidening.isTypeChangeSupported((AtomicType) before, (AtomicType) after)
        && SchemaUtils.canChangeDataType(before, after, Modes.names(), Modes.unmapped(), Modes.noPath(), true, true).isEmpty();
  }

  private static String said(Throwable error) {
    return String.valueOf(error.getMessage() == null ? error : error.getMessage()).lines().findFirst().orElse("");
  }

  /** The arguments of Scala's functions. */
  private static final class Modes {
    static org.apache.spark.sql.delta.TypeWideningMode automatic() {
      return org.apache.spark.sql.delta.TypeWideningMode.AllTypeWidening$.MODULE$;
    }

    static scala.Function2<String, String, Object> names() {
      return SchemaMergingUtils.DELTA_COL_RESOLVER();
    }

    static org.apache.spark.sql.delta.DeltaColumnMappingMode unmapped() {
      return org.apache.spark.sql.delta.NoMapping$.MODULE$;
    }

    @SuppressWarnings("unchecked")
    static scala.collection.immutable.Seq<String> noPath() {
      return (scala.collection.immutable.Seq<String>) (Object) scala.collection.immutable.Nil$.MODULE$;
    }
  }
}
