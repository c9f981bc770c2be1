package strata.spark;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The decode function: frames (magic byte, schema id or GUID, payload) to values of the reader schema.
 *
 * <p>Spark calls {@code invoke} from generated code, with its own bytes and without boxing. Each task has its own copy
 * of the function, so its buffers need no lock; writer schemas are shared by the process.
 */
public final class Decode implements ScalarFunction<Object> {
    private static final long serialVersionUID = 1L;
    private static final int MAX_PROGRAMS = 1000;
    private static final int RECENT = 64;
    static final StructType ERROR = new StructType()
        .add("reason", DataTypes.StringType)
        .add("schema_id", DataTypes.IntegerType)
        .add("frame", DataTypes.BinaryType);

    private final Plan plan;
    private final RegistrySettings settings;
    private final DataType[] inputs;

    private transient Work work;

    Decode(Plan plan, RegistrySettings settings, DataType[] inputs) {
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
        DataType value = plan.dataType();
        return plan.mode() != Plan.Mode.DEADLETTER
            ? value
            : new StructType(new StructField[] {
                DataTypes.createStructField("value", value, true), DataTypes.createStructField("error", ERROR, true)});
    }

    @Override
    public String name() {
        return "strata_decode";
    }

    @Override
    public String canonicalName() {
        return "strata.decode." + Integer.toHexString(plan.hashCode()) + "." + Integer.toHexString(settings.hashCode());
    }

    /** False, because the registry changes, and because Spark copies a deterministic function below every filter. */
    @Override
    public boolean isDeterministic() {
        return false;
    }

    @Override
    public String toString() {
        return "strata_decode";
    }

    /** Return the value of a frame. */
    public Object invoke(byte[] frame) {
        return decode(frame, null, null);
    }

    /** Return the value of a frame; {@code origin} says where it came from. */
    public Object invoke(byte[] frame, InternalRow origin) {
        return decode(frame, null, origin);
    }

    /** Return the value of a record with headers: its bytes, and the header that names its schema. */
    public Object invoke(InternalRow record) {
        return invoke(record, null);
    }

    /** Return the value of a record with headers; {@code origin} says where it came from. */
    public Object invoke(InternalRow record, InternalRow origin) {
        return record == null
            ? decode(null, null, origin)
            : decode(bytes(record, 0), bytes(record, 1), origin);
    }

    private static byte[] bytes(InternalRow record, int index) {
        return record.isNullAt(index) ? null : record.getBinary(index);
    }

    private Object decode(byte[] frame, byte[] header, InternalRow origin) {
        try {
            if (work == null) {
                work = new Work(plan, settings);
            }
            return frame == null ? work.nothing() : work.decode(frame, header);
        } catch (Refusal refusal) {
            if (plan.mode() == Plan.Mode.FAILFAST) {
                throw new IllegalArgumentException(
                    "a frame cannot be decoded (" + place(refusal, origin) + "): " + refusal.getMessage());
            }
            return work.refused(frame, refusal);
        } catch (RegistryFailure failure) {
            // The driver could not deserialize our own exception classes: the jar belongs to the session, not to Spark.
            throw new IllegalStateException(failure.getMessage());
        }
    }

    private String place(Refusal refusal, InternalRow origin) {
        StringBuilder place = new StringBuilder(Refusal.named(refusal.schema));
        for (int i = 0; i < plan.origin().size() && origin != null; i++) {
            Object value = origin.get(i, ((StructType) inputs[1]).fields()[i].dataType());
            place.append(", ").append(plan.origin().get(i)).append(' ').append(value == null ? "None" : value);
        }
        return place.toString();
    }

    /** The state of one task: a program for each writer schema that it meets. */
    private static final class Work {
        private final Plan.Mode mode;
        private final Schema reader;
        private final DataType type;
        private final int members;
        private final Registry registry;
        private final RowBuffer row;
        private final Map<Object, Program> programs = new HashMap<>();
        private final Map<Object, Refusal> unusable = new HashMap<>();
        private final FrameHeader named = new FrameHeader();
        /** The programs of the last few schemas, found without allocating a key. */
        private final Program[] recent = new Program[RECENT];

        Work(Plan plan, RegistrySettings settings) {
            mode = plan.mode();
            reader = plan.readerSchema();
            type = plan.dataType();
            members = type instanceof StructType struct ? struct.size() : 0;
            registry = Registry.of(settings);
            row = new RowBuffer(mode == Plan.Mode.DEADLETTER ? 2 : 1);
        }

        Object decode(byte[] frame, byte[] header) {
            named.open(frame, header);
            int place = named.mixed() & RECENT - 1;
            Program program = recent[place];
            if (program == null || !program.isNamedBy(named)) {
                program = program(named.name());
                recent[place] = program;
            }
            program.read(frame, named.start());
            if (mode == Plan.Mode.DEADLETTER) {
                row.putField(1, row.nothing());
                return row.row();
            }
            return type instanceof StructType ? row.row().getStruct(0, members) : row.row().get(0, type);
        }

        /** Return the result for a null frame: a null value and no error. */
        Object nothing() {
            if (mode != Plan.Mode.DEADLETTER) {
                return null;
            }
            row.begin();
            row.putField(0, row.nothing());
            row.putField(1, row.nothing());
            return row.row();
        }

        Object refused(byte[] frame, Refusal refusal) {
            if (mode != Plan.Mode.DEADLETTER) {
                return null;
            }
            row.begin();
            row.putField(0, row.nothing());
            int start = row.beginRow(ERROR.size());
            byte[] reason = refusal.reason.getBytes(StandardCharsets.UTF_8);
            Integer id = refusal.schemaId();
            row.putField(start, ERROR.size(), 0, row.put(reason, 0, reason.length, start));
            row.putField(start, ERROR.size(), 1, id == null ? row.nothing() : RowBuffer.narrow(id));
            row.putField(start, ERROR.size(), 2, row.put(frame, 0, frame.length, start));
            row.putField(1, row.close(start, 0));
            return row.row();
        }

        private Program program(Object name) {
            Program program = programs.get(name);
            return program == null ? learn(name) : program;
        }

        private Program learn(Object name) {
            if (unusable.containsKey(name)) {
                throw unusable.get(name);
            }
            Registry.Writer writer = registry.schema(name);
            if (writer.schema() == null) {
                throw new Refusal(writer.reason(), name, writer.message());
            }
            if (programs.size() >= MAX_PROGRAMS) {
                programs.clear();
                unusable.clear();
            }
            try {
                Program program = new Program(name, writer.schema(), reader, type, row);
                programs.put(name, program);
                return program;
            } catch (UnusableSchema error) {
                String message = "unusable writer schema: " + error.getMessage();
                unusable.put(name, new Refusal("unusable writer schema", name, message));
                throw unusable.get(name);
            }
        }
    }
}
