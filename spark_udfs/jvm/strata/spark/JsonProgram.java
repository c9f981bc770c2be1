package strata.spark;

import java.util.Collections;

/**
 * The program of JSON payloads. It depends on the reader schema only; a program for each writer schema remembers the
 * order in which that writer's records have their properties.
 *
 * <p>One pass over the bytes fills the row. What it cannot do alone is done the slow way, through a tree: the reason why
 * a payload has no value, and objects with a name that comes twice.
 */
final class JsonProgram extends Program {
    private final JsonColumn column;
    private final RowBuffer row;
    private final Cursor cursor = new Cursor();

    JsonProgram(Object name, JsonReader reader, RowBuffer row) {
        super(name);
        this.column = reader.column();
        this.row = row;
    }

    @Override
    void read(byte[] frame, byte[] header, int start) {
        try {
            read(frame, start);
        } catch (Damage unusual) {
            readSlowly(frame, start);
        }
    }

    private void read(byte[] payload, int start) {
        cursor.open(payload, start, false);
        row.begin();
        row.putField(0, column.read(cursor, row, 0));
        JsonSyntax.requireEnd(cursor);
    }

    private void readSlowly(byte[] frame, int start) {
        Object value = parse(frame, start);
        try {
            column.check(Collections.singletonList(value));
            read(JsonWriter.same(value), 0);
        } catch (JsonColumn.Misfit misfit) {
            boolean isKind = misfit.reason.equals(JsonColumn.INVALID_VALUE);
            String what = misfit.reason + (misfit.detail.isEmpty() ? "" : ": " + misfit.detail);
            String at = misfit.path.isEmpty() ? "" : " at " + misfit.path;
            String place = misfit.path.isEmpty() ? "" : " (at field " + misfit.path + ")";
            throw new Refusal(isKind ? what + at : misfit.reason, name, what + place);
        } catch (Damage limit) {
            throw new Refusal(limit.reason, name, limit.getMessage());
        }
    }

    /** Parse the payload; the first error in the order of its bytes counts, after UTF-8. */
    private Object parse(byte[] frame, int start) {
        try {
            cursor.open(frame, start, false);
            cursor.requireText(start, frame.length - start);
            return JsonTree.ofAll(cursor);
        } catch (Damage found) {
            Damage damage = found.reason.equals(Damage.INVALID_UTF8) ? JsonSyntax.malformed() : found;
            throw new Refusal(damage.reason, name, damage.message(cursor.at - start));
        }
    }
}
