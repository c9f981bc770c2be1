package strata.spark;

import java.util.Arrays;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/** A record: what the bytes hold, then the defaults. */
final class RecordNode extends Node {
    private final int size;
    private final Step[] steps;
    private final Step[] defaults;
    /** Slots of what has no fixed size, in the reader's order, if the writer's may be another one; else null. */
    private final int[] mixed;
    private final boolean[] wide;
    /** How many records were read by nodes. */
    private int count;
    /** Reads what {@link #readSteps} reads, sooner; null as long as there is none. */
    private FieldReader made;

    RecordNode(StructType column, Step[] steps, Step[] defaults) {
        this.size = column.size();
        this.steps = steps;
        this.defaults = defaults;
        int[] nested = Stream.of(steps, defaults)
            .flatMap(Arrays::stream)
            .mapToInt(step -> step.slot)
            .filter(slot -> slot >= 0 && !RowBuffer.isFixed(column.fields()[slot].dataType()))
            .toArray();
        int[] sorted = nested.clone();
        Arrays.sort(sorted);
        this.mixed = Arrays.equals(nested, sorted) ? null : sorted;
        this.wide = new boolean[sorted.length];
        for (int i = 0; i < sorted.length; i++) {
            wide[i] = column.fields()[sorted[i]].dataType() instanceof DecimalType;
        }
        for (Step step : steps) {
            step.place = RowBuffer.nullBytes(size) + 8 * step.slot;
        }
    }

    @Override
    long read(Cursor in, RowBuffer out, int base) {
        int row = out.beginRow(size);
        if (made != null && !in.tracing && in.bytes.length >= FieldReader.LEAST) {
            made.read(in, out, row);
        } else {
            readSteps(in, out, row);
        }
        for (Step one : defaults) {
            out.putField(row, size, one.slot, one.value.read(in, out, row));
        }
        if (mixed != null) {
            out.sort(row, size, mixed, wide);
        }
        return out.close(row, base);
    }

    private void readSteps(Cursor in, RowBuffer out, int row) {
        if (count++ == FieldReaders.worthwhile) {
            made = FieldReaders.of(steps, size);
        }
        int from = in.at;
        int step = readPlain(in, out, row, 0);
        try {
            while (step < steps.length) {
                from = readAny(in, out, row, steps[step], from);
                step = readPlain(in, out, row, step + 1);
            }
        } catch (Damage damage) {
            throw in.tracing ? damage.within("." + steps[step].name) : damage;
        }
    }

    /** Read one field, which stands where the one before began if it comes of the same bytes; return where it began. */
    private int readAny(Cursor in, RowBuffer out, int row, Step step, int before) {
        if (step.again) {
            in.at = before;
        }
        int from = in.at;
        if (step.value == null) {
            step.skip.pass(in);
        } else {
            out.putField(row, size, step.slot, step.value.read(in, out, row));
        }
        return from;
    }

    /**
     * Read fields as long as they are simple and sound: one loop, its state in registers. Whatever is not so is left to
     * {@link #readAny}, which knows all that may be wrong.
     *
     * @return the field that comes next
     */
    private int readPlain(Cursor in, RowBuffer out, int row, int first) {
        byte[] bytes = in.bytes;
        byte[] made = out.bytes;
        int end = in.end;
        int at = in.at;
        int to = out.at;
        int i = first;
        fields:
        for (; i < steps.length; i++) {
            Step step = steps[i];
            int from = at;
            if (step.nullByte >= 0 && from < end) {
                int branch = bytes[from++];
                if (branch == step.nullByte) {
                    if (step.slot >= 0) {
                        out.putNull(row, step.slot, step.place);
                    }
                    at = from;
                    continue;
                }
                if (branch != 2 - step.nullByte) {
                    break;
                }
            }
            if (from >= end || end < Long.BYTES) {
                break;
            }
            long next = from <= end - Long.BYTES ? Cursor.word(bytes, from) : Cursor.lastWord(bytes, from, end);
            int width;
            long word = next & step.mask;
            switch (step.kind) {
                case Shortcut.NUMBER:
                    // Most are small, and a branch is foretold where a sum is waited for.
                    width = (next & 0x80) == 0 ? 1 : Cursor.width(next);
                    if (width > step.most) {
                        break fields;
                    }
                    word = Cursor.number(next, width) * step.factor & step.mask;
                    break;
                case Shortcut.FIXED:
                    width = step.most;
                    break;
                case Shortcut.TEXT, Shortcut.SYMBOL:
                    boolean isText = step.kind == Shortcut.TEXT;
                    int index = Shortcut.length(next);
                    int size = isText ? copy(bytes, from + 1, index, made, to) : step.symbols.copy(index, made, to);
                    if (size < 0) {
                        break fields;
                    }
                    width = isText ? 1 + size : 1;
                    word = RowBuffer.extent(to, size, row);
                    to += RowBuffer.pad(size);
                    break;
                default:
                    width = Shortcut.width(step, next);
                    word = step.kind == Shortcut.DECIMAL ? Shortcut.decimal(next, width - 1) : word;
            }
            if (width > end - from) {
                break;
            }
            if (step.slot >= 0) {
                RowBuffer.put(made, row + step.place, word);
            }
            at = from + width;
        }
        in.at = at;
        out.at = to;
        return i;
    }

    /** Copy text by words; return its length, or -1 if there is no room for that, or it is not ASCII. */
    private static int copy(byte[] bytes, int start, int length, byte[] made, int to) {
        boolean fits = start + length <= bytes.length && to + length <= made.length - Long.BYTES;
        return length >= 0 && fits && RowBuffer.copy(bytes, start, length, made, to) ? length : -1;
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
