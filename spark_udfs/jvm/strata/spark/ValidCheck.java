package strata.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** Whether values of a column, as JSON, are valid by a part of a JSON Schema. */
interface ValidCheck {
    ValidCheck ALWAYS = (from, i, errors) -> true;

    /**
     * Return whether a value is valid.
     *
     * @param errors takes all errors of the value; null stops at the first
     */
    boolean passes(SpecializedGetters from, int i, ValidErrors errors);

    /** Return a check that all of some checks pass. */
    static ValidCheck all(List<ValidCheck> checks) {
        List<ValidCheck> left = new ArrayList<>(checks);
        left.removeIf(one -> one == ALWAYS);
        return switch (left.size()) {
            case 0 -> ALWAYS;
            case 1 -> left.get(0);
            default -> new All(left.toArray(ValidCheck[]::new));
        };
    }

    record All(ValidCheck[] checks) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            boolean isValid = true;
            for (ValidCheck check : checks) {
                if (!check.passes(from, i, errors)) {
                    if (errors == null) {
                        return false;
                    }
                    isValid = false;
                }
            }
            return isValid;
        }
    }

    /** No value of the column's type is valid. */
    record Never(ValidRule rule, String detail) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return rule.refuse(errors, detail);
        }
    }

    /** Values and nulls, which are written as null, have checks of their own. */
    record OrNull(ValidCheck value, ValidCheck ofNull) implements ValidCheck {
        static ValidCheck of(ValidCheck value, ValidCheck ofNull) {
            return value == ALWAYS && ofNull == ALWAYS ? ALWAYS : new OrNull(value, ofNull);
        }

        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return (from.isNullAt(i) ? ofNull : value).passes(from, i, errors);
        }
    }

    record Not(ValidCheck inner, ValidRule rule) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return !inner.passes(from, i, null) || rule.refuse(errors, rule.detail());
        }
    }

    /**
     * One, or any, of several branches.
     *
     * @param isOne whether it is exactly one
     * @param got what the type of the value is called
     */
    record Branches(ValidCheck[] branches, boolean isOne, ValidRule rule, String got) implements ValidCheck {
        static ValidCheck of(List<ValidCheck> branches, boolean isOne, ValidRule rule, String got) {
            long always = branches.stream().filter(one -> one == ALWAYS).count();
            long never = branches.stream().filter(one -> one instanceof Never).count();
            boolean isSure = isOne ? always == 1 && never == branches.size() - 1 : always > 0;
            return isSure ? ALWAYS : new Branches(branches.toArray(ValidCheck[]::new), isOne, rule, got);
        }

        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            int count = 0;
            for (ValidCheck branch : branches) {
                if (count <= (isOne ? 1 : 0) && branch.passes(from, i, null)) {
                    count++;
                }
            }
            if (isOne ? count == 1 : count > 0) {
                return true;
            }
            if (errors == null) {
                return false;
            }
            List<List<ValidError>> found = new ArrayList<>();
            for (ValidCheck branch : branches) {
                ValidErrors inner = errors.beside();
                branch.passes(from, i, inner);
                found.add(inner.sorted());
            }
            return rule.refuse(errors, found, got);
        }
    }
}
