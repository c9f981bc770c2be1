package strata.spark;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;

/** The fields of a message that a struct's columns fill, in the order of their numbers. */
final class EncodeProtoFields {
    private final Field[] inColumnOrder;
    private final Field[] backwards;
    private final List<Choice> choices;

    /** @param fields in the column's order */
    EncodeProtoFields(List<Field> fields, List<Choice> choices) {
        this.inColumnOrder = fields.toArray(Field[]::new);
        this.backwards = inColumnOrder.clone();
        Arrays.sort(backwards, Comparator.comparingInt((Field one) -> one.number).reversed());
        this.choices = choices;
    }

    int size() {
        return inColumnOrder.length;
    }

    void put(InternalRow row, EncodeBackwards out) {
        for (Field field : out.isSearching ? inColumnOrder : backwards) {
            field.put(row, out);
        }
        for (Choice choice : choices) {
            choice.check(row);
        }
    }

    /** A field, filled by the column at a place. */
    abstract static class Field {
        final String path;
        final int number;
        private final int place;

        Field(String path, int number, int place) {
            this.path = path;
            this.number = number;
            this.place = place;
        }

        final void put(InternalRow row, EncodeBackwards out) {
            if (row.isNullAt(place)) {
                putNull();
            } else {
                putValue(row, place, out);
            }
        }

        void putNull() {
            throw new EncodeFailure(EncodeNode.IS_NULL + ": the field has no presence", path);
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
        void putNull() {
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
            this.tag = (long) number << 3 | (isPacked ? EncodeProtoValue.SIZED : value.wire);
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
            throw new EncodeFailure(EncodeNode.IS_NULL, path);
        }
    }

    /** A map, whose entries are written in the order of their keys. */
    static final class Entries extends Field {
        private final EncodeProtoValue key;
        private final EncodeProtoValue value;
        private final KeyOrder order;
        private final long tag;

        Entries(String path, int number, int place, EncodeProtoValue key, EncodeProtoValue value, KeyOrder order) {
            super(path, number, place);
            this.key = key;
            this.value = value;
            this.order = order;
            this.tag = (long) number << 3 | EncodeProtoValue.SIZED;
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
        void check(InternalRow row) {
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
