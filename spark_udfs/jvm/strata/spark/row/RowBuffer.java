package strata.spark.row;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;

/**
 * Spark's row format, written into our own bytes: a row followed by all values nested in it.
 *
 * <p>A row is a null bit for each field, then a word of eight bytes for each field. An array is its count, the null
 * bits, then items of 8, 4 or 1 byte. A map is the size of its keys, an array of keys, an array of values. Everything
 * is padded to words with zeros. The word of a value without fixed size holds its offset, counted from the start of its
 * container, and its size. Spark's writers make the same bytes, with calls that cost more than the small values they
 * copy.
 */
public final class RowBuffer {
    private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final VarHandle TEXTS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
    public static final boolean LITTLE = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
    /** Up to this many bytes are copied by words, because a call to copy more has a fixed cost. */
    private static final int FEW = 64;

    private static final int MOST = Integer.MAX_VALUE - 15;
    private static final long HIGH_BITS = 0x8080808080808080L;

    /**
     * What {@link Node#read} returns for null, after {@link #nothing}; an arbitrary number, which may also be a value.
     */
    public static final long NULL = 0x6E6F7468696E6721L;

    public byte[] bytes = new byte[1024];
    /** Where the next nested value goes. */
    public int at;

    private boolean isNothing;
    private final UnsafeRow row;
    private final int fields;

    public RowBuffer(int fields) {
        this.fields = fields;
        this.row = new UnsafeRow(fields);
    }

    /** Begin a new row. */
    public void begin() {
        at = 0;
        isNothing = false;
        beginRow(fields);
    }

    public void putField(int index, long word) {
        putField(0, fields, index, word);
    }

    /** Return the row, valid until the next one begins. */
    public UnsafeRow row() {
        row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET, at);
        return row;
    }

    // Nested values

    /** Return how many bytes the null bits of this many fields or items take. */
    public static int nullBytes(int count) {
        return (count + 63 >>> 6) << 3;
    }

    /** Begin a row, of which every field must be put; return where it begins. */
    public int beginRow(int size) {
        int start = at;
        int nullBytes = nullBytes(size);
        reserve(nullBytes + 8L * size);
        clear(start, nullBytes);
        at = start + nullBytes + 8 * size;
        return start;
    }

    /**
     * Begin a row of which some fields are null, and every other must be put; return where it begins.
     *
     * @param nulls the null bits
     */
    public int beginRow(int size, long[] nulls) {
        int start = beginRow(size);
        for (int word = 0; word < nulls.length; word++) {
            WORDS.set(bytes, start + 8 * word, nulls[word]);
        }
        Arrays.fill(bytes, start + 8 * nulls.length, at, (byte) 0);
        return start;
    }

    /** Begin an array, of which every item must be put; return where it begins. */
    public int beginArray(int count, int width) {
        int start = at;
        int nullBytes = nullBytes(count);
        long items = (long) width * count + 7 & ~7L;
        reserve(8L + nullBytes + items);
        WORDS.set(bytes, start, (long) count);
        clear(start + 8, nullBytes);
        at = start + 8 + nullBytes + (int) items;
        if (items > 0) {
            WORDS.set(bytes, at - 8, 0L);
        }
        return start;
    }

    /**
     * Put an array before what is nested in its items, which extends from {@code start} to here.
     *
     * @param words the items; places of nested values are counted from {@code start}
     * @param isNested whether items are places of nested values
     */
    public void putArray(int start, long[] words, boolean[] nulls, int count, int width, boolean isNested) {
        int nested = at - start;
        int items = items(0, count);
        reserve(items + (long) width * count + 8);
        int head = items + pad(width * count);
        System.arraycopy(bytes, start, bytes, start + head, nested);
        at = start;
        beginArray(count, width);
        at += nested;
        long moved = isNested ? (long) head << 32 : 0;
        for (int i = 0; i < count; i++) {
            isNothing = nulls[i];
            putItem(start, start + items, width, i, isNothing ? NULL : words[i] + moved);
        }
        isNothing = false;
    }

    /** Begin an array of at most 64 items of eight bytes, for which there is room. */
    public static void putHeader(byte[] bytes, int start, int count) {
        WORDS.set(bytes, start, (long) count);
        if (count > 0) {
            WORDS.set(bytes, start + 8, 0L);
        }
    }

    /** Return whether an array of texts, which begins at {@code base}, has duplicates. */
    public static boolean hasTwins(byte[] bytes, int base, int count) {
        int items = items(base, count);
        for (int i = 1; i < count; i++) {
            long one = (long) WORDS.get(bytes, items + 8 * i);
            for (int j = 0; j < i; j++) {
                if (isSame(bytes, base, one, (long) WORDS.get(bytes, items + 8 * j))) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isSame(byte[] bytes, int base, long one, long other) {
        int length = (int) one;
        int here = base + (int) (one >>> 32);
        int there = base + (int) (other >>> 32);
        return length == (int) other && Arrays.equals(bytes, here, here + length, bytes, there, there + length);
    }

    /** Leave a word free for {@link #put(byte[], int, long)}; return its position. */
    public int skipWord() {
        reserve(8);
        at += 8;
        return at - 8;
    }

    public static long get(byte[] bytes, int place) {
        return (long) WORDS.get(bytes, place);
    }

    public static void put(byte[] bytes, int place, long word) {
        WORDS.set(bytes, place, word);
    }

    /** Return the slot's word for a value from {@code start} to here. */
    public long close(int start, int base) {
        return extent(start, at - start, base);
    }

    /** Return the slot's word for a value of this size. */
    public static long extent(int start, int size, int base) {
        return (long) (start - base) << 32 | size;
    }

    /**
     * Sort the nested values of a row, which extend up to here, into the order of its fields. Spark compares and hashes
     * rows by their bytes, and has the values in this order.
     *
     * @param nested the fields without fixed size
     * @param wide which of them are decimals that take two words whatever their length
     */
    public void sort(int base, int size, int[] nested, boolean[] wide) {
        int words = base + nullBytes(size);
        int start = words + 8 * size;
        if (isSorted(words, nested)) {
            return;
        }
        byte[] before = Arrays.copyOfRange(bytes, start, at);
        int to = start;
        for (int i = 0; i < nested.length; i++) {
            int slot = words + 8 * nested[i];
            long word = (long) WORDS.get(bytes, slot);
            if (word != 0) {
                int padded = wide[i] ? 16 : pad((int) word);
                System.arraycopy(before, base + (int) (word >>> 32) - start, bytes, to, padded);
                WORDS.set(bytes, slot, extent(to, (int) word, base));
                to += padded;
            }
        }
    }

    private boolean isSorted(int words, int[] nested) {
        long last = 0;
        for (int field : nested) {
            long word = (long) WORDS.get(bytes, words + 8 * field);
            if (word != 0 && word < last) {
                return false;
            }
            last = word == 0 ? last : word;
        }
        return true;
    }

    /** Return whether a slot's word is the value itself. */
    public static boolean isFixed(DataType type) {
        return UnsafeRow.isFixedLength(type);
    }

    public void reserve(long more) {
        if (more > bytes.length - at) {
            grow(more);
        }
    }

    private void grow(long more) {
        long need = at + more;
        if (need > MOST) {
            throw new Damage(Damage.LIMIT, "the value takes more than " + MOST + " bytes");
        }
        bytes = Arrays.copyOf(bytes, (int) Math.min(Math.max(need, 2L * bytes.length), MOST));
    }

    private void clear(int start, int size) {
        for (int place = start; place < start + size; place += 8) {
            WORDS.set(bytes, place, 0L);
        }
    }

    // Slots

    /** Put a field of the row that begins at {@code base}. */
    public void putField(int base, int size, int index, long word) {
        long kept = word;
        if (word == NULL && tookNothing()) {
            setNull(base, index);
            kept = 0;
        }
        WORDS.set(bytes, base + nullBytes(size) + 8 * index, kept);
    }

    /** Return where the items begin of the array that begins at {@code base}. */
    public static int items(int base, int count) {
        return base + 8 + nullBytes(count);
    }

    /** Put an item of the array that begins at {@code base}. */
    public void putItem(int base, int items, int width, int index, long word) {
        long kept = word;
        if (word == NULL && tookNothing()) {
            setNull(base + 8, index);
            kept = 0;
        }
        int place = items + width * index;
        switch (width) {
            case 8 -> WORDS.set(bytes, place, kept);
            case 4 -> INTS.set(bytes, place, (int) (LITTLE ? kept : kept >>> 32));
            default -> bytes[place] = (byte) (LITTLE ? kept : kept >>> 56);
        }
    }

    /** Put a null in a row's field; {@code slot} is the distance of its slot from the start of the row. */
    public void putNull(int base, int index, int slot) {
        setNull(base, index);
        WORDS.set(bytes, base + slot, 0L);
    }

    /** Put a field that may hold a null; {@code slot} is the distance of its slot from the start of the row. */
    public void putPresent(int base, int index, int slot, long word) {
        int bits = base + (index >>> 6 << 3);
        WORDS.set(bytes, bits, (long) WORDS.get(bytes, bits) & ~(1L << index));
        WORDS.set(bytes, base + slot, word);
    }

    private void setNull(int bits, int index) {
        int place = bits + (index >>> 6 << 3);
        WORDS.set(bytes, place, (long) WORDS.get(bytes, place) | 1L << index);
    }

    /** Return the word for null. */
    public long nothing() {
        isNothing = true;
        return NULL;
    }

    /** Return whether the word {@link #NULL} that was just read means null. */
    public boolean tookNothing() {
        boolean was = isNothing;
        isNothing = false;
        return was;
    }

    /** Discard what was written since {@code start}. */
    public void drop(int start) {
        isNothing = false;
        at = start;
    }

    /** Return the word of a slot for an int or the bits of a float. */
    public static long narrow(int number) {
        return LITTLE ? number & 0xFFFFFFFFL : (long) number << 32;
    }

    public static long flag(boolean value) {
        return !value ? 0 : LITTLE ? 1 : 1L << 56;
    }

    // Bytes and text

    /** Copy bytes; return the word for a slot of the container that begins at {@code base}. */
    public long put(byte[] from, int start, int length, int base) {
        if (length <= FEW && from.length >= 8 && hasRoom(at, length)) {
            copy(from, start, length, bytes, at);
        } else {
            copyMany(from, start, length);
        }
        return close(length, base, pad(length));
    }

    /** Copy bytes that {@code in} has just passed, which must be UTF-8. */
    public long putText(Cursor in, int start, int length, int base) {
        if (length > FEW || in.bytes.length < 8 || !hasRoom(at, length)) {
            in.requireText(start, length);
            copyMany(in.bytes, start, length);
        } else if (!copy(in.bytes, start, length, bytes, at)) {
            in.requireText(start, length);
        }
        return close(length, base, pad(length));
    }

    private long close(int length, int base, int padded) {
        at += padded;
        return extent(at - padded, length, base);
    }

    public static int pad(int length) {
        return length + 7 & ~7;
    }

    /** Return whether this many bytes, and a word after them, fit at a position. */
    public boolean hasRoom(int place, int length) {
        return place + length + 8 <= bytes.length;
    }

    private void copyMany(byte[] from, int start, int length) {
        reserve(length + 8L);
        if (length > 0) {
            WORDS.set(bytes, at + pad(length) - 8, 0L);
        }
        System.arraycopy(from, start, bytes, at, length);
    }

    /** Return whether bytes are ASCII; the source must have at least 8 bytes. */
    public static boolean isAscii(byte[] from, int start, int length) {
        long seen = 0;
        int at = start;
        int left = length;
        for (; left > 8; left -= 8) {
            seen |= (long) TEXTS.get(from, at);
            at += 8;
        }
        if (left > 0) {
            seen |= Cursor.wordBefore(from, at, from.length) & -1L >>> 64 - 8 * left;
        }
        return (seen & HIGH_BITS) == 0;
    }

    /**
     * Copy by words, and pad with zeros. The source must have at least 8 bytes; up to 8 more bytes of the target
     * change.
     *
     * @return whether all of it is ASCII
     */
    public static boolean copy(byte[] from, int start, int length, byte[] to, int place) {
        long seen = 0;
        int left = length;
        int at = start;
        int next = place;
        while (left > 8) {
            long word = (long) TEXTS.get(from, at);
            seen |= word;
            TEXTS.set(to, next, word);
            at += 8;
            next += 8;
            left -= 8;
        }
        if (left > 0) {
            long word = Cursor.wordBefore(from, at, from.length) & -1L >>> 64 - 8 * left;
            seen |= word;
            TEXTS.set(to, next, word);
        }
        return (seen & HIGH_BITS) == 0;
    }
}
