package strata.spark.json;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.json.JsonColumn.JsonScalars;
import strata.spark.json.JsonTree.JsonWriter;
import strata.spark.row.Containers;
import strata.spark.row.RowBuffer;

/**
 * The program of JSON payloads. It depends on the reader schema only; a program for each writer schema remembers the
 * order in which that writer's records have their properties.
 *
 * <p>One pass over the bytes fills the row. What it cannot do alone is done the slow way, through a tree: the reason why
 * a payload has no value, and objects with a name that comes twice.
 */
public final class JsonProgram extends Program {
    private final JsonColumn column;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();

    public JsonProgram(Object name, JsonReader reader, RowBuffer row) {
        super(name);
        this.column = reader.column();
        this.row = row;
    }

    @Override
    public void read(FrameHeader frame) {
        try {
            read(frame.bytes(), frame.start(), frame.end());
        } catch (Damage unusual) {
            readSlowly(frame);
        }
    }

    private void read(byte[] bytes, int start, int end) {
        cursor.open(bytes, start, end, false);
        row.begin();
        row.putField(0, column.read(cursor, row, 0));
        JsonSyntax.requireEnd(cursor);
    }

    private void readSlowly(FrameHeader frame) {
        Object value = parse(frame);
        try {
            column.check(Collections.singletonList(value));
            byte[] same = JsonWriter.same(value);
            read(same, 0, same.length);
        } catch (JsonColumn.Mismatch mismatch) {
            boolean isKind = mismatch.reason.equals(JsonColumn.INVALID_VALUE);
            String what = mismatch.reason + (mismatch.detail.isEmpty() ? "" : ": " + mismatch.detail);
            String at = mismatch.path.isEmpty() ? "" : " at " + mismatch.path;
            String place = mismatch.path.isEmpty() ? "" : " (at field " + mismatch.path + ")";
            throw new Refusal(isKind ? what + at : mismatch.reason, name, what + place);
        } catch (Damage limit) {
            throw new Refusal(limit.reason, name, limit.getMessage());
        }
    }

    /** Parse the payload; the first error in the order of its bytes counts, after UTF-8. */
    private Object parse(FrameHeader frame) {
        int start = frame.start();
        try {
            cursor.open(frame.bytes(), start, frame.end(), false);
            cursor.requireText(start, frame.end() - start);
            return JsonTree.ofAll(cursor);
        } catch (Damage found) {
            Damage damage = found.reason.equals(Damage.INVALID_UTF8) ? JsonSyntax.malformed() : found;
            throw new Refusal(damage.reason, name, damage.message(cursor.at - start));
        }
    }

    /** The types of a JSON reader schema, as the driver describes them, and the columns that read them. */
    public static final class JsonReader {
        private static final ObjectMapper JSON = new ObjectMapper();

        private final JsonNode root;

        /** @param text the description that {@code strata.spark_udfs.decoding.json_jvm} makes */
        public JsonReader(String text) {
            try {
                this.root = JSON.readTree(text);
            } catch (IOException error) {
                throw new IllegalArgumentException("not a reader schema of Strata");
            }
        }

        /** Return the column of the whole; it serves one program. */
        public JsonColumn column() {
            return column(root);
        }

        private static JsonColumn column(JsonNode node) {
            String kind = node.path("kind").asText();
            return switch (kind) {
                case "object" -> object(node.path("fields"));
                case "array" -> new Array(column(node.path("item")));
                case "map" -> new Entries(column(node.path("item")));
                default -> JsonScalars.of(kind);
            };
        }

        private static JsonObject object(JsonNode fields) {
            String[] names = new String[fields.size()];
            JsonColumn[] columns = new JsonColumn[fields.size()];
            for (int slot = 0; slot < names.length; slot++) {
                names[slot] = fields.get(slot).get(0).asText();
                columns[slot] = column(fields.get(slot).get(1));
            }
            return new JsonObject(names, columns);
        }
    }

    /** Arrays. Spark needs their length first, so the head is put before what the items contain. */
    static final class Array extends JsonColumn {
        private final JsonColumn item;
        private long[] words = new long[16];
        private boolean[] nulls = new boolean[16];

        Array(JsonColumn item) {
            this.item = item;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
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
        public void check(List<Object> values) {
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
    public static final class Entries extends JsonColumn {
        /** Up to this many names are compared with each other, without a hash table. */
        private static final int FEW = 24;

        private final JsonColumn value;
        /** For each entry: the start of its name, the end of its name, the start of its value. */
        private int[] places = new int[3 * 8];

        private boolean hasEscapes;

        public Entries(JsonColumn value) {
            this.value = value;
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
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
        public void check(List<Object> values) {
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

    /** Objects with known properties, as rows; others are skipped. */
    static final class JsonObject extends JsonColumn {
        /** How many names of properties that are not read are remembered, and of what length. */
        private static final int MAX_OTHERS = 256;

        private static final int MAX_NAME = 64;

        private final int size;
        private final String[] names;
        private final JsonColumn[] columns;
        private final int[] nested;
        private final boolean[] wide;
        /** A row of nulls. */
        private final byte[] empty;
        /** Which fields were met; for more than 64 of them. */
        private final boolean[] met;

        private final Map<ByteBuffer, Name> known = new HashMap<>();
        private final Name first = new Name(new byte[0], -1, 0, false);
        private final Name other = new Name(new byte[0], -1, 0, false);
        private int others;

        JsonObject(String[] names, JsonColumn[] columns) {
            this.size = names.length;
            this.names = names;
            this.columns = columns;
            this.nested = IntStream.range(0, size)
                    .filter(slot -> columns[slot].isNested())
                    .toArray();
            this.wide = new boolean[nested.length];
            this.met = new boolean[size];
            RowBuffer row = new RowBuffer(size);
            row.begin();
            for (int slot = 0; slot < size; slot++) {
                row.putField(slot, row.nothing());
                byte[] name = names[slot].getBytes(StandardCharsets.UTF_8);
                int place = RowBuffer.nullBytes(size) + 8 * slot;
                known.put(ByteBuffer.wrap(name), new Name(name, slot, place, isPlain(name)));
            }
            this.empty = Arrays.copyOf(row.bytes, row.at);
        }

        /** Return whether a name needs no escapes in JSON. */
        private static boolean isPlain(byte[] name) {
            for (byte one : name) {
                if (one == '"' || one == '\\' || one >= 0 && one < ' ') {
                    return false;
                }
            }
            return true;
        }

        /** A name of a property, and the name that came after it last time, which is likely to do so again. */
        private static final class Name {
            public final int slot;
            public final int place;
            private final byte[] quoted;
            private final long word;
            private final long mask;
            private final boolean isPlain;
            public Name next;

            public Name(byte[] name, int slot, int place, boolean isPlain) {
                this.slot = slot;
                this.place = place;
                this.isPlain = isPlain;
                this.quoted = Arrays.copyOf(name, name.length + 1);
                quoted[name.length] = '"';
                this.word = Cursor.word(Arrays.copyOf(quoted, Math.max(8, quoted.length)), 0);
                this.mask = quoted.length >= 8 ? -1L : (1L << 8 * quoted.length) - 1;
            }

            /** Pass this name and its closing quote, if they come next. */
            public boolean passes(Cursor in) {
                int at = in.at;
                int length = quoted.length;
                if (at > in.end - 8 || ((Cursor.word(in.bytes, at) ^ word) & mask) != 0 || !isPlain) {
                    return false;
                }
                if (length > 8
                        && (length > in.end - at || !Arrays.equals(in.bytes, at + 8, at + length, quoted, 8, length))) {
                    return false;
                }
                in.at = at + length;
                return true;
            }
        }

        @Override
        public long read(Cursor in, RowBuffer out, int base) {
            if (JsonSyntax.peek(in) != '{') {
                return nothing(in, out);
            }
            JsonSyntax.enter(in);
            int row = out.beginRow(size);
            System.arraycopy(empty, 0, out.bytes, row, empty.length);
            if (!JsonSyntax.isEmpty(in, '}')) {
                readMembers(in, out, row);
            }
            out.sort(row, size, nested, wide);
            Containers.bound(out);
            return out.close(row, base);
        }

        private void readMembers(Cursor in, RowBuffer out, int row) {
            long few = 0;
            if (size > Long.SIZE) {
                Arrays.fill(met, false);
            }
            Name name = first;
            do {
                JsonSyntax.pass(in, '"');
                Name likely = name.next;
                name = likely != null && likely.passes(in) ? likely : find(in, name);
                JsonSyntax.pass(in, ':');
                int slot = name.slot;
                if (slot < 0) {
                    JsonSyntax.skip(in);
                    continue;
                }
                if (size > Long.SIZE ? met[slot] : (few >>> slot & 1) != 0) {
                    throw UNUSUAL;
                }
                few |= 1L << slot;
                met[slot] = true;
                long word = columns[slot].read(in, out, row);
                if (word != RowBuffer.NULL || !out.tookNothing()) {
                    out.putPresent(row, slot, name.place, word);
                }
            } while (JsonSyntax.hasMore(in, '}'));
        }

        /** Pass a name after its opening quote. */
        private Name find(Cursor in, Name before) {
            int start = in.at;
            boolean hasEscapes = JsonSyntax.text(in);
            int length = in.at - 1 - start;
            byte[] bytes = in.bytes;
            if (hasEscapes) {
                bytes = new byte[length];
                length = JsonSyntax.unescape(in.bytes, start, in.at - 1, bytes);
                start = 0;
            }
            Name found = known.get(ByteBuffer.wrap(bytes, start, length));
            if (found == null) {
                boolean isLearned = !hasEscapes && others < MAX_OTHERS && length <= MAX_NAME;
                found = isLearned ? learn(Arrays.copyOfRange(bytes, start, start + length)) : other;
            }
            before.next = found;
            return found;
        }

        private Name learn(byte[] name) {
            Name learned = new Name(name, -1, 0, true);
            known.put(ByteBuffer.wrap(name), learned);
            others++;
            return learned;
        }

        @Override
        public void check(List<Object> values) {
            require(values, "object", Map.class);
            for (int slot = 0; slot < size; slot++) {
                List<Object> inside = new ArrayList<>();
                for (Object value : values) {
                    inside.add(value == null ? null : ((Map<?, ?>) value).get(names[slot]));
                }
                checkUnder(names[slot], columns[slot], inside);
            }
        }
    }
}
