package strata.spark.proto;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.ProtoWire;
import strata.spark.row.Containers;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;

/**
 * A field of a message that is a column. A message may have its fields in any order and more than once: a first pass
 * over its bytes finds where they are, and a second writes them in the order of the row.
 *
 * <p>A field serves one thread, and is never inside itself.
 */
abstract class ProtoField {
    public final String name;
    public final int number;
    public final int slot;
    public final boolean hasPresence;
    /** The other members of its oneof. */
    ProtoField[] rivals = {};

    ProtoField(String name, int number, int slot, boolean hasPresence) {
        this.name = name;
        this.number = number;
        this.slot = slot;
        this.hasPresence = hasPresence;
    }

    /**
     * Meet the field in the first pass; the cursor is behind its tag.
     *
     * @param before where the tag begins
     * @throws Damage if the wire type is not the field's
     */
    abstract void meet(Cursor in, int wire, int before, RowBuffer out, int row, int size);

    /** Forget what was met, because a new message begins, or another member of the oneof is set. */
    abstract void forget();

    /** Write the field in the second pass; the slot holds null or the default if it was met directly. */
    public abstract void write(Cursor in, RowBuffer out, int row, int size);

    /** Return whether {@link #write} has anything to do. */
    boolean isDeferred() {
        return true;
    }

    final void meetOnly(Cursor in, RowBuffer out, int row) {
        for (ProtoField rival : rivals) {
            in.overwrote |= rival.isMet();
            rival.forget();
            if (!rival.isDeferred()) {
                out.putNull(row, rival.slot, rival.place);
            }
        }
    }

    /** Return whether a value waits for the second pass. */
    boolean isMet() {
        return false;
    }

    /** The distance of the slot from the start of the row. */
    public int place;

    /** A number whose word goes into its slot at once. */
    static final class Direct extends ProtoField {
        private final Node value;
        private final int wire;

        Direct(String name, int number, int slot, boolean hasPresence, Node value, int wire) {
            super(name, number, slot, hasPresence);
            this.value = value;
            this.wire = wire;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (met != wire) {
                throw ProtoWire.malformed();
            }
            out.putPresent(row, slot, place, value.read(in, out, row));
            if (rivals.length > 0) {
                meetOnly(in, out, row);
            }
        }

        @Override
        void forget() {}

        @Override
        public void write(Cursor in, RowBuffer out, int row, int size) {}

        @Override
        boolean isDeferred() {
            return false;
        }
    }

    /** A member of a oneof that is not a column: it is not read, but unsets those that are. */
    static final class Unread extends ProtoField {
        private final int wire;
        /** The numbers of a closed enum, of which others are unknown fields; null for other types. */
        private final Set<Integer> numbers;

        Unread(String name, int number, int wire, Set<Integer> numbers) {
            super(name, number, ProtoColumns.UNREAD, false);
            this.wire = wire;
            this.numbers = numbers;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            int start = in.at;
            ProtoWire.skip(in, number << 3 | met);
            if (met == wire && (numbers == null || numbers.contains(numberAt(in, start)))) {
                meetOnly(in, out, row);
            }
        }

        private static int numberAt(Cursor in, int start) {
            in.at = start;
            return (int) ProtoWire.varint(in);
        }

        @Override
        void forget() {}

        @Override
        public void write(Cursor in, RowBuffer out, int row, int size) {}

        @Override
        boolean isDeferred() {
            return false;
        }
    }

    /** A single value that is read in the second pass. */
    static final class Deferred extends ProtoField {
        private final Node value;
        private final Node absent;
        private final int wire;
        private final boolean merges;
        private int count;
        private int first;
        private int last;

        /**
         * @param absent the node of the default; null for a field with presence
         * @param merges whether several values are one message
         */
        Deferred(String name, int number, int slot, Node value, Node absent, int wire, boolean merges) {
            super(name, number, slot, absent == null);
            this.value = value;
            this.absent = absent;
            this.wire = wire;
            this.merges = merges;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (met != wire) {
                throw ProtoWire.malformed();
            }
            if (count++ == 0) {
                first = before;
            } else {
                in.overwrote = true;
            }
            last = in.at;
            ProtoWire.skip(in, number << 3 | met);
            if (rivals.length > 0) {
                meetOnly(in, out, row);
            }
        }

        @Override
        void forget() {
            count = 0;
        }

        @Override
        public void write(Cursor in, RowBuffer out, int row, int size) {
            if (count == 0 && absent == null) {
                return;
            }
            try {
                out.putPresent(row, slot, place, read(in, out, row));
            } catch (Damage damage) {
                throw damage.within("." + name);
            }
        }

        @Override
        boolean isMet() {
            return count > 0;
        }

        public boolean has(int tag) {
            return tag == (number << 3 | wire);
        }

        public long read(Cursor in, RowBuffer out, int base) {
            if (count == 0) {
                return absent.read(in, out, base);
            }
            if (merges && count > 1) {
                return value.read(merged(in), out, base);
            }
            in.at = last;
            return value.read(in, out, base);
        }

        /** Return the bytes of all values as one: that is what merging messages means. */
        private Cursor merged(Cursor in) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            in.at = first;
            for (int seen = 0; seen < count; ) {
                int tag = ProtoWire.tag(in);
                if (tag == (number << 3 | wire)) {
                    int length = ProtoWire.length(in);
                    all.write(in.bytes, in.take(length), length);
                    seen++;
                } else {
                    ProtoWire.skip(in, tag);
                }
            }
            byte[] content = all.toByteArray();
            byte[] framed = new byte[content.length + 5];
            for (int i = 0, left = content.length; i < 5; i++, left >>>= 7) {
                framed[i] = (byte) (left & 0x7F | (i < 4 ? 0x80 : 0));
            }
            System.arraycopy(content, 0, framed, 5, content.length);
            Cursor merged = new Cursor();
            merged.open(framed, 0, in.tracing);
            return merged;
        }
    }

    /** A repeated value, packed or not. */
    static final class Many extends ProtoField {
        private final Node item;
        private final int wire;
        private final int width;
        private final boolean packs;
        private int count;
        private int first;

        Many(String name, int number, int slot, Node item, int wire, int width) {
            super(name, number, slot, false);
            this.item = item.asItem();
            this.wire = wire;
            this.width = width;
            this.packs = wire != ProtoWire.BYTES;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (count == 0) {
                first = before;
            }
            if (met == wire) {
                ProtoWire.skip(in, number << 3 | met);
                count++;
            } else if (packs && met == ProtoWire.BYTES) {
                count += ProtoWire.skipPacked(in, wire);
            } else {
                throw ProtoWire.malformed();
            }
        }

        @Override
        void forget() {
            count = 0;
        }

        @Override
        public void write(Cursor in, RowBuffer out, int row, int size) {
            int all = count;
            int start = out.beginArray(all, width);
            int items = RowBuffer.items(start, all);
            in.at = first;
            try {
                for (int done = 0; done < all; ) {
                    int tag = ProtoWire.tag(in);
                    if (tag == (number << 3 | wire)) {
                        out.putItem(start, items, width, done++, item.read(in, out, start));
                    } else if (packs && tag == (number << 3 | ProtoWire.BYTES)) {
                        int length = ProtoWire.length(in);
                        for (int end = in.at + length; in.at < end; ) {
                            out.putItem(start, items, width, done++, item.read(in, out, start));
                        }
                    } else {
                        ProtoWire.skip(in, tag);
                    }
                    Containers.bound(out);
                }
            } catch (Damage damage) {
                throw damage.within("." + name + "[]");
            }
            out.putField(row, size, slot, out.close(start, row));
        }
    }

    /** A map. Spark needs all keys, then all values; of entries with the same key the last one counts. */
    static final class ProtoMap extends ProtoField {
        /** Up to this many keys are compared with each other, without a hash table. */
        private static final int FEW = 24;

        private static final int FIRST_SIZE = 16;

        private final Deferred key;
        private final Deferred value;
        private final int keyWidth;
        private final int valueWidth;
        private final boolean isTextKey;
        private int count;
        /** For each entry: where it begins, where it ends. */
        private int[] extents = new int[2 * FIRST_SIZE];

        ProtoMap(
                String name,
                int number,
                int slot,
                Deferred key,
                Deferred value,
                int keyWidth,
                int valueWidth,
                boolean isText) {
            super(name, number, slot, false);
            this.key = key;
            this.value = value;
            this.keyWidth = keyWidth;
            this.valueWidth = valueWidth;
            this.isTextKey = isText;
        }

        @Override
        void meet(Cursor in, int wire, int before, RowBuffer out, int row, int size) {
            if (wire != ProtoWire.BYTES) {
                throw ProtoWire.malformed();
            }
            int length = ProtoWire.length(in);
            if (2 * count == extents.length) {
                extents = Arrays.copyOf(extents, 2 * extents.length);
            }
            extents[2 * count] = in.at;
            in.at += length;
            extents[2 * count++ + 1] = in.at;
        }

        @Override
        void forget() {
            count = 0;
        }

        @Override
        public void write(Cursor in, RowBuffer out, int row, int size) {
            int outer = in.end;
            try {
                int start = out.skipWord();
                int keys = writeItems(in, out, key, keyWidth);
                int kept = distinct(out.bytes, keys);
                if (kept != count) {
                    in.overwrote = true;
                    out.drop(keys);
                    count = kept;
                    keys = writeItems(in, out, key, keyWidth);
                }
                // A map begins with the size of its keys.
                RowBuffer.put(out.bytes, start, out.at - keys);
                writeItems(in, out, value, valueWidth);
                out.putField(row, size, slot, out.close(start, row));
            } catch (Damage damage) {
                throw damage.within("." + name + "{}");
            } finally {
                in.end = outer;
            }
        }

        private int writeItems(Cursor in, RowBuffer out, Deferred part, int width) {
            int start = out.beginArray(count, width);
            int items = RowBuffer.items(start, count);
            for (int i = 0; i < count; i++) {
                open(in, extents[2 * i], extents[2 * i + 1]);
                out.putItem(start, items, width, i, part.read(in, out, start));
                Containers.bound(out);
            }
            return start;
        }

        private void open(Cursor in, int start, int end) {
            in.at = start;
            in.end = end;
            key.forget();
            value.forget();
            while (in.at < end) {
                int before = in.at;
                int tag = ProtoWire.tag(in);
                if (key.has(tag)) {
                    key.meet(in, tag & 7, before, null, 0, 0);
                } else if (value.has(tag)) {
                    value.meet(in, tag & 7, before, null, 0, 0);
                } else { // some parsers drop such an entry, others keep the rest of it
                    throw ProtoWire.malformed();
                }
            }
        }

        /** Drop earlier entries with the same key: the first place is kept with the last value. Return how many are left. */
        private int distinct(byte[] bytes, int keys) {
            if (count <= FEW && !hasTwins(bytes, keys)) {
                return count;
            }
            Map<ByteBuffer, Integer> first = new HashMap<>();
            int[] kept = new int[2 * count];
            for (int i = 0; i < count; i++) {
                int to = first.size();
                ByteBuffer one = ByteBuffer.wrap(bytes, start(bytes, keys, i), length(bytes, keys, i));
                Integer known = first.putIfAbsent(one, to);
                System.arraycopy(extents, 2 * i, kept, 2 * (known == null ? to : known), 2);
            }
            if (first.size() != count) {
                System.arraycopy(kept, 0, extents, 0, 2 * first.size());
            }
            return first.size();
        }

        private boolean hasTwins(byte[] bytes, int keys) {
            for (int i = 1; i < count; i++) {
                int here = start(bytes, keys, i);
                int length = length(bytes, keys, i);
                for (int j = 0; j < i; j++) {
                    int there = start(bytes, keys, j);
                    if (length == length(bytes, keys, j)
                            && Arrays.equals(bytes, here, here + length, bytes, there, there + length)) {
                        return true;
                    }
                }
            }
            return false;
        }

        private int start(byte[] bytes, int keys, int index) {
            int item = RowBuffer.items(keys, count) + keyWidth * index;
            return isTextKey ? keys + (int) (RowBuffer.get(bytes, item) >>> 32) : item;
        }

        private int length(byte[] bytes, int keys, int index) {
            return isTextKey ? (int) RowBuffer.get(bytes, RowBuffer.items(keys, count) + keyWidth * index) : keyWidth;
        }
    }
}
