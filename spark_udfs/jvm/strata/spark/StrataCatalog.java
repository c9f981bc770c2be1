package strata.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import java.util.Arrays;
import org.apache.spark.sql.types.DataTypes;

/**
 * One registry as a catalog of functions, configured by {@code spark.sql.catalog.NAME} and its options.
 *
 * <p>A function's name holds the plan of one decode, which the driver made.
 */
public final class StrataCatalog implements FunctionCatalog {
    // The struct of a record with headers, see spark_udfs/decoding/headers.py.
    private static final StructType RECORD =
        new StructType().add("value", DataTypes.BinaryType).add("header", DataTypes.BinaryType);

    private String name;
    private RegistrySettings settings;

    @Override
    public void initialize(String catalogName, CaseInsensitiveStringMap options) {
        name = catalogName;
        settings = RegistrySettings.of(options, this::secret);
    }

    /**
     * Return a secret, which `install` sets outside the options: options are properties of jobs, which the event log
     * shows.
     */
    private String secret(String option) {
        return SparkSession.active().conf().get("strata." + name + "." + option, null);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier identifier) {
        return new Unbound(Plan.parse(identifier.name()), settings);
    }

    private record Unbound(Plan plan, RegistrySettings settings) implements UnboundFunction {
        @Override
        public BoundFunction bind(StructType inputs) {
            DataType[] types = Arrays.stream(inputs.fields()).map(StructField::dataType).toArray(DataType[]::new);
            if (types.length == 0 || types.length > 2) {
                throw new UnsupportedOperationException("expected a column of frames and at most one of their origin");
            }
            boolean isRecord = types[0] instanceof StructType record
                && Arrays.equals(record.fieldNames(), RECORD.fieldNames());
            requireBinary(isRecord ? ((StructType) types[0]).fields()[0].dataType() : types[0]);
            types[0] = isRecord ? RECORD : DataTypes.BinaryType;
            return new Decode(plan, settings, types);
        }

        private static void requireBinary(DataType type) {
            if (!(type instanceof BinaryType) && !(type instanceof NullType)) {
                throw new UnsupportedOperationException(
                    "expected a binary column of frames, got " + type.simpleString());
            }
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
}
