package strata.spark;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/** The values of fields that are absent, in the wire format without a tag: zero, or the default that proto2 gives. */
final class ProtoDefaults {
    private static final Map<String, Double> NAMED = Map.of(
        "inf", Double.POSITIVE_INFINITY, "-inf", Double.NEGATIVE_INFINITY, "nan", Double.NaN, "-nan", Double.NaN);
    private static final Map<Character, Character> ESCAPES = Map.of(
        'a', '\u0007', 'b', '\b', 'f', '\f', 'n', '\n', 'r', '\r', 't', '\t', 'v', '\u000b');

    private ProtoDefaults() {}

    /**
     * Return the value of a field that is absent.
     *
     * @param full the full name of the field, for the error
     * @throws UnusableSchema if its default is not a value of its type
     */
    static byte[] of(ProtoSchema.Field field, String full) {
        boolean isZero = field.defaultValue == null || field.isRepeated || field.message != null;
        try {
            return written(field, isZero ? null : field.defaultValue);
        } catch (NumberFormatException invalid) {
            throw new UnusableSchema("the default of " + full + " is " + field.defaultValue);
        }
    }

    private static byte[] written(ProtoSchema.Field field, String value) {
        return switch (field.type) {
            case ProtoScalars.DOUBLE -> fixed(Double.doubleToRawLongBits(number(value)), 8);
            case ProtoScalars.FLOAT -> fixed(Float.floatToRawIntBits((float) number(value)), 4);
            case ProtoScalars.FIXED32, ProtoScalars.SFIXED32 -> fixed(integer(value), 4);
            case ProtoScalars.FIXED64, ProtoScalars.SFIXED64 -> fixed(integer(value), 8);
            case ProtoScalars.SINT32, ProtoScalars.SINT64 -> varint(integer(value) << 1 ^ integer(value) >> 63);
            case ProtoScalars.STRING -> sized(value == null ? new byte[0] : value.getBytes(StandardCharsets.UTF_8));
            case ProtoScalars.BYTES -> sized(value == null ? new byte[0] : unescaped(value));
            case ProtoScalars.BOOL -> varint("true".equals(value) ? 1 : 0);
            case ProtoSchema.ENUM -> varint(value == null ? 0 : field.numbers.values().getOrDefault(value, 0));
            default -> varint(integer(value));
        };
    }

    private static double number(String value) {
        Double named = value == null ? Double.valueOf(0) : NAMED.get(value);
        return named == null ? Double.parseDouble(value) : named;
    }

    /** Return an integer, which may be written as in C. */
    private static long integer(String value) {
        if (value == null) {
            return 0;
        }
        String digits = value.startsWith("-") ? value.substring(1) : value;
        BigInteger size = digits.startsWith("0x") || digits.startsWith("0X")
            ? new BigInteger(digits.substring(2), 16) : new BigInteger(digits, digits.startsWith("0") ? 8 : 10);
        return (value.startsWith("-") ? size.negate() : size).longValue();
    }

    private static byte[] fixed(long bits, int width) {
        byte[] all = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(bits).array();
        return Arrays.copyOf(all, width);
    }

    private static byte[] sized(byte[] content) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(varint(content.length));
        out.writeBytes(content);
        return out.toByteArray();
    }

    private static byte[] varint(long number) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        long left = number;
        for (; (left & ~0x7FL) != 0; left >>>= 7) {
            out.write((int) left & 0x7F | 0x80);
        }
        out.write((int) left);
        return out.toByteArray();
    }

    /** Return bytes that a descriptor has with the escapes of C. */
    private static byte[] unescaped(String text) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        for (int at = 0; at < bytes.length; at++) {
            if (bytes[at] != '\\' || at + 1 == bytes.length) {
                out.write(bytes[at]);
                continue;
            }
            char kind = (char) bytes[++at];
            boolean isHex = kind == 'x' || kind == 'X';
            if (isHex || Character.digit(kind, 8) >= 0) {
                int start = isHex ? at + 1 : at;
                int end = start;
                int radix = isHex ? 16 : 8;
                while (end < bytes.length && end < start + (isHex ? 2 : 3) && Character.digit(bytes[end], radix) >= 0) {
                    end++;
                }
                String digits = new String(bytes, start, end - start, StandardCharsets.US_ASCII);
                out.write(Integer.parseInt(digits, radix));
                at = end - 1;
            } else {
                out.write(ESCAPES.getOrDefault(kind, kind));
            }
        }
        return out.toByteArray();
    }
}
