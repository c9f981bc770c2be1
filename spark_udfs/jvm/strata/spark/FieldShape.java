package strata.spark;

import java.util.EnumSet;
import java.util.Set;

/**
 * Everything that the source of {@link FieldSource} depends on for one field.
 *
 * @param holds what the value is, or contains
 * @param shortcut how to read the value, or each item or value in it; {@link Shortcut#NONE} if only the node can read
 * it
 * @param nullByte the index byte that means null, or -1
 * @param slot the slot in the row, -1 for a field that is not read
 * @param isChecked whether the value is checked, and not built
 */
record FieldShape(Holds holds, Shortcut shortcut, int nullByte, int slot, boolean isChecked) {
    enum Holds { SCALAR, SYMBOL, ARRAY, MAP }

    /** Types that items of arrays and values of maps may have: those that fill a word. */
    private static final Set<Shortcut.Kind> SIMPLE =
        EnumSet.of(Shortcut.Kind.NUMBER, Shortcut.Kind.FIXED, Shortcut.Kind.TEXT, Shortcut.Kind.DECIMAL);

    static FieldShape of(Step step) {
        Node inner = step.inner();
        if (inner instanceof Containers.ArrayNode array) {
            return of(step, Holds.ARRAY, simple(array.width, array.item));
        }
        if (inner instanceof Containers.MapNode map) {
            return of(step, Holds.MAP, simple(map.width, map.value));
        }
        return of(step, inner instanceof Scalars.EnumNode ? Holds.SYMBOL : Holds.SCALAR, step.shortcut());
    }

    private static FieldShape of(Step step, Holds holds, Shortcut shortcut) {
        boolean isChecked = step.slot() < 0 && step.value() != null;
        return new FieldShape(holds, shortcut, step.nullByte(), step.slot(), isChecked);
    }

    private static Shortcut simple(int width, Node item) {
        return width == Long.BYTES && SIMPLE.contains(item.shortcut().kind()) ? item.shortcut() : Shortcut.NONE;
    }

    /** Return whether the row gets a value. */
    boolean isRead() {
        return slot >= 0;
    }
}
