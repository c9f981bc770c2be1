package strata.spark;

import java.util.Arrays;
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
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
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

    private transient Places places;
    private transient Decode.Work work;
    private transient Changes changes;
    /** The bytes in which the frame is that is judged, mostly those of Spark's row. */
    private transient byte[] bytes;

    private transient int from;
    private transient int to;
    private transient InternalRow place;
    /** What {@link #place} refers to if it is in the bytes of Spark's row. */
    private transient UnsafeRow placed;

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

    @Override
    public HashMap<String, Object[]> update(HashMap<String, Object[]> state, InternalRow input) {
        if (this.state != state) {
            this.state = state;
            good = null;
            changed = new HashMap<>();
        }
        place = placeType instanceof StructType parts && !input.isNullAt(1) ? place(input, parts.size()) : null;
        boolean hasHeader = frameType instanceof StructType && !input.isNullAt(0);
        InternalRow record = hasHeader ? input.getStruct(0, ((StructType) frameType).size()) : input;
        try {
            if (record.isNullAt(0)) {
                addRead();
                return state;
            }
            findFrame(record);
            if (isRead(hasHeader ? Decode.bytes(record, 1) : null)) {
                addRead();
            }
        } catch (RegistryFailure failure) {
            throw new IllegalStateException(failure.getMessage());
        }
        return state;
    }

    /** Return the place of a record, which Spark overwrites with that of the next one. */
    private InternalRow place(InternalRow input, int size) {
        if (!(input instanceof UnsafeRow row)) {
            return input.getStruct(1, size);
        }
        if (placed == null) {
            placed = new UnsafeRow(size);
        }
        long extent = row.getLong(1);
        placed.pointTo(row.getBaseObject(), row.getBaseOffset() + (extent >>> 32), (int) extent);
        return placed;
    }

    /** Find the frame of a record where Spark has it, so that it is not copied. */
    private void findFrame(InternalRow record) {
        if (record instanceof UnsafeRow row && row.getBaseObject() instanceof byte[] all) {
            long extent = row.getLong(0);
            from = (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET + (extent >>> 32));
            to = from + (int) extent;
            Objects.checkFromToIndex(from, to, all.length);
            bytes = all;
        } else {
            bytes = record.getBinary(0);
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
        count(good, place);
    }

    private void add(Refusal refusal) {
        add(refusal.reason, refusal.schemaId(), refusal.path, Changes::nothing, Changes::nothing);
    }

    private void add(String reason, Integer schema, String path, Supplier<String> written, Supplier<String> read) {
        Object[] entry = entry(reason, schema, path);
        if (count(entry, place) && !FURTHER.equals(entry[REASON])) {
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
        if (places().isBefore((InternalRow) entry[LAST], place)) {
            keepLast(entry, place);
        } else if (places().isBefore(place, (InternalRow) entry[FIRST])) {
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

    private Places places() {
        if (places == null) {
            places = new Places((StructType) placeType);
        }
        return places;
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
            if (entry[FIRST] == null || places().isBefore((InternalRow) added[FIRST], (InternalRow) entry[FIRST])) {
                for (int part : new int[] {FIRST, FRAME, WRITTEN, READ}) {
                    entry[part] = added[part];
                }
            }
            if (entry[LAST] == null || places().isBefore((InternalRow) entry[LAST], (InternalRow) added[LAST])) {
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
}
