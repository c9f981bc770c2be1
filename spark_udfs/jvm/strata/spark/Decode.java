package strata.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import strata.spark.avro.AvroProgram;
import strata.spark.avro.AvroProgram.Defaults;
import strata.spark.avro.ValueChanges;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.client.Http.RegistryFailure;
import strata.spark.client.RegistrySettings;
import strata.spark.client.Waits;
import strata.spark.frame.FrameHeader;
import strata.spark.frame.FrameHeader.Refusal;
import strata.spark.frame.Program;
import strata.spark.json.JsonProgram;
import strata.spark.json.JsonProgram.JsonReader;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.proto.MessageJudge;
import strata.spark.proto.ProtoProgram;
import strata.spark.proto.ProtoReader;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema;
import strata.spark.schema.Registry;

/**
 * The decode function: frames (what names the schema, payload) to values of the reader schema.
 *
 * <p>Spark calls {@code call} from generated code, with its own bytes and without boxing. Each task has its own copy
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

    /** The name of the methods for a column, and for one with its origin. Spark calls one named invoke by itself. */
    public static final String METHOD = "call";

    private final String name;
    private final DecodePlan plan;
    private final RegistrySettings settings;
    private final DataType[] inputs;
    /** Counts look-ups; null until the optimizer's rule makes the function a part of a query. */
    private final Waits waits;

    private transient Work work;

    Decode(String name, DecodePlan plan, RegistrySettings settings, DataType[] inputs) {
        this(name, plan, settings, inputs, null);
    }

    private Decode(String name, DecodePlan plan, RegistrySettings settings, DataType[] inputs, Waits waits) {
        this.name = name;
        this.plan = plan;
        this.settings = settings;
        this.inputs = inputs;
        this.waits = waits;
    }

    /** Return whether the result has an error next to the value. */
    boolean hasErrors() {
        return plan.mode() == FunctionName.Mode.DEADLETTER;
    }

    /** Return the function that builds only some fields of the value, checks the others and leaves them null. */
    public Decode only(Set<Integer> fields) {
        boolean reads = plan.format() == Registry.Format.AVRO && plan.dataType() instanceof StructType;
        return reads ? new Decode(name, plan.only(fields), settings, inputs, waits) : this;
    }

    /** Return the function that counts how long it waits for the registry. */
    Decode counting(Waits waits) {
        return new Decode(name, plan, settings, inputs, waits);
    }

    @Override
    public DataType[] inputTypes() {
        return inputs.clone();
    }

    @Override
    public DataType resultType() {
        DataType value = plan.dataType();
        return plan.mode() != FunctionName.Mode.DEADLETTER
                ? value
                : new StructType(new StructField[] {
                    DataTypes.createStructField("value", value, true), DataTypes.createStructField("error", ERROR, true)
                });
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

    /** Equal calls are one: Spark matches those of {@code GROUP BY} with those of {@code SELECT}. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Decode decode
                && plan.equals(decode.plan)
                && settings.equals(decode.settings)
                && Arrays.equals(inputs, decode.inputs);
    }

    @Override
    public int hashCode() {
        return Objects.hash(plan, settings, Arrays.hashCode(inputs));
    }

    /** Return what plans show. */
    @Override
    public String toString() {
        return "strata_decode[" + name + (plan.fields() == null ? "" : ", only " + plan.fieldNames()) + "]";
    }

    @Override
    public Object produceResult(InternalRow row) {
        InternalRow origin = inputs.length > 1 && !row.isNullAt(1) ? origin(row) : null;
        if (row.isNullAt(0)) {
            return decode(null, null, origin);
        }
        return inputs[0] instanceof StructType record
                ? call(row.getStruct(0, record.size()), origin)
                : decode(row.getBinary(0), null, origin);
    }

    private InternalRow origin(InternalRow row) {
        return row.getStruct(1, ((StructType) inputs[1]).size());
    }

    /** Return the value of a frame. */
    public Object call(byte[] frame) {
        return decode(frame, null, null);
    }

    /** Return the value of a frame; {@code origin} says where it came from. */
    public Object call(byte[] frame, InternalRow origin) {
        return decode(frame, null, origin);
    }

    /** Return the value of a record with headers: its bytes, and the header that names its schema. */
    public Object call(InternalRow record) {
        return call(record, null);
    }

    /** Return the value of a record with headers; {@code origin} says where it came from. */
    public Object call(InternalRow record, InternalRow origin) {
        return record == null ? decode(null, null, origin) : decode(bytes(record, 0), bytes(record, 1), origin);
    }

    static byte[] bytes(InternalRow record, int index) {
        return record.isNullAt(index) ? null : record.getBinary(index);
    }

    private Object decode(byte[] frame, byte[] header, InternalRow origin) {
        try {
            if (work == null) {
                work = new Work(plan, settings, waits, false);
            }
            return frame == null ? work.nothing() : work.decode(frame, header);
        } catch (Refusal refusal) {
            if (plan.mode() == FunctionName.Mode.FAILFAST) {
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
    static final class Work {
        private final FunctionName.Mode mode;
        private final Registry.Format format;
        private final Object reader;
        private final DataType type;
        private final int members;
        /** The positions of the fields to build; null for all. */
        private final Set<Integer> fields;

        private final Registry registry;
        private final Waits waits;
        private final RowBuffer row;
        private final Map<Object, Program> programs = new HashMap<>();
        private final Map<Object, Refusal> unusable = new HashMap<>();
        private final FrameHeader named = new FrameHeader();
        /** The programs of the last few schemas, found without allocating a key. */
        private final Program[] recent = new Program[RECENT];
        /** Whether values are built only to find those that the reader gets otherwise than they were written. */
        private final boolean judges;
        /** The program of the last record. */
        private Program last;

        /** The names of schemas whose values may change, with what finds the changes once a record has come. */
        private final Map<Object, ValueChanges> changes = new HashMap<>();

        /** Finds the changes of Protobuf; null for other formats, and if values are not judged. */
        private MessageJudge messages;

        /**
         * Return what only checks records, except for the values that may change.
         *
         * @param files the candidate's files of Protobuf
         */
        static Work ofJudge(DecodePlan plan, RegistrySettings settings, List<String> files) {
            Work work = new Work(plan, settings, null, true);
            if (work.reader instanceof ProtoReader candidate) {
                work.messages = new MessageJudge(ProtoSchema.parseWithKnown(files), candidate.message);
            }
            return work;
        }

        private Work(DecodePlan plan, RegistrySettings settings, Waits waits, boolean judges) {
            this.waits = waits;
            this.judges = judges;
            if (waits != null) {
                Waits.begin();
            }
            mode = plan.mode();
            format = plan.format();
            type = plan.dataType();
            reader = switch (format) {
                case AVRO -> Defaults.readerSchema(plan.reader());
                case PROTOBUF -> new ProtoReader(plan.reader());
                case JSON -> new JsonReader(plan.reader());
            };
            fields = plan.fields();
            members = type instanceof StructType struct ? struct.size() : 0;
            registry = Registry.of(settings, format);
            row = new RowBuffer(mode == FunctionName.Mode.DEADLETTER ? 2 : 1);
        }

        public Object decode(byte[] frame, byte[] header) {
            read(frame, 0, frame.length, header);
            if (mode == FunctionName.Mode.DEADLETTER) {
                row.putField(1, row.nothing());
                return row.row();
            }
            return type instanceof StructType
                    ? row.row().getStruct(0, members)
                    : row.row().get(0, type);
        }

        /** Read the frame that the bytes from {@code from} to {@code to} are; one that is judged may only be checked. */
        public void read(byte[] bytes, int from, int to, byte[] header) {
            last = null;
            named.open(bytes, from, to, header, format == Registry.Format.PROTOBUF);
            int place = named.mixed() & RECENT - 1;
            Program program = recent[place];
            if (program == null || !program.isNamedBy(named)) {
                program = program(named.name());
                recent[place] = program;
            }
            last = program;
            program.read(named);
        }

        /**
         * Return whether values of the last record may be read otherwise than they were written.
         *
         * @param isDecoded whether it was decoded
         */
        public boolean mayChange(boolean isDecoded) {
            return messages != null
                    ? last instanceof ProtoProgram program
                            && messages.mayChange(
                                    program.written(), named.bytes(), program.payload(), named.end(), isDecoded)
                    : last != null && changes.containsKey(last.name);
        }

        /**
         * Find the changes of the last record.
         *
         * @param isDecoded whether it was decoded
         * @throws IllegalArgumentException if Spark has no type for its schema
         */
        public void find(Program.Changes into, boolean isDecoded) {
            if (last instanceof ProtoProgram program) {
                messages.find(
                        program.name,
                        program.written(),
                        named.bytes(),
                        program.payload(),
                        named.end(),
                        into,
                        isDecoded);
                return;
            }
            ValueChanges found = changes.get(last.name);
            if (found == null) {
                Schema writer = (Schema) registry.schema(last.name).schema();
                found = new ValueChanges(last.name, writer, (Schema) reader, type);
                changes.put(last.name, found);
            }
            found.find(named, row.row(), into);
        }

        /** Return whether the records are messages of Protobuf. */
        public boolean isOfMessages() {
            return messages != null;
        }

        /** Return the schema id of the last record, null if it has none. */
        public Integer schemaId() {
            return last.name instanceof Integer id ? id : null;
        }

        /** Return the result for a null frame: a null value and no error. */
        public Object nothing() {
            if (mode != FunctionName.Mode.DEADLETTER) {
                return null;
            }
            row.begin();
            row.putField(0, row.nothing());
            row.putField(1, row.nothing());
            return row.row();
        }

        public Object refused(byte[] frame, Refusal refusal) {
            if (mode != FunctionName.Mode.DEADLETTER) {
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

        private Program program(Object name, Object writer) {
            return switch (format) {
                case AVRO -> new AvroProgram(
                        name, (Schema) writer, (Schema) reader, type, built(name, (Schema) writer), row);
                case PROTOBUF -> new ProtoProgram(name, (ProtoSchema) writer, (ProtoReader) reader, row, messages);
                case JSON -> new JsonProgram(name, (JsonReader) reader, row);
            };
        }

        /** Return the positions of the fields of a schema to build; null for all. */
        private Set<Integer> built(Object name, Schema writer) {
            if (!judges) {
                return fields;
            }
            ValueChanges.Places places = ValueChanges.places(writer, (Schema) reader);
            if (places.exist()) {
                changes.put(name, null);
            }
            return type instanceof StructType ? places.fields() : null;
        }

        private Program learn(Object name) {
            if (unusable.containsKey(name)) {
                throw unusable.get(name);
            }
            Registry.Writer writer = waits == null ? registry.schema(name) : waits.counted(() -> registry.schema(name));
            if (writer.schema() == null) {
                throw new Refusal(writer.reason(), name, writer.message());
            }
            if (programs.size() >= MAX_PROGRAMS) {
                programs.clear();
                unusable.clear();
                changes.clear();
            }
            try {
                Program program = program(name, writer.schema());
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
