package strata.spark.proto;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.write.EncodeWriter.EncodeFailure;

/**
 * Bytes that are written from the last to the first, so that a message's length is known when it is written.
 */
final class EncodeBackwards {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
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

    void putVarint(long number) {
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
