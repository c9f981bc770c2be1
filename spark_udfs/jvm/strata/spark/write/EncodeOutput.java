package strata.spark.write;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The bytes of a frame, written from the first to the last, and how its failures are found.
 *
 * <p>Workers in Python convert a batch column by column before they write its rows, so they report a value that cannot
 * be converted before any other failure. A row that fails is written again in search of such a value.
 */
public final class EncodeOutput {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int MOST = Integer.MAX_VALUE - 15;
    private static final int LONGEST_NUMBER = 10;
    private static final int MOST_DIGITS = 19;
    private static final String SHORT_ESCAPED = "\"\\\b\f\n\r\t";
    private static final String SHORT_ESCAPES = "\"\\bfnrt";

    private byte[] bytes = new byte[1024];
    private int at;
    private boolean isSearching;
    private int foundColumn;
    private EncodeFailure found;

    public void begin(byte[] prefix) {
        at = 0;
        isSearching = false;
        putRaw(prefix);
    }

    public byte[] frame() {
        return Arrays.copyOf(bytes, at);
    }

    public void putByte(int value) {
        reserve(1);
        bytes[at++] = (byte) value;
    }

    /** Put a number as a zigzag varint. */
    public void putLong(long number) {
        reserve(LONGEST_NUMBER);
        long left = number << 1 ^ number >> 63;
        int place = at;
        while ((left & ~0x7FL) != 0) {
            bytes[place++] = (byte) (left & 0x7F | 0x80);
            left >>>= 7;
        }
        bytes[place++] = (byte) left;
        at = place;
    }

    public void putFixed4(int word) {
        reserve(4);
        INTS.set(bytes, at, word);
        at += 4;
    }

    public void putFixed8(long word) {
        reserve(8);
        LONGS.set(bytes, at, word);
        at += 8;
    }

    public void putRaw(byte[] content) {
        reserve(content.length);
        System.arraycopy(content, 0, bytes, at, content.length);
        at += content.length;
    }

    public void putRaw(UTF8String text) {
        int size = text.numBytes();
        reserve(size);
        text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + at);
        at += size;
    }

    /** Put the lowest {@code size} bytes of a number, the highest first. */
    public void putBigEndian(long number, int size) {
        reserve(size);
        for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
            bytes[at++] = (byte) (number >> Math.min(shift, 63));
        }
    }

    // Text

    public void putAscii(String text) {
        int size = text.length();
        reserve(size);
        for (int i = 0; i < size; i++) {
            bytes[at++] = (byte) text.charAt(i);
        }
    }

    /** Put a number in decimal digits. */
    public void putDigits(long number) {
        if (number == Long.MIN_VALUE) {
            putAscii(Long.toString(number));
            return;
        }
        long left = Math.abs(number);
        int size = 1;
        for (long bound = 10; size < MOST_DIGITS && left >= bound; bound *= 10) {
            size++;
        }
        if (number < 0) {
            putByte('-');
        }
        putPadded(left, size);
    }

    /** Put a number in so many digits. */
    void putPadded(long number, int size) {
        reserve(size);
        long left = number;
        for (int place = at + size - 1; place >= at; place--) {
            bytes[place] = (byte) ('0' + left % 10);
            left /= 10;
        }
        at += size;
    }

    /** Put a text as a JSON string. */
    void putQuoted(UTF8String text, String path) {
        int size = text.numBytes();
        reserve(size + 2);
        int start = at + 1;
        text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + start);
        boolean isAscii = true;
        for (int place = start; place < start + size; place++) {
            byte one = bytes[place];
            if (one < 0) {
                isAscii = false;
            } else if (one < ' ' || one == '"' || one == '\\') {
                requireText(text, path);
                putQuoted(Arrays.copyOfRange(bytes, start, start + size));
                return;
            }
        }
        if (!isAscii) {
            requireText(text, path);
        }
        bytes[at] = '"';
        bytes[start + size] = '"';
        at = start + size + 1;
    }

    private void requireText(UTF8String text, String path) {
        if (!isText(text)) {
            refuse("expected text in UTF-8", path);
        }
    }

    /** Return whether bytes of a text are UTF-8; Spark 3.5 has no such call. */
    public static boolean isText(UTF8String text) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(text.getBytes()));
            return true;
        } catch (CharacterCodingException invalid) {
            return false;
        }
    }

    /** Put UTF-8 as a JSON string, with escapes. */
    void putQuoted(byte[] text) {
        putByte('"');
        for (byte one : text) {
            int escape = SHORT_ESCAPED.indexOf(one);
            if (one >= 0 && escape >= 0) {
                putByte('\\');
                putByte(SHORT_ESCAPES.charAt(escape));
            } else if (one >= 0 && one < ' ') {
                putAscii(one < 0x10 ? "\\u000" : "\\u001");
                putByte(Character.forDigit(one & 0xF, 16));
            } else {
                putByte(one);
            }
        }
        putByte('"');
    }

    private void reserve(int more) {
        if (more > bytes.length - at) {
            long need = (long) at + more;
            if (need > MOST) {
                throw new EncodeFailure("the frame takes more than " + MOST + " bytes", "");
            }
            bytes = Arrays.copyOf(bytes, (int) Math.min(Math.max(need, 2L * bytes.length), MOST));
        }
    }

    // Failures

    /** Refuse a value that the schema does not allow. A search goes on; what it writes is discarded. */
    public void refuse(String detail, String path) {
        if (!isSearching) {
            throw new EncodeFailure(detail, path);
        }
    }

    /** Refuse a value that cannot be converted, of the column with a number. */
    void refuseConversion(int column, String detail, String path) {
        refuse(detail, path);
        if (found == null || column < foundColumn) {
            foundColumn = column;
            found = new EncodeFailure(detail, path);
        }
    }

    public void beginSearch() {
        at = 0;
        isSearching = true;
        found = null;
    }

    /** Return the failure that a search found in the first column, or null. */
    public EncodeFailure found() {
        return found;
    }

    /**
     * Bytes that are written from the last to the first, so that a message's length is known when it is written.
     */
    public static final class EncodeBackwards {
        private static final VarHandle LONGS =
                MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
        private static final VarHandle INTS =
                MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
        private static final long HIGH_BITS = 0x8080808080808080L;
        private static final int MOST = Integer.MAX_VALUE - 15;

        private byte[] bytes = new byte[1024];
        /** Where the written bytes begin. */
        private int at = bytes.length;
        /** Whether a failure was met: fields are then written in the column's order, to find the first one. */
        public boolean isSearching;

        public void begin(boolean searches) {
            at = bytes.length;
            isSearching = searches;
        }

        public byte[] frame(byte[] prefix) {
            int size = bytes.length - at;
            byte[] frame = Arrays.copyOf(prefix, prefix.length + size);
            System.arraycopy(bytes, at, frame, prefix.length, size);
            return frame;
        }

        /** Return how many bytes there are. */
        public int size() {
            return bytes.length - at;
        }

        public void putVarint(long number) {
            if ((number & ~0x7FL) == 0) {
                reserve(1);
                bytes[--at] = (byte) number;
                return;
            }
            int size = (Long.SIZE - Long.numberOfLeadingZeros(number) + 6) / 7;
            reserve(size);
            at -= size;
            long left = number;
            int last = at + size - 1;
            for (int place = at; place < last; place++) {
                bytes[place] = (byte) (left | 0x80);
                left >>>= 7;
            }
            bytes[last] = (byte) left;
        }

        public void putFixed4(int word) {
            reserve(4);
            at -= 4;
            INTS.set(bytes, at, word);
        }

        public void putFixed8(long word) {
            reserve(8);
            at -= 8;
            LONGS.set(bytes, at, word);
        }

        public void putRaw(byte[] content) {
            reserve(content.length);
            at -= content.length;
            System.arraycopy(content, 0, bytes, at, content.length);
        }

        /** Put a text; return whether all of it is ASCII. */
        public boolean putRaw(UTF8String text) {
            int size = text.numBytes();
            reserve(size);
            at -= size;
            text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + at);
            long seen = 0;
            int place = at;
            for (; place <= at + size - Long.BYTES; place += Long.BYTES) {
                seen |= (long) LONGS.get(bytes, place);
            }
            for (; place < at + size; place++) {
                seen |= bytes[place]; // a negative byte sets the high bits, too
            }
            return (seen & HIGH_BITS) == 0;
        }

        private void reserve(int more) {
            if (more > at) {
                int size = size();
                long need = (long) size + more;
                if (need > MOST) {
                    throw new EncodeFailure("the frame takes more than " + MOST + " bytes", "");
                }
                byte[] grown = new byte[(int) Math.min(Math.max(need, 2L * bytes.length), MOST)];
                System.arraycopy(bytes, at, grown, grown.length - size, size);
                at = grown.length - size;
                bytes = grown;
            }
        }
    }

    /** Writes frames of one format. Not thread-safe. */
    public interface EncodeWriter {
        /**
         * Return the frame of a row's first field, which is not null.
         *
         * @throws EncodeFailure if the value does not fit the schema
         */
        byte[] write(InternalRow row);
    }

    /** Why a row, or a column as a whole, does not fit the schema. */
    public static final class EncodeFailure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public static final String IS_NULL = "expected a value, got null";

        public final String detail;
        public final String path;

        public EncodeFailure(String detail, String path) {
            // Millions of rows may not fit, so no stack trace.
            super(path.isEmpty() ? detail : detail + " (at field " + path + ")", null, false, false);
            this.detail = detail;
            this.path = path;
        }

        /** Return the path of a part of the value at a path. */
        public static String within(String path, String part) {
            return path.isEmpty() && part.startsWith(".") ? part.substring(1) : path + part;
        }
    }
}
