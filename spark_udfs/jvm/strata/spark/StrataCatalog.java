package strata.spark;

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
 * One registry as a catalog of functions, set up by {@code spark.sql.catalog.NAME} and its options.
 *
 * <p>A function's name holds the plan of one decode, which the driver has made.
 */
public final class StrataCatalog implements FunctionCatalog {
    private String name;
    private RegistrySettings settings;

    @Override
    public void initialize(String catalogName, CaseInsensitiveStringMap options) {
        name = catalogName;
        settings = RegistrySettings.of(options);
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
                throw new UnsupportedOperationException("one column of frames, and at most one of their origin");
            }
            if (!(types[0] instanceof BinaryType) && !(types[0] instanceof NullType)) {
                throw new UnsupportedOperationException(
                    "frames are binary; the column to decode is " + types[0].simpleString());
            }
            types[0] = DataTypes.BinaryType;
            return new Decode(plan, settings, types);
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
