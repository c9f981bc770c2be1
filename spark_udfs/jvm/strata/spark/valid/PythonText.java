package strata.spark.valid;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import strata.spark.write.EncodeJsonValue;

/** Names and values in errors, in the words of {@code serdes/errors.py}. */
public final class PythonText {
    private static final int LONGEST_NAME = 40;
    private static final int LONGEST_VALUE = 60;
    private static final int MOST_NAMES = 5;
    private static final double ENOUGH_ALIKE = 0.6;
    private static final int LEAST_EXPONENT = -4;
    private static final int MOST_WHOLE_DIGITS = 16;

    private PythonText() {}

    /** Return the first characters of a name. */
    static String cut(String name) {
        return name.codePointCount(0, name.length()) <= LONGEST_NAME
                ? name
                : name.substring(0, name.offsetByCodePoints(0, LONGEST_NAME));
    }

    /** Return the part of a path that names a value of a map. */
    static String keyPart(String key) {
        return "[" + quoted(cut(key)) + "]";
    }

    /** Return the part of a path that names a property. */
    static String fieldPart(String name) {
        boolean isWord = !name.isEmpty() && name.codePoints().allMatch(PythonText::isOfWord);
        return isWord ? "." + name : keyPart(name);
    }

    private static boolean isOfWord(int one) {
        return one == '_'
                || one == '-'
                || Character.isLetter(one)
                || switch (Character.getType(one)) {
                    case Character.DECIMAL_DIGIT_NUMBER, Character.LETTER_NUMBER, Character.OTHER_NUMBER -> true;
                    default -> false;
                };
    }

    /** Return a text in quotes, as Python shows it. */
    public static String quoted(String text) {
        char quote = text.indexOf('\'') >= 0 && text.indexOf('"') < 0 ? '"' : '\'';
        StringBuilder made = new StringBuilder().append(quote);
        text.codePoints().forEach(one -> made.append(shown(one, quote)));
        return made.append(quote).toString();
    }

    private static String shown(int one, char quote) {
        return switch (one) {
            case '\n' -> "\\n";
            case '\r' -> "\\r";
            case '\t' -> "\\t";
            case '\\' -> "\\\\";
            default -> one == quote
                    ? "\\" + quote
                    : isPrintable(one)
                            ? Character.toString(one)
                            : one <= 0xFF
                                    ? String.format("\\x%02x", one)
                                    : one <= 0xFFFF ? String.format("\\u%04x", one) : String.format("\\U%08x", one);
        };
    }

    private static boolean isPrintable(int one) {
        return one == ' '
                || switch (Character.getType(one)) {
                    case Character.CONTROL,
                            Character.FORMAT,
                            Character.SURROGATE,
                            Character.PRIVATE_USE,
                            Character.UNASSIGNED,
                            Character.LINE_SEPARATOR,
                            Character.PARAGRAPH_SEPARATOR,
                            Character.SPACE_SEPARATOR -> false;
                    default -> true;
                };
    }

    /** Join names: {@code A, B or C}. */
    static String anyOf(List<String> names) {
        int last = names.size() - 1;
        return last < 1 ? String.join("", names) : String.join(", ", names.subList(0, last)) + " or " + names.get(last);
    }

    /** Join choices in quotes, the first few of many. */
    static String oneOf(List<String> choices) {
        List<String> names = choices.stream().map(one -> quoted(cut(one))).toList();
        return names.size() <= MOST_NAMES
                ? anyOf(names)
                : "one of " + String.join(", ", names.subList(0, MOST_NAMES)) + " and " + (names.size() - MOST_NAMES)
                        + " more";
    }

    // Values of JSON

    /** Return a value that is not an object or array as {@code str} of Python shows it. */
    static String str(JsonNode value) {
        if (value.isNull()) {
            return "None";
        }
        if (value.isBoolean()) {
            return value.asBoolean() ? "True" : "False";
        }
        return value.isFloatingPointNumber() ? repr(value.asDouble()) : value.asText();
    }

    /** Return a value that is not an object or array as {@code json.dumps} of Python writes it. */
    public static String json(JsonNode value) {
        if (!value.isTextual()) {
            return value.isNull() || value.isBoolean() ? value.asText() : str(value);
        }
        StringBuilder made = new StringBuilder("\"");
        for (char one : value.asText().toCharArray()) {
            int escaped = "\"\\\n\r\t\f\b".indexOf(one);
            made.append(
                    escaped >= 0
                            ? "\\" + "\"\\nrtfb".charAt(escaped)
                            : one >= ' ' && one <= '~' ? String.valueOf(one) : String.format("\\u%04x", (int) one));
        }
        return made.append('"').toString();
    }

    /** Return the beginning of any value as Python shows it. */
    public static String shortened(JsonNode value) {
        String shown = repr(value);
        return shown.codePointCount(0, shown.length()) <= LONGEST_VALUE
                ? shown
                : shown.substring(0, shown.offsetByCodePoints(0, LONGEST_VALUE));
    }

    private static String repr(JsonNode value) {
        if (value.isTextual()) {
            return quoted(value.asText());
        }
        List<String> inner = new ArrayList<>();
        value.properties().forEach(one -> inner.add(quoted(one.getKey()) + ": " + repr(one.getValue())));
        if (value.isObject()) {
            return "{" + String.join(", ", inner) + "}";
        }
        value.forEach(one -> inner.add(repr(one)));
        return value.isArray() ? "[" + String.join(", ", inner) + "]" : str(value);
    }

    /** Return a number as Python shows it: with an exponent below 1e-4 and from 1e16 on. */
    private static String repr(double number) {
        if (!Double.isFinite(number)) {
            return Double.isNaN(number) ? "nan" : number < 0 ? "-inf" : "inf";
        }
        if (number == 0) {
            return 1 / number < 0 ? "-0.0" : "0.0";
        }
        BigDecimal shortest = new BigDecimal(EncodeJsonValue.Real.shortest(number)).stripTrailingZeros();
        int exponent = shortest.precision() - shortest.scale() - 1;
        if (exponent >= LEAST_EXPONENT && exponent < MOST_WHOLE_DIGITS) {
            return (shortest.scale() <= 0 ? shortest.setScale(1) : shortest).toPlainString();
        }
        String digits = shortest.unscaledValue().abs().toString();
        return (number < 0 ? "-" : "")
                + digits.charAt(0)
                + (digits.length() > 1 ? "." + digits.substring(1) : "")
                + String.format("e%s%02d", exponent < 0 ? "-" : "+", Math.abs(exponent));
    }

    // Similar names, as Python's difflib finds them

    /** Return {@code ; did you mean 'x'?} with the most similar known name, or an empty text. */
    static String didYouMean(String name, Iterable<String> known) {
        Map<String, String> spelled = new LinkedHashMap<>();
        known.forEach(one -> spelled.put(one.toLowerCase(Locale.ROOT), one));
        int[] word = cut(name).toLowerCase(Locale.ROOT).codePoints().toArray();
        String best = null;
        double most = 0;
        for (String one : spelled.keySet()) {
            double alike = likeness(one.codePoints().toArray(), word);
            boolean isBetter = best == null || alike > most || alike == most && compare(one, best) > 0;
            if (alike >= ENOUGH_ALIKE && isBetter) {
                best = one;
                most = alike;
            }
        }
        return best == null ? "" : "; did you mean " + quoted(spelled.get(best)) + "?";
    }

    private static int compare(String one, String other) {
        return Arrays.compare(one.codePoints().toArray(), other.codePoints().toArray());
    }

    private static double likeness(int[] a, int[] b) {
        int both = a.length + b.length;
        if (both == 0) {
            return 1;
        }
        double bound = 2.0 * Math.min(a.length, b.length) / both;
        return bound < ENOUGH_ALIKE ? bound : 2.0 * matches(a, b) / both;
    }

    /** Return how many characters are in blocks that both texts have, the longest block first. */
    private static int matches(int[] a, int[] b) {
        int count = 0;
        List<int[]> left = new ArrayList<>(List.of(new int[] {0, a.length, 0, b.length}));
        while (!left.isEmpty()) {
            int[] part = left.remove(left.size() - 1);
            int[] block = longest(a, b, part);
            if (block[2] > 0) {
                count += block[2];
                left.add(new int[] {part[0], block[0], part[2], block[1]});
                left.add(new int[] {block[0] + block[2], part[1], block[1] + block[2], part[3]});
            }
        }
        return count;
    }

    /** Return the start in each text and the length of the longest block of a part. */
    private static int[] longest(int[] a, int[] b, int[] part) {
        int[] best = {part[0], part[2], 0};
        int[] before = new int[b.length + 1];
        for (int i = part[0]; i < part[1]; i++) {
            int[] now = new int[b.length + 1];
            for (int j = part[2]; j < part[3]; j++) {
                if (a[i] == b[j]) {
                    now[j + 1] = before[j] + 1;
                    if (now[j + 1] > best[2]) {
                        best = new int[] {i - now[j + 1] + 1, j - now[j + 1] + 1, now[j + 1]};
                    }
                }
            }
            before = now;
        }
        return best;
    }
}
