package strata.spark;

import java.util.List;

/**
 * The Java source of a {@link FieldReader}: the common form of each field, with the constants of its schema. Any
 * other form is left to the field's {@link Node}, which detects all errors.
 *
 * <p>No text of a schema gets into the source. The templates are in {@link FieldSnippets}.
 */
final class FieldSource {
    static final String CLASS = "strata.spark.MadeFieldReader";

    /** The maximum number of characters of fields in a method: the JVM does not inline calls in larger ones. */
    private static final int METHOD_SIZE = 7000;
    /** The maximum of array items: the count has one byte, and the null bits one word. */
    private static final int MAX_ITEMS = 63;
    /** The maximum of map entries, whose keys are compared with each other. */
    private static final int MAX_ENTRIES = 16;

    private final List<FieldShape> fields;
    private final int size;
    private final StringBuilder members = new StringBuilder();
    private final StringBuilder constructor = new StringBuilder();
    private final StringBuilder methods = new StringBuilder();
    private final StringBuilder calls = new StringBuilder();

    private FieldSource(List<FieldShape> fields, int size) {
        this.fields = fields;
        this.size = size;
    }

    /** Return the source for fields, in the writer's order, of a row with {@code size} fields. */
    static String write(List<FieldShape> fields, int size) {
        FieldSource source = new FieldSource(fields, size);
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
        if (field.shortcut().kind() == Shortcut.Kind.OTHER) {
            return FieldSnippets.OTHER;
        }
        if (!field.isRead()) {
            return checked(field);
        }
        String put = "RowBuffer.put(made, row + " + place(field) + ", ";
        return switch (field.holds()) {
            case ARRAY -> array(field.shortcut()).replace("{put}", put);
            case MAP -> map(field.shortcut()).replace("{put}", put);
            default -> scalar(field.shortcut(), put, "row");
        };
    }

    private static String checked(FieldShape field) {
        String value = checked(field.shortcut());
        return switch (field.holds()) {
            case ARRAY -> FieldSnippets.CHECKED_ITEMS.replace("{item}", value);
            case MAP -> FieldSnippets.CHECKED_ITEMS.replace("{item}", FieldSnippets.CHECKED_ENTRY)
                .replace("{key}", checked(Shortcut.TEXT))
                .replace("{value}", value);
            default -> value;
        };
    }

    private static String checked(Shortcut shortcut) {
        return replaced(FieldSnippets.checked(shortcut.kind()), shortcut).replace("{put}", FieldSnippets.IGNORE);
    }

    private static String scalar(Shortcut shortcut, String put, String base) {
        return replaced(FieldSnippets.of(shortcut.kind()), shortcut).replace("{put}", put).replace("{base}", base);
    }

    private static String replaced(String snippet, Shortcut shortcut) {
        return snippet
            .replace("{most}", "" + shortcut.most())
            .replace("{factor}", "" + shortcut.factor())
            .replace("{mask}", "" + shortcut.mask());
    }

    private static String array(Shortcut item) {
        return FieldSnippets.ARRAY
            .replace("{most}", "" + MAX_ITEMS)
            .replace("{item}", scalar(item, FieldSnippets.PUT_ITEM, "array"));
    }

    private static String map(Shortcut value) {
        boolean isPrefixed = value.kind() == Shortcut.Kind.TEXT || value.kind() == Shortcut.Kind.DECIMAL;
        return FieldSnippets.MAP
            .replace("{most}", "" + MAX_ENTRIES)
            .replace("{key}", scalar(Shortcut.TEXT, FieldSnippets.PUT_ITEM, "keys"))
            .replace("{skip}", scalar(isPrefixed ? Shortcut.SKIPPED_BYTES : value, FieldSnippets.IGNORE, ""))
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
        return field.isChecked() ? "value{i}.check(in, out);" : "out.putField(row, " + size + ", " + field.slot() + ", value{i}.read(in, out, row));";
    }

    /** Add a member that the class takes from a step. */
    private void member(int i, String type, String name, String method) {
        members.append("private final %s %s%d;\n".formatted(type, name, i));
        constructor.append("%s%d = (%s) steps[%d].%s();\n".formatted(name, i, type, i, method));
    }
}
