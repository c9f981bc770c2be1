package strata.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A JSON value as objects, for what is rare: null, Boolean, String, {@link Number}, List, and Map, in which the last of
 * several equal names counts.
 */
final class JsonTree {
    /** A number as it was written. */
    record Number(String text, boolean isFloat) {
        double asDouble() {
            return Double.parseDouble(text);
        }
    }

    private JsonTree() {}

    /** Return a whole payload. */
    static Object ofAll(Cursor in) {
        Object value = of(in);
        JsonSyntax.requireEnd(in);
        return value;
    }

    /** Return the next value, and pass it. */
    static Object of(Cursor in) {
        int start;
        switch (JsonSyntax.peek(in)) {
            case '"':
                return text(in);
            case '{':
                return object(in);
            case '[':
                return array(in);
            case 'n':
                JsonSyntax.literal(in, "null");
                return null;
            case 't':
                JsonSyntax.literal(in, "true");
                return true;
            case 'f':
                JsonSyntax.literal(in, "false");
                return false;
            default:
                start = in.at;
                boolean isFloat = JsonSyntax.number(in);
                return new Number(JsonSyntax.slice(in.bytes, start, in.at), isFloat);
        }
    }

    private static String text(Cursor in) {
        JsonSyntax.pass(in, '"');
        int start = in.at;
        boolean hasEscapes = JsonSyntax.text(in);
        int end = in.at - 1;
        if (!hasEscapes) {
            return new String(in.bytes, start, end - start, StandardCharsets.UTF_8);
        }
        byte[] plain = new byte[end - start];
        return new String(plain, 0, JsonSyntax.unescape(in.bytes, start, end, plain), StandardCharsets.UTF_8);
    }

    private static Map<String, Object> object(Cursor in) {
        Map<String, Object> members = new LinkedHashMap<>();
        JsonSyntax.enter(in);
        if (!JsonSyntax.isEmpty(in, '}')) {
            do {
                String name = text(in);
                JsonSyntax.pass(in, ':');
                members.put(name, of(in));
            } while (JsonSyntax.hasMore(in, '}'));
        }
        return members;
    }

    private static List<Object> array(Cursor in) {
        List<Object> items = new ArrayList<>();
        JsonSyntax.enter(in);
        if (!JsonSyntax.isEmpty(in, ']')) {
            do {
                items.add(of(in));
            } while (JsonSyntax.hasMore(in, ']'));
        }
        return items;
    }
}
