package strata.spark.json;

import com.fasterxml.jackson.core.io.NumberInput;
import java.nio.charset.StandardCharsets;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;

/**
 * The grammar of JSON, over bytes, as strict as the parser of the Python path: UTF-8, no lone surrogates, no control
 * characters, no number beyond doubles, at most 1,024 levels.
 *
 * <p>Jackson's parser reads more than that, and turns each text into a string.
 */
final class JsonSyntax {
    private static final int MAX_DEPTH = 1024;
    /** A number of so many digits before its point, without an exponent, is a double. */
    private static final int FINITE_DIGITS = 300;

    private static final int MAX_EXPONENT = 100_000;

    private static final long EACH = 0x0101010101010101L;
    private static final long HIGH_BITS = 0x8080808080808080L;
    private static final long QUOTES = EACH * '"';
    private static final long BACKSLASHES = EACH * '\\';
    private static final long BLANKS = EACH * ' ';

    private static final String ESCAPES = "\"\\/bfnrt";
    private static final byte[] ESCAPED = "\"\\/\b\f\n\r\t".getBytes(StandardCharsets.US_ASCII);

    private JsonSyntax() {}

    public static Damage malformed() {
        return new Damage(Damage.MALFORMED, "invalid JSON");
    }

    /** Return the next byte that is not white space, without passing it. */
    static byte peek(Cursor in) {
        int at = in.at;
        if (at < in.end && in.bytes[at] > ' ') {
            return in.bytes[at];
        }
        return peekFar(in);
    }

    private static byte peekFar(Cursor in) {
        for (; in.at < in.end; in.at++) {
            byte next = in.bytes[in.at];
            if (next != ' ' && next != '\n' && next != '\r' && next != '\t') {
                return next;
            }
        }
        throw malformed();
    }

    /** Pass a byte that must come next, after white space. */
    public static void pass(Cursor in, char expected) {
        if (peek(in) != expected) {
            throw malformed();
        }
        in.at++;
    }

    /** Pass a byte if it comes next, after white space. */
    public static boolean passes(Cursor in, char expected) {
        if (peek(in) != expected) {
            return false;
        }
        in.at++;
        return true;
    }

    /** Check that nothing but white space is left. */
    static void requireEnd(Cursor in) {
        for (; in.at < in.end; in.at++) {
            byte next = in.bytes[in.at];
            if (next != ' ' && next != '\n' && next != '\r' && next != '\t') {
                throw malformed();
            }
        }
    }

    /** Pass {@code null}, {@code true} or {@code false}. */
    static void literal(Cursor in, String word) {
        if (in.end - in.at < word.length()) {
            throw malformed();
        }
        for (int i = 0; i < word.length(); i++) {
            if (in.bytes[in.at + i] != word.charAt(i)) {
                throw malformed();
            }
        }
        in.at += word.length();
    }

    // Arrays and objects

    /** Pass the bracket of an array or object. */
    public static void enter(Cursor in) {
        if (++in.depth > MAX_DEPTH) {
            throw malformed();
        }
        in.at++;
    }

    /**
     * Pass a comma or the closing bracket.
     *
     * @return whether a comma came, and not the bracket
     */
    static boolean hasMore(Cursor in, char closing) {
        byte next = peek(in);
        in.at++;
        if (next == ',') {
            return true;
        }
        if (next != closing) {
            throw malformed();
        }
        in.depth--;
        return false;
    }

    /** Pass the closing bracket if it comes next. */
    public static boolean isEmpty(Cursor in, char closing) {
        if (peek(in) != closing) {
            return false;
        }
        in.at++;
        in.depth--;
        return true;
    }

    /** Pass any value. */
    public static void skip(Cursor in) {
        switch (peek(in)) {
            case '"' -> {
                in.at++;
                int start = in.at;
                if (text(in)) {
                    unescape(in.bytes, start, in.at - 1, null);
                }
            }
            case '{' -> skipObject(in);
            case '[' -> skipArray(in);
            case 'n' -> literal(in, "null");
            case 't' -> literal(in, "true");
            case 'f' -> literal(in, "false");
            default -> number(in);
        }
    }

    private static void skipObject(Cursor in) {
        enter(in);
        if (isEmpty(in, '}')) {
            return;
        }
        do {
            if (peek(in) != '"') {
                throw malformed();
            }
            skip(in);
            pass(in, ':');
            skip(in);
        } while (hasMore(in, '}'));
    }

    private static void skipArray(Cursor in) {
        enter(in);
        if (isEmpty(in, ']')) {
            return;
        }
        do {
            skip(in);
        } while (hasMore(in, ']'));
    }

    // Texts

    /**
     * Pass a text after its opening quote, and the closing quote.
     *
     * @return whether it has escapes, which are not checked here
     */
    public static boolean text(Cursor in) {
        byte[] bytes = in.bytes;
        int start = in.at;
        int at = start;
        int end = in.end;
        long seen = 0;
        boolean hasEscapes = false;
        while (true) {
            while (at <= end - 8) {
                long word = Cursor.word(bytes, at);
                long stops = stops(word);
                if (stops != 0) {
                    int passed = Long.numberOfTrailingZeros(stops) & ~7;
                    seen |= word & (1L << passed) - 1;
                    at += passed >>> 3;
                    break;
                }
                seen |= word;
                at += 8;
            }
            for (; at < end && bytes[at] != '"' && bytes[at] != '\\' && (bytes[at] & 0xE0) != 0; at++) {
                seen |= bytes[at];
            }
            if (at >= end - 1 && (at == end || bytes[at] != '"') || (bytes[at] & 0xE0) == 0) {
                throw malformed();
            }
            if (bytes[at] == '"') {
                break;
            }
            hasEscapes = true;
            at += 2;
        }
        in.at = at + 1;
        if ((seen & HIGH_BITS) != 0) {
            in.requireText(start, at - start);
        }
        return hasEscapes;
    }

    /** Return the high bits of bytes that end a plain text; above the lowest of them there may be too many. */
    private static long stops(long word) {
        long quotes = word ^ QUOTES;
        long backslashes = word ^ BACKSLASHES;
        return ((quotes - EACH) & ~quotes | (backslashes - EACH) & ~backslashes | (word - BLANKS) & ~word) & HIGH_BITS;
    }

    /**
     * Replace the escapes of a text.
     *
     * @param out receives at most as many bytes as the text has; null to check only
     * @return the number of bytes
     */
    static int unescape(byte[] bytes, int start, int end, byte[] out) {
        int size = 0;
        for (int at = start; at < end; ) {
            byte next = bytes[at++];
            if (next == '\\') {
                byte kind = bytes[at++];
                if (kind == 'u') {
                    int code = hex(bytes, at, end);
                    at += 4;
                    if (code >>> 11 == 0xD800 >>> 11) {
                        code = pair(code, bytes, at, end);
                        at += 6;
                    }
                    size = put(code, out, size);
                    continue;
                }
                int known = ESCAPES.indexOf(kind);
                if (known < 0) {
                    throw malformed();
                }
                next = ESCAPED[known];
            }
            if (out != null) {
                out[size] = next;
            }
            size++;
        }
        return size;
    }

    private static int pair(int high, byte[] bytes, int at, int end) {
        if (high >= 0xDC00 || end - at < 6 || bytes[at] != '\\' || bytes[at + 1] != 'u') {
            throw malformed();
        }
        int low = hex(bytes, at + 2, end);
        if (low >>> 10 != 0xDC00 >>> 10) {
            throw malformed();
        }
        return Character.toCodePoint((char) high, (char) low);
    }

    private static int hex(byte[] bytes, int at, int end) {
        int code = 0;
        for (int i = at; i < at + 4; i++) {
            int digit = i < end ? Character.digit(bytes[i], 16) : -1;
            if (digit < 0) {
                throw malformed();
            }
            code = code << 4 | digit;
        }
        return code;
    }

    private static int put(int code, byte[] out, int at) {
        int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (out != null) {
            int rest = code;
            for (int i = size - 1; i > 0; i--, rest >>>= 6) {
                out[at + i] = (byte) (0x80 | rest & 0x3F);
            }
            out[at] = (byte) (size == 1 ? rest : 0xF0 << 4 - size | rest);
        }
        return at + size;
    }

    // Numbers

    /**
     * Pass a number.
     *
     * @return whether it has a point or an exponent
     */
    public static boolean number(Cursor in) {
        byte[] bytes = in.bytes;
        int end = in.end;
        int start = in.at;
        int at = start;
        if (at < end && bytes[at] == '-') {
            at++;
        }
        int first = at;
        at = digits(in, at);
        int whole = at - first;
        if (whole > 1 && bytes[first] == '0') {
            throw malformed();
        }
        boolean hasPoint = at < end && bytes[at] == '.';
        if (hasPoint) {
            at = digits(in, at + 1);
        }
        boolean hasExponent = at < end && (bytes[at] | 0x20) == 'e';
        long size = whole;
        if (hasExponent) {
            at++;
            boolean isNegative = at < end && bytes[at] == '-';
            if (at < end && (isNegative || bytes[at] == '+')) {
                at++;
            }
            int from = at;
            at = digits(in, at);
            size += isNegative ? 0 : exponent(bytes, from, at);
        }
        if (size > FINITE_DIGITS && Double.isInfinite(Double.parseDouble(slice(bytes, start, at)))) {
            throw new Damage(Damage.OUT_OF_RANGE, "a number beyond doubles");
        }
        in.at = at;
        return hasPoint || hasExponent;
    }

    private static int exponent(byte[] bytes, int start, int end) {
        int number = 0;
        for (int at = start; at < end && number < MAX_EXPONENT; at++) {
            number = 10 * number + bytes[at] - '0';
        }
        return number;
    }

    /** Return where digits end, of which there must be one. */
    private static int digits(Cursor in, int start) {
        int at = start;
        while (at < in.end && isDigit(in.bytes[at])) {
            at++;
        }
        if (at == start) {
            throw malformed();
        }
        return at;
    }

    static boolean isDigit(byte one) {
        return (one - '0' & 0xFF) < 10;
    }

    static String slice(byte[] bytes, int start, int end) {
        return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }

    /** Return the double nearest to a number that has been passed. */
    public static double parse(byte[] bytes, int start, int end) {
        return NumberInput.parseDouble(slice(bytes, start, end), true);
    }
}
