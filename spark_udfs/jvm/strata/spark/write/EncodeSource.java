package strata.spark.write;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneRules;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import strata.spark.write.EncodeOutput.EncodeFailure;

/**
 * Conversions of a column's values to the type that the schema wants, as Arrow casts them: nothing is ever lost.
 *
 * <p>A conversion that Arrow does not have is null.
 */
public final class EncodeSource {
    private static final long DAY_MICROS = 86_400_000_000L;
    private static final double LONG_BOUND = 0x1p63;
    private static final int DOUBLE_BITS = 53;
    private static final int FLOAT_BITS = 24;

    private EncodeSource() {}

    /** A column as a whole number. */
    public interface Whole {
        long get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /** A column as a floating-point number. */
    public interface Real {
        double get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /** A column as an unscaled number. */
    public interface Exact {
        BigInteger get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /**
     * The refusal of a value that cannot be converted.
     *
     * @param column the number of the column
     * @param wanted the type that the schema wants, by Arrow's name
     */
    public record Conversion(int column, String wanted, String path) {
        public void refuse(EncodeOutput out) {
            out.refuseConversion(column, "a value does not fit " + wanted, path);
        }

        private long asNumber(EncodeOutput out) {
            refuse(out);
            return 0;
        }

        public EncodeFailure ofColumn(DataType given, EncodeTypes types) {
            return new EncodeFailure("expected a column of " + wanted + ", got " + types.name(given), path);
        }
    }

    // Whole numbers

    /** Return the column as an int or a long of the given bits. */
    public static Whole integer(DataType type, int bits, Conversion conversion) {
        if (type instanceof DecimalType decimal) {
            return ofDecimal(decimal, bits, conversion);
        }
        if (type instanceof FloatType || type instanceof DoubleType) {
            return ofReal(type, bits, conversion);
        }
        if (type instanceof DateType) {
            return bits == Integer.SIZE ? (from, i, out) -> from.getInt(i) : null;
        }
        if (type instanceof LongType && bits == Integer.SIZE) {
            return (from, i, out) -> {
                long number = from.getLong(i);
                return number == (int) number ? number : conversion.asNumber(out);
            };
        }
        boolean isWide = type instanceof TimestampType
                || type instanceof TimestampNTZType
                || type instanceof DayTimeIntervalType
                || EncodeTypes.isTime(type);
        return isWide && bits == Integer.SIZE ? null : isWide ? (from, i, out) -> from.getLong(i) : plain(type);
    }

    /** Return a column of integers as it is, null for other types. */
    public static Whole plain(DataType type) {
        if (type instanceof LongType) {
            return (from, i, out) -> from.getLong(i);
        }
        if (type instanceof IntegerType) {
            return (from, i, out) -> from.getInt(i);
        }
        if (type instanceof ShortType) {
            return (from, i, out) -> from.getShort(i);
        }
        return type instanceof ByteType ? (from, i, out) -> from.getByte(i) : null;
    }

    private static Whole ofDecimal(DecimalType type, int bits, Conversion conversion) {
        return (from, i, out) -> {
            try {
                BigDecimal number =
                        from.getDecimal(i, type.precision(), type.scale()).toJavaBigDecimal();
                BigInteger whole = number.setScale(0, RoundingMode.UNNECESSARY).unscaledValue();
                return whole.bitLength() < bits ? whole.longValue() : conversion.asNumber(out);
            } catch (ArithmeticException rounded) {
                return conversion.asNumber(out);
            }
        };
    }

    private static Whole ofReal(DataType type, int bits, Conversion conversion) {
        Real real = real(type);
        double bound = bits == Integer.SIZE ? 0x1p31 : LONG_BOUND;
        return (from, i, out) -> {
            double number = real.get(from, i, out);
            boolean fits = number >= -bound && number < bound && number == Math.rint(number);
            return fits ? (long) number : conversion.asNumber(out);
        };
    }

    /**
     * Return the column as a date, in days.
     *
     * @param zone the session's time zone: the date of an instant is the date there
     */
    static Whole date(DataType type, String zone) {
        if (type instanceof DateType || type instanceof IntegerType) {
            return (from, i, out) -> from.getInt(i);
        }
        Whole local = local(type, zone);
        return local == null ? null : (from, i, out) -> Math.floorDiv(local.get(from, i, out), DAY_MICROS);
    }

    /** Return the column as a time of day, in milliseconds or microseconds. */
    static Whole timeOfDay(DataType type, String zone, boolean isMillis, Conversion conversion) {
        if (isMillis ? type instanceof IntegerType : type instanceof LongType) {
            return plain(type);
        }
        if (EncodeTypes.isTime(type)) {
            return divided((from, i, out) -> from.getLong(i), isMillis ? 1_000_000 : 1_000, conversion);
        }
        Whole local = local(type, zone);
        if (local == null) {
            return null;
        }
        Whole time = (from, i, out) -> Math.floorMod(local.get(from, i, out), DAY_MICROS);
        return isMillis ? divided(time, 1_000, conversion) : time;
    }

    /** Return a column of timestamps in microseconds of local time, null for other types. */
    private static Whole local(DataType type, String zone) {
        if (type instanceof TimestampNTZType) {
            return (from, i, out) -> from.getLong(i);
        }
        if (!(type instanceof TimestampType)) {
            return null;
        }
        ZoneRules rules = ZoneId.of(zone, ZoneId.SHORT_IDS).getRules();
        if (rules.isFixedOffset() && rules.getOffset(Instant.EPOCH).equals(ZoneOffset.UTC)) {
            return (from, i, out) -> from.getLong(i);
        }
        return (from, i, out) -> {
            long micros = from.getLong(i);
            Instant second = Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000L));
            return micros + 1_000_000L * rules.getOffset(second).getTotalSeconds();
        };
    }

    /** Return the column as an instant, in a unit of which there are so many in a second. */
    static Whole instant(DataType type, long perSecond, Conversion conversion) {
        if (type instanceof LongType) {
            return plain(type);
        }
        if (type instanceof DateType) {
            return multiplied((from, i, out) -> from.getInt(i), 86_400 * perSecond, conversion);
        }
        if (!(type instanceof TimestampType || type instanceof TimestampNTZType)) {
            return null;
        }
        Whole micros = (from, i, out) -> from.getLong(i);
        return perSecond == 1_000_000
                ? micros
                : perSecond < 1_000_000
                        ? divided(micros, 1_000_000 / perSecond, conversion)
                        : multiplied(micros, perSecond / 1_000_000, conversion);
    }

    private static Whole divided(Whole number, long divisor, Conversion conversion) {
        return (from, i, out) -> {
            long whole = number.get(from, i, out);
            return whole % divisor == 0 ? whole / divisor : conversion.asNumber(out);
        };
    }

    private static Whole multiplied(Whole number, long factor, Conversion conversion) {
        return (from, i, out) -> {
            long whole = number.get(from, i, out);
            long high = Math.multiplyHigh(whole, factor);
            long low = whole * factor;
            return high == low >> 63 ? low : conversion.asNumber(out);
        };
    }

    // Other numbers

    /** Return a column of floating-point numbers as it is, null for other types. */
    public static Real real(DataType type) {
        if (type instanceof DoubleType) {
            return (from, i, out) -> from.getDouble(i);
        }
        return type instanceof FloatType ? (from, i, out) -> from.getFloat(i) : null;
    }

    /** Return the column as a double, or as a float. */
    public static Real real(DataType type, boolean isDouble, Conversion conversion) {
        if (type instanceof FloatType || type instanceof DoubleType) {
            return isDouble || type instanceof FloatType ? real(type) : null;
        }
        Whole whole = plain(type);
        if (whole == null) {
            return null;
        }
        long most = 1L << (isDouble ? DOUBLE_BITS : FLOAT_BITS);
        return (from, i, out) -> {
            long number = whole.get(from, i, out);
            return number >= -most && number <= most ? number : conversion.asNumber(out);
        };
    }

    /** Return the column as a decimal. */
    public static Exact decimal(DataType type, int precision, int scale, Conversion conversion) {
        BigInteger bound = BigInteger.TEN.pow(precision);
        if (type instanceof DecimalType given) {
            return (from, i, out) -> {
                try {
                    BigDecimal number =
                            from.getDecimal(i, given.precision(), given.scale()).toJavaBigDecimal();
                    BigInteger scaled =
                            number.setScale(scale, RoundingMode.UNNECESSARY).unscaledValue();
                    if (scaled.abs().compareTo(bound) < 0) {
                        return scaled;
                    }
                } catch (ArithmeticException rounded) {
                    // It does not fit either.
                }
                conversion.refuse(out);
                return BigInteger.ZERO;
            };
        }
        Whole whole = plain(type);
        if (whole == null || digits(type) + scale > precision) {
            return null;
        }
        BigInteger factor = BigInteger.TEN.pow(scale);
        return (from, i, out) -> BigInteger.valueOf(whole.get(from, i, out)).multiply(factor);
    }

    private static int digits(DataType type) {
        return type instanceof ByteType ? 3 : type instanceof ShortType ? 5 : type instanceof IntegerType ? 10 : 19;
    }

    /**
     * A logical type of dates or times, as {@code serdes/arrow/layout.py} lays it out.
     *
     * @param arrow the type of its column, by Arrow's name
     * @param low the least number allowed, in its unit
     * @param high the greatest
     * @param perSecond how many of its units a second has; 0 for days
     */
    public record EncodeTime(String arrow, long low, long high, long perSecond) {
        public static final Map<String, EncodeTime> OF = Map.of(
                "date", new EncodeTime("date32[day]", -719_162, 2_932_896, 0),
                "time-millis", new EncodeTime("time32[ms]", 0, 86_399_999, 1_000),
                "time-micros", new EncodeTime("time64[us]", 0, 86_399_999_999L, 1_000_000),
                "timestamp-millis", instant("[ms, tz=UTC]", -62_135_596_800_000L, 253_402_300_799_999L, 1_000),
                "timestamp-micros",
                        instant("[us, tz=UTC]", -62_135_596_800_000_000L, 253_402_300_799_999_999L, 1_000_000),
                "timestamp-nanos", instant("[ns, tz=UTC]", Long.MIN_VALUE, Long.MAX_VALUE, 1_000_000_000),
                "local-timestamp-millis", instant("[ms]", -62_135_596_800_000L, 253_402_300_799_999L, 1_000),
                "local-timestamp-micros",
                        instant("[us]", -62_135_596_800_000_000L, 253_402_300_799_999_999L, 1_000_000),
                "local-timestamp-nanos", instant("[ns]", Long.MIN_VALUE, Long.MAX_VALUE, 1_000_000_000));

        private static EncodeTime instant(String unit, long low, long high, long perSecond) {
            return new EncodeTime("timestamp" + unit, low, high, perSecond);
        }

        /** Return the column as numbers of this type, null if Arrow does not convert it. */
        public EncodeSource.Whole source(DataType column, String zone, EncodeSource.Conversion conversion) {
            if (perSecond == 0) {
                return EncodeSource.date(column, zone);
            }
            return arrow.startsWith("timestamp")
                    ? EncodeSource.instant(column, perSecond, conversion)
                    : EncodeSource.timeOfDay(column, zone, perSecond == 1_000, conversion);
        }
    }

    /**
     * Spark's types by the names that Arrow gives them, which errors mention, and checks of structs.
     *
     * @param zone the session's time zone
     */
    public record EncodeTypes(String zone) {
        private static final int LONGEST_NAME = 40;

        /** Return the name of a column's type in Arrow. */
        public String name(DataType type) {
            if (type instanceof StructType struct) {
                return Arrays.stream(struct.fields())
                        .map(this::field)
                        .collect(Collectors.joining(", ", "struct<", ">"));
            }
            if (type instanceof ArrayType array) {
                return "list<element: " + name(array.elementType()) + (array.containsNull() ? ">" : " not null>");
            }
            if (type instanceof MapType map) {
                return "map<" + name(map.keyType()) + ", " + name(map.valueType()) + ">";
            }
            if (type instanceof DecimalType decimal) {
                return "decimal128(" + decimal.precision() + ", " + decimal.scale() + ")";
            }
            return scalar(type);
        }

        private String field(StructField field) {
            return field.name() + ": " + name(field.dataType()) + (field.nullable() ? "" : " not null");
        }

        private String scalar(DataType type) {
            if (type instanceof TimestampType) {
                return "timestamp[us, tz=" + zone + "]";
            }
            for (Map.Entry<Class<?>, String> one : NAMES.entrySet()) {
                if (one.getKey().isInstance(type)) {
                    return one.getValue();
                }
            }
            return isTime(type) ? "time64[ns]" : type.simpleString();
        }

        private static final Map<Class<?>, String> NAMES = Map.ofEntries(
                Map.entry(NullType.class, "null"),
                Map.entry(BooleanType.class, "bool"),
                Map.entry(ByteType.class, "int8"),
                Map.entry(ShortType.class, "int16"),
                Map.entry(IntegerType.class, "int32"),
                Map.entry(LongType.class, "int64"),
                Map.entry(FloatType.class, "float"),
                Map.entry(DoubleType.class, "double"),
                Map.entry(StringType.class, "string"),
                Map.entry(BinaryType.class, "binary"),
                Map.entry(DateType.class, "date32[day]"),
                Map.entry(TimestampNTZType.class, "timestamp[us]"),
                Map.entry(DayTimeIntervalType.class, "duration[us]"));

        /** Return whether a type is Spark 4.1's time of day, in nanoseconds. */
        public static boolean isTime(DataType type) {
            return type.typeName().startsWith("time(");
        }

        /**
         * Return the place of each field of a struct.
         *
         * @param known the fields of the schema
         * @throws EncodeFailure if the struct has a field that the schema lacks
         */
        public static Map<String, Integer> places(StructType struct, Collection<String> known, String path) {
            Map<String, Integer> places = new LinkedHashMap<>();
            for (int i = 0; i < struct.size(); i++) {
                places.put(struct.fields()[i].name(), i);
            }
            for (String name : places.keySet()) {
                if (!known.contains(name)) {
                    String shown = name.length() > LONGEST_NAME ? name.substring(0, LONGEST_NAME) : name;
                    throw new EncodeFailure("the schema has no such field", EncodeFailure.within(path, "." + shown));
                }
            }
            return places;
        }
    }
}
