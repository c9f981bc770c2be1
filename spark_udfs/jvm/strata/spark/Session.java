package strata.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.collection.JavaConverters;
import strata.spark.client.RegistrySettings;

/** A Spark session, as far as a catalog changes it: it gets the functions of SQL and the rule for decodes. */
final class Session {
    private final SparkSession spark;

    private Session(SparkSession spark) {
        this.spark = spark;
    }

    public static Session of(SparkSession spark) {
        return new Session(spark);
    }

    /** Return the options of a catalog of the active session. */
    @SuppressWarnings("deprecation")
    public static Map<String, String> options(String catalog) {
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
    public static RegistrySettings settings(String catalog) {
        return RegistrySettings.of(new CaseInsensitiveStringMap(options(catalog)), option -> secret(catalog, option));
    }

    /**
     * Return a secret, which `install` sets outside the options: options are properties of jobs, which the event log
     * shows.
     */
    private static String secret(String catalog, String option) {
        return SparkSession.active().conf().get("strata." + catalog + "." + option, null);
    }

    /**
     * Let generated code of this thread's query name our classes.
     *
     * <p>Spark compiles it with the loader of the thread that runs the query. Only the thread that added the jar has the
     * session's; on another one, such as a second thread in Python, Spark would log an error and do without.
     */
    static void lendClasses() {
        Thread thread = Thread.currentThread();
        try {
            Class.forName(Decode.class.getName(), false, thread.getContextClassLoader());
        } catch (ClassNotFoundException unknown) {
            thread.setContextClassLoader(Decode.class.getClassLoader());
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void add(FunctionRegistryBase registry, String name, Object builder) {
        registry.createOrReplaceTempFunction(name, (Function1) builder, "scala_udf");
    }

    /** Add the functions of a catalog, and the rule, unless the session has it. */
    void prepare(String catalog) {
        SessionState state = spark.sessionState();
        SqlFunctions.SCALARS.forEach((name, function) ->
                add(state.functionRegistry(), catalog + name, SqlFunctions.builder(catalog, function)));
        SqlFunctions.TABLES.forEach((name, function) ->
                add(state.tableFunctionRegistry(), catalog + name, SqlFunctions.builder(catalog, function)));
        ExperimentalMethods methods = spark.experimental();
        List<Object> rules = new ArrayList<>(Scala.<Object>list(methods, "extraOptimizations"));
        if (rules.stream().noneMatch(rule -> rule.getClass() == DecodeRule.class)) {
            rules.add(new DecodeRule());
            Scala.call(methods, "extraOptimizations_$eq", Scala.list(rules));
        }
    }
}
