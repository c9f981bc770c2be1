package strata.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneRules;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Conversions of a column's values to the type that the schema wants, as Arrow casts them: nothing is ever lost.
 *
 * <p>A conversion that Arrow does not have is null.
 */
final class EncodeSource {
    private static final long DAY_MICROS = 86_400_000_000L;
    private static final double LONG_BOUND = 0x1p63;
    private static final int DOUBLE_BITS = 53;
    private static final int FLOAT_BITS = 24;

    private EncodeSource() {}

    /** A column as a whole number. */
    interface Whole {
        long get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /** A column as a floating-point number. */
    interface Real {
        double get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /** A column as an unscaled number. */
    interface Exact {
        BigInteger get(SpecializedGetters from, int i, EncodeOutput out);
    }

    /**
     * The refusal of a value that cannot be converted.
     *
     * @param column the number of the column
     * @param wanted the type that the schema wants, by Arrow's name
     */
    record Misfit(int column, String wanted, String path) {
        void refuse(EncodeOutput out) {
            out.refuseMisfit(column, "a value does not fit " + wanted, path);
        }

        private long asNumber(EncodeOutput out) {
            refuse(out);
            return 0;
        }

        EncodeFailure ofColumn(DataType given, EncodeTypes types) {
            return new EncodeFailure("expected a column of " + wanted + ", got " + types.name(given), path);
        }
    }

    // Whole numbers

    /** Return the column as an int or a long of the given bits. */
    static Whole integer(DataType type, int bits, Misfit misfit) {
        if (type instanceof DecimalType decimal) {
            return ofDecimal(decimal, bits, misfit);
        }
        if (type instanceof FloatType || type instanceof DoubleType) {
            return ofReal(type, bits, misfit);
        }
        if (type instanceof DateType) {
            return bits == Integer.SIZE ? (from, i, out) -> from.getInt(i) : null;
        }
        if (type instanceof LongType && bits == Integer.SIZE) {
            return (from, i, out) -> {
                long number = from.getLong(i);
                return number == (int) number ? number : misfit.asNumber(out);
            };
        }
        boolean isWide = type instanceof TimestampType || type instanceof TimestampNTZType
            || type instanceof DayTimeIntervalType || EncodeTypes.isTime(type);
        return isWide && bits == Integer.SIZE ? null : isWide ? (from, i, out) -> from.getLong(i) : plain(type);
    }

    /** Return a column of integers as it is, null for other types. */
    static Whole plain(DataType type) {
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

    private static Whole ofDecimal(DecimalType type, int bits, Misfit misfit) {
        return (from, i, out) -> {
            try {
                BigDecimal number = from.getDecimal(i, type.precision(), type.scale()).toJavaBigDecimal();
                BigInteger whole = number.setScale(0, RoundingMode.UNNECESSARY).unscaledValue();
                return whole.bitLength() < bits ? whole.longValue() : misfit.asNumber(out);
            } catch (ArithmeticException rounded) {
                return misfit.asNumber(out);
            }
        };
    }

    private static Whole ofReal(DataType type, int bits, Misfit misfit) {
        Real real = real(type);
        double bound = bits == Integer.SIZE ? 0x1p31 : LONG_BOUND;
        return (from, i, out) -> {
            double number = real.get(from, i, out);
            boolean fits = number >= -bound && number < bound && number == Math.rint(number);
            return fits ? (long) number : misfit.asNumber(out);
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
    static Whole timeOfDay(DataType type, String zone, boolean isMillis, Misfit misfit) {
        if (isMillis ? type instanceof IntegerType : type instanceof LongType) {
            return plain(type);
        }
        if (EncodeTypes.isTime(type)) {
            return divided((from, i, out) -> from.getLong(i), isMillis ? 1_000_000 : 1_000, misfit);
        }
        Whole local = local(type, zone);
        if (local == null) {
            return null;
        }
        Whole time = (from, i, out) -> Math.floorMod(local.get(from, i, out), DAY_MICROS);
        return isMillis ? divided(time, 1_000, misfit) : time;
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
    static Whole instant(DataType type, long perSecond, Misfit misfit) {
        if (type instanceof LongType) {
            return plain(type);
        }
        if (type instanceof DateType) {
            return multiplied((from, i, out) -> from.getInt(i), 86_400 * perSecond, misfit);
        }
        if (!(type instanceof TimestampType || type instanceof TimestampNTZType)) {
            return null;
        }
        Whole micros = (from, i, out) -> from.getLong(i);
        return perSecond == 1_000_000 ? micros
            : perSecond < 1_000_000 ? divided(micros, 1_000_000 / perSecond, misfit)
            : multiplied(micros, perSecond / 1_000_000, misfit);
    }

    private static Whole divided(Whole number, long divisor, Misfit misfit) {
        return (from, i, out) -> {
            long whole = number.get(from, i, out);
            return whole % divisor == 0 ? whole / divisor : misfit.asNumber(out);
        };
    }

    private static Whole multiplied(Whole number, long factor, Misfit misfit) {
        return (from, i, out) -> {
            long whole = number.get(from, i, out);
            long high = Math.multiplyHigh(whole, factor);
            long low = whole * factor;
            return high == low >> 63 ? low : misfit.asNumber(out);
        };
    }

    // Other numbers

    /** Return a column of floating-point numbers as it is, null for other types. */
    static Real real(DataType type) {
        if (type instanceof DoubleType) {
            return (from, i, out) -> from.getDouble(i);
        }
        return type instanceof FloatType ? (from, i, out) -> from.getFloat(i) : null;
    }

    /** Return the column as a double, or as a float. */
    static Real real(DataType type, boolean isDouble, Misfit misfit) {
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
            return number >= -most && number <= most ? number : misfit.asNumber(out);
        };
    }

    /** Return the column as a decimal. */
    static Exact decimal(DataType type, Logical wanted, Misfit misfit) {
        BigInteger bound = BigInteger.TEN.pow(wanted.precision());
        if (type instanceof DecimalType given) {
            return (from, i, out) -> {
                try {
                    BigDecimal number = from.getDecimal(i, given.precision(), given.scale()).toJavaBigDecimal();
                    BigInteger scaled = number.setScale(wanted.scale(), RoundingMode.UNNECESSARY).unscaledValue();
                    if (scaled.abs().compareTo(bound) < 0) {
                        return scaled;
                    }
                } catch (ArithmeticException rounded) {
                    // It does not fit either.
                }
                misfit.refuse(out);
                return BigInteger.ZERO;
            };
        }
        Whole whole = plain(type);
        if (whole == null || digits(type) + wanted.scale() > wanted.precision()) {
            return null;
        }
        BigInteger factor = BigInteger.TEN.pow(wanted.scale());
        return (from, i, out) -> BigInteger.valueOf(whole.get(from, i, out)).multiply(factor);
    }

    private static int digits(DataType type) {
        return type instanceof ByteType ? 3 : type instanceof ShortType ? 5 : type instanceof IntegerType ? 10 : 19;
    }
}
