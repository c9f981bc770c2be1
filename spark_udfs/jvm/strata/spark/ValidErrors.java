package strata.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/** The errors of one value, and the present place in it. */
final class ValidErrors {
    private static final Comparator<ValidError> ORDER =
        Comparator.comparing(ValidError::place, ValidErrors::compare)
            .thenComparing(one -> UTF8String.fromString(one.rule().path()));

    /** How many errors of a branch are looked at. */
    private static final int MOST = 10_000;

    private final boolean isBranch;
    private final List<Object> place;
    private final List<String> parts;
    private final List<ValidError> found = new ArrayList<>();

    ValidErrors() {
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
    void add(ValidError error) {
        if (found.isEmpty() || isBranch && found.size() < MOST) {
            found.add(error);
        } else if (!isBranch && ORDER.compare(error, found.get(0)) < 0) {
            found.set(0, error);
        }
    }

    /** Go to a part of the value: a UTF8String or an Integer, and the part of the path that shows it. */
    void enter(Object step, String part) {
        place.add(step);
        parts.add(part);
    }

    void leave() {
        place.remove(place.size() - 1);
        parts.remove(parts.size() - 1);
    }

    List<Object> place() {
        return List.copyOf(place);
    }

    String path() {
        return String.join("", parts);
    }

    /** Return the errors in the order of {@code explanations.order}. */
    List<ValidError> sorted() {
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
