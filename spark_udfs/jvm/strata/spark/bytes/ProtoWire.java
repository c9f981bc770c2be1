package strata.spark.bytes;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import strata.spark.bytes.Cursor.Damage;

/** The wire format of Protobuf. Bytes that break it are {@link Damage#MALFORMED}, without a finer reason. */
public final class ProtoWire {
    public static final int VARINT = 0;
    public static final int FIXED64 = 1;
    public static final int BYTES = 2;
    public static final int START_GROUP = 3;
    static final int END_GROUP = 4;
    public static final int FIXED32 = 5;

    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int MAX_DEPTH = 100;
    private static final int MAX_VARINT = 10;
    private static final int MAX_TAG = 5;

    private ProtoWire() {}

    public static Damage malformed() {
        return new Damage(Damage.MALFORMED, "");
    }

    /** Read a varint of up to 64 bits. */
    public static long varint(Cursor in) {
        int at = in.at;
        if (at < in.end) {
            byte first = in.bytes[at];
            if (first >= 0) {
                in.at = at + 1;
                return first;
            }
            if (at + 1 < in.end && in.bytes[at + 1] >= 0) { // such as the tags of fields from 16 on
                in.at = at + 2;
                return first & 0x7F | in.bytes[at + 1] << 7;
            }
        }
        return longVarint(in);
    }

    /** Skip a varint, of up to eight bytes without a branch for each. */
    private static void skipVarint(Cursor in) {
        if (in.at + Long.BYTES <= in.bytes.length) {
            int width = Cursor.width(Cursor.word(in.bytes, in.at));
            if (width <= Long.BYTES && width <= in.end - in.at) {
                in.at += width;
                return;
            }
        }
        varint(in);
    }

    private static long longVarint(Cursor in) {
        byte[] bytes = in.bytes;
        int stop = Math.min(in.end, in.at + MAX_VARINT);
        long number = 0;
        int shift = 0;
        for (int at = in.at; at < stop; at++, shift += 7) {
            byte next = bytes[at];
            number |= (long) (next & 0x7F) << shift;
            if (next >= 0) {
                in.at = at + 1;
                return number;
            }
        }
        throw malformed();
    }

    /** Read the number and the wire type of a field; the number is not 0. */
    public static int tag(Cursor in) {
        int start = in.at;
        long tag = varint(in);
        if (tag >>> 32 != 0 || tag >>> 3 == 0 || in.at - start > MAX_TAG) {
            throw malformed();
        }
        return (int) tag;
    }

    /** Read a length; all of its bytes are there. */
    public static int length(Cursor in) {
        long length = varint(in);
        if (length < 0 || length > in.end - in.at) {
            throw malformed();
        }
        return (int) length;
    }

    /**
     * Check a text after its length. Like the parser of the Python path, look at the bytes of the text before the end of
     * the message around it.
     */
    public static void checkText(Cursor in) {
        int end = in.end;
        in.end = in.limit;
        long length = varint(in);
        in.end = end;
        if (length < 0 || length > in.limit - in.at) {
            throw malformed();
        }
        in.requireText(in.at, (int) length);
        take(in, (int) length);
    }

    public static int fixed32(Cursor in) {
        return (int) INTS.get(in.bytes, take(in, 4));
    }

    public static long fixed64(Cursor in) {
        return Cursor.word(in.bytes, take(in, 8));
    }

    private static int take(Cursor in, int size) {
        if (size > in.end - in.at) {
            throw malformed();
        }
        int start = in.at;
        in.at += size;
        return start;
    }

    /** Skip the value of a field. */
    public static void skip(Cursor in, int tag) {
        skip(in, tag, MAX_DEPTH);
    }

    private static void skip(Cursor in, int tag, int depth) {
        switch (tag & 7) {
            case VARINT -> skipVarint(in);
            case FIXED64 -> take(in, 8);
            case BYTES -> take(in, length(in));
            case FIXED32 -> take(in, 4);
            case START_GROUP -> skipGroup(in, tag >>> 3, depth);
            default -> throw malformed();
        }
    }

    private static void skipGroup(Cursor in, int number, int depth) {
        if (depth == 0) {
            throw malformed();
        }
        while (true) {
            int tag = tag(in);
            if ((tag & 7) == END_GROUP) {
                if (tag >>> 3 != number) {
                    throw malformed();
                }
                return;
            }
            skip(in, tag, depth - 1);
        }
    }

    /** Skip packed values of a wire type, and return how many there are. */
    public static int skipPacked(Cursor in, int wire) {
        int length = length(in);
        int items;
        if (wire == VARINT) {
            items = countVarints(in, length);
        } else {
            int width = wire == FIXED32 ? Integer.BYTES : Long.BYTES;
            if (length % width != 0) {
                throw malformed();
            }
            items = length / width;
        }
        in.at += length;
        return items;
    }

    private static int countVarints(Cursor in, int length) {
        int count = 0;
        int run = 0;
        for (int at = in.at; at < in.at + length; at++) {
            run++;
            if (in.bytes[at] >= 0) {
                count++;
                run = 0;
            } else if (run == MAX_VARINT) {
                throw malformed();
            }
        }
        if (run != 0) {
            throw malformed();
        }
        return count;
    }
}
