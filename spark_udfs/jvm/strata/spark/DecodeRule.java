package strata.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.client.Waits;

/**
 * The optimizer's rule for decodes and encodes: each becomes a call from generated code, and a decode builds only the
 * fields that the query uses.
 *
 * <p>The analyzer knows both as a user's function, which it can move out of {@code GROUP BY} and {@code ORDER BY}.
 * The type of the column stays as it is; the fields that no part of the query uses are null in it. They are checked all
 * the same, so that the query does not decide which records are good.
 */
final class DecodeRule extends Rule<LogicalPlan> {
    /** The setting that switches the choice of fields off. */
    static final String PRUNES = "spark.strata.prune";

    /** Nodes that use no more of their input than their expressions name. */
    private static final Set<String> EXPLICIT = Set.of(
            "Project",
            "Filter",
            "Aggregate",
            "Sort",
            "GlobalLimit",
            "LocalLimit",
            "Offset",
            "Tail",
            "Join",
            "RepartitionByExpression",
            "Repartition",
            "Window",
            "CollectMetrics",
            "Sample",
            "SubqueryAlias");

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        Uses uses = new Uses();
        uses.define(plan);
        if (uses.calls.isEmpty() && !uses.hasOthers) {
            return plan;
        }
        lendClasses();
        if (conf().getConfString(PRUNES, "true").equals("true")) {
            uses.scan(plan);
            List<AttributeReference> output = Scala.list(plan, "output");
            output.forEach(uses::wholly);
        } else {
            uses.calls.values().forEach(Use::wholly);
        }
        uses.waits = Waits.ofQuery(SparkSession.active().sparkContext());
        return plan.transformAllExpressions(Scala.partial(uses::call));
    }

    /**
     * Let generated code of this thread's query name our classes.
     *
     * <p>Spark compiles it with the loader of the thread that runs the query. Only the thread that added the jar has the
     * session's; on another one, such as a second thread in Python, Spark would log an error and do without.
     */
    private static void lendClasses() {
        Thread thread = Thread.currentThread();
        try {
            Class.forName(Decode.class.getName(), false, thread.getContextClassLoader());
        } catch (ClassNotFoundException unknown) {
            thread.setContextClassLoader(Decode.class.getClassLoader());
        }
    }

    /** What a query uses of one decode. */
    private static final class Use {
        private final Decode decode;
        private final Set<Integer> fields = new TreeSet<>();
        private boolean wholly;

        Use(Decode decode) {
            this.decode = decode;
        }

        void wholly() {
            wholly = true;
        }

        /**
         * Note the use of a part.
         *
         * @param path the positions from the outside in
         * @param isChecked whether only its being null matters
         */
        public void part(List<Integer> path, boolean isChecked) {
            List<Integer> inside = path;
            if (decode.hasErrors()) {
                if (path.get(0) == 1) {
                    return;
                }
                inside = path.subList(1, path.size());
            }
            if (!inside.isEmpty()) {
                fields.add(inside.get(0));
            } else if (!isChecked) {
                wholly = true;
            }
        }

        Decode function() {
            return wholly ? decode : decode.only(fields);
        }
    }

    /** What a query uses of all its decodes. */
    private static final class Uses {
        public final Map<Expression, Use> calls = new IdentityHashMap<>();
        private final Map<ExprId, Use> named = new HashMap<>();
        private boolean hasOthers;
        private Waits waits;

        /** Find the decodes, and the columns that projections make of them. */
        void define(LogicalPlan plan) {
            for (Expression one : Scala.<Expression>list(plan, "expressions")) {
                define(one, plan instanceof Project && one instanceof Alias);
            }
            Scala.<LogicalPlan>list(plan, "children").forEach(this::define);
        }

        private void define(Expression expression, boolean isColumn) {
            if (expression instanceof ApplyFunctionExpression call && call.function() instanceof Decode decode) {
                calls.put(call, new Use(decode));
            }
            hasOthers |= expression instanceof ApplyFunctionExpression call && call.function() instanceof Encode;
            for (Expression child : Scala.<Expression>list(expression, "children")) {
                define(child, false);
                if (isColumn && calls.containsKey(child)) {
                    named.put(((Alias) expression).exprId(), calls.get(child));
                }
            }
        }

        void scan(LogicalPlan plan) {
            boolean projects = plan instanceof Project;
            for (Expression one : Scala.<Expression>list(plan, "expressions")) {
                boolean isPassedOn = projects && one instanceof AttributeReference;
                boolean isDefinition = projects && one instanceof Alias alias && named.containsKey(alias.exprId());
                if (isDefinition) {
                    Scala.<Expression>list(((Alias) one).child(), "children").forEach(this::scan);
                } else if (!isPassedOn) {
                    scan(one);
                }
            }
            for (LogicalPlan child : Scala.<LogicalPlan>list(plan, "children")) {
                if (!EXPLICIT.contains(plan.getClass().getSimpleName())) {
                    Scala.<AttributeReference>list(child, "output").forEach(this::wholly);
                }
                scan(child);
            }
        }

        void wholly(Expression column) {
            if (column instanceof AttributeReference one && named.containsKey(one.exprId())) {
                named.get(one.exprId()).wholly();
            }
        }

        private void scan(Expression expression) {
            boolean isCheck = expression instanceof IsNull || expression instanceof IsNotNull;
            Expression whole =
                    isCheck ? Scala.<Expression>list(expression, "children").get(0) : expression;
            Deque<Integer> path = new ArrayDeque<>();
            while (whole instanceof GetStructField part) {
                path.addFirst(part.ordinal());
                whole = part.child();
            }
            Use use = whole instanceof AttributeReference column ? named.get(column.exprId()) : calls.get(whole);
            if (use != null && path.isEmpty()) {
                use.wholly();
            } else if (use != null) {
                use.part(List.copyOf(path), isCheck);
            }
            Scala.<Expression>list(whole, "children").forEach(this::scan);
        }

        /** Return the call of a function from generated code, null for any other expression. */
        Expression call(Expression expression) {
            Use use = calls.get(expression);
            if (use != null) {
                Decode function = use.function().counting(waits);
                List<DataType> types = Arrays.asList(function.inputTypes());
                return invoked(function, Decode.METHOD, Scala.list(expression, "children"), types);
            }
            if (expression instanceof ApplyFunctionExpression call && call.function() instanceof Encode function) {
                Expression row = row(Scala.list(expression, "children"));
                return invoked(function, Encode.METHOD, List.of(row), List.of(row.dataType()));
            }
            return null;
        }

        private static Expression row(List<Expression> columns) {
            List<Expression> parts = new ArrayList<>();
            for (Expression column : columns) {
                UTF8String name = UTF8String.fromString("c" + parts.size() / 2);
                parts.add(new Literal(name, DataTypes.StringType));
                parts.add(column);
            }
            return Scala.make(CreateNamedStruct.class, Scala.list(parts));
        }

        private static Expression invoked(
                ScalarFunction<?> function, String method, List<Expression> arguments, List<DataType> types) {
            return Scala.make(
                    Invoke.class,
                    new Literal(function, new ObjectType(function.getClass())),
                    method,
                    function.resultType(),
                    Scala.list(arguments),
                    Scala.list(types),
                    false,
                    true,
                    false);
        }
    }
}
