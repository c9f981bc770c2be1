package strata.spark.frame;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.UUID;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import strata.spark.bytes.Limits;

/**
 * The schema that a record names, by id, by GUID or by its version in AWS Glue, and where its payload begins; reused for
 * each record. The kinds of frames, and the reasons why bytes are none, are those of serdes/framing.py.
 *
 * <p>The name comes before the payload, or in a header of the record; then the record holds only the payload.
 */
public final class FrameHeader {
    /** The UUID of a schema version in AWS Glue, which is not the GUID of a schema. */
    public record GlueVersion(UUID uuid) {
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

    public static final String TRAILING_BYTES = "trailing bytes in the header of the schema";

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
    public void open(byte[] frame, byte[] header, boolean isIndexed) {
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

    public static Refusal refuse(String reason) {
        return new Refusal(reason, null, reason);
    }

    /** Return the record, which is inflated if it was compressed. */
    public byte[] bytes() {
        return bytes;
    }

    /** Return where the payload begins, or the message indexes before it. */
    public int start() {
        return start;
    }

    /** Return the schema's id, GUID or version in Glue, as a key. */
    public Object name() {
        return switch (kind) {
            case GUID -> new UUID(high, low);
            case GLUE -> new GlueVersion(new UUID(high, low));
            default -> (Object) (int) low;
        };
    }

    /** Return whether {@link #name} would equal this one. */
    public boolean isNamed(Object other) {
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
    public int mixed() {
        long all = low ^ high;
        return (int) (all ^ all >>> 32);
    }

    /** The payload of a frame of AWS Glue: version 3, compression, a UUID of 16 bytes, and then bytes that may be compressed. */
    static final class GluePayload {
        private static final int PLAIN = 0;
        private static final int ZLIB = 5;
        private static final int SMALLEST = 1024;
        /** The end of the largest frame, and a byte by which others are too large. */
        private static final int LARGEST = FrameHeader.BY_GLUE + Limits.INFLATED + 1;

        private static final String DAMAGED = "the compressed payload is damaged";

        private GluePayload() {}

        /**
         * Return a frame without compression.
         *
         * @throws Refusal if the compression is unknown or damaged, or the payload would be too large
         */
        static byte[] inflated(byte[] frame) {
            if (frame[1] == PLAIN) {
                return frame;
            }
            if (frame[1] != ZLIB) {
                throw FrameHeader.refuse(String.format("unknown compression 0x%02x in a frame of AWS Glue", frame[1]));
            }
            Inflater inflater = new Inflater();
            try {
                inflater.setInput(frame, FrameHeader.BY_GLUE, frame.length - FrameHeader.BY_GLUE);
                return inflated(frame, inflater);
            } catch (DataFormatException damaged) {
                throw FrameHeader.refuse(DAMAGED);
            } finally {
                inflater.end();
            }
        }

        private static byte[] inflated(byte[] frame, Inflater inflater) throws DataFormatException {
            byte[] out = Arrays.copyOf(frame, size(Math.max(SMALLEST, 4L * frame.length)));
            int end = FrameHeader.BY_GLUE;
            while (!inflater.finished()) {
                int made = inflater.inflate(out, end, out.length - end);
                end += made;
                if (end == LARGEST) {
                    throw FrameHeader.refuse(
                            "the payload has more than " + Limits.INFLATED + " bytes when it is inflated");
                }
                if (made == 0 && !inflater.finished() && (inflater.needsInput() || inflater.needsDictionary())) {
                    throw FrameHeader.refuse(DAMAGED);
                }
                if (end == out.length) {
                    out = Arrays.copyOf(out, size(2L * out.length));
                }
            }
            if (inflater.getRemaining() > 0) {
                throw FrameHeader.refuse(DAMAGED);
            }
            out[1] = PLAIN;
            return Arrays.copyOf(out, end);
        }

        private static int size(long wanted) {
            return (int) Math.min(LARGEST, wanted);
        }
    }

    /** Why one frame has no value: a short reason for counting, and the full message. */
    public static final class Refusal extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public final String reason;
        public final Object schema;
        /** Where in the record it is, with `[]` for any item; null if it is not a place or not known. */
        public final String path;

        /** @param schema the name of the schema in the frame, null if it cannot be read */
        public Refusal(String reason, Object schema, String message) {
            this(reason, schema, message, null);
        }

        /** @param path where in the record it is, empty or null if it is not a place */
        public Refusal(String reason, Object schema, String message, String path) {
            super(message, null, false, false);
            this.reason = reason;
            this.schema = schema;
            this.path = path == null || path.isEmpty() ? null : path.replaceAll("\\[\\d+]", "[]");
        }

        /** Return the same refusal of a frame whose schema is known. */
        public Refusal of(Object named) {
            return new Refusal(reason, named, getMessage(), path);
        }

        /** Return the schema id of the frame, or null if it has none. */
        public Integer schemaId() {
            return schema instanceof Integer id ? id : null;
        }

        /** Return the words by which errors mention a schema. */
        public static String named(Object schema) {
            return kind(schema) + " " + (schema == null ? "None" : schema);
        }

        /** Return the words for the kind of a name. */
        public static String kind(Object schema) {
            if (schema instanceof FrameHeader.GlueVersion) {
                return "Glue schema version";
            }
            return schema instanceof UUID ? "schema guid" : "schema id";
        }
    }
}
