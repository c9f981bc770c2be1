package strata.spark.row;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits;

/** Values that contain others, except {@code RecordNode}. */
public final class Containers {
    private Containers() {}

    public static void bound(RowBuffer out) {
        if (out.at > Limits.OUTPUT) {
            throw new Damage(Damage.LIMIT, "the value takes more than " + Limits.OUTPUT + " bytes");
        }
    }

    /** A union of several types besides null: a struct with one member for each, of which one is set. */
    public static final class MemberNode extends Node {
        private final int size;
        private final int member;
        private final Node value;

        public MemberNode(int size, int member, Node value) {
            this.size = size;
            this.member = member;
            this.value = value;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int start = out.beginRow(size);
            for (int i = 0; i < size; i++) {
                out.putField(start, size, i, i == member ? value.read(in, out, start) : out.nothing());
            }
            return out.close(start, base);
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            value.check(in, out);
        }

        @Override
        public boolean failsAlways() {
            return value.failsAlways();
        }
    }

    /** An array. Spark needs its length before the first item; nearly always, the first block has all items. */
    public static final class ArrayNode extends Node {
        public final int width;
        public final Node item;
        private final Skip skip;
        private final int weightless;

        public ArrayNode(int width, Node item, Skip skip, int weightless) {
            this.width = width;
            this.item = item.asItem();
            this.skip = skip;
            this.weightless = weightless;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int from = in.at;
            int allowance = in.weightlessLeft();
            int count = in.readCount(weightless);
            int start = out.beginArray(count, width);
            readItems(in, out, start, count, 0, count);
            int more = count == 0 ? 0 : in.readCount(weightless);
            if (more > 0) {
                // There are several blocks: pass over them to count their items.
                int first = count;
                for (int next = more; next > 0; next = in.readCount(weightless)) {
                    count = Math.addExact(count, next);
                    skipItems(in, out, first, next);
                    first = count;
                }
                in.rewind(from, allowance);
                out.drop(start);
                out.beginArray(count, width);
                int done = 0;
                for (int next = in.readCount(weightless); next > 0; next = in.readCount(weightless)) {
                    readItems(in, out, start, count, done, next);
                    done += next;
                }
            }
            return out.close(start, base);
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            for (int count = in.readCount(weightless); count > 0; count = in.readCount(weightless)) {
                for (int i = 0; i < count; i++) {
                    item.check(in, out);
                }
            }
        }

        private void readItems(Cursor in, RowBuffer out, int start, int size, int from, int count) {
            int index = from;
            int items = RowBuffer.items(start, size);
            try {
                for (; index < from + count; index++) {
                    out.putItem(start, items, width, index, item.read(in, out, start));
                    bound(out);
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("[" + index + "]") : damage;
            }
        }

        private void skipItems(Cursor in, RowBuffer out, int from, int count) {
            int index = from;
            try {
                for (; index < from + count; index++) {
                    if (in.tracing) {
                        // Errors must be found in the order of the bytes, so read each item before what follows it.
                        item.discard(in, out);
                    } else {
                        skip.pass(in);
                    }
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("[" + index + "]") : damage;
            }
        }

        @Override
        public boolean failsAlways() {
            return item.failsAlways();
        }
    }

    /** A map. Spark needs all keys, then all values. */
    public static final class MapNode extends Node {
        /** Up to this many keys are compared with each other, without a hash table. */
        private static final int FEW = 24;

        public final int width;
        public final Node value;
        private final Skip skip;
        /** For each entry: the start of its key, the length of its key, the start of its value. */
        private int[] places = new int[3 * 8];

        public MapNode(int width, Node value, Skip skip) {
            this.width = width;
            this.value = value.asItem();
            this.skip = skip;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            int allowance = in.weightlessLeft();
            int found = find(in, out);
            int after = in.at;
            in.rewind(after, allowance);
            int start = out.skipWord();
            int count = found > FEW ? distinct(in, out, found) : found;
            int keys = writeKeys(in, out, count);
            if (found <= FEW && RowBuffer.hasTwins(out.bytes, keys, count)) {
                out.drop(keys);
                count = distinct(in, out, found);
                writeKeys(in, out, count);
            }
            // A map begins with the size of its keys.
            RowBuffer.put(out.bytes, start, out.at - keys);
            writeValues(in, out, count);
            in.at = after;
            return out.close(start, base);
        }

        @Override
        public void check(Cursor in, RowBuffer out) {
            for (int count = in.readCount(0); count > 0; count = in.readCount(0)) {
                for (int i = 0; i < count; i++) {
                    int length = in.readLength();
                    in.requireText(in.take(length), length);
                    value.check(in, out);
                }
            }
        }

        private int writeKeys(Cursor in, RowBuffer out, int count) {
            int keys = out.beginArray(count, 8);
            int items = RowBuffer.items(keys, count);
            for (int i = 0; i < count; i++) {
                out.putItem(keys, items, 8, i, out.putText(in, places[3 * i], places[3 * i + 1], keys));
            }
            return keys;
        }

        private void writeValues(Cursor in, RowBuffer out, int count) {
            int[] mine = places;
            // The values may contain maps, but those are other nodes, because a node is never inside itself.
            int values = out.beginArray(count, width);
            int items = RowBuffer.items(values, count);
            for (int i = 0; i < count; i++) {
                in.at = mine[3 * i + 2];
                out.putItem(values, items, width, i, value.read(in, out, values));
                bound(out);
            }
        }

        private int find(Cursor in, RowBuffer out) {
            int found = 0;
            for (int next = in.readCount(0); next > 0; next = in.readCount(0)) {
                for (int i = 0; i < next; i++) {
                    if (3 * found == places.length) {
                        places = Arrays.copyOf(places, 2 * places.length);
                    }
                    try {
                        findOne(in, out, 3 * found);
                    } catch (Damage damage) {
                        throw in.tracing ? damage.within("{}") : damage;
                    }
                    found++;
                }
            }
            return found;
        }

        private void findOne(Cursor in, RowBuffer out, int place) {
            int length = in.readLength();
            int start = in.take(length);
            if (in.tracing) {
                // Without tracing, the copy of the key checks this; here errors must be found in order.
                in.requireText(start, length);
            }
            places[place] = start;
            places[place + 1] = length;
            places[place + 2] = in.at;
            if (in.tracing) {
                value.discard(in, out);
            } else {
                skip.pass(in);
            }
        }

        /** Remove duplicate keys: keep the place of the first and the value of the last. */
        private int distinct(Cursor in, RowBuffer out, int count) {
            byte[] bytes = in.bytes;
            Map<ByteBuffer, Integer> first = new HashMap<>();
            int kept = 0;
            for (int i = 0; i < count; i++) {
                ByteBuffer key = ByteBuffer.wrap(bytes, places[3 * i], places[3 * i + 1]);
                Integer known = first.putIfAbsent(key, kept);
                int to = known == null ? kept++ : known;
                if (known != null) {
                    in.at = places[3 * to + 2];
                    value.discard(in, out);
                }
                System.arraycopy(places, 3 * i, places, 3 * to, 3);
            }
            return kept;
        }

        @Override
        public boolean failsAlways() {
            return value.failsAlways();
        }
    }
}
