package strata.spark.avro;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.avro.Schema;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.row.Node;
import strata.spark.row.Node.SimpleForm;
import strata.spark.row.RowBuffer;

/** Values that contain no others. */
final class Scalars {
    private Scalars() {}

    /** The size of bytes or text after its length. */
    static final int PREFIXED = -1;
    /** The size of bytes or text that take all bytes that are left. */
    static final int REST = -2;

    private static int extent(Cursor in, int size) {
        return size >= 0 ? size : size == PREFIXED ? in.readLength() : in.left();
    }

    public static Node flag() {
        return new Node(SimpleForm.FLAG) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                return RowBuffer.flag(in.readBoolean());
            }
        };
    }

    /**
     * Return the node of an int, a long, or an int read as a long; dates and times are such.
     *
     * @param narrow whether the writer's type is int
     * @param narrowOut whether the column holds ints
     */
    public static Node integer(boolean narrow, boolean narrowOut) {
        return new Node(SimpleForm.number(narrow, narrowOut, 1)) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                long number = narrow ? in.readInt() : in.readLong();
                return narrowOut ? RowBuffer.narrow((int) number) : number;
            }
        };
    }

    /**
     * Return the node of a time that is converted from the writer's unit to the column's; finer units are rounded down.
     *
     * @param narrow whether the writer's type is int
     * @param narrowOut whether the column holds ints
     * @param factors conversions in sequence: a factor, or a negative divisor
     */
    public static Node time(boolean narrow, boolean narrowOut, long... factors) {
        long product = Arrays.stream(factors).reduce(1, (a, b) -> a > 0 && b > 0 ? a * b : 0);
        return new Node(SimpleForm.number(narrow, narrowOut, product)) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                long time = narrow ? in.readInt() : in.readLong();
                try {
                    for (long factor : factors) {
                        time = factor > 0 ? Math.multiplyExact(time, factor) : Math.floorDiv(time, -factor);
                    }
                    return narrowOut ? RowBuffer.narrow(Math.toIntExact(time)) : time;
                } catch (ArithmeticException tooLarge) {
                    throw new Damage(Damage.OUT_OF_RANGE, "a time outside what the column holds");
                }
            }
        };
    }

    /** Return the node of a float, or of an int or long read as one. */
    static Node toFloat(Schema.Type from) {
        return new Node(from == Schema.Type.FLOAT ? SimpleForm.fixed(Float.BYTES) : SimpleForm.NONE) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                // A long goes through double, as on the other paths: rounded twice, and the same everywhere.
                float number = from == Schema.Type.FLOAT ? in.readFloat() : (float) number(in, from);
                return RowBuffer.narrow(Float.floatToRawIntBits(number));
            }
        };
    }

    /** Return the node of a number of any kind read as a double. */
    static Node toDouble(Schema.Type from) {
        return new Node(from == Schema.Type.DOUBLE ? SimpleForm.fixed(Double.BYTES) : SimpleForm.NONE) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                return Double.doubleToRawLongBits(number(in, from));
            }
        };
    }

    private static double number(Cursor in, Schema.Type from) {
        return switch (from) {
            case INT -> in.readInt();
            case LONG -> in.readLong();
            case FLOAT -> in.readFloat();
            default -> in.readDouble();
        };
    }

    /** Return the node of bytes or fixed. */
    public static Node bytes(int size) {
        return new Node() {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                int length = extent(in, size);
                return out.put(in.bytes, in.take(length), length, base);
            }

            @Override
            public void check(Cursor in, RowBuffer out) {
                in.take(extent(in, size));
            }
        };
    }

    public static Node text(int size) {
        return new Node(size == PREFIXED ? SimpleForm.TEXT : SimpleForm.NONE) {
            @Override
            public long read(Cursor in, RowBuffer out, int base) {
                int length = extent(in, size);
                return out.putText(in, in.take(length), length, base);
            }

            @Override
            public void check(Cursor in, RowBuffer out) {
                int length = extent(in, size);
                in.requireText(in.take(length), length);
            }
        };
    }

    /** An index into the writer's symbols, read as the reader's symbol for each. */
    static final class EnumNode extends Node {
        private final String[] written;
        /** Padded, so that they can be copied by words. */
        private final byte[][] read;

        private final int[] lengths;

        EnumNode(String[] written, String[] symbols) {
            super(SimpleForm.SYMBOL);
            this.written = written;
            this.read = Arrays.stream(symbols)
                    .map(symbol -> symbol == null ? null : symbol.getBytes(StandardCharsets.UTF_8))
                    .toArray(byte[][]::new);
            this.lengths = Arrays.stream(read)
                    .mapToInt(symbol -> symbol == null ? 0 : symbol.length)
                    .toArray();
            Arrays.setAll(read, i -> read[i] == null ? null : Arrays.copyOf(read[i], lengths[i] + 8));
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int index = readIndex(in);
            return out.put(read[index], 0, lengths[index], base);
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            readIndex(in);
        }

        private int readIndex(Cursor in) {
            int index = in.readIndex(read.length);
            if (read[index] == null) {
                throw new Damage(
                        Damage.RESOLUTION, "the reader's enum has no symbol " + written[index] + " and no default");
            }
            return index;
        }

        /** Return whether the reader has a symbol for an index of the writer. */
        public boolean has(int index) {
            return index >= 0 && index < read.length && read[index] != null;
        }

        /** Copy a symbol; return its length, or -1 if there is no symbol or no room. */
        public int copy(int index, byte[] to, int place) {
            if (!has(index) || place + lengths[index] + 8 > to.length) {
                return -1;
            }
            RowBuffer.copy(read[index], 0, lengths[index], to, place);
            return lengths[index];
        }
    }

    /** A decimal over bytes or fixed, converted from the writer's scale to the reader's. */
    static final class DecimalNode extends Node {
        private static final int LONG_DIGITS = 18;
        private static final int WIDEST = 16;

        private final int size;
        private final int precision;
        private final int scale;
        private final int writerScale;
        private final BigInteger bound;
        private final int mostBytes;
        private boolean inRow = true;

        DecimalNode(int size, int precision, int scale, int writerScale) {
            super(
                    size == PREFIXED && writerScale == scale && precision <= LONG_DIGITS
                            ? SimpleForm.decimal(BigInteger.TEN.pow(precision).longValue())
                            : SimpleForm.NONE);
            this.size = size;
            this.precision = precision;
            this.scale = scale;
            this.writerScale = writerScale;
            this.bound = BigInteger.TEN.pow(precision);
            // A hostile length must not reach the arithmetic.
            this.mostBytes = bound.multiply(BigInteger.TEN.pow(Math.max(writerScale - scale, 0)))
                                    .bitLength()
                            / 8
                    + 1;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int length = extent(in, size);
            int start = in.take(length);
            if (length > 0 && length <= 7 && writerScale == scale && precision <= LONG_DIGITS) {
                return readShort(in.bytes, start, length);
            }
            BigInteger unscaled = readLong(in.bytes, start, length);
            if (precision <= LONG_DIGITS) {
                return unscaled.longValue();
            }
            byte[] bytes = unscaled.toByteArray();
            // A row reserves room for any number of the type, so that it can be changed in place.
            byte[] kept = inRow ? Arrays.copyOf(bytes, WIDEST) : bytes;
            int at = out.at;
            out.put(kept, 0, kept.length, base);
            return RowBuffer.extent(at, bytes.length, base);
        }

        private long readShort(byte[] bytes, int start, int length) {
            long unscaled = bytes[start];
            for (int i = 1; i < length; i++) {
                unscaled = unscaled << 8 | (bytes[start + i] & 0xFF);
            }
            if (Math.abs(unscaled) >= bound.longValue()) {
                throw tooLong();
            }
            return unscaled;
        }

        private BigInteger readLong(byte[] bytes, int start, int length) {
            int from = start;
            int stop = start + length;
            byte sign = (byte) (length > 0 ? bytes[start] >> 7 : 0);
            while (from < stop - 1 && bytes[from] == sign && bytes[from + 1] >> 7 == sign) {
                from++;
            }
            if (stop - from > mostBytes) {
                throw tooLong();
            }
            BigInteger unscaled = length == 0 ? BigInteger.ZERO : new BigInteger(bytes, from, stop - from);
            if (writerScale < scale) {
                unscaled = unscaled.multiply(BigInteger.TEN.pow(scale - writerScale));
            } else if (writerScale > scale) {
                BigInteger[] parts = unscaled.divideAndRemainder(BigInteger.TEN.pow(writerScale - scale));
                if (parts[1].signum() != 0) {
                    throw new Damage(
                            Damage.OUT_OF_RANGE, "a decimal has more than " + scale + " digits after the point");
                }
                unscaled = parts[0];
            }
            if (unscaled.abs().compareTo(bound) >= 0) {
                throw tooLong();
            }
            return unscaled;
        }

        @Override
        public Node asItem() {
            DecimalNode item = new DecimalNode(size, precision, scale, writerScale);
            item.inRow = false;
            return item;
        }

        private Damage tooLong() {
            return new Damage(Damage.OUT_OF_RANGE, "a decimal has more than " + precision + " digits");
        }
    }
}
