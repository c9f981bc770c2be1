package strata.spark.json;

import com.fasterxml.jackson.core.io.NumberOutput;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;

/**
 * A JSON value as objects, for what is rare: null, Boolean, String, {@link Number}, List, and Map, in which the last of
 * several equal names counts.
 */
final class JsonTree {
    /** A number as it was written. */
    public record Number(String text, boolean isFloat) {
        public double asDouble() {
            return Double.parseDouble(text);
        }
    }

    private JsonTree() {}

    /** Return a whole payload. */
    static Object ofAll(Cursor in) {
        Object value = of(in);
        JsonSyntax.requireEnd(in);
        return value;
    }

    /** Return the next value, and pass it. */
    public static Object of(Cursor in) {
        int start;
        switch (JsonSyntax.peek(in)) {
            case '"':
                return text(in);
            case '{':
                return object(in);
            case '[':
                return array(in);
            case 'n':
                JsonSyntax.literal(in, "null");
                return null;
            case 't':
                JsonSyntax.literal(in, "true");
                return true;
            case 'f':
                JsonSyntax.literal(in, "false");
                return false;
            default:
                start = in.at;
                boolean isFloat = JsonSyntax.number(in);
                return new Number(JsonSyntax.slice(in.bytes, start, in.at), isFloat);
        }
    }

    private static String text(Cursor in) {
        JsonSyntax.pass(in, '"');
        int start = in.at;
        boolean hasEscapes = JsonSyntax.text(in);
        int end = in.at - 1;
        if (!hasEscapes) {
            return new String(in.bytes, start, end - start, StandardCharsets.UTF_8);
        }
        byte[] plain = new byte[end - start];
        return new String(plain, 0, JsonSyntax.unescape(in.bytes, start, end, plain), StandardCharsets.UTF_8);
    }

    private static Map<String, Object> object(Cursor in) {
        Map<String, Object> members = new LinkedHashMap<>();
        JsonSyntax.enter(in);
        if (!JsonSyntax.isEmpty(in, '}')) {
            do {
                String name = text(in);
                JsonSyntax.pass(in, ':');
                members.put(name, of(in));
            } while (JsonSyntax.hasMore(in, '}'));
        }
        return members;
    }

    private static List<Object> array(Cursor in) {
        List<Object> items = new ArrayList<>();
        JsonSyntax.enter(in);
        if (!JsonSyntax.isEmpty(in, ']')) {
            do {
                items.add(of(in));
            } while (JsonSyntax.hasMore(in, ']'));
        }
        return items;
    }

    /** Writes the values of {@link JsonTree} as JSON text, as the Python path does for columns of text. */
    static final class JsonWriter {
        /** How to write numbers. */
        private enum Style {
            AS_READ,
            ORJSON,
            PYTHON
        }

        /** More levels, and integers beyond 64 bits, are written by another library in Python. */
        private static final int ORJSON_DEPTH = 254;

        private static final BigInteger LEAST = BigInteger.valueOf(Long.MIN_VALUE);
        private static final BigInteger MOST = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);
        /** Two digits tell any larger double from its neighbours. */
        private static final double TINY = 1e-320;

        private static final int SURE_DIGITS = 18;
        private static final String ESCAPED = "\"\\\b\f\n\r\t";
        private static final String ESCAPES = "\"\\bfnrt";

        private final StringBuilder out = new StringBuilder();
        private final Style style;

        private JsonWriter(Style style) {
            this.style = style;
        }

        /** Return a value as a column of text has it. */
        public static byte[] text(Object value) {
            return written(value, isForOrjson(value, ORJSON_DEPTH) ? Style.ORJSON : Style.PYTHON);
        }

        /** Return a value with its numbers as they were. */
        public static byte[] same(Object value) {
            return written(value, Style.AS_READ);
        }

        private static byte[] written(Object value, Style style) {
            JsonWriter writer = new JsonWriter(style);
            writer.put(value);
            return writer.out.toString().getBytes(StandardCharsets.UTF_8);
        }

        private static boolean isForOrjson(Object value, int levels) {
            if (value instanceof JsonTree.Number number) {
                return number.isFloat()
                        || number.text().length() <= SURE_DIGITS
                        || isShort(new BigInteger(number.text()));
            }
            if (value instanceof Map<?, ?> members) {
                return levels > 0 && members.values().stream().allMatch(one -> isForOrjson(one, levels - 1));
            }
            if (value instanceof List<?> items) {
                return levels > 0 && items.stream().allMatch(one -> isForOrjson(one, levels - 1));
            }
            return true;
        }

        private static boolean isShort(BigInteger number) {
            return number.compareTo(LEAST) >= 0 && number.compareTo(MOST) <= 0;
        }

        private void put(Object value) {
            if (value instanceof Map<?, ?> members) {
                String before = "{";
                for (Map.Entry<?, ?> member : members.entrySet()) {
                    out.append(before);
                    putText((String) member.getKey());
                    out.append(':');
                    put(member.getValue());
                    before = ",";
                }
                out.append(members.isEmpty() ? "{}" : "}");
            } else if (value instanceof List<?> items) {
                String before = "[";
                for (Object item : items) {
                    out.append(before);
                    put(item);
                    before = ",";
                }
                out.append(items.isEmpty() ? "[]" : "]");
            } else if (value instanceof String text) {
                putText(text);
            } else if (value instanceof JsonTree.Number number) {
                putNumber(number);
            } else {
                out.append(value);
            }
        }

        private void putText(String text) {
            out.append('"');
            for (int i = 0; i < text.length(); i++) {
                char one = text.charAt(i);
                int known = one < ' ' || one == '"' || one == '\\' ? ESCAPED.indexOf(one) : -2;
                if (known >= 0) {
                    out.append('\\').append(ESCAPES.charAt(known));
                } else if (known == -1) {
                    out.append("\\u").append(HexFormat.of().toHexDigits(one));
                } else {
                    out.append(one);
                }
            }
            out.append('"');
        }

        private void putNumber(JsonTree.Number number) {
            if (style == Style.AS_READ) {
                out.append(number.text());
            } else if (number.isFloat()) {
                putDouble(number.asDouble());
            } else {
                out.append(number.text().equals("-0") ? "0" : number.text());
            }
        }

        /** Write the shortest digits that give the same double; the exponent's form differs between Python's libraries. */
        private void putDouble(double number) {
            String shortest = shortest(Math.abs(number));
            int e = shortest.indexOf('E');
            String mantissa = e < 0 ? shortest : shortest.substring(0, e);
            int point = mantissa.indexOf('.') + (e < 0 ? 0 : Integer.parseInt(shortest.substring(e + 1)));
            String all = mantissa.replace(".", "");
            String digits = all.replaceFirst("^0+(?=.)", "").replaceFirst("(?<=.)0+$", "");
            point -= all.length() - all.replaceFirst("^0+(?=.)", "").length();
            if (1 / number < 0 || number < 0) {
                out.append('-');
            }
            int exponent = number == 0 ? 0 : point - 1;
            if (exponent < (style == Style.ORJSON ? -5 : -4) || exponent > 15) {
                putScientific(digits, exponent);
            } else if (exponent < 0) {
                out.append("0.").append("0".repeat(-1 - exponent)).append(digits);
            } else if (digits.length() <= exponent + 1) {
                out.append(digits)
                        .append("0".repeat(exponent + 1 - digits.length()))
                        .append(".0");
            } else {
                out.append(digits, 0, exponent + 1).append('.').append(digits, exponent + 1, digits.length());
            }
        }

        /** Return the shortest digits, such as 12.5 or 1.25E-7. Java wants two of them, even where one is enough. */
        private static String shortest(double number) {
            String two = NumberOutput.toString(number, true);
            if (number > TINY || number == 0) {
                return two;
            }
            BigDecimal one = new BigDecimal(two).round(new MathContext(1));
            return one.doubleValue() == number ? one.unscaledValue() + ".0E" + -one.scale() : two;
        }

        private void putScientific(String digits, int exponent) {
            out.append(digits.charAt(0));
            if (digits.length() > 1) {
                out.append('.').append(digits, 1, digits.length());
            }
            out.append(exponent < 0 ? "e-" : "e+");
            if (style == Style.PYTHON && Math.abs(exponent) < 10) {
                out.append('0');
            }
            out.append(Math.abs(exponent));
        }
    }
}
