package strata.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

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
    ValidRule rule, List<Object> place, String path, String words, UTF8String text, List<List<ValidError>> branches) {
    private static final int DEEPEST = 20;

    /** Return the failure that tells of the first of some errors. */
    static EncodeFailure first(List<ValidError> sorted) {
        ValidError error = sorted.get(0);
        ValidError found = error.nearest(0);
        String note = found == error ? "" : ", in the nearest branch of " + error.rule.keyword();
        String words = found.rule.keyword().equals("const") && found.text != null && found != error
            ? error.marks(found) : found.sentence();
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
            : best.stream().min(Comparator.comparing(ValidError::importance)).orElseThrow().nearest(depth + 1);
    }

    private boolean isOfAnotherType(ValidError inner) {
        return inner.rule.keyword().equals("type") && inner.place.equals(place);
    }

    /** Return how far a value is from a branch: first by constants, then by the number of errors. */
    private static long distance(List<ValidError> branch) {
        long constants = branch.stream().filter(one -> Set.of("const", "enum").contains(one.rule.keyword())).count();
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
