package strata.compat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.squareup.wire.schema.Location;
import com.squareup.wire.schema.internal.parser.ProtoParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kotlin.ranges.IntRange;

/**
 * Parses the text of a .proto file with Wire's parser: a line of JSON in, a line out.
 *
 * <p>In: the text. Out: `{file}`, every part with its class under `is`, ranges as `{first, last}`, maps of options as
 * `{map: [[key, value], ...]}`; or `{reason}`. Locations and comments are left out.
 */
public final class WireParser {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Set<String> LEFT_OUT = Set.of("location", "documentation", "formattedName");

    private WireParser() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(JSON.writeValueAsString(answer(JSON.readValue(line, String.class))));
            }
        }
    }

    private static Map<String, Object> answer(String text) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("file", plain(ProtoParser.Companion.parse(Location.get(""), text)));
        } catch (RuntimeException | ReflectiveOperationException error) {
            answer.put("reason", String.valueOf(error.getMessage()));
        }
        return answer;
    }

    private static Object plain(Object part) throws ReflectiveOperationException {
        if (part == null || part instanceof String || part instanceof Integer || part instanceof Boolean) {
            return part;
        }
        if (part instanceof Enum<?> constant) {
            return constant.name();
        }
        if (part instanceof IntRange range) {
            return Map.of("first", range.getFirst(), "last", range.getLast());
        }
        if (part instanceof List<?> items) {
            return listed(items);
        }
        if (part instanceof Map<?, ?> entries) {
            List<Object> pairs = new ArrayList<>();
            for (Map.Entry<?, ?> entry : entries.entrySet()) {
                pairs.add(List.of(entry.getKey(), plain(entry.getValue())));
            }
            return Map.of("map", pairs);
        }
        return described(part);
    }

    private static List<Object> listed(List<?> items) throws ReflectiveOperationException {
        List<Object> plain = new ArrayList<>();
        for (Object item : items) {
            plain.add(plain(item));
        }
        return plain;
    }

    private static Map<String, Object> described(Object element) throws ReflectiveOperationException {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("is", element.getClass().getSimpleName());
        for (Field field : element.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) && !LEFT_OUT.contains(field.getName())) {
                field.setAccessible(true);
                described.put(field.getName(), plain(field.get(element)));
            }
        }
        return described;
    }
}
