package strata.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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
import strata.spark.plan.DecodePlan;

/**
 * The functions behind {@code replay}: {@link Judge} says what a reader schema makes of a frame, and this one counts that
 * by reason, with the first and the last place of each.
 *
 * <p>A frame that is read as it was written is null to the judge, so the rows that are counted are small, and the frames
 * stay where they are.
 *
 * <p>Spark keeps the state of an aggregate function of a catalog per partition, and writes it by Java's serialization,
 * whose reader does not know the classes of our jar. The state is therefore made of Java's and Spark's own classes, and
 * its type is HashMap, since Map does not say that it can be serialized.
 */
@SuppressWarnings("NonApiType")
public final class Replay implements AggregateFunction<HashMap<String, Object[]>, ArrayData> {
    private static final long serialVersionUID = 1L;

    /** What the judge says of a frame: null if it is read as it was written, or outcomes, without a reason if it is read. */
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

    private transient Comparator<InternalRow> places;

    /** @param placeType the type of the places of records: a struct, or any other type for none */
    Replay(DataType placeType) {
        this.placeType = placeType;
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
        InternalRow place = place(input);
        if (input.isNullAt(0)) {
            count(state, GOOD, place);
            return state;
        }
        ArrayData outcomes = input.getArray(0);
        for (int index = 0; index < outcomes.numElements(); index++) {
            InternalRow outcome = outcomes.getStruct(index, OUTCOME.size());
            if (outcome.isNullAt(0)) {
                count(state, GOOD, place);
            } else {
                count(state, outcome, place);
            }
        }
        return state;
    }

    private InternalRow place(InternalRow input) {
        return placeType instanceof StructType parts && !input.isNullAt(1) ? input.getStruct(1, parts.size()) : null;
    }

    private void count(Map<String, Object[]> state, InternalRow outcome, InternalRow place) {
        String reason = string(outcome, 0);
        Integer schema = outcome.isNullAt(1) ? null : outcome.getInt(1);
        String path = string(outcome, 2);
        String key = reason + '\0' + schema + '\0' + path;
        if (!state.containsKey(key)) {
            if (state.size() >= MOST_REASONS) {
                count(state, FURTHER, place);
                state.get(FURTHER)[REASON] = FURTHER;
                return;
            }
            Object[] entry = entry();
            entry[REASON] = reason;
            entry[SCHEMA] = schema;
            entry[PATH] = path;
            state.put(key, entry);
        }
        Object[] entry = state.get(key);
        if (count(entry, place)) {
            entry[FRAME] = outcome.getBinary(3);
            entry[WRITTEN] = string(outcome, 4);
            entry[READ] = string(outcome, 5);
        }
    }

    private static String string(InternalRow row, int index) {
        return row.isNullAt(index) ? null : row.getUTF8String(index).toString();
    }

    private void count(Map<String, Object[]> state, String key, InternalRow place) {
        Object[] entry = state.get(key);
        if (entry == null) {
            entry = entry();
            state.put(key, entry);
        }
        count(entry, place);
    }

    private static Object[] entry() {
        Object[] entry = new Object[PARTS];
        entry[COUNT] = new long[1];
        return entry;
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

    /** What a reader schema makes of a frame: null if it is read as it was written, else the outcomes. */
    public static final class Judge implements ScalarFunction<ArrayData> {
        private static final long serialVersionUID = 1L;
        public static final String NAMESPACE = "judge";

        private final String name;
        private final DecodePlan plan;
        private final RegistrySettings settings;
        private final DataType frames;
        private final List<String> files;

        private transient Decode.Work work;

        /**
         * @param frames the type of frames, or of records with headers
         * @param files the files of the reader schema
         */
        Judge(String name, DecodePlan plan, RegistrySettings settings, DataType frames, List<String> files) {
            this.name = name;
            this.plan = plan;
            this.settings = settings;
            this.frames = frames;
            this.files = files;
        }

        @Override
        public DataType[] inputTypes() {
            return new DataType[] {frames};
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
                    && frames.equals(judge.frames);
        }

        @Override
        public int hashCode() {
            return Objects.hash(plan, settings, frames);
        }

        /** Return what plans show. */
        @Override
        public String toString() {
            return "strata_judge[" + name + "]";
        }

        @Override
        public ArrayData produceResult(InternalRow row) {
            if (row.isNullAt(0)) {
                return null;
            }
            return frames instanceof StructType record
                    ? call(row.getStruct(0, record.size()))
                    : judge(row.getBinary(0), null);
        }

        /** Return the outcomes of a frame. */
        public ArrayData call(byte[] frame) {
            return judge(frame, null);
        }

        /** Return the outcomes of a record with headers: its bytes, and the header that names its schema. */
        public ArrayData call(InternalRow record) {
            return record == null ? null : judge(Decode.bytes(record, 0), Decode.bytes(record, 1));
        }

        private ArrayData judge(byte[] frame, byte[] header) {
            if (frame == null) {
                return null;
            }
            try {
                if (work == null) {
                    work = Decode.Work.ofJudge(plan, settings, files);
                }
                work.decode(frame, header);
            } catch (Refusal refusal) {
                List<InternalRow> found = new ArrayList<>();
                found.add(outcome(refusal.reason, refusal.schemaId(), refusal.path, frame, null, null));
                if (work.isOfMessages()) { // what a column does not hold, a parser may read
                    addChanges(frame, header, found);
                }
                return outcomes(found);
            } catch (RegistryFailure failure) {
                throw new IllegalStateException(failure.getMessage());
            }
            List<InternalRow> found = new ArrayList<>(0);
            boolean isRead = addChanges(frame, header, found);
            if (found.isEmpty()) {
                return null;
            }
            if (isRead) {
                found.add(outcome(null, work.schemaId(), null, null, null, null)); // it is read, too
            }
            return outcomes(found);
        }

        /** Add the values of the last frame that are read otherwise; return whether the reader schema reads it. */
        private boolean addChanges(byte[] frame, byte[] header, List<InternalRow> found) {
            try {
                if (work.mayChange()) {
                    Integer schema = work.schemaId();
                    work.find(
                            header,
                            (path, written, read) -> found.add(outcome(CHANGED, schema, path, frame, written, read)));
                }
            } catch (Refusal refusal) { // it cannot be read as it was written, or lacks what is required
                boolean isDecoded = found.isEmpty()
                        || CHANGED.equals(found.get(0).getUTF8String(0).toString());
                if (isDecoded) {
                    found.add(outcome(refusal.reason, refusal.schemaId(), refusal.path, frame, null, null));
                }
                return refusal.path == null || !work.isOfMessages();
            } catch (IllegalArgumentException unsupported) {
                String reason = "values are not compared: " + unsupported.getMessage();
                found.add(outcome(reason, work.schemaId(), null, frame, null, null));
            }
            return true;
        }

        private static InternalRow outcome(
                String reason, Integer schema, String path, byte[] frame, String written, String read) {
            return new GenericInternalRow(
                    new Object[] {text(reason), schema, text(path), frame, text(written), text(read)});
        }

        private static ArrayData outcomes(List<InternalRow> rows) {
            return new GenericArrayData(rows.toArray());
        }
    }
}
