package strata.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.UUID;

/**
 * The schema that a record names, by id, by GUID or by its version in AWS Glue, and where its payload begins; reused for
 * each record. The kinds of frames, and the reasons why bytes are none, are those of serdes/framing.py.
 *
 * <p>The name comes before the payload, or in a header of the record; then the record holds only the payload.
 */
final class FrameHeader {
    /** The UUID of a schema version in AWS Glue, which is not the GUID of a schema. */
    record GlueVersion(UUID uuid) {
        @Override
        public String toString() {
            return uuid.toString();
        }
    }

    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final int BY_ID = 5;
    private static final int BY_GUID = 17;
    static final int BY_GLUE = 18;
    private static final int ID = 0;
    private static final int GUID = 1;
    private static final int GLUE = 3;

    static final String TRAILING_BYTES = "trailing bytes in the header of the schema";

    private int kind;
    private long high;
    private long low;
    private int start;
    private byte[] bytes;

    /**
     * Parse a record.
     *
     * @param header the header that names the schema, or null
     * @param isIndexed whether message indexes follow the name
     * @throws Refusal if the name of the schema cannot be read, or the payload cannot be inflated
     */
    void open(byte[] frame, byte[] header, boolean isIndexed) {
        bytes = frame;
        int end = header == null ? readFrame() : read(header);
        if (header != null && end != header.length && !isIndexed) {
            throw refuse(TRAILING_BYTES);
        }
        start = header == null || isIndexed ? end : 0;
    }

    private int readFrame() {
        if (bytes.length == 0 || bytes[0] != GLUE) {
            return read(bytes);
        }
        requireLength(bytes, BY_GLUE);
        bytes = GluePayload.inflated(bytes);
        readUuid(bytes, BY_GLUE - Long.BYTES * 2);
        kind = GLUE;
        return BY_GLUE;
    }

    private int read(byte[] named) {
        boolean isGuid = named.length > 0 && named[0] == GUID;
        requireLength(named, isGuid ? BY_GUID : BY_ID);
        if (isGuid) {
            readUuid(named, 1);
            kind = GUID;
            return BY_GUID;
        }
        if (named[0] != ID) {
            throw refuse(String.format("wrong magic byte 0x%02x", named[0]));
        }
        kind = ID;
        high = 0;
        low = (int) INTS.get(named, 1);
        if (low < 0) {
            throw refuse("schema id " + (low & 0xFFFFFFFFL) + " is outside 0 to " + Integer.MAX_VALUE);
        }
        return BY_ID;
    }

    private void readUuid(byte[] named, int at) {
        high = (long) LONGS.get(named, at);
        low = (long) LONGS.get(named, at + Long.BYTES);
    }

    private static void requireLength(byte[] named, int length) {
        if (named.length < length) {
            throw refuse("frame too short");
        }
    }

    static Refusal refuse(String reason) {
        return new Refusal(reason, null, reason);
    }

    /** Return the record, which is inflated if it was compressed. */
    byte[] bytes() {
        return bytes;
    }

    /** Return where the payload begins, or the message indexes before it. */
    int start() {
        return start;
    }

    /** Return the schema's id, GUID or version in Glue, as a key. */
    Object name() {
        return switch (kind) {
            case GUID -> new UUID(high, low);
            case GLUE -> new GlueVersion(new UUID(high, low));
            default -> (Object) (int) low;
        };
    }

    /** Return whether {@link #name} would equal this one. */
    boolean isNamed(Object other) {
        return switch (kind) {
            case GUID -> other instanceof UUID guid && isSame(guid);
            case GLUE -> other instanceof GlueVersion version && isSame(version.uuid());
            default -> other instanceof Integer id && low == id;
        };
    }

    private boolean isSame(UUID uuid) {
        return low == uuid.getLeastSignificantBits() && high == uuid.getMostSignificantBits();
    }

    /** Return a hash whose low bits differ from name to name. */
    int mixed() {
        long all = low ^ high;
        return (int) (all ^ all >>> 32);
    }
}
