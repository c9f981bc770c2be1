package strata.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import strata.spark.plan.EncodePlan;
import strata.spark.plan.FunctionName;
import strata.spark.valid.ValidDocuments.OnlyInPython;

/**
 * The functions of SQL that take a subject as an argument: {@code strata_decode(value, 'orders-value')}.
 *
 * <p>Each is short for a function of the catalog, {@code strata.decode.`orders-value`(value)}, or for a query. Columns of
 * the short form are named by it; those of the function would be named by Spark's class.
 */
final class SqlFunctions {
    /** The functions in expressions, and those in {@code FROM}, by what follows the name of the catalog. */
    public static final Map<String, BiFunction<String, List<Expression>, Expression>> SCALARS = Map.of(
            "_decode", SqlFunctions::decode,
            "_encode", SqlFunctions::encode,
            "_headers", SqlFunctions::headers,
            "_replay", SqlFunctions::replay,
            "_schema", SqlFunctions::schema,
            "_unsupported", SqlFunctions::unsupported);

    static final Map<String, BiFunction<String, List<Expression>, LogicalPlan>> TABLES =
            Map.of("_dead_letters", SqlFunctions::deadLetters);

    /** The type of the column `headers` of Kafka's sink. */
    private static final DataType HEADERS = DataTypes.createArrayType(
            new StructType().add("key", DataTypes.StringType).add("value", DataTypes.BinaryType));

    private SqlFunctions() {}

    /** Return Spark's builder of a function of a catalog. */
    public static <T> Function1<Object, T> builder(String catalog, BiFunction<String, List<Expression>, T> function) {
        return new AbstractFunction1<>() {
            @Override
            public T apply(Object arguments) {
                return function.apply(catalog, Scala.items(arguments));
            }
        };
    }

    private static Expression decode(String catalog, List<Expression> arguments) {
        require(arguments.size() >= 2, catalog + "_decode(FRAMES, 'SUBJECT')");
        return call(catalog, "decode", arguments);
    }

    private static Expression encode(String catalog, List<Expression> arguments) {
        require(arguments.size() >= 2, catalog + "_encode(VALUES, 'SUBJECT')");
        return call(catalog, "encode", arguments);
    }

    private static Expression replay(String catalog, List<Expression> arguments) {
        require(arguments.size() == 3, catalog + "_replay(FRAMES, 'SUBJECT', PLACE)");
        return call(catalog, Replay.NAMESPACE, arguments);
    }

    /** Return the call of a function of the catalog, whose name is the second argument. */
    private static Expression call(String catalog, String kind, List<Expression> arguments) {
        List<Expression> columns = new ArrayList<>(arguments);
        UnboundFunction function = StrataCatalog.function(catalog, kind, text(columns.remove(1)));
        StructType types = new StructType();
        for (Expression column : columns) {
            types = types.add("_" + types.size(), column.dataType(), column.nullable());
        }
        try {
            BoundFunction bound = function.bind(types);
            Expression call = bound instanceof Replay replay
                    ? replay.call(columns)
                    : Scala.make(ApplyFunctionExpression.class, bound, Scala.list(columns));
            call.setTagValue(FunctionRegistry.FUNC_ALIAS(), catalog + "_" + kind); // in the names of columns
            return call;
        } catch (UnsupportedOperationException misfit) {
            throw Scala.<RuntimeException>thrown(Scala.of(
                    "org.apache.spark.sql.errors.QueryCompilationErrors",
                    "functionCannotProcessInputError",
                    function,
                    Scala.list(columns),
                    misfit));
        }
    }

    private static Expression schema(String catalog, List<Expression> arguments) {
        require(arguments.size() == 1, catalog + "_schema('SUBJECT')");
        String text = FunctionName.parse(text(arguments.get(0))).schemaText(StrataCatalog.settings(catalog));
        return new Literal(UTF8String.fromString(text), DataTypes.StringType);
    }

    private static Expression headers(String catalog, List<Expression> arguments) {
        require(arguments.size() == 1, catalog + "_headers('SUBJECT')");
        EncodePlan.Header header =
                EncodePlan.header(FunctionName.parse(text(arguments.get(0))), StrataCatalog.settings(catalog));
        Object[] row = {UTF8String.fromString(header.name()), header.value()};
        return new Literal(new GenericArrayData(new Object[] {new GenericInternalRow(row)}), HEADERS);
    }

    /**
     * Return what only Python workers support of the function that a plan names, null if nothing: the driver in Python
     * asks before it chooses the path.
     */
    private static Expression unsupported(String catalog, List<Expression> arguments) {
        require(arguments.size() == 1, catalog + "_unsupported('FUNCTION')");
        try {
            EncodePlan.parse(FunctionName.parse(text(arguments.get(0))));
            return new Literal(null, DataTypes.StringType);
        } catch (OnlyInPython part) {
            return new Literal(UTF8String.fromString(part.getMessage()), DataTypes.StringType);
        }
    }

    private static LogicalPlan deadLetters(String catalog, List<Expression> arguments) {
        require(arguments.size() == 1 || arguments.size() == 2, catalog + "_dead_letters('TABLE', 'COLUMN')");
        String table = text(arguments.get(0));
        String column = arguments.size() == 1 ? "decoded" : text(arguments.get(1));
        StringBuilder query = new StringBuilder("SELECT ");
        for (String other : SparkSession.active().table(table).columns()) {
            if (!other.equalsIgnoreCase(column)) {
                query.append(quoted(other)).append(", ");
            }
        }
        String error = quoted(column) + ".error";
        query.append(error)
                .append(".* FROM ")
                .append(table)
                .append(" WHERE ")
                .append(error)
                .append(" IS NOT NULL");
        return parsed(() -> parser().parsePlan(query.toString()));
    }

    private static String quoted(String name) {
        return "`" + name.replace("`", "``") + "`";
    }

    private static ParserInterface parser() {
        return SparkSession.active().sessionState().sqlParser();
    }

    private interface Parsing<T> {
        T parse() throws Exception;
    }

    private static <T> T parsed(Parsing<T> parsing) {
        try {
            return parsing.parse();
        } catch (Exception error) {
            throw new IllegalArgumentException(error.getMessage(), error);
        }
    }

    private static void require(boolean holds, String usage) {
        if (!holds) {
            throw new IllegalArgumentException("expected " + usage);
        }
    }

    private static String text(Expression argument) {
        if (!argument.foldable() || !(argument.dataType() instanceof StringType)) {
            throw new IllegalArgumentException("expected a text in quotes, got " + argument.sql());
        }
        return String.valueOf(argument.eval(null));
    }
}
