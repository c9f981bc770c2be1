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
    private byte[] bytes;
    private byte[] header;
    private int from;
    private int start;
    private int end;

    /** Parse a record that is all of an array. */
    public void open(byte[] record, byte[] header, boolean isIndexed) {
        open(record, 0, record.length, header, isIndexed);
    }

    /**
     * Parse a record. It is not copied: no other bytes of the array are read.
     *
     * @param from where the record begins
     * @param to where it ends
     * @param header the header that names the schema, or null
     * @param isIndexed whether message indexes follow the name
     * @throws Refusal if the name of the schema cannot be read, or the payload cannot be inflated
     */
    public void open(byte[] record, int from, int to, byte[] header, boolean isIndexed) {
        bytes = record;
        this.header = header;
        this.from = from;
        end = to;
        if (header == null) {
            start = readFrame();
            return;
        }
        int after = read(header, 0, header.length);
        if (after != header.length && !isIndexed) {
            throw refuse(TRAILING_BYTES);
        }
        start = isIndexed ? after : from;
    }

    private int readFrame() {
        if (from == end || bytes[from] != GLUE) {
            return read(bytes, from, end);
        }
        requireLength(end - from, BY_GLUE);
        if (bytes[from + 1] != GluePayload.PLAIN) {
            bytes = GluePayload.inflated(Arrays.copyOfRange(bytes, from, end));
            from = 0;
            end = bytes.length;
        }
        readUuid(bytes, from + BY_GLUE - Long.BYTES * 2);
        kind = GLUE;
        return from + BY_GLUE;
    }

    /** Read the name of the schema from bytes; return where it ends. */
    private int read(byte[] named, int at, int stop) {
        boolean isGuid = at < stop && named[at] == GUID;
        requireLength(stop - at, isGuid ? BY_GUID : BY_ID);
        if (isGuid) {
            readUuid(named, at + 1);
            kind = GUID;
            return at + BY_GUID;
        }
        if (named[at] != ID) {
            throw refuse(String.format("wrong magic byte 0x%02x", named[at]));
        }
        kind = ID;
        high = 0;
        low = (int) INTS.get(named, at + 1);
        if (low < 0) {
            throw refuse("schema id " + (low & 0xFFFFFFFFL) + " is outside 0 to " + Integer.MAX_VALUE);
        }
        return at + BY_ID;
    }

    private void readUuid(byte[] named, int at) {
        high = (long) LONGS.get(named, at);
        low = (long) LONGS.get(named, at + Long.BYTES);
    }

    private static void requireLength(int size, int length) {
        if (size < length) {
            throw refuse("frame too short");
        }
    }

    public static Refusal refuse(String reason) {
        return new Refusal(reason, null, reason);
    }

    /** Return the bytes in which the record is; those of a compressed one are inflated. */
    public byte[] bytes() {
        return bytes;
    }

    /** Return the header that names the schema; null if the record does. */
    public byte[] header() {
        return header;
    }

    /** Return where the record begins. */
    public int from() {
        return from;
    }

    /** Return where the payload begins, or the message indexes before it, which are in the header if there is one. */
    public int start() {
        return start;
    }

    /** Return where the record ends. */
    public int end() {
        return end;
    }

    /** Return how many bytes the record has. */
    public int size() {
        return end - from;
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
        static final int PLAIN = 0;
        private static final int ZLIB = 5;
        private static final int SMALLEST = 1024;
        /** The end of the largest frame, and a byte by which others are too large. */
        private static final int LARGEST = FrameHeader.BY_GLUE + Limits.INFLATED + 1;

        private static final String DAMAGED = "the compressed payload is damaged";

        private GluePayload() {}

        /**
         * Return a compressed frame without compression.
         *
         * @throws Refusal if the compression is unknown or damaged, or the payload would be too large
         */
        static byte[] inflated(byte[] frame) {
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
