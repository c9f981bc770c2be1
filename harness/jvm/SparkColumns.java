import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What columns of Spark hold: whether Spark stores each number of another type without changing it. */
final class SparkColumns {
  private SparkColumns() {}

  /** Returns whether a column stores each value of another type: Spark casts it upwards, and the value is the same. */
  static boolean holds(DataType column, DataType values) {
    if (column.equals(values)) {
      return true;
    }
    if (!Cast.canUpCast(values, column)) {
      return false;
    }
    Object[] extremes = extremes(values);
    for (Object extreme : extremes) {
      Object stored;
      try {
        stored = new Cast(Literal.create(extreme, values), column, scala.Option.apply("UTC"), EvalMode.ANSI()).eval(null);
      } catch (ArithmeticException overflow) {
        return false;
      }
      if (stored == null || number(extreme, values) == null || !number(extreme, values).equals(number(stored, column))) {
        return false;
      }
    }
    return extremes.length > 0;
  }

  /** Returns the type of rows with the table's types wherever the table holds the values. */
  static DataType stored(DataType table, DataType rows) {
    if (table instanceof StructType && rows instanceof StructType) {
      StructType made = new StructType();
      for (StructField field : ((StructType) rows).fields()) {
        DataType type = field.dataType();
        for (StructField column : ((StructType) table).fields()) {
          if (column.name().equalsIgnoreCase(field.name())) {
            type = stored(column.dataType(), type);
          }
        }
        made = made.add(new StructField(field.name(), type, true, Metadata.empty()));
      }
      return made;
    }
    if (table instanceof ArrayType && rows instanceof ArrayType) {
      return new ArrayType(stored(((ArrayType) table).elementType(), ((ArrayType) rows).elementType()), true);
    }
    if (table instanceof MapType && rows instanceof MapType) {
      DataType key = ((MapType) rows).keyType();
      return new MapType(key, stored(((MapType) table).valueType(), ((MapType) rows).valueType()), true);
    }
    return holds(table, rows) ? table : rows;
  }

  private static Object[] extremes(DataType type) {
    if (type instanceof ByteType) {
      return new Object[] {Byte.MAX_VALUE, Byte.MIN_VALUE};
    }
    if (type instanceof ShortType) {
      return new Object[] {Short.MAX_VALUE, Short.MIN_VALUE};
    }
    if (type instanceof IntegerType) {
      return new Object[] {Integer.MAX_VALUE, Integer.MIN_VALUE};
    }
    if (type instanceof LongType) {
      return new Object[] {Long.MAX_VALUE, Long.MIN_VALUE};
    }
    if (type instanceof FloatType) {
      return new Object[] {Float.MAX_VALUE, 0.1f};
    }
    if (type instanceof DateType) {
      return new Object[] {2932896, -719162};
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      BigInteger most = BigInteger.TEN.pow(decimal.precision()).subtract(BigInteger.ONE);
      Decimal largest = Decimal.apply(new BigDecimal(most, decimal.scale()), decimal.precision(), decimal.scale());
      return new Object[] {largest};
    }
    return new Object[0];
  }

  /** Returns a number, or the microseconds of a day or a moment. */
  private static BigDecimal number(Object value, DataType type) {
    if (type instanceof DateType) {
      return normal(BigDecimal.valueOf(((Number) value).longValue()).multiply(BigDecimal.valueOf(86_400_000_000L)));
    }
    if (value instanceof Decimal) {
      return normal(((Decimal) value).toJavaBigDecimal());
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      return normal(new BigDecimal(((Number) value).doubleValue()));
    }
    boolean counts = value instanceof Number && !(type instanceof org.apache.spark.sql.types.TimestampType);
    return counts ? normal(BigDecimal.valueOf(((Number) value).longValue())) : null;
  }

  private static BigDecimal normal(BigDecimal number) {
    return number.signum() == 0 ? BigDecimal.ZERO : number.stripTrailingZeros();
  }
}
