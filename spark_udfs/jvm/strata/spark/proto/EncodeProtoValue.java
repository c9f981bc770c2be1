package strata.spark.proto;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.bytes.ProtoWire;
import strata.spark.write.EncodeOutput;
import strata.spark.write.EncodeOutput.EncodeBackwards;
import strata.spark.write.EncodeOutput.EncodeFailure;
import strata.spark.write.EncodeSource;
import strata.spark.write.EncodeSource.EncodeTime;

/** Writes values of one Protobuf type without their tag. A value is not null. */
abstract class EncodeProtoValue {

    public final String path;
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
    public abstract boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero);

    /** Refuse a value for what Python workers find before they look at the range of the numbers around it. */
    public void check(SpecializedGetters from, int i) {
        // Most values can only be out of range.
    }

    /** A column as a number of 64 bits, within the range of its field. */
    interface Bits {
        long get(SpecializedGetters from, int i);
    }

    /** Return integers or decimals without fraction, if they are from {@code low} to {@code high}. */
    public static Bits bits(
            EncodeSource.Whole whole, DecimalType decimal, BigInteger low, BigInteger high, String path) {
        if (whole == null) {
            return (from, i) -> {
                BigInteger number = from.getDecimal(i, decimal.precision(), 0)
                        .toJavaBigDecimal()
                        .toBigInteger();
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

    public static final String OUT_OF_RANGE = "out of range";

    /** A whole number or an enum. */
    public static final class Number extends EncodeProtoValue {
        private final Bits bits;
        private final boolean isZigzag;

        public Number(String path, int wire, Bits bits, boolean isZigzag) {
            super(path, wire);
            this.bits = bits;
            this.isZigzag = isZigzag;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            long number = bits.get(from, i);
            if (skipsZero && number == 0) {
                return false;
            }
            if (wire == ProtoWire.FIXED32) {
                out.putFixed4((int) number);
            } else if (wire == ProtoWire.FIXED64) {
                out.putFixed8(number);
            } else {
                out.putVarint(isZigzag ? number << 1 ^ number >> 63 : number);
            }
            return true;
        }
    }

    /** An enum, of a column of names or numbers as text. */
    public static final class Name extends EncodeProtoValue {
        private final Map<UTF8String, Integer> numbers;
        private final String unknown;
        private final boolean isClosed;

        public Name(String path, String type, Map<UTF8String, Integer> numbers, boolean isClosed) {
            super(path, ProtoWire.VARINT);
            this.numbers = numbers;
            this.unknown = "expected a name of the enum " + type;
            this.isClosed = isClosed;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
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
        public void check(SpecializedGetters from, int i) {
            UTF8String name = from.getUTF8String(i);
            if (!numbers.containsKey(name) && !name.toString().matches("-?[0-9]+")) {
                throw new EncodeFailure(unknown, path);
            }
        }
    }

    public static final class Real extends EncodeProtoValue {
        private final EncodeSource.Real source;

        public Real(String path, int wire, EncodeSource.Real source) {
            super(path, wire);
            this.source = source;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            double number = source.get(from, i, null);
            if (skipsZero && Double.doubleToRawLongBits(number) == 0) { // minus zero is kept
                return false;
            }
            if (wire == ProtoWire.FIXED32) {
                out.putFixed4(Float.floatToRawIntBits((float) number));
            } else {
                out.putFixed8(Double.doubleToRawLongBits(number));
            }
            return true;
        }
    }

    public static final class Flag extends EncodeProtoValue {
        public Flag(String path) {
            super(path, ProtoWire.VARINT);
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            boolean flag = from.getBoolean(i);
            if (skipsZero && !flag) {
                return false;
            }
            out.putVarint(flag ? 1 : 0);
            return true;
        }
    }

    public static final class Text extends EncodeProtoValue {
        public Text(String path) {
            super(path, ProtoWire.BYTES);
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
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

    public static final class Bytes extends EncodeProtoValue {
        public Bytes(String path) {
            super(path, ProtoWire.BYTES);
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
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
            super(path, ProtoWire.BYTES);
            this.isSpan = isSpan;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            long micros = from.getLong(i);
            if (!isSpan && (micros < YEARS.low() || micros > YEARS.high())) {
                throw new EncodeFailure("expected a year from 1 to 9999", path);
            }
            int end = out.size();
            // The parts of a span have its sign.
            putPart(
                    isSpan ? micros / SECOND : Math.floorDiv(micros, SECOND),
                    1000 * (isSpan ? micros % SECOND : Math.floorMod(micros, SECOND)),
                    out);
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
    public static final class Message extends EncodeProtoValue {
        private final EncodeProtoFields fields;

        public Message(String path, EncodeProtoFields fields) {
            super(path, ProtoWire.BYTES);
            this.fields = fields;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
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
            super(path, ProtoWire.BYTES);
            this.value = value;
        }

        @Override
        public boolean put(SpecializedGetters from, int i, EncodeBackwards out, boolean skipsZero) {
            int end = out.size();
            if (value.put(from, i, out, true)) {
                out.putVarint(1 << 3 | value.wire);
            }
            out.putVarint(out.size() - end);
            return true;
        }
    }

    /** The fields of a message that a struct's columns fill, in the order of their numbers. */
    static final class EncodeProtoFields {
        private final Field[] inColumnOrder;
        private final Field[] backwards;
        private final List<Choice> choices;

        /** @param fields in the column's order */
        EncodeProtoFields(List<Field> fields, List<Choice> choices) {
            this.inColumnOrder = fields.toArray(Field[]::new);
            this.backwards = inColumnOrder.clone();
            Arrays.sort(
                    backwards,
                    Comparator.comparingInt((Field one) -> one.number).reversed());
            this.choices = choices;
        }

        public int size() {
            return inColumnOrder.length;
        }

        public void put(InternalRow row, EncodeBackwards out) {
            for (Field field : out.isSearching ? inColumnOrder : backwards) {
                field.put(row, out);
            }
            for (Choice choice : choices) {
                choice.check(row);
            }
        }

        /** A field, filled by the column at a place. */
        public abstract static class Field {
            public final String path;
            public final int number;
            private final int place;

            public Field(String path, int number, int place) {
                this.path = path;
                this.number = number;
                this.place = place;
            }

            public final void put(InternalRow row, EncodeBackwards out) {
                if (row.isNullAt(place)) {
                    putNull();
                } else {
                    putValue(row, place, out);
                }
            }

            public void putNull() {
                throw new EncodeFailure(EncodeFailure.IS_NULL + ": the field has no presence", path);
            }

            abstract void putValue(SpecializedGetters from, int i, EncodeBackwards out);
        }

        static final class Single extends Field {
            private final EncodeProtoValue value;
            private final boolean hasPresence;
            private final long tag;

            Single(String path, int number, int place, EncodeProtoValue value, boolean hasPresence) {
                super(path, number, place);
                this.value = value;
                this.hasPresence = hasPresence;
                this.tag = (long) number << 3 | value.wire;
            }

            @Override
            public void putNull() {
                if (!hasPresence) {
                    super.putNull();
                }
            }

            @Override
            void putValue(SpecializedGetters from, int i, EncodeBackwards out) {
                if (value.put(from, i, out, !hasPresence)) {
                    out.putVarint(tag);
                }
            }
        }

        static final class Repeated extends Field {
            private final EncodeProtoValue value;
            private final boolean isPacked;
            private final long tag;

            Repeated(String path, int number, int place, EncodeProtoValue value, boolean isPacked) {
                super(path, number, place);
                this.value = value;
                this.isPacked = isPacked;
                this.tag = (long) number << 3 | (isPacked ? ProtoWire.BYTES : value.wire);
            }

            @Override
            void putValue(SpecializedGetters from, int i, EncodeBackwards out) {
                ArrayData items = from.getArray(i);
                int count = items.numElements();
                if (out.isSearching) {
                    search(items, count, out);
                }
                int end = out.size();
                for (int place = count - 1; place >= 0; place--) {
                    requireValue(items, place, value.path);
                    value.put(items, place, out, false);
                    if (!isPacked) {
                        out.putVarint(tag);
                    }
                }
                if (isPacked && count > 0) {
                    out.putVarint(out.size() - end);
                    out.putVarint(tag);
                }
            }

            private void search(ArrayData items, int count, EncodeBackwards out) {
                boolean isMessage = value instanceof EncodeProtoValue.Message;
                for (int place = 0; place < count; place++) {
                    requireValue(items, place, value.path);
                    value.check(items, place);
                    if (isMessage) {
                        value.put(items, place, out, false);
                    }
                }
                for (int place = 0; place < count; place++) {
                    value.put(items, place, out, false);
                }
            }
        }

        private static void requireValue(ArrayData items, int place, String path) {
            if (items.isNullAt(place)) {
                throw new EncodeFailure(EncodeFailure.IS_NULL, path);
            }
        }

        /** A map, whose entries are written in the order of their keys. */
        public static final class Entries extends Field {
            private final EncodeProtoValue key;
            private final EncodeProtoValue value;
            private final KeyOrder order;
            private final long tag;

            public Entries(
                    String path, int number, int place, EncodeProtoValue key, EncodeProtoValue value, KeyOrder order) {
                super(path, number, place);
                this.key = key;
                this.value = value;
                this.order = order;
                this.tag = (long) number << 3 | ProtoWire.BYTES;
            }

            @Override
            void putValue(SpecializedGetters from, int i, EncodeBackwards out) {
                MapData map = from.getMap(i);
                ArrayData keys = map.keyArray();
                ArrayData values = map.valueArray();
                int count = map.numElements();
                if (out.isSearching) {
                    for (int place = 0; place < count; place++) {
                        requireValue(values, place, value.path);
                        value.check(values, place);
                        putEntry(keys, values, place, out);
                    }
                }
                Integer[] sorted = null;
                if (count > 1) {
                    sorted = new Integer[count];
                    Arrays.setAll(sorted, place -> place);
                    Arrays.sort(sorted, (one, other) -> order.compare(keys, one, other));
                }
                for (int place = count - 1; place >= 0; place--) {
                    putEntry(keys, values, sorted == null ? place : sorted[place], out);
                }
            }

            private void putEntry(ArrayData keys, ArrayData values, int place, EncodeBackwards out) {
                requireValue(values, place, value.path);
                int end = out.size();
                value.put(values, place, out, false);
                out.putVarint(2 << 3 | value.wire);
                key.put(keys, place, out, false);
                out.putVarint(1 << 3 | key.wire);
                out.putVarint(out.size() - end);
                out.putVarint(tag);
            }
        }

        /** The order of two keys of a map. */
        interface KeyOrder {
            int compare(ArrayData keys, int one, int other);
        }

        /**
         * A oneof, of which at most one member may be set.
         *
         * @param places the columns of its members
         * @param paths their paths
         */
        record Choice(int[] places, String[] paths) {
            public void check(InternalRow row) {
                boolean isSet = false;
                for (int member = 0; member < places.length; member++) {
                    if (!row.isNullAt(places[member])) {
                        if (isSet) {
                            throw new EncodeFailure("expected one member of the oneof, got several", paths[member]);
                        }
                        isSet = true;
                    }
                }
            }
        }
    }
}
