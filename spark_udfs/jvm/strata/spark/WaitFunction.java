package strata.spark;

import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import strata.spark.client.Waits;

/**
 * What the task has waited for the registry since the row before, as a column for metrics; see
 * spark_udfs/observation.py. Null if the task decodes nothing in the JVM.
 *
 * <p>The argument comes from the decoded column and is not used: Spark must decode the row first.
 */
public final class WaitFunction implements UnboundFunction, ScalarFunction<Long> {
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
