package strata.spark;

import java.math.BigInteger;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes values of one Protobuf type without their tag. A value is not null. */
abstract class EncodeProtoValue {
    static final int VARINT = 0;
    static final int EIGHT = 1;
    static final int SIZED = 2;
    static final int FOUR = 5;

    final String path;
    final int wire;

    EncodeProtoValue(String path, int wire) {
        this.path = path;
        this.wire = wire;
    }

    /**
     * Put a value.
     *
     * @param skipsZero whether a zero, or an empty text, is left out
     * @return whether it was put
     */
    abstract boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero);

    /** Refuse a value for what Python workers find before they look at the range of the numbers around it. */
    void check(SpecializedGetters from, int i) {
        // Most values can only be out of range.
    }

    /** A column as a number of 64 bits, within the range of its field. */
    interface Bits {
        long get(SpecializedGetters from, int i);
    }

    /** Return integers or decimals without fraction, if they are from {@code low} to {@code high}. */
    static Bits bits(EncodeSource.Whole whole, DecimalType decimal, BigInteger low, BigInteger high, String path) {
        if (whole == null) {
            return (from, i) -> {
                BigInteger number = from.getDecimal(i, decimal.precision(), 0).toJavaBigDecimal().toBigInteger();
                if (number.compareTo(low) < 0 || number.compareTo(high) > 0) {
                    throw new EncodeFailure(OUT_OF_RANGE, path);
                }
                return number.longValue();
            };
        }
        long least = low.longValue();
        long most = high.bitLength() < Long.SIZE ? high.longValue() : Long.MAX_VALUE;
        return (from, i) -> {
            long number = whole.get(from, i, null);
            if (number < least || number > most) {
                throw new EncodeFailure(OUT_OF_RANGE, path);
            }
            return number;
        };
    }

    static final String OUT_OF_RANGE = "out of range";

    /** A whole number or an enum. */
    static final class Number extends EncodeProtoValue {
        private final Bits bits;
        private final boolean isZigzag;

        Number(String path, int wire, Bits bits, boolean isZigzag) {
            super(path, wire);
            this.bits = bits;
            this.isZigzag = isZigzag;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            long number = bits.get(from, i);
            if (skipsZero && number == 0) {
                return false;
            }
            if (wire == FOUR) {
                out.putFixed4((int) number);
            } else if (wire == EIGHT) {
                out.putFixed8(number);
            } else {
                out.putVarint(isZigzag ? number << 1 ^ number >> 63 : number);
            }
            return true;
        }
    }

    /** An enum, of a column of names or numbers as text. */
    static final class Name extends EncodeProtoValue {
        private final Map<UTF8String, Integer> numbers;
        private final String unknown;
        private final boolean isClosed;

        Name(String path, String type, Map<UTF8String, Integer> numbers, boolean isClosed) {
            super(path, VARINT);
            this.numbers = numbers;
            this.unknown = "expected a name of the enum " + type;
            this.isClosed = isClosed;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            UTF8String name = from.getUTF8String(i);
            Integer found = numbers.get(name);
            int number = found == null ? number(name.toString()) : found;
            if (skipsZero && number == 0) {
                return false;
            }
            out.putVarint(number);
            return true;
        }

        private int number(String digits) {
            if (!digits.matches("-?[0-9]+")) {
                throw new EncodeFailure(unknown, path);
            }
            BigInteger number = new BigInteger(digits);
            if (number.bitLength() >= Integer.SIZE || isClosed && !numbers.containsValue(number.intValue())) {
                throw new EncodeFailure(OUT_OF_RANGE, path);
            }
            return number.intValue();
        }

        @Override
        void check(SpecializedGetters from, int i) {
            UTF8String name = from.getUTF8String(i);
            if (!numbers.containsKey(name) && !name.toString().matches("-?[0-9]+")) {
                throw new EncodeFailure(unknown, path);
            }
        }
    }

    static final class Real extends EncodeProtoValue {
        private final EncodeSource.Real source;

        Real(String path, int wire, EncodeSource.Real source) {
            super(path, wire);
            this.source = source;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            double number = source.get(from, i, null);
            if (skipsZero && Double.doubleToRawLongBits(number) == 0) { // minus zero is kept
                return false;
            }
            if (wire == FOUR) {
                out.putFixed4(Float.floatToRawIntBits((float) number));
            } else {
                out.putFixed8(Double.doubleToRawLongBits(number));
            }
            return true;
        }
    }

    static final class Flag extends EncodeProtoValue {
        Flag(String path) {
            super(path, VARINT);
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            boolean flag = from.getBoolean(i);
            if (skipsZero && !flag) {
                return false;
            }
            out.putVarint(flag ? 1 : 0);
            return true;
        }
    }

    static final class Text extends EncodeProtoValue {
        Text(String path) {
            super(path, SIZED);
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            UTF8String text = from.getUTF8String(i);
            if (skipsZero && text.numBytes() == 0) {
                return false;
            }
            if (!out.putRaw(text) && !EncodeOutput.isText(text)) {
                throw new EncodeFailure("expected text in UTF-8", path);
            }
            out.putVarint(text.numBytes());
            return true;
        }
    }

    static final class Bytes extends EncodeProtoValue {
        Bytes(String path) {
            super(path, SIZED);
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            byte[] content = from.getBinary(i);
            if (skipsZero && content.length == 0) {
                return false;
            }
            out.putRaw(content);
            out.putVarint(content.length);
            return true;
        }
    }

    /** A timestamp or a duration, of a column of microseconds. */
    static final class Time extends EncodeProtoValue {
        private static final long SECOND = 1_000_000;
        private static final EncodeTime YEARS = EncodeTime.OF.get("timestamp-micros");

        private final boolean isSpan;

        Time(String path, boolean isSpan) {
            super(path, SIZED);
            this.isSpan = isSpan;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            long micros = from.getLong(i);
            if (!isSpan && (micros < YEARS.low() || micros > YEARS.high())) {
                throw new EncodeFailure("expected a year from 1 to 9999", path);
            }
            int end = out.size();
            // The parts of a span have its sign.
            putPart(isSpan ? micros / SECOND : Math.floorDiv(micros, SECOND),
                1000 * (isSpan ? micros % SECOND : Math.floorMod(micros, SECOND)), out);
            out.putVarint(out.size() - end);
            return true;
        }

        private static void putPart(long seconds, long nanos, EncodeBackwards out) {
            if (nanos != 0) {
                out.putVarint(nanos);
                out.putVarint(2 << 3);
            }
            if (seconds != 0) {
                out.putVarint(seconds);
                out.putVarint(1 << 3);
            }
        }
    }

    /** A message, of a column of structs. */
    static final class Message extends EncodeProtoValue {
        private final EncodeProtoFields fields;

        Message(String path, EncodeProtoFields fields) {
            super(path, SIZED);
            this.fields = fields;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            int end = out.size();
            InternalRow row = from.getStruct(i, fields.size());
            fields.put(row, out);
            out.putVarint(out.size() - end);
            return true;
        }
    }

    /** A message with the only field {@code value}, of a column of such values. */
    static final class Wrapper extends EncodeProtoValue {
        private final EncodeProtoValue value;

        Wrapper(String path, EncodeProtoValue value) {
            super(path, SIZED);
            this.value = value;
        }

        @Override
        boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            int end = out.size();
            if (value.put(from, i, out, true)) {
                out.putVarint(1 << 3 | value.wire);
            }
            out.putVarint(out.size() - end);
            return true;
        }
    }
}
