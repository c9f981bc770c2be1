package strata.spark.avro;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.FieldReader.FieldReaders;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.row.Node;
import strata.spark.row.Node.SimpleForm;
import strata.spark.row.RowBuffer;
import strata.spark.row.Skip;

/** A record: the written fields, then the defaults. */
public final class RecordNode extends Node {
    private final int size;
    private final Step[] steps;
    private final Step[] defaults;
    /** The null bits of the fields that are not built; null if all are. */
    private final long[] nulls;
    /** Slots without fixed size, in the reader's order; null if the writer's order is the same. */
    private final int[] mixed;

    private final boolean[] wide;
    /** How many records the nodes have read. */
    private int count;
    /** A faster equivalent of {@link #readSteps}; null until it is generated. */
    private FieldReader made;

    private RecordNode(StructType column, Step[] steps, Step[] defaults, long[] nulls) {
        this.size = column.size();
        this.nulls = nulls;
        this.steps = steps;
        this.defaults = defaults;
        int[] nested = Stream.of(steps, defaults)
                .flatMap(Arrays::stream)
                .mapToInt(step -> step.slot())
                .filter(slot -> slot >= 0 && !RowBuffer.isFixed(column.fields()[slot].dataType()))
                .toArray();
        int[] sorted = nested.clone();
        Arrays.sort(sorted);
        this.mixed = Arrays.equals(nested, sorted) ? null : sorted;
        this.wide = new boolean[sorted.length];
        for (int i = 0; i < sorted.length; i++) {
            wide[i] = column.fields()[sorted[i]].dataType() instanceof DecimalType;
        }
    }

    /**
     * Return the node of a record.
     *
     * @param fields the slots of the fields to build; null for all. The others are null, and what the writer has of them
     * is checked
     */
    public static RecordNode of(StructType column, List<Step> steps, List<Step> defaults, Set<Integer> fields) {
        List<Step> reads = new ArrayList<>(steps);
        List<Step> rest = new ArrayList<>(defaults);
        long[] nulls = null;
        if (fields != null) {
            reads.replaceAll(step -> isUnread(step, fields) ? step.checked() : step);
            rest.removeIf(step -> isUnread(step, fields));
            nulls = new long[RowBuffer.nullBytes(column.size()) / Long.BYTES];
            for (int slot = 0; slot < column.size(); slot++) {
                nulls[slot / Long.SIZE] |= fields.contains(slot) ? 0 : 1L << slot;
            }
        }
        return new RecordNode(column, reads.toArray(Step[]::new), rest.toArray(Step[]::new), nulls);
    }

    private static boolean isUnread(Step step, Set<Integer> fields) {
        return step.slot() >= 0 && !fields.contains(step.slot());
    }

    @Override
    public long read(Cursor in, RowBuffer out, int base) {
        int row = nulls == null ? out.beginRow(size) : out.beginRow(size, nulls);
        if (made != null && !in.tracing && in.end >= FieldReader.LEAST) {
            made.read(in, out, row);
        } else {
            readSteps(in, out, row);
        }
        for (Step one : defaults) {
            out.putField(row, size, one.slot(), one.value().read(in, out, row));
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
        int step = 0;
        try {
            for (; step < steps.length; step++) {
                from = readStep(in, out, row, steps[step], from);
            }
        } catch (Damage damage) {
            throw in.tracing ? damage.within("." + steps[step].name()) : damage;
        }
    }

    /** Read one field, from {@code before} if it shares the bytes of the previous step; return where it began. */
    private int readStep(Cursor in, RowBuffer out, int row, Step step, int before) {
        if (step.again()) {
            in.at = before;
        }
        int from = in.at;
        if (step.slot() < 0) {
            step.pass(in, out);
        } else {
            out.putField(row, size, step.slot(), step.value().read(in, out, row));
        }
        return from;
    }

    @Override
    public void check(Cursor in, RowBuffer out) {
        int from = in.at;
        for (Step step : steps) {
            if (step.again()) {
                in.at = from;
            }
            from = in.at;
            step.pass(in, out);
        }
    }

    @Override
    public boolean failsAlways() {
        for (Step step : steps) {
            if (step.value() != null && step.value().failsAlways()) {
                return true;
            }
        }
        return false;
    }

    /**
     * One field of a record, in the writer's order.
     *
     * @param name the name of the writer's field
     * @param value null for a field that is skipped
     * @param skip null for a field that is read or checked
     * @param slot the slot of the reader's field, -1 for a field that is skipped, or checked because the query does not
     * read it
     * @param isShared whether several fields of the reader are read from the same bytes
     * @param again whether it is not the first of them: it reads the bytes of the step before again
     */
    public record Step(String name, Node value, Skip skip, int slot, boolean isShared, boolean again) {
        public static Step read(String name, Node value, int slot) {
            return new Step(name, value, null, slot, false, false);
        }

        /** Return a step of a writer's field that feeds several fields of the reader. */
        static Step share(String name, Node value, int slot, boolean first) {
            return new Step(name, value, null, slot, true, !first);
        }

        /** Return the step that checks what this one reads. */
        Step checked() {
            return new Step(name, value, null, -1, isShared, again);
        }

        public static Step skip(String name, Skip skip) {
            return new Step(name, null, skip, -1, false, false);
        }

        /** Check the value without building it, or skip it. */
        public void pass(Cursor in, RowBuffer out) {
            if (value == null) {
                skip.pass(in);
            } else if (in.tracing) {
                value.discard(in, out);
            } else {
                value.check(in, out);
            }
        }

        /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
        public int nullByte() {
            if (value == null) {
                return skip.nullByte();
            }
            return value instanceof Node.Branches union ? union.nullByte() : -1;
        }

        /** Return the node of the branch that is not null, or of the value itself; null for a field that is skipped. */
        public Node inner() {
            return value instanceof Node.Branches union && union.nullByte() >= 0 ? union.other() : value;
        }

        /** Return the simpleForm of the branch that is not null, or of the value itself. */
        public SimpleForm simpleForm() {
            return value == null ? skip.simpleForm() : inner().simpleForm();
        }
    }
}
