package strata.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import scala.Option;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * What {@code install} does, for sessions that are made by a server: {@code spark.sql.extensions} of a Thrift or Connect
 * server, with {@code spark.sql.catalog.strata}.
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
}
