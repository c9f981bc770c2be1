package strata.spark.avro;

import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import strata.spark.avro.RecordNode.Step;
import strata.spark.row.Containers;
import strata.spark.row.Node;
import strata.spark.row.Node.SimpleForm;
import strata.spark.row.RowBuffer;

/**
 * The Java source of a {@link FieldReader}: the common form of each field, with the constants of its schema. Any
 * other form is left to the field's {@link Node}, which detects all errors.
 *
 * <p>No text of a schema gets into the source. The templates are in {@link FieldSnippets}.
 */
final class FieldSource {
    static final String CLASS = "strata.spark.avro.MadeFieldReader";

    /** The maximum number of characters of fields in a method: the JVM does not inline calls in larger ones. */
    private static final int METHOD_SIZE = 7000;
    /** The maximum of array items: the count has one byte, and the null bits one word. */
    private static final int MAX_ITEMS = 63;
    /** The maximum of map entries, whose keys are compared with each other. */
    private static final int MAX_ENTRIES = 16;

    private final int size;
    private final StringBuilder members = new StringBuilder();
    private final StringBuilder constructor = new StringBuilder();
    private final StringBuilder methods = new StringBuilder();
    private final StringBuilder calls = new StringBuilder();

    private FieldSource(int size) {
        this.size = size;
    }

    /** Return the source for fields, in the writer's order, of a row with {@code size} fields. */
    public static String write(List<FieldShape> fields, int size) {
        FieldSource source = new FieldSource(size);
        StringBuilder body = new StringBuilder();
        for (int i = 0; i < fields.size(); i++) {
            String field = source.field(i, fields.get(i));
            if (body.length() + field.length() > METHOD_SIZE && body.length() > 0) {
                source.method(body);
            }
            body.append(field);
        }
        source.method(body);
        return source.whole();
    }

    private String whole() {
        return FieldSnippets.CLASS
                .replace("{entries}", "" + MAX_ENTRIES)
                .replace("{members}", members)
                .replace("{constructor}", constructor)
                .replace("{calls}", calls)
                .replace("{methods}", methods);
    }

    private void method(StringBuilder body) {
        String name = "read" + methods.length();
        calls.append(name).append("(in, out, row);\n");
        methods.append(FieldSnippets.METHOD.replace("{name}", name).replace("{body}", body));
        body.setLength(0);
    }

    private String field(int i, FieldShape field) {
        String setNull = !field.isRead() ? "" : "out.putNull(row, " + field.slot() + ", " + place(field) + ");";
        String optional = FieldSnippets.OPTIONAL
                .replace("{null}", "" + field.nullByte())
                .replace("{other}", "" + (2 - field.nullByte()))
                .replace("{setNull}", setNull);
        return FieldSnippets.FIELD
                .replace("{optional}", field.nullByte() < 0 ? "" : optional)
                .replace("{usual}", usual(field))
                .replace("{byNode}", byNode(i, field))
                .replace("{i}", "" + i);
    }

    /** Return the position of the slot's word, counted from the start of the row. */
    private int place(FieldShape field) {
        return RowBuffer.nullBytes(size) + 8 * field.slot();
    }

    private String usual(FieldShape field) {
        if (field.simpleForm().kind() == SimpleForm.Kind.OTHER) {
            return FieldSnippets.OTHER;
        }
        if (!field.isRead()) {
            return checked(field);
        }
        String put = "RowBuffer.put(made, row + " + place(field) + ", ";
        return switch (field.holds()) {
            case ARRAY -> array(field.simpleForm()).replace("{put}", put);
            case MAP -> map(field.simpleForm()).replace("{put}", put);
            default -> scalar(field.simpleForm(), put, "row");
        };
    }

    private static String checked(FieldShape field) {
        String value = checked(field.simpleForm());
        return switch (field.holds()) {
            case ARRAY -> FieldSnippets.CHECKED_ITEMS.replace("{item}", value);
            case MAP -> FieldSnippets.CHECKED_ITEMS
                    .replace("{item}", FieldSnippets.CHECKED_ENTRY)
                    .replace("{key}", checked(SimpleForm.TEXT))
                    .replace("{value}", value);
            default -> value;
        };
    }

    private static String checked(SimpleForm simpleForm) {
        return replaced(FieldSnippets.checked(simpleForm.kind()), simpleForm).replace("{put}", FieldSnippets.IGNORE);
    }

    private static String scalar(SimpleForm simpleForm, String put, String base) {
        return replaced(FieldSnippets.of(simpleForm.kind()), simpleForm)
                .replace("{put}", put)
                .replace("{base}", base);
    }

    private static String replaced(String snippet, SimpleForm simpleForm) {
        return snippet.replace("{most}", "" + simpleForm.most())
                .replace("{factor}", "" + simpleForm.factor())
                .replace("{mask}", "" + simpleForm.mask());
    }

    private static String array(SimpleForm item) {
        return FieldSnippets.ARRAY
                .replace("{most}", "" + MAX_ITEMS)
                .replace("{item}", scalar(item, FieldSnippets.PUT_ITEM, "array"));
    }

    private static String map(SimpleForm value) {
        boolean isPrefixed = value.kind() == SimpleForm.Kind.TEXT || value.kind() == SimpleForm.Kind.DECIMAL;
        return FieldSnippets.MAP
                .replace("{most}", "" + MAX_ENTRIES)
                .replace("{key}", scalar(SimpleForm.TEXT, FieldSnippets.PUT_ITEM, "keys"))
                .replace("{skip}", scalar(isPrefixed ? SimpleForm.SKIPPED_BYTES : value, FieldSnippets.IGNORE, ""))
                .replace("{value}", scalar(value, FieldSnippets.PUT_ITEM, "values"));
    }

    private String byNode(int i, FieldShape field) {
        if (field.holds() == FieldShape.Holds.SYMBOL) {
            member(i, "Scalars.EnumNode", "symbols", "inner");
        }
        if (!field.isRead() && !field.isChecked()) {
            member(i, "Skip", "skip", "skip");
            return "skip{i}.pass(in);";
        }
        member(i, "Node", "value", "value");
        return field.isChecked()
                ? "value{i}.check(in, out);"
                : "out.putField(row, " + size + ", " + field.slot() + ", value{i}.read(in, out, row));";
    }

    /** Add a member that the class takes from a step. */
    private void member(int i, String type, String name, String method) {
        members.append("private final %s %s%d;\n".formatted(type, name, i));
        constructor.append("%s%d = (%s) steps[%d].%s();\n".formatted(name, i, type, i, method));
    }

    /**
     * Everything that the source of {@link FieldSource} depends on for one field.
     *
     * @param holds what the value is, or contains
     * @param simpleForm how to read the value, or each item or value in it; {@link SimpleForm#NONE} if only the node can read
     * it
     * @param nullByte the index byte that means null, or -1
     * @param slot the slot in the row, -1 for a field that is not read
     * @param isChecked whether the value is checked, and not built
     */
    record FieldShape(Holds holds, SimpleForm simpleForm, int nullByte, int slot, boolean isChecked) {
        enum Holds {
            SCALAR,
            SYMBOL,
            ARRAY,
            MAP
        }

        /** Types that items of arrays and values of maps may have: those that fill a word. */
        private static final Set<SimpleForm.Kind> SIMPLE = EnumSet.of(
                SimpleForm.Kind.NUMBER, SimpleForm.Kind.FIXED, SimpleForm.Kind.TEXT, SimpleForm.Kind.DECIMAL);

        public static FieldShape of(Step step) {
            Node inner = step.inner();
            if (inner instanceof Containers.ArrayNode array) {
                return of(step, Holds.ARRAY, simple(array.width, array.item));
            }
            if (inner instanceof Containers.MapNode map) {
                return of(step, Holds.MAP, simple(map.width, map.value));
            }
            return of(step, inner instanceof Scalars.EnumNode ? Holds.SYMBOL : Holds.SCALAR, step.simpleForm());
        }

        private static FieldShape of(Step step, Holds holds, SimpleForm simpleForm) {
            boolean isChecked = step.slot() < 0 && step.value() != null;
            return new FieldShape(holds, simpleForm, step.nullByte(), step.slot(), isChecked);
        }

        private static SimpleForm simple(int width, Node item) {
            return width == Long.BYTES && SIMPLE.contains(item.simpleForm().kind())
                    ? item.simpleForm()
                    : SimpleForm.NONE;
        }

        /** Return whether the row gets a value. */
        boolean isRead() {
            return slot >= 0;
        }
    }

    /**
     * The code templates that {@link FieldSource} combines. Names in braces are replaced.
     *
     * <p>{@code at} and {@code to} are the positions in the payload and in the row's bytes. {@code from} and {@code next}
     * run ahead of them, and are dropped if the field turns out to be unusual.
     */
    static final class FieldSnippets {
        static final String CLASS =
                """
            package strata.spark.avro;

            import strata.spark.row.Containers;
            import strata.spark.bytes.Cursor;
            import strata.spark.row.Node;
            import strata.spark.row.RowBuffer;
            import strata.spark.row.Skip;
            import strata.spark.row.Node.SimpleForm;
            import strata.spark.avro.RecordNode.Step;

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
        public static final String METHOD =
                """
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

        static final String FIELD =
                """
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

        public static final String OPTIONAL =
                """
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
        private static final String COUNT =
                """
            if (from >= end) break unusual;
            int count = bytes[from++];
            if ((count & 0x81) != 0 || count > 2 * {most}) break unusual;
            count >>= 1;
            int header = RowBuffer.items(0, count);
            """;

        private static final String END = "if (count > 0 && (from >= end || bytes[from++] != 0)) break unusual;\n";

        public static final String ARRAY = COUNT
                + """
            int array = next;
            next += header + 8 * count;
            if (!out.hasRoom(next, 0)) break unusual;
            RowBuffer.putHeader(made, array, count);
            for (int i = 0; i < count; i++) {
                int place = array + header + 8 * i;
                {item}
            }
            """
                + END + """
            {put}RowBuffer.extent(array, next - array, row));
            """;

        /** Keys and the positions of values first, then the values, in Spark's order. */
        public static final String MAP = COUNT
                + """
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
            """
                + END
                + """
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
        public static final String OTHER = """
            if (true) break unusual;
            """;

        private static final String NUMBER =
                """
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

        private static final String FIXED =
                """
            if ({most} > end - from) break unusual;
            {put}Cursor.wordBefore(bytes, from, end) & {mask}L);
            from += {most};
            """;

        private static final String FLAG =
                """
            if (from >= end) break unusual;
            long flag = bytes[from++];
            if ((flag & -2L) != 0) break unusual;
            {put}flag);
            """;

        /** Read a length of one byte, and check that all its bytes are there. */
        private static final String LENGTH =
                """
            if (from >= end) break unusual;
            int length = bytes[from++];
            if ((length & 0x81) != 0) break unusual;
            length >>= 1;
            if (length > end - from) break unusual;
            """;

        private static final String TEXT = LENGTH
                + """
            if (!out.hasRoom(next, length) || !RowBuffer.copy(bytes, from, length, made, next)) break unusual;
            {put}RowBuffer.extent(next, length, {base}));
            from += length;
            next += RowBuffer.pad(length);
            """;

        private static final String SYMBOL =
                """
            if (from >= end) break unusual;
            int symbol = bytes[from++];
            if ((symbol & 0x81) != 0) break unusual;
            int length = symbols{i}.copy(symbol >> 1, made, next);
            if (length < 0) break unusual;
            {put}RowBuffer.extent(next, length, {base}));
            next += RowBuffer.pad(length);
            """;

        private static final String DECIMAL = LENGTH
                + """
            if (length == 0 || length > 7) break unusual;
            long number = SimpleForm.decimal(Cursor.wordBefore(bytes, from - 1, end), length);
            if (Math.abs(number) >= {factor}L) break unusual;
            {put}number);
            from += length;
            """;

        private static final String SKIPPED_BYTES = LENGTH + """
            from += length;
            """;

        private static final String CHECKED_TEXT = LENGTH
                + """
            if (!RowBuffer.isAscii(bytes, from, length)) break unusual;
            from += length;
            """;

        private static final String CHECKED_SYMBOL =
                """
            if (from >= end) break unusual;
            int symbol = bytes[from++];
            if ((symbol & 0x81) != 0 || !symbols{i}.has(symbol >> 1)) break unusual;
            """;

        /** Items of an array or a map that the query does not read. */
        static final String CHECKED_ITEMS =
                """
            if (from >= end) break unusual;
            int count = bytes[from++];
            if ((count & 0x81) != 0) break unusual;
            count >>= 1;
            for (int i = 0; i < count; i++) {
                {item}
            }
            """
                        + END;

        static final String CHECKED_ENTRY =
                """
            {
                {key}
            }
            {
                {value}
            }
            """;

        private static final Map<SimpleForm.Kind, String> SCALARS = Map.of(
                SimpleForm.Kind.NUMBER, NUMBER,
                SimpleForm.Kind.FIXED, FIXED,
                SimpleForm.Kind.FLAG, FLAG,
                SimpleForm.Kind.TEXT, TEXT,
                SimpleForm.Kind.SYMBOL, SYMBOL,
                SimpleForm.Kind.DECIMAL, DECIMAL,
                SimpleForm.Kind.SKIPPED_BYTES, SKIPPED_BYTES);

        private FieldSnippets() {}

        /** Return the template that checks a value of any kind but {@code OTHER} and does not build it. */
        static String checked(SimpleForm.Kind kind) {
            return switch (kind) {
                case TEXT -> CHECKED_TEXT;
                case SYMBOL -> CHECKED_SYMBOL;
                default -> SCALARS.get(kind);
            };
        }

        /** Return the template of any kind but {@code OTHER}. */
        public static String of(SimpleForm.Kind kind) {
            return SCALARS.get(kind);
        }
    }
}
