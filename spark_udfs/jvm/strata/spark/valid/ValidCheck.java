package strata.spark.valid;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.valid.ValidShapes.ValidKind;
import strata.spark.write.EncodeOutput.EncodeFailure;

/** Whether values of a column, as JSON, are valid by a part of a JSON Schema. */
public interface ValidCheck {
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
        public static ValidCheck of(ValidCheck value, ValidCheck ofNull) {
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
        public static ValidCheck of(List<ValidCheck> branches, boolean isOne, ValidRule rule, String got) {
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

    /**
     * Why a value is not valid, and its words, by the rules of {@code serdes/json_schema/explanations.py}.
     *
     * @param place the steps to the value: UTF8String or Integer
     * @param path the path that people see
     * @param words the sentence; for branches, what the type of the value is called
     * @param text the value, if the rule compares texts
     * @param branches the sorted errors of each branch, of {@code oneOf} and {@code anyOf}
     */
    record ValidError(
            ValidRule rule,
            List<Object> place,
            String path,
            String words,
            UTF8String text,
            List<List<ValidError>> branches) {
        private static final int DEEPEST = 20;

        /** Return the failure that tells of the first of some errors. */
        public static EncodeFailure first(List<ValidError> sorted) {
            ValidError error = sorted.get(0);
            ValidError found = error.nearest(0);
            String note = found == error ? "" : ", in the nearest branch of " + error.rule.keyword();
            String words = found.rule.keyword().equals("const") && found.text != null && found != error
                    ? error.marks(found)
                    : found.sentence();
            String path = found.path.replaceFirst("^\\.+", "");
            return new EncodeFailure(words + " (rule " + found.rule.path() + note + ")", path);
        }

        /** Return the error in the nearest branch; without branches this error. */
        private ValidError nearest(int depth) {
            if (branches.isEmpty() || depth >= DEEPEST || branches.stream().anyMatch(List::isEmpty)) {
                return this;
            }
            List<ValidError> best = null;
            for (List<ValidError> branch : branches) {
                boolean isNearer = best == null || distance(branch) < distance(best);
                if (isNearer && branch.stream().noneMatch(this::isOfAnotherType)) {
                    best = branch;
                }
            }
            return best == null
                    ? this
                    : best.stream()
                            .min(Comparator.comparing(ValidError::importance))
                            .orElseThrow()
                            .nearest(depth + 1);
        }

        private boolean isOfAnotherType(ValidError inner) {
            return inner.rule.keyword().equals("type") && inner.place.equals(place);
        }

        /** Return how far a value is from a branch: first by constants, then by the number of errors. */
        private static long distance(List<ValidError> branch) {
            long constants = branch.stream()
                    .filter(one -> Set.of("const", "enum").contains(one.rule.keyword()))
                    .count();
            return (constants << Integer.SIZE) + branch.size();
        }

        private int importance() {
            return switch (rule.keyword()) {
                case "const" -> 0;
                case "closed" -> 1;
                default -> 2;
            };
        }

        /** Return the sentence for a text that has none of the constants that identify the branches. */
        private String marks(ValidError found) {
            List<String> marks = new ArrayList<>();
            for (List<ValidError> branch : branches) {
                for (ValidError one : branch) {
                    if (one.rule.keyword().equals("const") && one.place.equals(found.place)) {
                        marks.add(one.rule.mark());
                    }
                }
            }
            return "expected " + PythonText.oneOf(marks) + ", got another string"
                    + PythonText.didYouMean(found.text.toString(), marks);
        }

        private String sentence() {
            if (branches.isEmpty()) {
                return words;
            }
            if (branches.stream().anyMatch(List::isEmpty)) {
                return "expected a value that fits one branch of oneOf, got one that fits several";
            }
            Set<String> types = new LinkedHashSet<>();
            branches.forEach(branch -> branch.forEach(one -> types.addAll(one.rule.types())));
            if (types.isEmpty()) {
                return "expected a value that fits a branch of " + rule.keyword();
            }
            return "expected " + ValidKind.words(types) + ", got " + words;
        }
    }

    /** The errors of one value, and the present place in it. */
    static final class ValidErrors {
        private static final Comparator<ValidError> ORDER = Comparator.comparing(
                        ValidError::place, ValidErrors::compare)
                .thenComparing(one -> UTF8String.fromString(one.rule().path()));

        /** How many errors of a branch are looked at. */
        private static final int MOST = 10_000;

        private final boolean isBranch;
        private final List<Object> place;
        private final List<String> parts;
        private final List<ValidError> found = new ArrayList<>();

        public ValidErrors() {
            this(false, new ArrayList<>(), new ArrayList<>());
        }

        private ValidErrors(boolean isBranch, List<Object> place, List<String> parts) {
            this.isBranch = isBranch;
            this.place = place;
            this.parts = parts;
        }

        /** Return an empty list for a branch, at the same place. */
        ValidErrors beside() {
            return new ValidErrors(true, new ArrayList<>(place), new ArrayList<>(parts));
        }

        /** Keep an error: of a branch each, of the whole value the first in order. */
        public void add(ValidError error) {
            if (found.isEmpty() || isBranch && found.size() < MOST) {
                found.add(error);
            } else if (!isBranch && ORDER.compare(error, found.get(0)) < 0) {
                found.set(0, error);
            }
        }

        /** Go to a part of the value: a UTF8String or an Integer, and the part of the path that shows it. */
        public void enter(Object step, String part) {
            place.add(step);
            parts.add(part);
        }

        void leave() {
            place.remove(place.size() - 1);
            parts.remove(parts.size() - 1);
        }

        public List<Object> place() {
            return List.copyOf(place);
        }

        public String path() {
            return String.join("", parts);
        }

        /** Return the errors in the order of {@code explanations.order}. */
        public List<ValidError> sorted() {
            found.sort(ORDER);
            return found;
        }

        private static int compare(List<Object> one, List<Object> other) {
            for (int step = 0; step < Math.min(one.size(), other.size()); step++) {
                // At one place all steps are names, or all are numbers.
                int order = one.get(step) instanceof Integer number
                        ? number.compareTo((Integer) other.get(step))
                        : ((UTF8String) one.get(step)).compareTo((UTF8String) other.get(step));
                if (order != 0) {
                    return order;
                }
            }
            return Integer.compare(one.size(), other.size());
        }
    }

    /**
     * A keyword of a JSON Schema with its value.
     *
     * @param keyword its name, as {@link ValidSchema} gives it
     * @param path where it is in the schema
     * @param detail the words of its error, or their beginning
     * @param types the allowed types, if the keyword names some
     * @param mark the value of {@code const}, as text
     */
    record ValidRule(String keyword, String path, String detail, List<String> types, String mark) {
        public static ValidRule of(JsonNode check) {
            List<String> types = new ArrayList<>();
            check.path("types").forEach(one -> types.add(one.asText()));
            return new ValidRule(
                    check.path("check").asText(),
                    check.path("rule").asText(),
                    check.path("detail").asText(),
                    types,
                    check.path("mark").asText());
        }

        /** Note that the value at the present place is not valid, and return false. */
        public boolean refuse(ValidErrors errors, String words) {
            return refuse(errors, words, "", null);
        }

        /** Note that a value is not valid, whose path has a further part, or that is the given text. */
        public boolean refuse(ValidErrors errors, String words, String part, UTF8String text) {
            if (errors != null) {
                errors.add(new ValidError(this, errors.place(), errors.path() + part, words, text, List.of()));
            }
            return false;
        }

        /** Note that no branch allows a value, or too many. */
        public boolean refuse(ValidErrors errors, List<List<ValidError>> branches, String got) {
            errors.add(new ValidError(this, errors.place(), errors.path(), got, null, branches));
            return false;
        }
    }
}
