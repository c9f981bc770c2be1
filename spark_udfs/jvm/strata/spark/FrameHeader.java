package strata.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.UUID;

/**
 * The schema that a record names, by id or GUID, and where its payload begins; reused for each record.
 *
 * <p>The name comes before the payload, or in a header of the record; then the record holds only the payload.
 */
final class FrameHeader {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final int BY_ID = 5;
    private static final int BY_GUID = 17;
    // The header of AWS Glue's registry: version 3, compression 0 or 5, a UUID of 16 bytes.
    private static final int GLUE = 3;
    private static final int GLUE_ZLIB = 5;
    private static final int GLUE_HEADER = 18;

    private boolean isGuid;
    private long high;
    private long low;
    private int start;

    /**
     * Parse a record.
     *
     * @param header the header that names the schema, or null
     * @throws Refusal if the name of the schema cannot be read
     */
    void open(byte[] frame, byte[] header) {
        int end = read(header == null ? frame : header);
        if (header != null && end != header.length) {
            throw refuse("trailing bytes in the header of the schema");
        }
        start = header == null ? end : 0;
    }

    private int read(byte[] bytes) {
        isGuid = bytes.length > 0 && bytes[0] == 1;
        if (bytes.length < (isGuid ? BY_GUID : BY_ID)) {
            throw refuse("frame too short");
        }
        if (isGuid) {
            high = (long) LONGS.get(bytes, 1);
            low = (long) LONGS.get(bytes, 9);
            return BY_GUID;
        }
        if (bytes[0] != 0) {
            String hint = isOfGlue(bytes) ? " (frame of AWS Glue's registry)" : "";
            throw refuse(String.format("wrong magic byte 0x%02x", bytes[0]) + hint);
        }
        high = 0;
        low = (int) INTS.get(bytes, 1);
        if (low < 0) {
            throw refuse("schema id " + (low & 0xFFFFFFFFL) + " is outside 0 to " + Integer.MAX_VALUE);
        }
        return BY_ID;
    }

    private static boolean isOfGlue(byte[] bytes) {
        return bytes.length >= GLUE_HEADER && bytes[0] == GLUE && (bytes[1] == 0 || bytes[1] == GLUE_ZLIB);
    }

    private static Refusal refuse(String reason) {
        return new Refusal(reason, null, reason);
    }

    /** Return where the payload begins. */
    int start() {
        return start;
    }

    /** Return the schema's id or GUID, as a key. */
    Object name() {
        return isGuid ? (Object) new UUID(high, low) : (Object) (int) low;
    }

    /** Return whether {@link #name} would equal this one. */
    boolean isNamed(Object other) {
        return other instanceof Integer id
            ? !isGuid && low == id
            : isGuid && other instanceof UUID guid
                && low == guid.getLeastSignificantBits() && high == guid.getMostSignificantBits();
    }

    /** Return a hash whose low bits differ from name to name. */
    int mixed() {
        long all = low ^ high;
        return (int) (all ^ all >>> 32);
    }
}
