package strata.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeArrayWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter;
import org.apache.spark.unsafe.Platform;

/** Values that hold others. All use of Spark's internal row format stands here and in {@link Program}. */
final class Containers {
    private Containers() {}

    /** Where Spark's rows and arrays say that something nested lies, and how long it is. */
    private static void close(UnsafeWriter out, int slot, int start) {
        out.setOffsetAndSizeFromPreviousCursor(slot, start);
    }

    /** A slot beyond what is kept: what is written there is given up by moving the cursor back. */
    private static UnsafeRowWriter nowhere(UnsafeWriter out) {
        UnsafeRowWriter row = new UnsafeRowWriter(out, 1);
        row.resetRowWriter();
        return row;
    }

    private static void bound(UnsafeWriter out) {
        if (out.cursor() - Platform.BYTE_ARRAY_OFFSET > Limits.DEFAULT.output()) {
            throw new Damage(Damage.LIMIT, "the value takes more than " + Limits.DEFAULT.output() + " bytes");
        }
    }

    /**
     * One field of a record, in the writer's order.
     *
     * @param name of the writer's field
     * @param value null for one that is skipped
     * @param skip null for one that is read
     * @param slot of the reader's field
     * @param again whether the bytes of the step before are read once more, for a second field of the reader
     */
    record Step(String name, Node value, Skip skip, int slot, boolean again) {}

    /** A record: what the bytes hold, then the defaults. */
    static final class RecordNode extends Node {
        private final UnsafeRowWriter row;
        private final Step[] steps;
        private final Step[] defaults;

        RecordNode(UnsafeWriter root, int size, Step[] steps, Step[] defaults) {
            this.row = new UnsafeRowWriter(root, size);
            this.steps = steps;
            this.defaults = defaults;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int start = out.cursor();
            row.resetRowWriter();
            int before = in.at;
            for (Step step : steps) {
                if (step.again) {
                    in.at = before;
                }
                before = in.at;
                if (in.tracing) {
                    trace(step, in);
                } else if (step.value == null) {
                    step.skip.pass(in);
                } else {
                    step.value.read(in, row, step.slot);
                }
            }
            for (Step step : defaults) {
                step.value.read(in, row, step.slot);
            }
            close(out, slot, start);
        }

        private void trace(Step step, Cursor in) {
            try {
                if (step.value == null) {
                    step.skip.pass(in);
                } else {
                    step.value.read(in, row, step.slot);
                }
            } catch (Damage damage) {
                throw damage.within("." + step.name);
            }
        }

        @Override
        boolean failsAlways() {
            for (Step step : steps) {
                if (step.value != null && step.value.failsAlways()) {
                    return true;
                }
            }
            return false;
        }
    }

    /** A union of several types besides null: a struct with one member for each, of which one is set. */
    static final class MemberNode extends Node {
        private final UnsafeRowWriter row;
        private final int size;
        private final int member;
        private final Node value;

        MemberNode(UnsafeWriter root, int size, int member, Node value) {
            this.row = new UnsafeRowWriter(root, size);
            this.size = size;
            this.member = member;
            this.value = value;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int start = out.cursor();
            row.resetRowWriter();
            for (int i = 0; i < size; i++) {
                if (i != member) {
                    row.setNullAt(i);
                }
            }
            value.read(in, row, member);
            close(out, slot, start);
        }

        @Override
        boolean failsAlways() {
            return value.failsAlways();
        }
    }

    /** An array. Its length must be known before its first item is written, and nearly always the first block is all. */
    static final class ArrayNode extends Node {
        private final UnsafeArrayWriter array;
        private final Node item;
        private final Skip skip;
        private final int weightless;

        ArrayNode(UnsafeWriter root, int width, Node item, Skip skip, int weightless) {
            this.array = new UnsafeArrayWriter(root, width);
            this.item = item;
            this.skip = skip;
            this.weightless = weightless;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int start = out.cursor();
            int from = in.at;
            int allowance = in.weightlessLeft();
            int count = in.readCount(weightless);
            array.initialize(count);
            readItems(in, 0, count);
            int more = count == 0 ? 0 : in.readCount(weightless);
            if (more > 0) {
                // Several blocks: how many items they hold together tells a walk to their end.
                int first = count;
                for (int next = more; next > 0; next = in.readCount(weightless)) {
                    count = Math.addExact(count, next);
                    skipItems(in, first, next);
                    first = count;
                }
                in.rewind(from, allowance);
                out.increaseCursor(start - out.cursor());
                array.initialize(count);
                int done = 0;
                for (int next = in.readCount(weightless); next > 0; next = in.readCount(weightless)) {
                    readItems(in, done, next);
                    done += next;
                }
            }
            close(out, slot, start);
        }

        private void readItems(Cursor in, int from, int count) {
            int at = from;
            try {
                for (; at < from + count; at++) {
                    item.read(in, array, at);
                    bound(array);
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("[" + at + "]") : damage;
            }
        }

        private void skipItems(Cursor in, int from, int count) {
            int at = from;
            try {
                for (; at < from + count; at++) {
                    if (in.tracing) {
                        int start = array.cursor();
                        scratch(in);
                        array.increaseCursor(start - array.cursor());
                    } else {
                        skip.pass(in);
                    }
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("[" + at + "]") : damage;
            }
        }

        /** Read an item into nowhere, so that what is wrong with it is found before what comes after it. */
        private void scratch(Cursor in) {
            item.read(in, nowhere(array), 0);
        }

        @Override
        boolean failsAlways() {
            return item.failsAlways();
        }
    }

    /** A map: Spark wants all keys, then all values. */
    static final class MapNode extends Node {
        /** Up to so many keys are held against each other one by one. */
        private static final int FEW = 24;

        private final UnsafeArrayWriter keys;
        private final UnsafeArrayWriter values;
        private final Node value;
        private final Skip skip;
        /** Of each entry: where its key begins, how long it is, where its value begins. */
        private int[] places = new int[3 * 8];

        MapNode(UnsafeWriter root, int width, Node value, Skip skip) {
            this.keys = new UnsafeArrayWriter(root, 8);
            this.values = new UnsafeArrayWriter(root, width);
            this.value = value;
            this.skip = skip;
        }

        @Override
        void read(Cursor in, UnsafeWriter out, int slot) {
            int allowance = in.weightlessLeft();
            int found = find(in);
            int after = in.at;
            in.rewind(after, allowance);
            int count = distinct(in, found);
            int start = out.cursor();
            out.grow(8);
            out.increaseCursor(8);
            keys.initialize(count);
            for (int i = 0; i < count; i++) {
                keys.write(i, in.bytes, places[3 * i], places[3 * i + 1]);
            }
            // A map begins with the length of its keys.
            Platform.putLong(out.getBuffer(), start, out.cursor() - start - 8);
            writeValues(in, count);
            in.at = after;
            close(out, slot, start);
        }

        private void writeValues(Cursor in, int count) {
            int[] mine = places;
            // A map inside this one's values is another node; the same node is never inside itself.
            values.initialize(count);
            for (int i = 0; i < count; i++) {
                in.at = mine[3 * i + 2];
                value.read(in, values, i);
                bound(values);
            }
        }

        private int find(Cursor in) {
            int found = 0;
            for (int next = in.readCount(0); next > 0; next = in.readCount(0)) {
                for (int i = 0; i < next; i++) {
                    if (3 * found == places.length) {
                        places = Arrays.copyOf(places, 2 * places.length);
                    }
                    try {
                        findOne(in, 3 * found);
                    } catch (Damage damage) {
                        throw in.tracing ? damage.within("{}") : damage;
                    }
                    found++;
                }
            }
            return found;
        }

        private void findOne(Cursor in, int place) {
            int length = in.readLength();
            int start = in.take(length);
            in.requireText(start, length);
            places[place] = start;
            places[place + 1] = length;
            places[place + 2] = in.at;
            if (in.tracing) {
                discard(in);
            } else {
                skip.pass(in);
            }
        }

        /** Read a value into nowhere: it must be one, though it is not kept. */
        private void discard(Cursor in) {
            int cursor = values.cursor();
            value.read(in, nowhere(values), 0);
            values.increaseCursor(cursor - values.cursor());
        }

        /** Keep one entry of each key: the place of its first, the value of its last. */
        private int distinct(Cursor in, int count) {
            byte[] bytes = in.bytes;
            if (count <= FEW && !hasTwins(bytes, count)) {
                return count;
            }
            Map<ByteBuffer, Integer> first = new HashMap<>();
            int kept = 0;
            for (int i = 0; i < count; i++) {
                ByteBuffer key = ByteBuffer.wrap(bytes, places[3 * i], places[3 * i + 1]);
                Integer known = first.putIfAbsent(key, kept);
                int to = known == null ? kept++ : known;
                if (known != null) {
                    in.at = places[3 * to + 2];
                    discard(in);
                }
                System.arraycopy(places, 3 * i, places, 3 * to, 3);
            }
            return kept;
        }

        private boolean hasTwins(byte[] bytes, int count) {
            for (int i = 1; i < count; i++) {
                for (int j = 0; j < i; j++) {
                    if (same(bytes, 3 * i, 3 * j)) {
                        return true;
                    }
                }
            }
            return false;
        }

        private boolean same(byte[] bytes, int one, int other) {
            int length = places[one + 1];
            return length == places[other + 1]
                && Arrays.equals(
                    bytes, places[one], places[one] + length, bytes, places[other], places[other] + length);
        }

        @Override
        boolean failsAlways() {
            return value.failsAlways();
        }
    }
}
