package strata.spark.write;

import com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Base64;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import strata.spark.write.EncodeSource.EncodeTime;

/** Writes a value as JSON, in the form that orjson gives it. */
public interface EncodeJsonValue {
    /** Write a value that is not null. */
    void write(SpecializedGetters from, int i, EncodeOutput out);

    private static void writeAny(EncodeJsonValue value, SpecializedGetters from, int i, EncodeOutput out) {
        if (from.isNullAt(i)) {
            out.putAscii("null");
        } else {
            value.write(from, i, out);
        }
    }

    /** Return a name in quotes and a colon. */
    static byte[] quoted(String name) {
        EncodeOutput out = new EncodeOutput();
        out.putQuoted(name.getBytes(StandardCharsets.UTF_8));
        out.putByte(':');
        return out.frame();
    }

    /**
     * A property.
     *
     * @param name in quotes, with a colon
     * @param isRequired whether a null is written
     */
    record Field(byte[] name, EncodeJsonValue value, boolean isRequired) {}

    record Struct(Field[] fields) implements EncodeJsonValue {
        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            InternalRow row = from.getStruct(i, fields.length);
            boolean isFirst = true;
            out.putByte('{');
            for (int place = 0; place < fields.length; place++) {
                Field field = fields[place];
                if (field.isRequired || !row.isNullAt(place)) {
                    if (!isFirst) {
                        out.putByte(',');
                    }
                    isFirst = false;
                    out.putRaw(field.name);
                    writeAny(field.value, row, place, out);
                }
            }
            out.putByte('}');
        }
    }

    record Items(EncodeJsonValue item) implements EncodeJsonValue {
        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            ArrayData items = from.getArray(i);
            int count = items.numElements();
            out.putByte('[');
            for (int place = 0; place < count; place++) {
                if (place > 0) {
                    out.putByte(',');
                }
                writeAny(item, items, place, out);
            }
            out.putByte(']');
        }
    }

    record Entries(String path, EncodeJsonValue value) implements EncodeJsonValue {
        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            MapData map = from.getMap(i);
            ArrayData keys = map.keyArray();
            ArrayData values = map.valueArray();
            int count = map.numElements();
            out.putByte('{');
            for (int place = 0; place < count; place++) {
                if (place > 0) {
                    out.putByte(',');
                }
                out.putQuoted(keys.getUTF8String(place), path);
                out.putByte(':');
                writeAny(value, values, place, out);
            }
            out.putByte('}');
        }
    }

    record Text(String path) implements EncodeJsonValue {
        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            out.putQuoted(from.getUTF8String(i), path);
        }
    }

    record Bytes() implements EncodeJsonValue {
        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            out.putByte('"');
            out.putRaw(Base64.getEncoder().encode(from.getBinary(i)));
            out.putByte('"');
        }
    }

    /** A number, by the fewest digits that no other number has. */
    record Real(String path, EncodeSource.Real source) implements EncodeJsonValue {
        /** Whole numbers below it have all their digits. */
        private static final double WHOLE = 1e15;

        private static final double TINY = 1e-320;
        private static final int MOST_WHOLE_DIGITS = 16;
        private static final int MOST_ZEROS = -5;

        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            double number = source.get(from, i, out);
            long whole = (long) number;
            if (whole == number && Math.abs(number) < WHOLE && whole != 0) {
                out.putDigits(whole);
                out.putAscii(".0");
            } else if (Double.isFinite(number)) {
                out.putAscii(text(shortest(number)));
            } else {
                out.refuse("expected a finite number, got NaN or infinity", path);
            }
        }

        /** Return a number in Java's form with the fewest digits: of some, Java writes two where one is enough. */
        public static String shortest(double number) {
            boolean isTiny = Math.abs(number) < TINY;
            BigDecimal digit = isTiny ? new BigDecimal(number).round(new MathContext(1)) : BigDecimal.ZERO;
            return digit.signum() != 0 && digit.doubleValue() == number
                    ? digit.unscaledValue() + ".0E" + -digit.scale()
                    : DoubleToDecimal.toString(number);
        }

        /** Rewrite Java's form of a number, such as {@code 1.25E-7}. */
        private static String text(String java) {
            int exponentAt = java.indexOf('E');
            String sign = java.startsWith("-") ? "-" : "";
            String mantissa = java.substring(sign.length(), exponentAt < 0 ? java.length() : exponentAt);
            int exponent = exponentAt < 0 ? 0 : Integer.parseInt(java.substring(exponentAt + 1));
            int point = mantissa.indexOf('.');
            String digits = mantissa.substring(0, point) + mantissa.substring(point + 1);
            int first = 0;
            while (first < digits.length() - 1 && digits.charAt(first) == '0') {
                first++;
            }
            int last = digits.length();
            while (last > first + 1 && digits.charAt(last - 1) == '0') {
                last--;
            }
            return sign + placed(digits.substring(first, last), point - first + exponent);
        }

        /** Return digits with the point after so many of them. */
        private static String placed(String digits, int point) {
            int count = digits.length();
            if (digits.equals("0")) {
                return "0.0";
            }
            if (point > MOST_WHOLE_DIGITS || point <= MOST_ZEROS) {
                String rest = count > 1 ? "." + digits.substring(1) : "";
                return digits.charAt(0) + rest + (point > 0 ? "e+" : "e") + (point - 1);
            }
            if (point <= 0) {
                return "0." + "0".repeat(-point) + digits;
            }
            return point >= count
                    ? digits + "0".repeat(point - count) + ".0"
                    : digits.substring(0, point) + "." + digits.substring(point);
        }
    }

    record Date(String path) implements EncodeJsonValue {
        private static final EncodeTime YEARS = EncodeTime.OF.get("date");

        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            int days = from.getInt(i);
            if (days < YEARS.low() || days > YEARS.high()) {
                out.refuse("expected a year from 1 to 9999", path);
            }
            out.putByte('"');
            putDate(LocalDate.ofEpochDay(days), out);
            out.putByte('"');
        }

        static void putDate(LocalDate date, EncodeOutput out) {
            out.putPadded(date.getYear(), 4);
            out.putByte('-');
            out.putPadded(date.getMonthValue(), 2);
            out.putByte('-');
            out.putPadded(date.getDayOfMonth(), 2);
        }
    }

    record Timestamp(String path, boolean hasZone) implements EncodeJsonValue {
        private static final EncodeTime YEARS = EncodeTime.OF.get("timestamp-micros");
        private static final long SECOND = 1_000_000;

        @Override
        public void write(SpecializedGetters from, int i, EncodeOutput out) {
            long micros = from.getLong(i);
            if (micros < YEARS.low() || micros > YEARS.high()) {
                out.refuse("expected a year from 1 to 9999", path);
            }
            int part = (int) Math.floorMod(micros, SECOND);
            LocalDateTime time = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, SECOND), 0, ZoneOffset.UTC);
            out.putByte('"');
            Date.putDate(time.toLocalDate(), out);
            out.putByte('T');
            out.putPadded(time.getHour(), 2);
            out.putByte(':');
            out.putPadded(time.getMinute(), 2);
            out.putByte(':');
            out.putPadded(time.getSecond(), 2);
            if (part != 0) {
                out.putByte('.');
                out.putPadded(part, 6);
            }
            out.putAscii(hasZone ? "Z\"" : "\"");
        }
    }
}
