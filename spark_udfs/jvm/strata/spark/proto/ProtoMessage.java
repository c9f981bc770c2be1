package strata.spark.proto;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits;
import strata.spark.bytes.ProtoWire;
import strata.spark.row.Containers;
import strata.spark.row.Node;
import strata.spark.row.RowBuffer;
import strata.spark.schema.ProtoSchema.ProtoType;

/** A message, as a row of its fields; {@link Check} checks one without building the row. */
final class ProtoMessage extends Node {
    private static final int DENSE = 1024;

    private final int size;
    private final ProtoField[] dense;
    private final Map<Integer, ProtoField> others = new HashMap<>();
    /** The fields of the second pass, in the order of the row. */
    private final ProtoField[] later;
    /** A row of which every field is absent. */
    private final byte[] empty;
    /** Checks messages of the same fields. */
    final Check check;

    ProtoMessage(List<ProtoField> fields, Check check) {
        this.check = check;
        this.size = (int) fields.stream()
                .filter(field -> field.slot != ProtoColumns.UNREAD)
                .count();
        int most = fields.stream()
                .mapToInt(one -> one.number)
                .filter(number -> number < DENSE)
                .max()
                .orElse(0);
        this.dense = new ProtoField[most + 1];
        RowBuffer row = new RowBuffer(size);
        row.begin();
        for (ProtoField field : fields) {
            if (field.slot != ProtoColumns.UNREAD) {
                field.place = RowBuffer.nullBytes(size) + 8 * field.slot;
                row.putField(field.slot, field.hasPresence ? row.nothing() : 0);
            }
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

    /** Read a message that takes all bytes that are left. */
    long readAll(Cursor in, RowBuffer out, int base) {
        int row = out.beginRow(size);
        System.arraycopy(empty, 0, out.bytes, row, empty.length);
        for (ProtoField field : later) {
            field.forget();
        }
        int end = in.end;
        while (in.at < end) {
            int before = in.at;
            int tag = ProtoWire.tag(in);
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

    /**
     * Checks a message in the order of its bytes, and builds nothing: it finds what a parser refuses, and says of the rest
     * whether a row can hold it.
     */
    static final class Check {
        /** Each value is of its type, and fits its column. */
        static final int SOUND = 0;
        /** A field has another wire type than its schema says, or the entry of a map has another field. */
        static final int MISTYPED = 1;
        /** A value may not fit its column: reading it tells. */
        static final int IN_DOUBT = 2;

        /** What the row takes of a value, besides bytes of the payload. */
        private static final int VALUE = 64;
        /** Seconds within these are within the range of microseconds, with any number of nanoseconds. */
        private static final long SECONDS = 9_000_000_000_000L;

        /** What is checked of a value, besides its structure. */
        enum Rule {
            NOTHING,
            TEXT,
            /** A text that parsers of proto2 do not check. */
            LOOSE_TEXT,
            INT,
            NOT_NEGATIVE,
            SECONDS,
            MESSAGE
        }

        /** What is known of a field; {@code inner} is null unless the rule is {@code MESSAGE}. */
        record Field(int wire, boolean packs, Rule rule, ProtoType written, Check inner) {}

        /** What is found of a field that is not known: nothing, or that it may not be there. */
        private final int unknown;

        private Field[] dense = {};
        private final Map<Integer, Field> others = new HashMap<>();
        /** What is found of each message, since a default may not fit its column. */
        private int always = SOUND;
        /** How many bytes the row of a message takes at most, of a payload of one byte. */
        private long room = VALUE;

        Check(boolean isEntry) {
            unknown = isEntry ? MISTYPED : SOUND;
        }

        /**
         * Add a field.
         *
         * @param longest the size of the longest text that its row may have for a number, or for nothing
         * @param isSafe whether its default fits its column
         */
        void add(int number, Field field, int longest, boolean isSafe) {
            if (number < DENSE) {
                dense = Arrays.copyOf(dense, Math.max(dense.length, number + 1));
                dense[number] = field;
            } else {
                others.put(number, field);
            }
            room = Math.min(room + VALUE + longest + (field.inner == null ? 0 : field.inner.room), Limits.OUTPUT);
            always |= isSafe ? SOUND : IN_DOUBT;
        }

        /** Return whether the row of a payload of so many bytes is surely within {@link Limits#OUTPUT}. */
        boolean hasRoom(int payload) {
            return (room + 1) * (payload + 1) <= Limits.OUTPUT;
        }

        /**
         * Check all bytes that are left.
         *
         * @param marks takes the places of its fields; null if none are wanted
         * @return {@link #MISTYPED}, {@link #IN_DOUBT}, both, or {@link #SOUND}
         * @throws Damage for the first error of a parser
         */
        int all(Cursor in, Marks marks) {
            if (marks != null) {
                marks.count = 0;
            }
            int found = always;
            while (in.at < in.end) {
                int before = in.at;
                int tag = ProtoWire.tag(in);
                int number = tag >>> 3;
                if (marks != null) {
                    marks.add(number, before);
                }
                Field field = number < dense.length ? dense[number] : others.isEmpty() ? null : others.get(number);
                if (field == null) {
                    ProtoWire.skip(in, tag);
                    found |= unknown;
                } else if ((tag & 7) == field.wire) {
                    found |= single(field, in);
                } else if (field.packs && (tag & 7) == ProtoWire.BYTES) {
                    found |= packed(field, in);
                } else {
                    ProtoWire.skip(in, tag);
                    found |= MISTYPED;
                }
            }
            return found;
        }

        private static int single(Field field, Cursor in) {
            switch (field.rule) {
                case NOTHING -> ProtoWire.skip(in, field.wire);
                case TEXT -> ProtoWire.checkText(in);
                case LOOSE_TEXT -> {
                    int length = ProtoWire.length(in);
                    return isText(in, in.take(length), length) ? SOUND : IN_DOUBT;
                }
                case MESSAGE -> {
                    int outer = in.end;
                    int length = ProtoWire.length(in);
                    in.end = in.at + length;
                    int found = field.inner.all(in, null);
                    in.end = outer;
                    return found;
                }
                default -> {
                    return number(field, in);
                }
            }
            return SOUND;
        }

        private static int packed(Field field, Cursor in) {
            if (field.rule == Rule.NOTHING) {
                ProtoWire.skipPacked(in, field.wire);
                return SOUND;
            }
            int found = SOUND;
            int outer = in.end;
            int length = ProtoWire.length(in);
            in.end = in.at + length;
            while (in.at < in.end) {
                found |= number(field, in);
            }
            in.end = outer;
            return found;
        }

        private static int number(Field field, Cursor in) {
            long number = ProtoScalars.number(in, field.written);
            boolean fits =
                    switch (field.rule) {
                        case INT -> number == (int) number;
                        case NOT_NEGATIVE -> number >= 0;
                        default -> number >= -SECONDS && number <= SECONDS;
                    };
            return fits ? SOUND : IN_DOUBT;
        }

        private static boolean isText(Cursor in, int start, int length) {
            try {
                in.requireText(start, length);
                return true;
            } catch (Damage invalid) {
                return false;
            }
        }
    }
}
