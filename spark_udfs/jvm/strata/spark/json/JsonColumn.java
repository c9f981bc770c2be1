package strata.spark.json;

import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.json.JsonTree.JsonWriter;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;

/** A type of the reader schema: reads its values from JSON, and says why other values do not fit. */
abstract class JsonColumn extends Node {
    /** Why a value does not fit, and the path of its column. */
    static final class Mismatch extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public final String reason;
        public final String detail;
        public String path = "";

        Mismatch(String reason, String detail) {
            super(detail, null, false, false);
            this.reason = reason;
            this.detail = detail;
        }
    }

    static final String INVALID_VALUE = "invalid value";

    /** Something that this class leaves to the slow way, such as a name that comes twice, or a value that does not fit. */
    @SuppressWarnings("StaticAssignmentOfThrowable") // it has no stack trace
    static final Damage UNUSUAL = new Damage(Damage.MALFORMED, "");

    /**
     * Check values, all of which are in this column, in the order of the Python path: column by column.
     *
     * @param values as of {@link JsonTree}
     * @throws Mismatch for the first that does not fit
     */
    public abstract void check(List<Object> values);

    /** Return the width in bytes of an item of an array. */
    public int width() {
        return 8;
    }

    /** Return whether the word of a slot is the place of a value elsewhere. */
    public boolean isNested() {
        return true;
    }

    /** Check the values of an inner column. */
    static void checkUnder(String step, JsonColumn column, List<Object> values) {
        try {
            column.check(values);
        } catch (Mismatch mismatch) {
            boolean isPlain = !mismatch.path.isEmpty() && "[{".indexOf(mismatch.path.charAt(0)) < 0;
            mismatch.path = step + (isPlain ? "." : "") + mismatch.path;
            throw mismatch;
        }
    }

    /** Check that values are null or of a kind. */
    public static void require(List<Object> values, String expected, Class<?> kind) {
        for (Object value : values) {
            if (value != null && !kind.isInstance(value)) {
                throw unexpected(expected, value);
            }
        }
    }

    static Mismatch unexpected(String expected, Object value) {
        return new Mismatch(INVALID_VALUE, "expected " + expected + ", got " + kind(value));
    }

    private static String kind(Object value) {
        return value instanceof JsonTree.Number number
                ? number.isFloat() ? "number" : "integer"
                : value instanceof String
                        ? "string"
                        : value instanceof Boolean ? "boolean" : value instanceof Map ? "object" : "array";
    }

    /** Pass {@code null}; any other value does not fit. */
    public static long nothing(Cursor in, RowBuffer out) {
        if (in.bytes[in.at] != 'n') {
            throw UNUSUAL;
        }
        JsonSyntax.literal(in, "null");
        return out.nothing();
    }

    /** Columns of single values of JSON. */
    static final class JsonScalars {
        /** Up to this many digits a number is a long, or the digits of a double. */
        private static final int SURE_DIGITS = 18;

        private static final double TWO_TO_63 = 0x1p63;
        private static final long EXACT = 1L << 53;
        private static final double[] POWERS = {
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18
        };

        private JsonScalars() {}

        /** Return the column of a kind that contains no others. */
        public static JsonColumn of(String kind) {
            return switch (kind) {
                case "string" -> new Texts();
                case "integer" -> new Integers();
                case "number" -> new Numbers();
                case "boolean" -> new Booleans();
                case "null" -> new Nulls();
                case "text" -> new AnyTexts();
                default -> throw new IllegalArgumentException("not a reader schema of Strata: " + kind);
            };
        }

        /** Texts. */
        private static final class Texts extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                if (JsonSyntax.peek(in) != '"') {
                    return nothing(in, out);
                }
                in.at++;
                int start = in.at;
                return JsonSyntax.text(in)
                        ? unescaped(in, start, out, base)
                        : out.put(in.bytes, start, in.at - 1 - start, base);
            }

            @Override
            public void check(List<Object> values) {
                require(values, "string", String.class);
            }
        }

        /** Put a text with escapes, which ends before the quote that was passed. */
        public static long unescaped(Cursor in, int start, RowBuffer out, int base) {
            byte[] plain = new byte[in.at - 1 - start];
            return out.put(plain, 0, JsonSyntax.unescape(in.bytes, start, in.at - 1, plain), base);
        }

        /** Booleans. */
        private static final class Booleans extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                byte first = JsonSyntax.peek(in);
                if (first != 't' && first != 'f') {
                    return nothing(in, out);
                }
                JsonSyntax.literal(in, first == 't' ? "true" : "false");
                return RowBuffer.flag(first == 't');
            }

            @Override
            public void check(List<Object> values) {
                require(values, "boolean", Boolean.class);
            }

            @Override
            public int width() {
                return 1;
            }

            @Override
            public boolean isNested() {
                return false;
            }
        }

        /** Nothing but null. */
        private static final class Nulls extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                JsonSyntax.peek(in);
                return nothing(in, out);
            }

            @Override
            public void check(List<Object> values) {
                require(values, "null", Void.class);
            }

            @Override
            public boolean isNested() {
                return false;
            }
        }

        /** Any values, as JSON text. */
        private static final class AnyTexts extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                Object value = JsonTree.of(in);
                if (value == null) {
                    return out.nothing();
                }
                byte[] text = JsonWriter.text(value);
                return out.put(text, 0, text.length, base);
            }

            @Override
            public void check(List<Object> values) {}
        }

        private static boolean isNumber(byte first) {
            return first == '-' || JsonSyntax.isDigit(first);
        }

        /** Integers of 64 bits, which may be written with a point. */
        private static final class Integers extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                byte first = JsonSyntax.peek(in);
                if (!isNumber(first)) {
                    return nothing(in, out);
                }
                byte[] bytes = in.bytes;
                int end = in.end;
                int start = first == '-' ? in.at + 1 : in.at;
                int at = start;
                long number = 0;
                for (; at < end && JsonSyntax.isDigit(bytes[at]); at++) {
                    number = 10 * number + bytes[at] - '0';
                }
                int digits = at - start;
                boolean isLong = at < end && (bytes[at] == '.' || (bytes[at] | 0x20) == 'e') || digits > SURE_DIGITS;
                if (isLong || digits == 0 || digits > 1 && bytes[start] == '0') {
                    return far(in);
                }
                in.at = at;
                return first == '-' ? -number : number;
            }

            private static long far(Cursor in) {
                int start = in.at;
                boolean isFloat = JsonSyntax.number(in);
                JsonTree.Number number = new JsonTree.Number(JsonSyntax.slice(in.bytes, start, in.at), isFloat);
                if (isFloat ? !isWhole(number) || !isLong(number.asDouble()) : !isLong(number.text())) {
                    throw UNUSUAL;
                }
                return isFloat ? (long) number.asDouble() : Long.parseLong(number.text());
            }

            private static boolean isWhole(JsonTree.Number number) {
                return !number.isFloat() || number.asDouble() == Math.rint(number.asDouble());
            }

            private static boolean isLong(double number) {
                return number >= -TWO_TO_63 && number < TWO_TO_63;
            }

            private static boolean isLong(String text) {
                return text.length() <= SURE_DIGITS || new BigInteger(text).bitLength() < Long.SIZE;
            }

            @Override
            public void check(List<Object> values) {
                require(values, "integer", JsonTree.Number.class);
                for (Object value : values) {
                    if (value != null && !isWhole((JsonTree.Number) value)) {
                        throw unexpected("integer", value);
                    }
                }
                for (Object value : values) {
                    if (value instanceof JsonTree.Number number
                            && !(number.isFloat() ? isLong(number.asDouble()) : isLong(number.text()))) {
                        throw new Mismatch(Damage.OUT_OF_RANGE, "");
                    }
                }
            }

            @Override
            public boolean isNested() {
                return false;
            }
        }

        /** Doubles. */
        private static final class Numbers extends JsonColumn {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                byte first = JsonSyntax.peek(in);
                return isNumber(first) ? Double.doubleToRawLongBits(number(in)) : nothing(in, out);
            }

            /** Read digits without an exponent; the quotient of two numbers that are exact is rounded once. */
            private static double number(Cursor in) {
                byte[] bytes = in.bytes;
                int end = in.end;
                boolean isNegative = bytes[in.at] == '-';
                int start = isNegative ? in.at + 1 : in.at;
                int at = start;
                long digits = 0;
                for (; at < end && JsonSyntax.isDigit(bytes[at]); at++) {
                    digits = 10 * digits + bytes[at] - '0';
                }
                int whole = at - start;
                int after = 0;
                if (at < end && bytes[at] == '.') {
                    for (at++; at < end && JsonSyntax.isDigit(bytes[at]); at++, after++) {
                        digits = 10 * digits + bytes[at] - '0';
                    }
                    if (after == 0) {
                        throw UNUSUAL;
                    }
                }
                boolean hasExponent = at < end && (bytes[at] | 0x20) == 'e';
                boolean isSure = !hasExponent && digits < EXACT && whole + after <= SURE_DIGITS && whole > 0;
                if (!isSure || whole > 1 && bytes[start] == '0') {
                    return far(in);
                }
                in.at = at;
                double number = digits / POWERS[after];
                boolean isMinus = isNegative && (digits != 0 || after > 0); // -0 is an integer, and -0.0 is not
                return isMinus ? -number : number;
            }

            private static double far(Cursor in) {
                int start = in.at;
                boolean isFloat = JsonSyntax.number(in);
                double number = JsonSyntax.parse(in.bytes, start, in.at);
                return isFloat || number != 0 ? number : 0;
            }

            @Override
            public void check(List<Object> values) {
                require(values, "number", JsonTree.Number.class);
            }

            @Override
            public boolean isNested() {
                return false;
            }
        }
    }
}
