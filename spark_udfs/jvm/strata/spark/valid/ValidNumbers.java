package strata.spark.valid;

import com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import strata.spark.valid.ValidCheck.ValidErrors;
import strata.spark.valid.ValidCheck.ValidRule;
import strata.spark.write.EncodeSource;

/**
 * Checks of numbers, as the validator of the Python path makes them: a double counts as the digits that are written.
 *
 * <p>A decimal with a point is read as a double there. Limits in the schema are integers of 64 bits, or exact in doubles.
 */
final class ValidNumbers {
    private static final double EXACT = 0x1p53;
    private static final int MOST_LONG_DIGITS = 18;

    private static final Map<String, IntPredicate> LIMITS = Map.of(
            "minimum", order -> order >= 0,
            "maximum", order -> order <= 0,
            "exclusiveMinimum", order -> order > 0,
            "exclusiveMaximum", order -> order < 0);

    private interface Test {
        boolean passes(SpecializedGetters from, int i);
    }

    private record Check(Test test, ValidRule rule, String detail) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return test.passes(from, i) || rule.refuse(errors, detail);
        }
    }

    private final EncodeSource.Whole whole;
    private final EncodeSource.Real real;
    private final DecimalType decimal;

    /** @param column a column of numbers */
    ValidNumbers(DataType column) {
        DecimalType given = column instanceof DecimalType type ? type : null;
        boolean isShort = given != null && given.scale() == 0 && given.precision() <= MOST_LONG_DIGITS;
        boolean hasPoint = given != null && given.scale() > 0;
        decimal = given;
        whole = isShort
                ? (from, i, out) -> from.getDecimal(i, given.precision(), 0).toUnscaledLong()
                : EncodeSource.plain(column);
        real = hasPoint ? (from, i, out) -> big(from, i).doubleValue() : EncodeSource.real(column);
    }

    private BigDecimal big(SpecializedGetters from, int i) {
        return from.getDecimal(i, decimal.precision(), decimal.scale()).toJavaBigDecimal();
    }

    static boolean isLimit(String keyword) {
        return LIMITS.containsKey(keyword);
    }

    private static BigDecimal digits(double number) {
        return new BigDecimal(DoubleToDecimal.toString(number));
    }

    /** Return the check of a number against a limit. */
    ValidCheck limited(ValidRule rule, BigDecimal limit) {
        IntPredicate allowed = LIMITS.get(rule.keyword());
        return new Check(limited(allowed, limit), rule, rule.detail());
    }

    private Test limited(IntPredicate allowed, BigDecimal limit) {
        if (whole != null) {
            BigDecimal floor = limit.setScale(0, RoundingMode.FLOOR);
            long bound = floor.longValueExact();
            int atBound = floor.compareTo(limit);
            return (from, i) -> {
                int order = Long.compare(whole.get(from, i, null), bound);
                return allowed.test(order == 0 ? atBound : order);
            };
        }
        if (real != null) {
            double bound = limit.doubleValue();
            boolean isExact = Math.abs(bound) <= EXACT;
            return (from, i) -> {
                double number = real.get(from, i, null);
                return allowed.test(
                        isExact ? order(number, bound) : digits(number).compareTo(limit));
            };
        }
        return (from, i) -> allowed.test(big(from, i).compareTo(limit));
    }

    private static int order(double one, double other) {
        return one < other ? -1 : one > other ? 1 : 0; // 0.0 and -0.0 are equal
    }

    /** Return the check that a number is a multiple of an integer. */
    ValidCheck multiple(ValidRule rule, long divisor) {
        BigDecimal exact = BigDecimal.valueOf(divisor);
        Test test = whole != null
                ? (from, i) -> whole.get(from, i, null) % divisor == 0
                : real == null
                        ? (from, i) -> big(from, i).remainder(exact).signum() == 0
                        : (from, i) -> {
                            double number = real.get(from, i, null);
                            return Math.abs(number) <= EXACT
                                    ? number % divisor == 0
                                    : digits(number).remainder(exact).signum() == 0;
                        };
        return new Check(test, rule, rule.detail());
    }

    /** Return the check that a number with a point is whole. */
    public ValidCheck whole(ValidRule rule, String detail) {
        return new Check(
                (from, i) -> {
                    double number = real.get(from, i, null);
                    return number == Math.rint(number);
                },
                rule,
                detail);
    }

    /**
     * Return the check that a number is one of some, all below 2^53.
     *
     * @param numbers as doubles, without -0.0
     */
    ValidCheck listed(ValidRule rule, Set<Double> numbers, String detail) {
        Test test = whole != null
                ? (from, i) -> isListed(numbers, whole.get(from, i, null))
                : real == null
                        ? (from, i) -> isListed(numbers, big(from, i))
                        : (from, i) -> numbers.contains(real.get(from, i, null) + 0.0);
        return new Check(test, rule, detail);
    }

    private static boolean isListed(Set<Double> numbers, long number) {
        return Math.abs((double) number) <= EXACT && numbers.contains((double) number);
    }

    private static boolean isListed(Set<Double> numbers, BigDecimal number) {
        return Math.abs(number.doubleValue()) < EXACT && numbers.contains(number.doubleValue());
    }
}
