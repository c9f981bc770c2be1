package strata.spark;

import java.util.Arrays;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/** The payload of a frame of AWS Glue: version 3, compression, a UUID of 16 bytes, and then bytes that may be compressed. */
final class GluePayload {
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
                throw FrameHeader.refuse("the payload has more than " + Limits.INFLATED + " bytes when it is inflated");
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
