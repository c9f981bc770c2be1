package strata.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.internal.SessionState;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * What a session gets: the functions of SQL, and the rule for decodes. A catalog adds them to the session that loads it.
 * {@code spark.sql.extensions} adds them to the sessions of a Thrift or Connect server that has
 * {@code spark.sql.catalog.strata}.
 */
public final class StrataExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static final String CATALOG = "strata";

    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        SqlFunctions.SCALARS.forEach((name, function) ->
                extensions.injectFunction((Tuple3) described(CATALOG + name, SqlFunctions.builder(CATALOG, function))));
        SqlFunctions.TABLES.forEach((name, function) -> extensions.injectTableFunction(
                (Tuple3) described(CATALOG + name, SqlFunctions.builder(CATALOG, function))));
        extensions.injectPreCBORule((AbstractFunction1) new AbstractFunction1<SparkSession, DecodeRule>() {
            @Override
            public DecodeRule apply(SparkSession spark) {
                return new DecodeRule();
            }
        });
        return BoxedUnit.UNIT;
    }

    private static Tuple3<FunctionIdentifier, ExpressionInfo, Object> described(String name, Object builder) {
        ExpressionInfo info = new ExpressionInfo(StrataExtensions.class.getName(), name);
        return new Tuple3<>(new FunctionIdentifier(name, Option.empty()), info, builder);
    }

    /** Add the functions of a catalog to a session, and the rule unless the session has it. */
    static void extend(SparkSession spark, String catalog) {
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

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void add(FunctionRegistryBase registry, String name, Object builder) {
        registry.createOrReplaceTempFunction(name, (Function1) builder, "scala_udf");
    }
}
