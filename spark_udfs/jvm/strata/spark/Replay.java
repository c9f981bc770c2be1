package strata.spark;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.V2Aggregator;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.AggregateFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program.Changes;
import strata.spark.plan.DecodePlan;

/**
 * The function behind {@code replay}: it says what a reader schema makes of each frame, and counts that by reason, with the
 * first and the last place of each.
 *
 * <p>It is one aggregate function, because rows between a judge and a counter would cost as much as the judgement. Texts are
 * made of the first record of a reason only.
 *
 * <p>Spark keeps the state of an aggregate function of a catalog per partition, and writes it by Java's serialization,
 * whose reader does not know the classes of our jar. The state is therefore made of Java's and Spark's own classes, and
 * its type is HashMap, since Map does not say that it can be serialized.
 */
@SuppressWarnings("NonApiType")
public final class Replay implements AggregateFunction<HashMap<String, Object[]>, ArrayData> {
    private static final long serialVersionUID = 1L;
    public static final String NAMESPACE = "replay";

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

    private final String label;
    private final DecodePlan plan;
    private final RegistrySettings settings;
    private final DataType frameType;
    private final DataType placeType;
    private final List<String> files;

    private transient Decode.Work work;
    private transient Changes changes;
    /** The bytes in which the frame is that is judged, mostly those of Spark's row. */
    private transient byte[] bytes;

    private transient int from;
    private transient int to;
    /** The row that has the place of the record; null if there is none. */
    private transient InternalRow placed;

    private transient Places places;
    /** The places in rows that Spark has made for this function. */
    private transient Places structs;
    /** The order of kept places. */
    private transient Comparator<InternalRow> order;

    private transient Map<String, Object[]> state;
    /** Entries of the state: that of the records that are read, and those of changed values by schema and path. */
    private transient Object[] good;

    private transient Map<Integer, Map<String, Object[]>> changed;

    /**
     * @param frameType the type of frames, or of records with headers
     * @param placeType the type of the places of records: a struct, or any other type for none
     * @param files the files of the reader schema
     */
    Replay(
            String label,
            DecodePlan plan,
            RegistrySettings settings,
            DataType frameType,
            DataType placeType,
            List<String> files) {
        this.label = label;
        this.plan = plan;
        this.settings = settings;
        this.frameType = frameType;
        this.placeType = placeType;
        this.files = files;
    }

    @Override
    public DataType[] inputTypes() {
        return new DataType[] {frameType, placeType};
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
        return other instanceof Replay replay
                && plan.equals(replay.plan)
                && settings.equals(replay.settings)
                && frameType.equals(replay.frameType)
                && placeType.equals(replay.placeType);
    }

    @Override
    public int hashCode() {
        return Objects.hash(plan, settings, frameType, placeType);
    }

    /** Return what plans show. */
    @Override
    public String toString() {
        return name() + "[" + label + "]";
    }

    // Judging

    @Override
    public HashMap<String, Object[]> newAggregationState() {
        return new HashMap<>();
    }

    /** Judge the record of a row that Spark has made for this function, of the frame and the place. */
    @Override
    public HashMap<String, Object[]> update(HashMap<String, Object[]> state, InternalRow input) {
        if (!(placeType instanceof StructType type) || input.isNullAt(1)) {
            return update(state, input, 0, null, null);
        }
        if (structs == null) {
            structs = Places.ofRows(type);
        }
        return update(state, input, 0, input.getStruct(1, type.size()), structs);
    }

    /**
     * Judge a record.
     *
     * @param column the column of the row that has its frame, or the struct of it and the header
     * @param placed the row that has its place, null if there is none
     */
    private HashMap<String, Object[]> update(
            HashMap<String, Object[]> state, InternalRow row, int column, InternalRow placed, Places places) {
        if (this.state != state) {
            this.state = state;
            good = null;
            changed = new HashMap<>();
        }
        this.placed = placed;
        this.places = places;
        boolean hasHeader = frameType instanceof StructType && !row.isNullAt(column);
        InternalRow record = hasHeader ? row.getStruct(column, ((StructType) frameType).size()) : row;
        int frame = hasHeader ? 0 : column;
        try {
            if (record.isNullAt(frame)) {
                addRead();
                return state;
            }
            findFrame(record, frame);
            if (isRead(hasHeader ? Decode.bytes(record, 1) : null)) {
                addRead();
            }
        } catch (RegistryFailure failure) {
            throw new IllegalStateException(failure.getMessage());
        }
        return state;
    }

    /** Find the frame of a record where Spark has it, so that it is not copied. */
    private void findFrame(InternalRow record, int column) {
        if (record instanceof UnsafeRow row && row.getBaseObject() instanceof byte[] all) {
            long extent = row.getLong(column);
            from = (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET + (extent >>> 32));
            to = from + (int) extent;
            Objects.checkFromToIndex(from, to, all.length);
            bytes = all;
        } else {
            bytes = record.getBinary(column);
            from = 0;
            to = bytes.length;
        }
    }

    /** Count the outcomes of a record, except that it is read; return whether it is. */
    private boolean isRead(byte[] header) {
        if (work == null) {
            work = Decode.Work.ofJudge(plan, settings, files);
            changes = (path, written, read) -> add(CHANGED, work.schemaId(), path, written, read);
        }
        boolean isDecoded = true;
        try {
            work.read(bytes, from, to, header);
        } catch (Refusal refusal) {
            add(refusal);
            isDecoded = false;
        }
        if (!isDecoded && !work.isOfMessages()) { // what a column does not hold, a parser of messages may read
            return false;
        }
        try {
            if (work.mayChange(isDecoded)) {
                work.find(changes, isDecoded);
            }
        } catch (Refusal refusal) { // it cannot be read as it was written, or lacks what is required
            if (isDecoded) {
                add(refusal);
            }
            return isDecoded && (refusal.path == null || !work.isOfMessages());
        } catch (IllegalArgumentException unsupported) {
            String reason = "values are not compared: " + unsupported.getMessage();
            add(reason, work.schemaId(), null, Changes::nothing, Changes::nothing);
        }
        return isDecoded;
    }

    private void addRead() {
        if (good == null) {
            good = good(state);
        }
        count(good);
    }

    private void add(Refusal refusal) {
        add(refusal.reason, refusal.schemaId(), refusal.path, Changes::nothing, Changes::nothing);
    }

    private void add(String reason, Integer schema, String path, Supplier<String> written, Supplier<String> read) {
        Object[] entry = entry(reason, schema, path);
        if (count(entry) && !FURTHER.equals(entry[REASON])) {
            entry[FRAME] = Arrays.copyOfRange(bytes, from, to);
            entry[WRITTEN] = written.get();
            entry[READ] = read.get();
        }
    }

    /** Return the entry of a reason; those of changed values are found without making a key of text. */
    private Object[] entry(String reason, Integer schema, String path) {
        if (!reason.equals(CHANGED)) {
            return entry(state, reason, schema, path);
        }
        return changed.computeIfAbsent(schema, absent -> new HashMap<>())
                .computeIfAbsent(path, absent -> entry(state, reason, schema, absent));
    }

    // Counting

    /** Return the entry of the records that are read. */
    private static Object[] good(Map<String, Object[]> state) {
        return state.computeIfAbsent(GOOD, key -> newEntry(null, null, null));
    }

    /** Return the entry of a reason, or that of all further ones. */
    private static Object[] entry(Map<String, Object[]> state, String reason, Integer schema, String path) {
        String key = reason + '\0' + schema + '\0' + path;
        Object[] entry = state.get(key);
        if (entry != null) {
            return entry;
        }
        return state.size() < MOST_REASONS
                ? state.computeIfAbsent(key, absent -> newEntry(reason, schema, path))
                : state.computeIfAbsent(FURTHER, absent -> newEntry(FURTHER, null, null));
    }

    private static Object[] newEntry(String reason, Integer schema, String path) {
        Object[] entry = new Object[PARTS];
        entry[REASON] = reason;
        entry[SCHEMA] = schema;
        entry[PATH] = path;
        entry[COUNT] = new long[1];
        return entry;
    }

    /** Count a record; return whether it is the first one. */
    private boolean count(Object[] entry) {
        long[] count = (long[]) entry[COUNT];
        count[0]++;
        if (placed == null) {
            return count[0] == 1;
        }
        InternalRow last = (InternalRow) entry[LAST];
        boolean isOnly = last == null;
        if (isOnly || places.compare(placed, last) > 0) {
            entry[LAST] = isOnly ? places.copy(placed) : places.copy(placed, last);
        }
        if (isOnly || places.compare(placed, (InternalRow) entry[FIRST]) < 0) {
            entry[FIRST] = places.copy(placed);
            return true;
        }
        return false;
    }

    @Override
    public HashMap<String, Object[]> merge(HashMap<String, Object[]> one, HashMap<String, Object[]> other) {
        if (order == null && placeType instanceof StructType type) {
            order = Places.order(type);
        }
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
            if (entry[FIRST] == null || order.compare((InternalRow) added[FIRST], (InternalRow) entry[FIRST]) < 0) {
                for (int part : new int[] {FIRST, FRAME, WRITTEN, READ}) {
                    entry[part] = added[part];
                }
            }
            if (entry[LAST] == null || order.compare((InternalRow) entry[LAST], (InternalRow) added[LAST]) < 0) {
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

    // Spark's expression

    /** Return the call of this function as an expression of Spark. */
    Expression call(List<Expression> arguments) {
        Class<? extends Expression> type = Scala.isExtensible() ? Call.class : V2Aggregator.class;
        return Scala.make(type, this, Scala.list(arguments), 0, 0);
    }

    /**
     * A call that finds the arguments in Spark's rows. Spark's own call builds a row of them for each record, which costs
     * half as much as the judgement; here that is done only if an argument is computed.
     */
    public static final class Call extends V2Aggregator<HashMap<String, Object[]>, ArrayData> {
        private static final long serialVersionUID = 1L;
        private static final int COMPUTED = -1;

        private transient Replay replay;
        /** The column of frames. */
        private transient int frame;
        /** Where the columns of the place are; null if there is no place. */
        private transient Places places;

        public Call(
                AggregateFunction<HashMap<String, Object[]>, ArrayData> function,
                Seq<Expression> arguments,
                int mutableAggBufferOffset,
                int inputAggBufferOffset) {
            super(function, arguments, mutableAggBufferOffset, inputAggBufferOffset);
        }

        @Override
        public HashMap<String, Object[]> update(HashMap<String, Object[]> state, InternalRow row) {
            if (replay == null) {
                findColumns();
            }
            return frame == COMPUTED
                    ? super.update(state, row)
                    : replay.update(state, row, frame, places == null ? null : row, places);
        }

        private void findColumns() {
            replay = (Replay) aggrFunc();
            List<Expression> arguments = Scala.list(this, "children");
            Expression place = arguments.get(1);
            boolean hasPlace = place.dataType() instanceof StructType;
            places = place instanceof CreateNamedStruct struct ? Places.ofColumns(struct) : null;
            frame = arguments.get(0) instanceof BoundReference column && hasPlace == (places != null)
                    ? column.ordinal()
                    : COMPUTED;
        }

        @Override
        public Call withNewMutableAggBufferOffset(int offset) {
            return new Call(aggrFunc(), children(), offset, inputAggBufferOffset());
        }

        @Override
        public Call withNewInputAggBufferOffset(int offset) {
            return new Call(aggrFunc(), children(), mutableAggBufferOffset(), offset);
        }

        @Override
        public Call withNewChildrenInternal(IndexedSeq<Expression> arguments) {
            return new Call(aggrFunc(), arguments, mutableAggBufferOffset(), inputAggBufferOffset());
        }
    }
}
