package strata.spark;

import java.io.ByteArrayOutputStream;

/**
 * A field of a message that is a column. A message may have its fields in any order and more than once: a first pass
 * over its bytes finds where they are, and a second writes them in the order of the row.
 *
 * <p>A field serves one thread, and is never inside itself.
 */
abstract class ProtoField {
    final String name;
    final int number;
    final int slot;
    final boolean hasPresence;
    /** The other members of its oneof. */
    ProtoField[] rivals = {};

    ProtoField(String name, int number, int slot, boolean hasPresence) {
        this.name = name;
        this.number = number;
        this.slot = slot;
        this.hasPresence = hasPresence;
    }

    /**
     * Meet the field in the first pass; the cursor is behind its tag.
     *
     * @param before where the tag begins
     * @throws Damage if the wire type is not the field's
     */
    abstract void meet(Cursor in, int wire, int before, RowBuffer out, int row, int size);

    /** Forget what was met, because a new message begins, or another member of the oneof is set. */
    abstract void forget();

    /** Write the field in the second pass; the slot holds null or the default if it was met directly. */
    abstract void write(Cursor in, RowBuffer out, int row, int size);

    /** Return whether {@link #write} has anything to do. */
    boolean isLater() {
        return true;
    }

    /**
     * Check UTF-8 and structure in the order of the bytes, as a parser does.
     *
     * @return whether the wire type is the field's everywhere
     */
    abstract boolean check(Cursor in, int tag);

    final void meetOnly(Cursor in, RowBuffer out, int row) {
        for (ProtoField rival : rivals) {
            in.overwrote |= rival.isMet();
            rival.forget();
            if (!rival.isLater()) {
                out.putNull(row, rival.slot, rival.place);
            }
        }
    }

    /** Return whether a value waits for the second pass. */
    boolean isMet() {
        return false;
    }

    /** The distance of the slot from the start of the row. */
    int place;

    /** How a value is checked before it is read. */
    interface Check {
        boolean check(Cursor in, int tag);
    }

    /** A number whose word goes into its slot at once. */
    static final class Direct extends ProtoField {
        private final Node value;
        private final int wire;

        Direct(String name, int number, int slot, boolean hasPresence, Node value, int wire) {
            super(name, number, slot, hasPresence);
            this.value = value;
            this.wire = wire;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (met != wire) {
                throw ProtoWire.malformed();
            }
            out.putPresent(row, slot, place, value.read(in, out, row));
            if (rivals.length > 0) {
                meetOnly(in, out, row);
            }
        }

        @Override
        void forget() {}

        @Override
        void write(Cursor in, RowBuffer out, int row, int size) {}

        @Override
        boolean isLater() {
            return false;
        }

        @Override
        boolean check(Cursor in, int tag) {
            ProtoWire.skip(in, tag);
            return (tag & 7) == wire;
        }
    }

    /** A single value that is read in the second pass. */
    static final class Later extends ProtoField {
        private final Node value;
        private final Node absent;
        private final int wire;
        private final boolean merges;
        private final Check check;
        private int count;
        private int first;
        private int last;

        /**
         * @param absent the node of the default; null for a field with presence
         * @param merges whether several values are one message
         */
        Later(String name, int number, int slot, Node value, Node absent, int wire, boolean merges, Check check) {
            super(name, number, slot, absent == null);
            this.value = value;
            this.absent = absent;
            this.wire = wire;
            this.merges = merges;
            this.check = check;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (met != wire) {
                throw ProtoWire.malformed();
            }
            if (count++ == 0) {
                first = before;
            } else {
                in.overwrote = true;
            }
            last = in.at;
            ProtoWire.skip(in, number << 3 | met);
            if (rivals.length > 0) {
                meetOnly(in, out, row);
            }
        }

        @Override
        void forget() {
            count = 0;
        }

        @Override
        void write(Cursor in, RowBuffer out, int row, int size) {
            if (count == 0 && absent == null) {
                return;
            }
            try {
                out.putPresent(row, slot, place, read(in, out, row));
            } catch (Damage damage) {
                throw damage.within("." + name);
            }
        }

        @Override
        boolean isMet() {
            return count > 0;
        }

        boolean has(int tag) {
            return tag == (number << 3 | wire);
        }

        long read(Cursor in, RowBuffer out, int base) {
            if (count == 0) {
                return absent.read(in, out, base);
            }
            if (merges && count > 1) {
                return value.read(merged(in), out, base);
            }
            in.at = last;
            return value.read(in, out, base);
        }

        /** Return the bytes of all values as one: that is what merging messages means. */
        private Cursor merged(Cursor in) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            in.at = first;
            for (int seen = 0; seen < count;) {
                int tag = ProtoWire.tag(in);
                if (tag == (number << 3 | wire)) {
                    int length = ProtoWire.length(in);
                    all.write(in.bytes, in.take(length), length);
                    seen++;
                } else {
                    ProtoWire.skip(in, tag);
                }
            }
            byte[] content = all.toByteArray();
            byte[] framed = new byte[content.length + 5];
            for (int i = 0, left = content.length; i < 5; i++, left >>>= 7) {
                framed[i] = (byte) (left & 0x7F | (i < 4 ? 0x80 : 0));
            }
            System.arraycopy(content, 0, framed, 5, content.length);
            Cursor merged = new Cursor();
            merged.open(framed, 0, in.tracing);
            return merged;
        }

        @Override
        boolean check(Cursor in, int tag) {
            if ((tag & 7) != wire) {
                ProtoWire.skip(in, tag);
                return false;
            }
            return check.check(in, tag);
        }
    }

    /** A repeated value, packed or not. */
    static final class Many extends ProtoField {
        private final Node item;
        private final int wire;
        private final int width;
        private final boolean packs;
        private final Check check;
        private int count;
        private int first;

        Many(String name, int number, int slot, Node item, int wire, int width, Check check) {
            super(name, number, slot, false);
            this.item = item.asItem();
            this.wire = wire;
            this.width = width;
            this.packs = wire != ProtoWire.BYTES;
            this.check = check;
        }

        @Override
        void meet(Cursor in, int met, int before, RowBuffer out, int row, int size) {
            if (count == 0) {
                first = before;
            }
            if (met == wire) {
                ProtoWire.skip(in, number << 3 | met);
                count++;
            } else if (packs && met == ProtoWire.BYTES) {
                count += countPacked(in);
            } else {
                throw ProtoWire.malformed();
            }
        }

        private int countPacked(Cursor in) {
            int length = ProtoWire.length(in);
            int items;
            if (wire == ProtoWire.VARINT) {
                items = ProtoWire.countVarints(in, length);
            } else {
                int bytes = wire == ProtoWire.FIXED32 ? 4 : 8;
                if (length % bytes != 0) {
                    throw ProtoWire.malformed();
                }
                items = length / bytes;
            }
            in.at += length;
            return items;
        }

        @Override
        void forget() {
            count = 0;
        }

        @Override
        void write(Cursor in, RowBuffer out, int row, int size) {
            int all = count;
            int start = out.beginArray(all, width);
            int items = RowBuffer.items(start, all);
            in.at = first;
            try {
                for (int done = 0; done < all;) {
                    int tag = ProtoWire.tag(in);
                    if (tag == (number << 3 | wire)) {
                        out.putItem(start, items, width, done++, item.read(in, out, start));
                    } else if (packs && tag == (number << 3 | ProtoWire.BYTES)) {
                        int length = ProtoWire.length(in);
                        for (int end = in.at + length; in.at < end;) {
                            out.putItem(start, items, width, done++, item.read(in, out, start));
                        }
                    } else {
                        ProtoWire.skip(in, tag);
                    }
                    Containers.bound(out);
                }
            } catch (Damage damage) {
                throw damage.within("." + name + "[]");
            }
            out.putField(row, size, slot, out.close(start, row));
        }

        @Override
        boolean check(Cursor in, int tag) {
            if ((tag & 7) == wire) {
                return check.check(in, tag);
            }
            if (!packs || (tag & 7) != ProtoWire.BYTES) {
                ProtoWire.skip(in, tag);
                return false;
            }
            countPacked(in);
            return true;
        }
    }
}
