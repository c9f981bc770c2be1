package strata.spark;

import java.util.Arrays;
import java.util.Random;
import strata.spark.frame.FrameHeader;

/** Frames of payloads, for programs: alone in an array, and between other bytes, where Spark's rows have them. */
final class Framed {
    private static final int PREFIX = 5;
    private static final byte ID = 1;

    private Framed() {}

    /** Return the frame of a payload, which names the schema 1, alone. */
    static FrameHeader alone(byte[] payload) {
        byte[] frame = new byte[PREFIX + payload.length];
        frame[PREFIX - 1] = ID;
        System.arraycopy(payload, 0, frame, PREFIX, payload.length);
        FrameHeader header = new FrameHeader();
        header.open(frame, null, true);
        return header;
    }

    /** Return the same frame between other bytes, some of which would continue it. */
    static FrameHeader between(byte[] payload, Random chance) {
        byte[] frame = alone(payload).bytes();
        int from = 8 * (1 + chance.nextInt(3));
        int to = from + frame.length;
        byte[] all = new byte[to + 8 + chance.nextInt(64)];
        switch (chance.nextInt(3)) {
            case 0 -> chance.nextBytes(all);
            case 1 -> Arrays.fill(all, (byte) -1);
            default -> {
                for (int at = to; at < all.length && payload.length > 0; at++) {
                    all[at] = payload[(at - to) % payload.length];
                }
            }
        }
        System.arraycopy(frame, 0, all, from, frame.length);
        FrameHeader header = new FrameHeader();
        header.open(all, from, to, null, true);
        return header;
    }
}
