package strata.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/** A record: the written fields, then the defaults. */
final class RecordNode extends Node {
    private final int size;
    private final Step[] steps;
    private final Step[] defaults;
    /** Slots without fixed size, in the reader's order; null if the writer's order is the same. */
    private final int[] mixed;
    private final boolean[] wide;
    /** How many records the nodes have read. */
    private int count;
    /** A faster equivalent of {@link #readSteps}; null until it is generated. */
    private FieldReader made;

    private RecordNode(StructType column, Step[] steps, Step[] defaults) {
        this.size = column.size();
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
    static RecordNode of(StructType column, List<Step> steps, List<Step> defaults, Set<Integer> fields) {
        List<Step> reads = new ArrayList<>(steps);
        List<Step> rest = new ArrayList<>(defaults);
        if (fields != null) {
            reads.replaceAll(step -> isUnread(step, fields) ? step.checked() : step);
            rest.removeIf(step -> isUnread(step, fields));
            Stream.of(steps, defaults)
                .flatMap(List::stream)
                .filter(step -> isUnread(step, fields))
                .forEach(step -> rest.add(Step.read(step.name(), new Null(), step.slot())));
        }
        return new RecordNode(column, reads.toArray(Step[]::new), rest.toArray(Step[]::new));
    }

    private static boolean isUnread(Step step, Set<Integer> fields) {
        return step.slot() >= 0 && !fields.contains(step.slot());
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
    void check(Cursor in, RowBuffer out) {
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
    boolean failsAlways() {
        for (Step step : steps) {
            if (step.value() != null && step.value().failsAlways()) {
                return true;
            }
        }
        return false;
    }
}
