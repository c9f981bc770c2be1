package strata.spark;

import java.util.Map;

/**
 * The code templates that {@link FieldSource} combines. Names in braces are replaced.
 *
 * <p>{@code at} and {@code to} are the positions in the payload and in the row's bytes. {@code from} and {@code next}
 * run ahead of them, and are dropped if the field turns out to be unusual.
 */
final class FieldSnippets {
    static final String CLASS = """
        package strata.spark;

        final class MadeFieldReader extends FieldReader {
            private final int[] places = new int[{entries}];
            {members}

            MadeFieldReader(Step[] steps) {
                {constructor}
            }

            void read(Cursor in, RowBuffer out, int row) {
                {calls}
            }
            {methods}
        }
        """;

    /**
     * Not private: for a private method Janino generates one that names the class, and a hidden class cannot be named.
     */
    static final String METHOD = """
        final void {name}(Cursor in, RowBuffer out, int row) {
            byte[] bytes = in.bytes;
            byte[] made = out.bytes;
            int end = in.end;
            int at = in.at;
            int to = out.at;
            {body}
            in.at = at;
            out.at = to;
        }
        """;

    static final String FIELD = """
        done: {
            unusual: {
                int from = at;
                int next = to;
                {optional}
                {usual}
                at = from;
                to = next;
                break done;
            }
            in.at = at;
            out.at = to;
            {byNode}
            at = in.at;
            to = out.at;
            made = out.bytes;
        }
        """;

    static final String OPTIONAL = """
        if (from >= end) break unusual;
        int branch = bytes[from++];
        if (branch == {null}) {
            {setNull}
            at = from;
            break done;
        }
        if (branch != {other}) break unusual;
        """;

    /** One block of a few items that fill words. */
    private static final String COUNT = """
        if (from >= end) break unusual;
        int count = bytes[from++];
        if ((count & 0x81) != 0 || count > 2 * {most}) break unusual;
        count >>= 1;
        int header = RowBuffer.items(0, count);
        """;
    private static final String END = "if (count > 0 && (from >= end || bytes[from++] != 0)) break unusual;\n";

    static final String ARRAY = COUNT + """
        int array = next;
        next += header + 8 * count;
        if (!out.hasRoom(next, 0)) break unusual;
        RowBuffer.putHeader(made, array, count);
        for (int i = 0; i < count; i++) {
            int place = array + header + 8 * i;
            {item}
        }
        """ + END + """
        {put}RowBuffer.extent(array, next - array, row));
        """;

    /** Keys and the positions of values first, then the values, in Spark's order. */
    static final String MAP = COUNT + """
        int keys = next + 8;
        next = keys + header + 8 * count;
        if (!out.hasRoom(next, 0)) break unusual;
        RowBuffer.putHeader(made, keys, count);
        for (int i = 0; i < count; i++) {
            int place = keys + header + 8 * i;
            {
                {key}
            }
            places[i] = from;
            {
                {skip}
            }
        }
        """ + END + """
        if (RowBuffer.hasTwins(made, keys, count)) break unusual;
        RowBuffer.put(made, keys - 8, next - keys);
        int after = from;
        int values = next;
        next += header + 8 * count;
        if (!out.hasRoom(next, 0)) break unusual;
        RowBuffer.putHeader(made, values, count);
        for (int i = 0; i < count; i++) {
            int place = values + header + 8 * i;
            from = places[i];
            {value}
        }
        from = after;
        {put}RowBuffer.extent(keys - 8, next - keys + 8, row));
        """;

    /** Where to put a value: nowhere, or into an item. */
    static final String IGNORE = "FieldReader.ignore(";
    static final String PUT_ITEM = "RowBuffer.put(made, place, ";

    /** The condition hides from the compiler that the code after it is unreachable. */
    static final String OTHER = """
        if (true) break unusual;
        """;

    private static final String NUMBER = """
        if (from >= end) break unusual;
        long word = bytes[from];
        if (word >= 0) {
            word = Cursor.zigzag(word);
            from++;
        } else {
            long ahead = Cursor.wordBefore(bytes, from, end);
            int width = Cursor.width(ahead);
            if (width > {most} || width > end - from) break unusual;
            word = Cursor.number(ahead, width);
            from += width;
        }
        {put}word * {factor}L & {mask}L);
        """;

    private static final String FIXED = """
        if ({most} > end - from) break unusual;
        {put}Cursor.wordBefore(bytes, from, end) & {mask}L);
        from += {most};
        """;

    private static final String FLAG = """
        if (from >= end) break unusual;
        long flag = bytes[from++];
        if ((flag & -2L) != 0) break unusual;
        {put}flag);
        """;

    /** Read a length of one byte, and check that all its bytes are there. */
    private static final String LENGTH = """
        if (from >= end) break unusual;
        int length = bytes[from++];
        if ((length & 0x81) != 0) break unusual;
        length >>= 1;
        if (length > end - from) break unusual;
        """;

    private static final String TEXT = LENGTH + """
        if (!out.hasRoom(next, length) || !RowBuffer.copy(bytes, from, length, made, next)) break unusual;
        {put}RowBuffer.extent(next, length, {base}));
        from += length;
        next += RowBuffer.pad(length);
        """;

    private static final String SYMBOL = """
        if (from >= end) break unusual;
        int symbol = bytes[from++];
        if ((symbol & 0x81) != 0) break unusual;
        int length = symbols{i}.copy(symbol >> 1, made, next);
        if (length < 0) break unusual;
        {put}RowBuffer.extent(next, length, {base}));
        next += RowBuffer.pad(length);
        """;

    private static final String DECIMAL = LENGTH + """
        if (length == 0 || length > 7) break unusual;
        long number = Shortcut.decimal(Cursor.wordBefore(bytes, from - 1, end), length);
        if (Math.abs(number) >= {factor}L) break unusual;
        {put}number);
        from += length;
        """;

    private static final String SKIPPED_BYTES = LENGTH + """
        from += length;
        """;

    private static final String CHECKED_TEXT = LENGTH + """
        if (!RowBuffer.isAscii(bytes, from, length)) break unusual;
        from += length;
        """;

    private static final String CHECKED_SYMBOL = """
        if (from >= end) break unusual;
        int symbol = bytes[from++];
        if ((symbol & 0x81) != 0 || !symbols{i}.has(symbol >> 1)) break unusual;
        """;

    /** Items of an array or a map that the query does not read. */
    static final String CHECKED_ITEMS = """
        if (from >= end) break unusual;
        int count = bytes[from++];
        if ((count & 0x81) != 0) break unusual;
        count >>= 1;
        for (int i = 0; i < count; i++) {
            {item}
        }
        """ + END;

    static final String CHECKED_ENTRY = """
        {
            {key}
        }
        {
            {value}
        }
        """;

    private static final Map<Shortcut.Kind, String> SCALARS = Map.of(
        Shortcut.Kind.NUMBER, NUMBER,
        Shortcut.Kind.FIXED, FIXED,
        Shortcut.Kind.FLAG, FLAG,
        Shortcut.Kind.TEXT, TEXT,
        Shortcut.Kind.SYMBOL, SYMBOL,
        Shortcut.Kind.DECIMAL, DECIMAL,
        Shortcut.Kind.SKIPPED_BYTES, SKIPPED_BYTES);

    private FieldSnippets() {}

    /** Return the template that checks a value of any kind but {@code OTHER} and does not build it. */
    static String checked(Shortcut.Kind kind) {
        return switch (kind) {
            case TEXT -> CHECKED_TEXT;
            case SYMBOL -> CHECKED_SYMBOL;
            default -> SCALARS.get(kind);
        };
    }

    /** Return the template of any kind but {@code OTHER}. */
    static String of(Shortcut.Kind kind) {
        return SCALARS.get(kind);
    }
}
