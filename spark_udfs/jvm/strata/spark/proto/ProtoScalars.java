package strata.spark.proto;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.ProtoWire;
import strata.spark.proto.ProtoMessage.Check.Rule;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema.ProtoType;

/** Values of Protobuf that contain no others. */
final class ProtoScalars {

    /** The fields that are multiplied to be microseconds. */
    static final Set<String> SECONDS = Set.of("google.protobuf.Timestamp.seconds", "google.protobuf.Duration.seconds");

    private static final int MICROS = 1_000_000;
    private static final int NANOS = 1000;

    private ProtoScalars() {}

    /**
     * Return the node of a number, a boolean, a text or bytes.
     *
     * @param type the reader's type, which the column has
     * @param written the type to read the bytes as
     */
    public static Node of(ProtoType type, ProtoType written) {
        return switch (type) {
            case DOUBLE -> node((in, out, base) -> ProtoWire.fixed64(in));
            case FLOAT -> node((in, out, base) -> RowBuffer.narrow(ProtoWire.fixed32(in)));
            case BOOL -> node((in, out, base) -> RowBuffer.flag(ProtoWire.varint(in) != 0));
            case STRING -> node((in, out, base) -> {
                int length = ProtoWire.length(in);
                return out.putText(in, in.take(length), length, base);
            });
            case BYTES -> node((in, out, base) -> {
                int length = ProtoWire.length(in);
                return out.put(in.bytes, in.take(length), length, base);
            });
            case INT32, SINT32, SFIXED32 -> narrow(written);
            case UINT64, FIXED64 -> new Unsigned(written, true);
            default -> wide(written);
        };
    }

    /** Return whether a number cannot be out of the range of its column, and takes no bytes beside its slot. */
    public static boolean isPlain(ProtoType type, ProtoType written) {
        return switch (type) {
            case DOUBLE, FLOAT, BOOL -> true;
            case INT32, SINT32, SFIXED32 -> written == ProtoType.INT32
                    || written == ProtoType.SINT32
                    || written == ProtoType.SFIXED32;
            case INT64, SINT64, SFIXED64, UINT32, FIXED32 -> !isUnsigned(written);
            default -> false;
        };
    }

    /** Return what has to be true of a number of a type so that its column can hold it. */
    static Rule rule(ProtoType type, ProtoType written) {
        boolean isInAny = isPlain(type, written) || !type.isWhole || isUnsigned(type) && isUnsigned(written);
        return isInAny ? Rule.NOTHING : type.width == Integer.BYTES ? Rule.INT : Rule.NOT_NEGATIVE;
    }

    private interface Reader {
        long read(Cursor in, RowBuffer out, int base);
    }

    private static Node node(Reader reader) {
        return new Node() {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                return reader.read(in, out, base);
            }
        };
    }

    private static Node narrow(ProtoType written) {
        return switch (written) {
            case INT32 -> node((in, out, base) -> RowBuffer.narrow((int) ProtoWire.varint(in)));
            case SINT32 -> node((in, out, base) -> RowBuffer.narrow(zigzag((int) ProtoWire.varint(in))));
            case SFIXED32 -> node((in, out, base) -> RowBuffer.narrow(ProtoWire.fixed32(in)));
            default -> node((in, out, base) -> {
                long number = number(in, written);
                if (number != (int) number) {
                    throw new Damage(Damage.OUT_OF_RANGE, "");
                }
                return RowBuffer.narrow((int) number);
            });
        };
    }

    private static Node wide(ProtoType written) {
        return switch (written) {
            case INT64 -> node((in, out, base) -> ProtoWire.varint(in));
            case SFIXED64 -> node((in, out, base) -> ProtoWire.fixed64(in));
            case UINT64, FIXED64 -> node((in, out, base) -> atLeastZero(number(in, written)));
            default -> node((in, out, base) -> number(in, written));
        };
    }

    private static long atLeastZero(long number) {
        if (number < 0) {
            throw new Damage(Damage.OUT_OF_RANGE, "");
        }
        return number;
    }

    private static boolean isUnsigned(ProtoType type) {
        return type == ProtoType.UINT64 || type == ProtoType.FIXED64;
    }

    private static int zigzag(int bits) {
        return (bits >>> 1) ^ -(bits & 1);
    }

    /** Read a number of a type; unsigned numbers of 64 bits come as their bits. */
    public static long number(Cursor in, ProtoType type) {
        return switch (type) {
            case INT32, ENUM -> (int) ProtoWire.varint(in);
            case UINT32 -> ProtoWire.varint(in) & 0xFFFFFFFFL;
            case SINT32 -> zigzag((int) ProtoWire.varint(in));
            case SINT64 -> Cursor.zigzag(ProtoWire.varint(in));
            case FIXED32 -> ProtoWire.fixed32(in) & 0xFFFFFFFFL;
            case SFIXED32 -> ProtoWire.fixed32(in);
            case FIXED64, SFIXED64 -> ProtoWire.fixed64(in);
            case BOOL -> ProtoWire.varint(in) != 0 ? 1 : 0;
            default -> ProtoWire.varint(in);
        };
    }

    /** An unsigned number of 64 bits, as a decimal of 20 digits. */
    private static final class Unsigned extends Node {
        private static final int WIDEST = 16;

        private final ProtoType written;
        private final boolean inRow;

        Unsigned(ProtoType written, boolean inRow) {
            this.written = written;
            this.inRow = inRow;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            long number = number(in, written);
            byte[] bytes = isUnsigned(written)
                    ? new BigInteger(Long.toUnsignedString(number)).toByteArray()
                    : BigInteger.valueOf(atLeastZero(number)).toByteArray();
            // A row reserves room for any number of the type, so that it can be changed in place.
            byte[] kept = inRow ? Arrays.copyOf(bytes, WIDEST) : bytes;
            int at = out.at;
            out.put(kept, 0, kept.length, base);
            return RowBuffer.extent(at, bytes.length, base);
        }

        @Override
        public Node asItem() {
            return new Unsigned(written, false);
        }
    }

    /** An enum, as the name of its number; an unknown number as its digits. */
    static final class Names extends Node {
        private static final int DENSE = 256;

        private final ProtoType written;
        private final byte[][] dense = new byte[DENSE][];
        private final Map<Long, byte[]> others = new HashMap<>();

        Names(Map<Integer, String> names, ProtoType written) {
            this.written = written;
            names.forEach((number, name) -> {
                byte[] text = name.getBytes(StandardCharsets.UTF_8);
                if (number >= 0 && number < DENSE) {
                    dense[number] = text;
                } else {
                    others.put((long) number, text);
                }
            });
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            long number = (int) number(in, written);
            byte[] name = number >= 0 && number < DENSE ? dense[(int) number] : others.get(number);
            if (name == null) {
                name = Long.toString(number).getBytes(StandardCharsets.US_ASCII);
            }
            return out.put(name, 0, name.length, base);
        }
    }

    // Well-known messages

    /** Return the node of a {@code Timestamp} or a {@code Duration}, in microseconds. */
    public static Node micros(boolean isInstant) {
        return node((in, out, base) -> {
            int end = ProtoWire.length(in) + in.at;
            long seconds = 0;
            int nanos = 0;
            int outer = in.end;
            in.end = end;
            while (in.at < end) {
                int tag = ProtoWire.tag(in);
                switch (tag) {
                    case 1 << 3 -> seconds = ProtoWire.varint(in);
                    case 2 << 3 -> nanos = (int) ProtoWire.varint(in);
                    default -> skipUnknown(in, tag, 2);
                }
            }
            in.end = outer;
            try {
                long part = isInstant ? Math.floorDiv(nanos, NANOS) : nanos / NANOS;
                return Math.addExact(Math.multiplyExact(seconds, (long) MICROS), part);
            } catch (ArithmeticException tooFar) {
                throw new Damage(Damage.OUT_OF_RANGE, "");
            }
        });
    }

    /** Return the node of a message that holds one scalar as its field 1. */
    static Node wrapped(Node value, int wire, byte[] zero) {
        return new Wrapped(value, wire, zero);
    }

    private static final class Wrapped extends Node {
        private final Node value;
        private final int wire;
        private final byte[] zero;
        private final Node absent;

        Wrapped(Node value, int wire, byte[] zero) {
            this.value = value;
            this.wire = wire;
            this.zero = zero;
            this.absent = new Node.Default(value, zero);
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int end = ProtoWire.length(in) + in.at;
            int outer = in.end;
            in.end = end;
            int place = -1;
            while (in.at < end) {
                int tag = ProtoWire.tag(in);
                if (tag == (1 << 3 | wire)) {
                    place = in.at;
                    ProtoWire.skip(in, tag);
                } else {
                    skipUnknown(in, tag, 1);
                }
            }
            long word;
            if (place < 0) {
                word = absent.read(in, out, base);
            } else {
                in.at = place;
                word = value.read(in, out, base);
                in.at = end;
            }
            in.end = outer;
            return word;
        }

        @Override
        public Node asItem() {
            return new Wrapped(value.asItem(), wire, zero);
        }
    }

    /** Skip a field that is not known; one of the first {@code known} numbers has the wrong wire type. */
    private static void skipUnknown(Cursor in, int tag, int known) {
        if (tag >>> 3 <= known) {
            throw ProtoWire.malformed();
        }
        ProtoWire.skip(in, tag);
    }
}
