package strata.spark;

import java.util.ArrayList;
import java.util.Arrays;
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
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.avro.ValueChanges;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.plan.DecodePlan;

/**
 * The function behind {@code replay}: what a reader schema makes of frames, counted by reason, with the first and the
 * last place of each.
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

    private final String name;
    private final DecodePlan plan;
    private final RegistrySettings settings;
    private final DataType[] inputs;

    private transient Decode.Work work;
    private transient Comparator<InternalRow> places;

    /** @param inputs the type of frames, and the type of their places: a struct, or any other type for none */
    Replay(String name, DecodePlan plan, RegistrySettings settings, DataType[] inputs) {
        this.name = name;
        this.plan = plan;
        this.settings = settings;
        this.inputs = inputs;
    }

    @Override
    public DataType[] inputTypes() {
        return inputs.clone();
    }

    @Override
    public DataType resultType() {
        return DataTypes.createArrayType(new StructType()
                .add("reason", DataTypes.StringType)
                .add("schema_id", DataTypes.IntegerType)
                .add("path", DataTypes.StringType)
                .add("count", DataTypes.LongType)
                .add("first", inputs[1])
                .add("last", inputs[1])
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
                && Arrays.equals(inputs, replay.inputs);
    }

    @Override
    public int hashCode() {
        return Objects.hash(plan, settings, Arrays.hashCode(inputs));
    }

    /** Return what plans show. */
    @Override
    public String toString() {
        return "strata_replay[" + name + "]";
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
        byte[] frame = null;
        byte[] header = null;
        if (inputs[0] instanceof StructType record) {
            InternalRow values = input.getStruct(0, record.size());
            frame = values.isNullAt(0) ? null : values.getBinary(0);
            header = values.isNullAt(1) ? null : values.getBinary(1);
        } else {
            frame = input.getBinary(0);
        }
        try {
            if (frame != null) {
                work().decode(frame, header);
            }
            count(state, GOOD, place);
            if (frame != null) {
                findChanges(state, frame, header, place);
            }
        } catch (Refusal refusal) {
            count(state, refusal.reason, refusal.schemaId(), refusal.path, place, frame, null, null);
        } catch (RegistryFailure failure) {
            throw new IllegalStateException(failure.getMessage());
        }
        return state;
    }

    private Decode.Work work() {
        if (work == null) {
            work = new Decode.Work(plan, settings, null);
        }
        return work;
    }

    private void findChanges(HashMap<String, Object[]> state, byte[] frame, byte[] header, InternalRow place) {
        ValueChanges changes;
        try {
            changes = work.changes();
        } catch (IllegalArgumentException unsupported) {
            String reason = "values are not compared: " + unsupported.getMessage();
            count(state, reason, work.schemaId(), null, place, frame, null, null);
            return;
        }
        if (changes != null) {
            Integer schema = work.schemaId();
            work.find(
                    changes,
                    header,
                    (path, written, read) -> count(state, CHANGED, schema, path, place, frame, written, read));
        }
    }

    private InternalRow place(InternalRow input) {
        return inputs[1] instanceof StructType parts && !input.isNullAt(1) ? input.getStruct(1, parts.size()) : null;
    }

    private void count(
            Map<String, Object[]> state,
            String reason,
            Integer schema,
            String path,
            InternalRow place,
            byte[] frame,
            String written,
            String read) {
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
            entry[FRAME] = frame;
            entry[WRITTEN] = written;
            entry[READ] = read;
        }
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
            for (var field : ((StructType) inputs[1]).fields()) {
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
}
