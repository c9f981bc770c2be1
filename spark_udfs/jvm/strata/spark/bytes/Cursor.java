package strata.spark.bytes;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * A position in the bytes of one payload.
 *
 * <p>Every length is checked against the bytes that are left before it is used.
 */
public final class Cursor {
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long CONTINUED = 0x8080808080808080L;

    public byte[] bytes;
    public int at;
    /** Where the bytes end that may be read: those of the payload, or of a message inside it. */
    public int end;
    /** Where the payload ends; other bytes may follow it. */
    public int limit;
    /** Whether this is the second reading of a damaged payload, in the order of its bytes, to find the place. */
    public boolean tracing;

    /** Whether a later value of a Protobuf field took the place of one that was not read. */
    public boolean overwrote;

    /** How many arrays and objects of JSON are open. */
    public int depth;

    private int weightlessLeft;
    private int recordsLeft;

    /** Open all bytes from a position on. */
    public void open(byte[] payload, int start, boolean traced) {
        open(payload, start, payload.length, traced);
    }

    /** Open the bytes from {@code start} to {@code stop}. */
    public void open(byte[] payload, int start, int stop, boolean traced) {
        bytes = payload;
        at = start;
        end = stop;
        limit = stop;
        tracing = traced;
        overwrote = false;
        depth = 0;
        weightlessLeft = Limits.WEIGHTLESS;
        recordsLeft = Limits.DEPTH;
    }

    public int left() {
        return end - at;
    }

    public byte next() {
        if (at >= end) {
            throw Damage.truncated();
        }
        return bytes[at++];
    }

    /** Read a zigzag varint of at most 32 bits. */
    public int readInt() {
        int first = next();
        if (first >= 0) {
            return (first >>> 1) ^ -(first & 1);
        }
        long number = rest(first, 35);
        if (number >>> 32 != 0) {
            throw new Damage(Damage.OUT_OF_RANGE, "an int of more than 32 bits");
        }
        int raw = (int) number;
        return (raw >>> 1) ^ -(raw & 1);
    }

    /** Read a zigzag varint of at most 64 bits. */
    public long readLong() {
        int first = next();
        if (first >= 0) {
            return zigzag(first);
        }
        return zigzag(rest(first, 70));
    }

    /** Return the next eight bytes in their order. */
    public static long word(byte[] bytes, int at) {
        return (long) LONGS.get(bytes, at);
    }

    /**
     * Return the same, with zeros for the bytes from {@code end} on; at least eight bytes must come before {@code end}.
     */
    public static long wordBefore(byte[] bytes, int at, int end) {
        return at <= end - Long.BYTES ? word(bytes, at) : word(bytes, end - 8) >>> 8 * (8 - end + at);
    }

    /** Return the size of the varint at the start of a word; more than 8 if it does not end in the word. */
    public static int width(long word) {
        return (Long.numberOfTrailingZeros(~word & CONTINUED) >>> 3) + 1;
    }

    /** Return the zigzag varint of this size at the start of a word, by joining its groups of seven bits. */
    public static long number(long word, int width) {
        if (width == 1) {
            return zigzag(word & 0x7F);
        }
        long bits = word & -1L >>> 64 - 8 * width & ~CONTINUED;
        bits = bits & 0x007F007F007F007FL | (bits & 0x7F007F007F007F00L) >>> 1;
        bits = bits & 0x00003FFF00003FFFL | (bits & 0x3FFF00003FFF0000L) >>> 2;
        bits = bits & 0x000000000FFFFFFFL | (bits & 0x0FFFFFFF00000000L) >>> 4;
        return zigzag(bits);
    }

    public static long zigzag(long bits) {
        return (bits >>> 1) ^ -(bits & 1);
    }

    private long rest(int first, int bits) {
        long number = first & 0x7F;
        for (int shift = 7; shift < bits; shift += 7) {
            byte next = next();
            if (shift == 63 && (next & 0x7E) != 0) {
                break;
            }
            number |= (long) (next & 0x7F) << shift;
            if (next >= 0) {
                return number;
            }
        }
        throw new Damage(
                Damage.OUT_OF_RANGE, bits == 35 ? "an int of more than 32 bits" : "a number of more than 64 bits");
    }

    public boolean readBoolean() {
        byte value = next();
        if (value >> 1 != 0) {
            throw new Damage(Damage.INVALID_BOOLEAN, String.format("expected the byte 0 or 1, got 0x%02x", value));
        }
        return value == 1;
    }

    public float readFloat() {
        return Float.intBitsToFloat((int) INTS.get(bytes, take(4)));
    }

    public double readDouble() {
        return Double.longBitsToDouble((long) LONGS.get(bytes, take(8)));
    }

    /** Skip this many bytes, and return where they begin. */
    public int take(int size) {
        if (size > end - at) {
            throw Damage.truncated();
        }
        int start = at;
        at += size;
        return start;
    }

    /** Read the length of bytes or a string; all of its bytes are there. */
    public int readLength() {
        long length = readLong();
        if (length < 0) {
            throw new Damage(Damage.NEGATIVE_LENGTH, "a length of " + length);
        }
        if (length > end - at) {
            throw Damage.truncated();
        }
        return (int) length;
    }

    /** Read an index below {@code count}. */
    public int readIndex(int count) {
        int index = readInt();
        if (index < 0 || index >= count) {
            throw new Damage(Damage.INVALID_INDEX, "no index " + index);
        }
        return index;
    }

    /**
     * Read the number of items in the next block, 0 at the end.
     *
     * @param weightless how many values without bytes an item holds; if 0, the bytes left bound the number of items
     */
    public int readCount(int weightless) {
        long count = readLong();
        if (count < 0) {
            if (readLong() < 0) {
                throw new Damage(Damage.NEGATIVE_LENGTH, "a block of negative length");
            }
            count = -count;
        }
        if (weightless > 0) {
            if (count < 0 || count > weightlessLeft / weightless) {
                throw new Damage(Damage.LIMIT, "too many items of zero bytes");
            }
            weightlessLeft -= (int) count * weightless;
        } else if (count < 0 || count > end - at) {
            throw Damage.truncated();
        }
        return (int) count;
    }

    /** Return the state to give to {@link #rewind} when the same items are counted again. */
    public int weightlessLeft() {
        return weightlessLeft;
    }

    public void rewind(int position, int weightless) {
        at = position;
        weightlessLeft = weightless;
    }

    public void enterRecord() {
        if (recordsLeft == 0) {
            throw new Damage(Damage.LIMIT, "records are nested too deeply");
        }
        recordsLeft--;
    }

    public void leaveRecord() {
        recordsLeft++;
    }

    /** Check that bytes are valid UTF-8: no surrogates, no overlong sequences. */
    public void requireText(int start, int length) {
        int i = start;
        int stop = start + length;
        while (i + 8 <= stop && (word(bytes, i) & CONTINUED) == 0) {
            i += 8;
        }
        if (stop - i < 8 && stop <= end - 8 && (word(bytes, i) & CONTINUED & (1L << 8 * (stop - i)) - 1) == 0) {
            return;
        }
        while (i < stop) {
            int lead = bytes[i];
            i = lead >= 0 ? i + 1 : afterSequence(lead & 0xFF, i, stop);
        }
    }

    private int afterSequence(int lead, int i, int stop) {
        int size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        if (lead < 0xC2 || lead > 0xF4 || i + size > stop) {
            throw new Damage(Damage.INVALID_UTF8, "");
        }
        int second = bytes[i + 1] & 0xFF;
        int least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        int most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        boolean good = second >= least && second <= most;
        for (int k = 2; k < size; k++) {
            good &= (bytes[i + k] & 0xC0) == 0x80;
        }
        if (!good) {
            throw new Damage(Damage.INVALID_UTF8, "");
        }
        return i + size;
    }

    /**
     * Why a payload is not a value of the reader schema. {@code reason} is short; there are few, so they can be counted.
     */
    public static final class Damage extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public static final String TRUNCATED = "truncated";
        public static final String TRAILING_BYTES = "trailing bytes";
        public static final String INVALID_UTF8 = "invalid utf-8";
        static final String NEGATIVE_LENGTH = "negative length";
        public static final String INVALID_INDEX = "invalid index";
        static final String INVALID_BOOLEAN = "invalid boolean";
        public static final String OUT_OF_RANGE = "out of range";
        public static final String LIMIT = "limit";
        public static final String RESOLUTION = "resolution";
        public static final String MALFORMED = "malformed";

        private static final int LONGEST_PATH = 100;

        public final String reason;
        public final String detail;
        private String path = "";

        public Damage(String reason, String detail) {
            // Millions of records may be damaged, so no stack trace: it would cost more than the decode.
            super(detail.isEmpty() ? reason : reason + ": " + detail, null, false, false);
            this.reason = reason;
            this.detail = detail;
        }

        static Damage truncated() {
            return new Damage(TRUNCATED, "");
        }

        /** Prepend a part to the path of the place. */
        public Damage within(String part) {
            if (path.length() < LONGEST_PATH) {
                path = part + path;
            }
            return this;
        }

        /**
         * Return the reason for dead letters, with the types for resolution: these are the same for all frames of a writer
         * schema.
         */
        public String letterReason() {
            return reason.equals(RESOLUTION) ? getMessage() : reason;
        }

        /** Return the path of the place in the record; empty at the top. */
        public String field() {
            return path.startsWith(".") ? path.substring(1) : path;
        }

        /** Return the place in the record as the end of a message; empty at the top. */
        public String place() {
            return path.isEmpty() ? "" : " (at field " + field() + ")";
        }

        /** Return the full message, with the place in the record. */
        public String message(int offset) {
            String field = field();
            return getMessage() + " (" + (field.isEmpty() ? "" : "at field " + field + ", ") + "near byte " + offset
                    + ")";
        }
    }
}
