package strata.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.JavaConverters;
import strata.spark.client.RegistrySettings;
import strata.spark.client.Waits;
import strata.spark.plan.DecodePlan;
import strata.spark.plan.EncodePlan;
import strata.spark.plan.FunctionName;

/**
 * One registry as a catalog of functions, configured by {@code spark.sql.catalog.NAME} and its options.
 *
 * <p>A function's name holds the plan of one decode or encode, which the driver made, or names a schema in the registry.
 */
public final class StrataCatalog implements FunctionCatalog {
    // The struct of a record with headers, see spark_udfs/decoding/headers.py.
    private static final StructType RECORD =
            new StructType().add("value", DataTypes.BinaryType).add("header", DataTypes.BinaryType);

    private String name;

    @Override
    public void initialize(String catalogName, CaseInsensitiveStringMap options) {
        name = catalogName;
        settings(name); // reject what is wrong now
        StrataExtensions.extend(SparkSession.active(), name);
    }

    @Override
    public String name() {
        return name;
    }

    /** Return the options of a catalog of the active session. */
    @SuppressWarnings("deprecation")
    static Map<String, String> options(String catalog) {
        String prefix = "spark.sql.catalog." + catalog + ".";
        Map<String, String> options = new HashMap<>();
        JavaConverters.mapAsJavaMap(SparkSession.active().conf().getAll()).forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                options.put(key.substring(prefix.length()), value);
            }
        });
        return options;
    }

    /** Return the settings of a catalog of the active session, as they are now. */
    static RegistrySettings settings(String catalog) {
        return RegistrySettings.of(new CaseInsensitiveStringMap(options(catalog)), option -> secret(catalog, option));
    }

    /**
     * Return a secret, which `install` sets outside the options: options are properties of jobs, which the event log
     * shows.
     */
    private static String secret(String catalog, String option) {
        return SparkSession.active().conf().get("strata." + catalog + "." + option, null);
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier identifier) {
        return function(name, identifier.namespace().length == 1 ? identifier.namespace()[0] : "", identifier.name());
    }

    /** Return the function of a kind (decode, encode, replay, waits) whose name says the rest. */
    static UnboundFunction function(String catalog, String kind, String name) {
        if (kind.equals(WaitFunction.NAMESPACE)) {
            return new WaitFunction(name);
        }
        RegistrySettings settings = settings(catalog);
        FunctionName called = FunctionName.parse(name);
        String shown = FunctionName.shown(name);
        if (kind.equals(EncodePlan.NAMESPACE)) {
            return new UnboundEncode(shown, EncodePlan.of(called, settings));
        }
        DecodePlan plan = DecodePlan.of(called, settings);
        return kind.equals(Replay.NAMESPACE)
                ? new UnboundReplay(shown, plan, settings, List.copyOf(called.files(settings)))
                : new UnboundDecode(shown, plan, settings);
    }

    private record UnboundEncode(String label, EncodePlan plan) implements UnboundFunction {
        @Override
        public BoundFunction bind(StructType inputs) {
            if (inputs.size() != 1 + plan.origin().size()) {
                throw new UnsupportedOperationException(
                        "expected a column of values and " + plan.origin().size() + " of their origin");
            }
            return new Encode(label, plan, inputs, SparkSession.active().conf().get("spark.sql.session.timeZone"));
        }

        @Override
        public String description() {
            return "encodes registry frames";
        }

        @Override
        public String name() {
            return "strata_encode";
        }
    }

    private record UnboundDecode(String label, DecodePlan plan, RegistrySettings settings) implements UnboundFunction {
        @Override
        public BoundFunction bind(StructType inputs) {
            if (inputs.isEmpty() || inputs.size() > 2) {
                throw new UnsupportedOperationException("expected a column of frames and at most one of their origin");
            }
            return new Decode(label, plan, settings, typesOf(inputs));
        }

        @Override
        public String description() {
            return "decodes registry frames";
        }

        @Override
        public String name() {
            return "strata_decode";
        }
    }

    private record UnboundReplay(String label, DecodePlan plan, RegistrySettings settings, List<String> files)
            implements UnboundFunction {
        @Override
        public BoundFunction bind(StructType inputs) {
            if (inputs.size() != 2) {
                throw new UnsupportedOperationException("expected a column of frames and one of their places");
            }
            DataType[] types = typesOf(inputs);
            return new Replay(label, plan, settings, types[0], types[1], files);
        }

        @Override
        public String description() {
            return "counts what a schema makes of registry frames";
        }

        @Override
        public String name() {
            return "strata_replay";
        }
    }

    /** Return the types of columns, of which the first has frames, or records with headers. */
    private static DataType[] typesOf(StructType inputs) {
        DataType[] types =
                Arrays.stream(inputs.fields()).map(StructField::dataType).toArray(DataType[]::new);
        boolean isRecord =
                types[0] instanceof StructType record && Arrays.equals(record.fieldNames(), RECORD.fieldNames());
        DataType frames = isRecord ? ((StructType) types[0]).fields()[0].dataType() : types[0];
        if (!(frames instanceof BinaryType) && !(frames instanceof NullType)) {
            throw new UnsupportedOperationException("expected a binary column of frames, got " + frames.simpleString());
        }
        types[0] = isRecord ? RECORD : DataTypes.BinaryType;
        return types;
    }

    /**
     * What the task has waited for the registry since the row before, as a column for metrics; see
     * spark_udfs/observation.py. Null if the task decodes nothing in the JVM.
     *
     * <p>The argument comes from the decoded column and is not used: Spark must decode the row first.
     */
    public static final class WaitFunction implements UnboundFunction, ScalarFunction<Long> {
        private static final long serialVersionUID = 1L;
        public static final String NAMESPACE = "waits";
        private static final Map<String, Function<Waits.Count, AtomicLong>> PARTS =
                Map.of("milliseconds", Waits.Count::milliseconds, "retries", Waits.Count::retries);

        private final String part;
        private transient AtomicLong total;
        private transient long reported;

        WaitFunction(String part) {
            if (!PARTS.containsKey(part)) {
                throw new IllegalArgumentException("no function " + part + " in " + NAMESPACE);
            }
            this.part = part;
        }

        @Override
        public BoundFunction bind(StructType inputs) {
            return this;
        }

        @Override
        public DataType[] inputTypes() {
            return new DataType[] {DataTypes.BooleanType};
        }

        @Override
        public DataType resultType() {
            return DataTypes.LongType;
        }

        @Override
        public boolean isDeterministic() {
            return false;
        }

        /** Return what was waited since the last call. */
        public Long invoke(boolean isDecoded) {
            if (total == null) {
                Waits.Count count = Waits.ofTask();
                if (count == null) {
                    return null;
                }
                total = PARTS.get(part).apply(count);
            }
            long before = reported;
            reported = total.get();
            return reported - before;
        }

        @Override
        public String description() {
            return "what the task has waited for the registry: " + part;
        }

        @Override
        public String name() {
            return "strata_waits_" + part;
        }

        @Override
        public String canonicalName() {
            return "strata.waits." + part;
        }

        /** Return what plans show. */
        @Override
        public String toString() {
            return name();
        }
    }
}
