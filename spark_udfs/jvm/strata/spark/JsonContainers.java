package strata.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Columns of arrays, and of objects as maps. */
final class JsonContainers {
    private JsonContainers() {}

    /** Arrays. Spark needs their length first, so the head is put before what the items contain. */
    static final class Array extends JsonColumn {
        private final JsonColumn item;
        private long[] words = new long[16];
        private boolean[] nulls = new boolean[16];

        Array(JsonColumn item) {
            this.item = item;
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            if (JsonSyntax.peek(in) != '[') {
                return nothing(in, out);
            }
            JsonSyntax.enter(in);
            int start = out.at;
            int count = 0;
            if (!JsonSyntax.isEmpty(in, ']')) {
                do {
                    if (count == words.length) {
                        words = Arrays.copyOf(words, 2 * count);
                        nulls = Arrays.copyOf(nulls, 2 * count);
                    }
                    long word = item.read(in, out, start);
                    words[count] = word;
                    nulls[count++] = word == RowBuffer.NULL && out.tookNothing();
                    Containers.bound(out);
                } while (JsonSyntax.hasMore(in, ']'));
            }
            out.putArray(start, words, nulls, count, item.width(), item.isNested());
            Containers.bound(out);
            return out.close(start, base);
        }

        @Override
        void check(List<Object> values) {
            require(values, "array", List.class);
            List<Object> items = new ArrayList<>();
            for (Object value : values) {
                if (value != null) {
                    items.addAll((List<?>) value);
                }
            }
            checkUnder("[]", item, items);
        }
    }

    /** Objects as maps. Spark needs all names, then all values. */
    static final class Entries extends JsonColumn {
        /** Up to this many names are compared with each other, without a hash table. */
        private static final int FEW = 24;

        private final JsonColumn value;
        /** For each entry: the start of its name, the end of its name, the start of its value. */
        private int[] places = new int[3 * 8];
        private boolean hasEscapes;

        Entries(JsonColumn value) {
            this.value = value;
        }

        @Override
        long read(Cursor in, RowBuffer out, int base) {
            if (JsonSyntax.peek(in) != '{') {
                return nothing(in, out);
            }
            JsonSyntax.enter(in);
            int depth = in.depth;
            int count = find(in);
            int after = in.at;
            int start = out.skipWord();
            int keys = writeNames(in, out, count);
            if (count <= FEW ? RowBuffer.hasTwins(out.bytes, keys, count) : hasTwins(out.bytes, keys, count)) {
                throw UNUSUAL;
            }
            RowBuffer.put(out.bytes, start, out.at - keys);
            in.depth = depth;
            writeValues(in, out, count);
            in.at = after;
            in.depth = depth - 1;
            return out.close(start, base);
        }

        private int find(Cursor in) {
            hasEscapes = false;
            int found = 0;
            if (JsonSyntax.isEmpty(in, '}')) {
                return found;
            }
            do {
                if (3 * found == places.length) {
                    places = Arrays.copyOf(places, 2 * places.length);
                }
                JsonSyntax.pass(in, '"');
                places[3 * found] = in.at;
                hasEscapes |= JsonSyntax.text(in);
                places[3 * found + 1] = in.at - 1;
                JsonSyntax.pass(in, ':');
                places[3 * found++ + 2] = in.at;
                JsonSyntax.skip(in);
            } while (JsonSyntax.hasMore(in, '}'));
            return found;
        }

        private int writeNames(Cursor in, RowBuffer out, int count) {
            int keys = out.beginArray(count, 8);
            int items = RowBuffer.items(keys, count);
            for (int i = 0; i < count; i++) {
                int start = places[3 * i];
                in.at = places[3 * i + 1] + 1;
                long word = hasEscapes
                    ? JsonScalars.unescaped(in, start, out, keys)
                    : out.put(in.bytes, start, in.at - 1 - start, keys);
                out.putItem(keys, items, 8, i, word);
            }
            return keys;
        }

        private static boolean hasTwins(byte[] bytes, int keys, int count) {
            Set<ByteBuffer> seen = new HashSet<>();
            for (int i = 0; i < count; i++) {
                long word = RowBuffer.get(bytes, RowBuffer.items(keys, count) + 8 * i);
                if (!seen.add(ByteBuffer.wrap(bytes, keys + (int) (word >>> 32), (int) word))) {
                    return true;
                }
            }
            return false;
        }

        private void writeValues(Cursor in, RowBuffer out, int count) {
            int width = value.width();
            int values = out.beginArray(count, width);
            int items = RowBuffer.items(values, count);
            for (int i = 0; i < count; i++) {
                in.at = places[3 * i + 2];
                out.putItem(values, items, width, i, value.read(in, out, values));
                Containers.bound(out);
            }
        }

        @Override
        void check(List<Object> values) {
            require(values, "object", Map.class);
            List<Object> inside = new ArrayList<>();
            for (Object one : values) {
                if (one != null) {
                    inside.addAll(((Map<?, ?>) one).values());
                }
            }
            checkUnder("{}", value, inside);
        }
    }
}
