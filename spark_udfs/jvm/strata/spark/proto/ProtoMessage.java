package strata.spark.proto;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.ProtoWire;
import strata.spark.row.Containers;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;

/** A message, as a row of its fields. */
final class ProtoMessage extends Node {
    private static final int DENSE = 1024;

    private final int size;
    private final ProtoField[] dense;
    private final Map<Integer, ProtoField> others = new HashMap<>();
    /** The fields of the second pass, in the order of the row. */
    private final ProtoField[] later;
    /** A row of which every field is absent. */
    private final byte[] empty;

    ProtoMessage(List<ProtoField> fields) {
        this.size = fields.size();
        int most = fields.stream()
                .mapToInt(one -> one.number)
                .filter(number -> number < DENSE)
                .max()
                .orElse(0);
        this.dense = new ProtoField[most + 1];
        RowBuffer row = new RowBuffer(size);
        row.begin();
        for (ProtoField field : fields) {
            field.place = RowBuffer.nullBytes(size) + 8 * field.slot;
            row.putField(field.slot, field.hasPresence ? row.nothing() : 0);
            if (field.number < DENSE) {
                dense[field.number] = field;
            } else {
                others.put(field.number, field);
            }
        }
        this.empty = Arrays.copyOf(row.bytes, row.at);
        this.later = fields.stream()
                .filter(ProtoField::isDeferred)
                .sorted(Comparator.comparingInt(field -> field.slot))
                .toArray(ProtoField[]::new);
    }

    private ProtoField find(int number) {
        return number < dense.length ? dense[number] : others.isEmpty() ? null : others.get(number);
    }

    /** Read a message after its length. */
    @Override
    public long read(Cursor in, RowBuffer out, int base) {
        int outer = in.end;
        int length = ProtoWire.length(in);
        in.end = in.at + length;
        long word = readAll(in, out, base);
        in.end = outer;
        return word;
    }

    /** Where some fields of the last message are, so that they can be looked at again. */
    static final class Marks {
        private final boolean[] fields;
        private int[] places = new int[16];
        private int count;

        /** @param fields which fields are marked, by number */
        Marks(boolean[] fields) {
            this.fields = fields;
        }

        private void add(int number, int place) {
            if (number < fields.length && fields[number]) {
                if (count == places.length) {
                    places = Arrays.copyOf(places, 2 * count);
                }
                places[count++] = place;
            }
        }

        int count() {
            return count;
        }

        /** Return where the tag of a field is. */
        int place(int index) {
            return places[index];
        }
    }

    /** Read a message that takes all bytes that are left. */
    long readAll(Cursor in, RowBuffer out, int base) {
        return readAll(in, out, base, null);
    }

    /** @param marks takes the places of its fields; null if none are wanted */
    long readAll(Cursor in, RowBuffer out, int base, Marks marks) {
        if (marks != null) {
            marks.count = 0;
        }
        int row = out.beginRow(size);
        System.arraycopy(empty, 0, out.bytes, row, empty.length);
        for (ProtoField field : later) {
            field.forget();
        }
        int end = in.end;
        while (in.at < end) {
            int before = in.at;
            int tag = ProtoWire.tag(in);
            if (marks != null) {
                marks.add(tag >>> 3, before);
            }
            ProtoField field = find(tag >>> 3);
            if (field == null) {
                ProtoWire.skip(in, tag);
            } else {
                field.meet(in, tag & 7, before, out, row, size);
            }
        }
        for (ProtoField field : later) {
            field.write(in, out, row, size);
        }
        in.at = end;
        Containers.bound(out);
        return out.close(row, base);
    }

    /**
     * Check UTF-8 and structure in the order of the bytes, after a length.
     *
     * @return whether each known field has its wire type
     * @throws Damage for the first error
     */
    public boolean check(Cursor in) {
        return within(in, () -> checkAll(in));
    }

    boolean checkAll(Cursor in) {
        boolean isRight = true;
        while (in.at < in.end) {
            int tag = ProtoWire.tag(in);
            ProtoField field = find(tag >>> 3);
            if (field == null) {
                ProtoWire.skip(in, tag);
            } else {
                isRight &= field.check(in, tag);
            }
        }
        return isRight;
    }

    /** Check what follows a length. */
    public static boolean within(Cursor in, BooleanSupplier check) {
        int outer = in.end;
        int length = ProtoWire.length(in);
        in.end = in.at + length;
        boolean isRight = check.getAsBoolean();
        in.end = outer;
        return isRight;
    }
}
