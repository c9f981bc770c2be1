package strata.spark;

import java.util.EnumSet;
import java.util.Set;

/**
 * All that the source of {@link FieldSource} says of one field.
 *
 * @param holds what the value is, or what is in it
 * @param shortcut how it is read, or how each item or value in it is; {@link Shortcut#NONE} if only its node can
 * @param nullByte the byte that says null, -1 if none does
 * @param slot of the row, -1 if nobody asked for it
 */
record FieldShape(Holds holds, Shortcut shortcut, int nullByte, int slot) {
    enum Holds { SCALAR, SYMBOL, ARRAY, MAP }

    /** What items of arrays and values of maps may be: they fill a word. */
    private static final Set<Shortcut.Kind> SIMPLE =
        EnumSet.of(Shortcut.Kind.NUMBER, Shortcut.Kind.FIXED, Shortcut.Kind.TEXT, Shortcut.Kind.DECIMAL);

    static FieldShape of(Step step) {
        Node inner = step.inner();
        if (inner instanceof Containers.ArrayNode array) {
            return new FieldShape(Holds.ARRAY, simple(array.width, array.item), step.nullByte(), step.slot());
        }
        if (inner instanceof Containers.MapNode map) {
            return new FieldShape(Holds.MAP, simple(map.width, map.value), step.nullByte(), step.slot());
        }
        Holds holds = inner instanceof Scalars.EnumNode ? Holds.SYMBOL : Holds.SCALAR;
        return new FieldShape(holds, step.shortcut(), step.nullByte(), step.slot());
    }

    private static Shortcut simple(int width, Node item) {
        return width == Long.BYTES && SIMPLE.contains(item.shortcut().kind()) ? item.shortcut() : Shortcut.NONE;
    }

    boolean isSkipped() {
        return slot < 0;
    }
}
