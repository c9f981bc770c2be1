package strata.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** A map. Spark needs all keys, then all values; of entries with the same key the last one counts. */
final class ProtoMap extends ProtoField {
    /** Up to this many keys are compared with each other, without a hash table. */
    private static final int FEW = 24;
    private static final int FIRST_SIZE = 16;

    private final Later key;
    private final Later value;
    private final int keyWidth;
    private final int valueWidth;
    private final boolean isTextKey;
    private int count;
    /** For each entry: where it begins, where it ends. */
    private int[] extents = new int[2 * FIRST_SIZE];

    ProtoMap(String name, int number, int slot, Later key, Later value, int keyWidth, int valueWidth, boolean isText) {
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
    void write(Cursor in, RowBuffer out, int row, int size) {
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

    private int writeItems(Cursor in, RowBuffer out, Later part, int width) {
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

    @Override
    boolean check(Cursor in, int tag) {
        if ((tag & 7) != ProtoWire.BYTES) {
            ProtoWire.skip(in, tag);
            return false;
        }
        return ProtoMessage.within(in, () -> {
            boolean isRight = true;
            while (in.at < in.end) {
                int inner = ProtoWire.tag(in);
                if (key.has(inner)) {
                    isRight &= key.check(in, inner);
                } else if (value.has(inner)) {
                    isRight &= value.check(in, inner);
                } else {
                    isRight = false;
                    ProtoWire.skip(in, inner);
                }
            }
            return isRight;
        });
    }
}
