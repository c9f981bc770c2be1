package strata.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.AggregateFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.plan.DecodePlan;

/**
 * The functions behind {@code replay}: {@link Judge} says what a reader schema makes of a frame, and this one counts that
 * by reason, with the first and the last place of each.
 *
 * <p>Rows between the two would cost as much as the judgement, so this function lends its state to the judge in its task.
 *
 * <p>Spark keeps the state of an aggregate function of a catalog per partition, and writes it by Java's serialization,
 * whose reader does not know the classes of our jar. The state is therefore made of Java's and Spark's own classes, and
 * its type is HashMap, since Map does not say that it can be serialized.
 */
@SuppressWarnings("NonApiType")
public final class Replay implements AggregateFunction<HashMap<String, Object[]>, ArrayData> {
    private static final long serialVersionUID = 1L;

    /** What the judge says of a frame; an outcome without a reason says that it is read. */
    private static final StructType OUTCOME = new StructType()
            .add("reason", DataTypes.StringType)
            .add("schema_id", DataTypes.IntegerType)
            .add("path", DataTypes.StringType)
            .add("frame", DataTypes.BinaryType)
            .add("written_as", DataTypes.StringType)
            .add("read_as", DataTypes.StringType);

    /** The parts of an entry of the state. */
    private static final int REASON = 0;

    private static final int SCHEMA = 1;
    private static final int PATH = 2;
    private static final int COUNT = 3;
    private static final int FIRST = 4;
    private static final int LAST = 5;
    private static final int FRAME = 6;
    private static final int WRITTEN = 7;
    private static final int READ = 8;
    private static final int PARTS = 9;

    private static final int MOST_REASONS = 10_000;
    private static final String FURTHER = "further reasons";
    private static final String CHANGED = "another value is read";
    /** The key of the records that are read. */
    private static final String GOOD = "";

    private final DataType placeType;
    /** The judge of the rows below, which counts by itself once it has the state; null if there is none. */
    private final Judge judge;

    private transient Comparator<InternalRow> places;

    /** @param placeType the type of the places of records: a struct, or any other type for none */
    Replay(DataType placeType) {
        this(placeType, null);
    }

    private Replay(DataType placeType, Judge judge) {
        this.placeType = placeType;
        this.judge = judge;
    }

    /**
     * Return the function that lends its state to a judge, so that a record gives no row.
     *
     * <p>Both are in one task: each copy of the task has one copy of the judge, which its rows and this function share.
     * Where it is not so, the judge is lent nothing, and goes on giving rows.
     */
    Replay lendingTo(Judge judge) {
        return new Replay(placeType, judge);
    }

    @Override
    public DataType[] inputTypes() {
        return new DataType[] {DataTypes.createArrayType(OUTCOME), placeType};
    }

    @Override
    public DataType resultType() {
        return DataTypes.createArrayType(new StructType()
                .add("reason", DataTypes.StringType)
                .add("schema_id", DataTypes.IntegerType)
                .add("path", DataTypes.StringType)
                .add("count", DataTypes.LongType)
                .add("first", placeType)
                .add("last", placeType)
                .add("frame", DataTypes.BinaryType)
                .add("written_as", DataTypes.StringType)
                .add("read_as", DataTypes.StringType));
    }

    @Override
    public String name() {
        return "strata_replay";
    }

    @Override
    public String canonicalName() {
        return "strata.replay." + Integer.toHexString(hashCode());
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Replay replay && placeType.equals(replay.placeType);
    }

    @Override
    public int hashCode() {
        return placeType.hashCode();
    }

    // Counting

    @Override
    public HashMap<String, Object[]> newAggregationState() {
        return new HashMap<>();
    }

    @Override
    public HashMap<String, Object[]> update(HashMap<String, Object[]> state, InternalRow input) {
        InternalRow place =
                placeType instanceof StructType parts && !input.isNullAt(1) ? input.getStruct(1, parts.size()) : null;
        ArrayData outcomes = input.getArray(0);
        for (int index = 0; index < outcomes.numElements(); index++) {
            InternalRow outcome = outcomes.getStruct(index, OUTCOME.size());
            if (outcome.isNullAt(0)) {
                count(good(state), place);
            } else {
                Integer schema = outcome.isNullAt(1) ? null : outcome.getInt(1);
                Object[] entry = entry(state, string(outcome, 0), schema, string(outcome, 2));
                count(entry, place, outcome.getBinary(3), () -> string(outcome, 4), () -> string(outcome, 5));
            }
        }
        if (judge != null) {
            judge.countInto(state, this);
        }
        return state;
    }

    private static String string(InternalRow row, int index) {
        return row.isNullAt(index) ? null : row.getUTF8String(index).toString();
    }

    /** Return the entry of the records that are read. */
    private static Object[] good(Map<String, Object[]> state) {
        return state.computeIfAbsent(GOOD, key -> entry(null, null, null));
    }

    /** Return the entry of a reason, or that of all further ones. */
    private static Object[] entry(Map<String, Object[]> state, String reason, Integer schema, String path) {
        String key = reason + '\0' + schema + '\0' + path;
        Object[] entry = state.get(key);
        if (entry != null) {
            return entry;
        }
        return state.size() < MOST_REASONS
                ? state.computeIfAbsent(key, absent -> entry(reason, schema, path))
                : state.computeIfAbsent(FURTHER, absent -> entry(FURTHER, null, null));
    }

    private static String nothing() {
        return null;
    }

    private static Object[] entry(String reason, Integer schema, String path) {
        Object[] entry = new Object[PARTS];
        entry[REASON] = reason;
        entry[SCHEMA] = schema;
        entry[PATH] = path;
        entry[COUNT] = new long[1];
        return entry;
    }

    /** Count a record, and keep its frame and its values if it is the first one. */
    private void count(
            Object[] entry, InternalRow place, byte[] frame, Supplier<String> written, Supplier<String> read) {
        if (count(entry, place) && !FURTHER.equals(entry[REASON])) {
            entry[FRAME] = frame;
            entry[WRITTEN] = written.get();
            entry[READ] = read.get();
        }
    }

    /** Count a record; return whether it is the first one. */
    private boolean count(Object[] entry, InternalRow place) {
        long[] count = (long[]) entry[COUNT];
        count[0]++;
        if (place == null) {
            return count[0] == 1;
        }
        if (entry[LAST] == null) {
            entry[FIRST] = place.copy();
            entry[LAST] = place.copy();
            return true;
        }
        if (isBefore((InternalRow) entry[LAST], place)) {
            keepLast(entry, place);
        } else if (isBefore(place, (InternalRow) entry[FIRST])) {
            entry[FIRST] = place.copy();
            return true;
        }
        return false;
    }

    /** Keep a place, mostly in the memory of the last one. */
    private static void keepLast(Object[] entry, InternalRow place) {
        if (entry[LAST] instanceof UnsafeRow last && place instanceof UnsafeRow row) {
            last.copyFrom(row);
        } else if (entry[LAST] instanceof GenericInternalRow last && place instanceof GenericInternalRow row) {
            for (int part = 0; part < row.numFields(); part++) {
                Object value = row.genericGet(part);
                if (!Objects.equals(value, last.genericGet(part))) {
                    last.update(part, InternalRow.copyValue(value));
                }
            }
        } else {
            entry[LAST] = place.copy();
        }
    }

    private boolean isBefore(InternalRow one, InternalRow other) {
        if (places == null) {
            List<DataType> types = new ArrayList<>();
            for (var field : ((StructType) placeType).fields()) {
                types.add(field.dataType());
            }
            places = Scala.of(
                    "org.apache.spark.sql.catalyst.expressions.RowOrdering",
                    "createNaturalAscendingOrdering",
                    Scala.list(types));
        }
        return places.compare(one, other) < 0;
    }

    @Override
    public HashMap<String, Object[]> merge(HashMap<String, Object[]> one, HashMap<String, Object[]> other) {
        other.forEach((key, added) -> {
            String under = one.containsKey(key) || one.size() < MOST_REASONS ? key : FURTHER;
            Object[] entry = one.get(under);
            if (entry == null) {
                one.put(under, under.equals(key) ? added : further(added));
                return;
            }
            ((long[]) entry[COUNT])[0] += ((long[]) added[COUNT])[0];
            if (added[FIRST] == null) {
                return;
            }
            if (entry[FIRST] == null || isBefore((InternalRow) added[FIRST], (InternalRow) entry[FIRST])) {
                for (int part : new int[] {FIRST, FRAME, WRITTEN, READ}) {
                    entry[part] = added[part];
                }
            }
            if (entry[LAST] == null || isBefore((InternalRow) entry[LAST], (InternalRow) added[LAST])) {
                entry[LAST] = added[LAST];
            }
        });
        return one;
    }

    private static Object[] further(Object[] entry) {
        Object[] further = entry.clone();
        further[REASON] = FURTHER;
        for (int part : new int[] {SCHEMA, PATH, FRAME, WRITTEN, READ}) {
            further[part] = null;
        }
        return further;
    }

    @Override
    public ArrayData produceResult(HashMap<String, Object[]> state) {
        return new GenericArrayData(state.values().stream()
                .map(entry -> new GenericInternalRow(new Object[] {
                    text(entry[REASON]),
                    entry[SCHEMA],
                    text(entry[PATH]),
                    ((long[]) entry[COUNT])[0],
                    entry[FIRST],
                    entry[LAST],
                    entry[FRAME],
                    text(entry[WRITTEN]),
                    text(entry[READ])
                }))
                .toArray());
    }

    private static UTF8String text(Object text) {
        return text == null ? null : UTF8String.fromString((String) text);
    }

    /**
     * What a reader schema makes of a frame: the outcomes, or null if they are counted already.
     *
     * <p>The first row of a task goes to the aggregate function, which lends its state. From then on the judge counts, and
     * gives no rows: neither texts nor rows are made of a record whose outcomes have come before.
     */
    public static final class Judge implements ScalarFunction<ArrayData> {
        private static final long serialVersionUID = 1L;
        public static final String NAMESPACE = "judge";

        private final String name;
        private final DecodePlan plan;
        private final RegistrySettings settings;
        private final DataType[] inputs;
        private final List<String> files;

        private transient Decode.Work work;
        private transient Program.Changes changes;
        /** The record that is judged, and its outcomes as rows. */
        private transient byte[] frame;

        private transient InternalRow place;
        private transient List<InternalRow> rows;

        /** The aggregate function that has lent its state; null if it has not. */
        private transient Replay counter;

        private transient Map<String, Object[]> state;
        /** Entries of the state: that of the records that are read, and those of changed values by schema and path. */
        private transient Object[] good;

        private transient Map<Integer, Map<String, Object[]>> changed;

        /**
         * @param inputs the type of frames, or of records with headers, and that of their places, if they have any
         * @param files the files of the reader schema
         */
        Judge(String name, DecodePlan plan, RegistrySettings settings, DataType[] inputs, List<String> files) {
            this.name = name;
            this.plan = plan;
            this.settings = settings;
            this.inputs = inputs;
            this.files = files;
        }

        @Override
        public DataType[] inputTypes() {
            return inputs.clone();
        }

        @Override
        public DataType resultType() {
            return DataTypes.createArrayType(OUTCOME);
        }

        /** False, because the registry changes, and so that it is a column of its own below the aggregate. */
        @Override
        public boolean isDeterministic() {
            return false;
        }

        @Override
        public String name() {
            return "strata_judge";
        }

        @Override
        public String canonicalName() {
            return "strata.judge." + Integer.toHexString(hashCode());
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Judge judge
                    && plan.equals(judge.plan)
                    && settings.equals(judge.settings)
                    && Arrays.equals(inputs, judge.inputs);
        }

        @Override
        public int hashCode() {
            return Objects.hash(plan, settings, Arrays.hashCode(inputs));
        }

        /** Return what plans show. */
        @Override
        public String toString() {
            return "strata_judge[" + name + "]";
        }

        @Override
        public ArrayData produceResult(InternalRow row) {
            InternalRow where =
                    inputs.length > 1 && !row.isNullAt(1) ? row.getStruct(1, ((StructType) inputs[1]).size()) : null;
            if (row.isNullAt(0)) {
                return judge(null, null, where);
            }
            return inputs[0] instanceof StructType record
                    ? call(row.getStruct(0, record.size()), where)
                    : judge(row.getBinary(0), null, where);
        }

        /** Return the outcomes of a frame. */
        public ArrayData call(byte[] frame) {
            return judge(frame, null, null);
        }

        /** Return the outcomes of a frame at a place. */
        public ArrayData call(byte[] frame, InternalRow place) {
            return judge(frame, null, place);
        }

        /** Return the outcomes of a record with headers: its bytes, and the header that names its schema. */
        public ArrayData call(InternalRow record) {
            return call(record, null);
        }

        /** Return the outcomes of a record with headers at a place. */
        public ArrayData call(InternalRow record, InternalRow place) {
            return record == null
                    ? judge(null, null, place)
                    : judge(Decode.bytes(record, 0), Decode.bytes(record, 1), place);
        }

        /** Count from now on in the state of an aggregate function. */
        void countInto(Map<String, Object[]> state, Replay counter) {
            if (this.state != state) {
                this.state = state;
                this.counter = counter;
                good = null;
                changed = new HashMap<>();
            }
        }

        private ArrayData judge(byte[] frame, byte[] header, InternalRow place) {
            this.frame = frame;
            this.place = place;
            try {
                if (frame == null || isRead(header)) {
                    addRead();
                }
            } catch (RegistryFailure failure) {
                throw new IllegalStateException(failure.getMessage());
            }
            if (rows == null) {
                return null;
            }
            ArrayData outcomes = new GenericArrayData(rows.toArray());
            rows = null;
            return outcomes;
        }

        /** Note the outcomes of a record, except that it is read; return whether it is. */
        private boolean isRead(byte[] header) {
            if (work == null) {
                work = Decode.Work.ofJudge(plan, settings, files);
                changes = (path, written, read) -> add(CHANGED, work.schemaId(), path, written, read);
            }
            boolean isDecoded = true;
            try {
                work.decode(frame, header);
            } catch (Refusal refusal) {
                add(refusal);
                isDecoded = false;
            }
            if (!isDecoded && !work.isOfMessages()) { // what a column does not hold, a parser of messages may read
                return false;
            }
            try {
                if (work.mayChange(isDecoded)) {
                    work.find(header, changes, isDecoded);
                }
            } catch (Refusal refusal) { // it cannot be read as it was written, or lacks what is required
                if (isDecoded) {
                    add(refusal);
                }
                return isDecoded && (refusal.path == null || !work.isOfMessages());
            } catch (IllegalArgumentException unsupported) {
                String reason = "values are not compared: " + unsupported.getMessage();
                add(reason, work.schemaId(), null, Replay::nothing, Replay::nothing);
            }
            return isDecoded;
        }

        private void addRead() {
            if (state == null) {
                addRow(new Object[OUTCOME.size()]);
                return;
            }
            if (good == null) {
                good = good(state);
            }
            counter.count(good, place);
        }

        private void add(Refusal refusal) {
            add(refusal.reason, refusal.schemaId(), refusal.path, Replay::nothing, Replay::nothing);
        }

        private void add(String reason, Integer schema, String path, Supplier<String> written, Supplier<String> read) {
            if (state != null) {
                counter.count(entry(reason, schema, path), place, frame, written, read);
                return;
            }
            addRow(new Object[] {text(reason), schema, text(path), frame, text(written.get()), text(read.get())});
        }

        private void addRow(Object[] outcome) {
            if (rows == null) {
                rows = new ArrayList<>();
            }
            rows.add(new GenericInternalRow(outcome));
        }

        private Object[] entry(String reason, Integer schema, String path) {
            if (!reason.equals(CHANGED)) {
                return Replay.entry(state, reason, schema, path);
            }
            return changed.computeIfAbsent(schema, absent -> new HashMap<>())
                    .computeIfAbsent(path, absent -> Replay.entry(state, reason, schema, absent));
        }
    }
}
