package strata.spark.valid;

import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import strata.spark.valid.ValidCheck.ValidErrors;
import strata.spark.valid.ValidCheck.ValidRule;
import strata.spark.valid.ValidExpression.ValidPattern;
import strata.spark.valid.ValidShapes.ValidKind;
import strata.spark.write.EncodeJsonValue;
import strata.spark.write.EncodeOutput;

/** Checks of columns that are texts in JSON. */
final class ValidTexts {
    private interface Source {
        UTF8String get(SpecializedGetters from, int i);
    }

    private record Check(Source source, Predicate<UTF8String> test, ValidRule rule) implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            return test.test(source.get(from, i)) || rule.refuse(errors, rule.detail());
        }
    }

    private record Listed(Source source, Set<UTF8String> texts, List<String> known, ValidRule rule)
            implements ValidCheck {
        @Override
        public boolean passes(SpecializedGetters from, int i, ValidErrors errors) {
            UTF8String text = source.get(from, i);
            return texts.contains(text) || errors != null && rule.refuse(errors, words(text), "", text);
        }

        private String words(UTF8String text) {
            boolean isEnum = rule.keyword().equals("enum");
            String got = isEnum && known.isEmpty() ? ValidKind.STRING.got : ValidKind.STRING.other;
            return rule.detail() + got + (isEnum ? PythonText.didYouMean(text.toString(), known) : "");
        }
    }

    private final DataType column;
    private final Source source;

    /** @param written the text of the column, in quotes */
    ValidTexts(DataType column, EncodeJsonValue written) {
        this.column = column;
        EncodeOutput scratch = new EncodeOutput();
        source = column instanceof StringType
                ? SpecializedGetters::getUTF8String
                : (from, i) -> {
                    scratch.begin(new byte[0]);
                    written.write(from, i, scratch);
                    byte[] quoted = scratch.frame();
                    return UTF8String.fromBytes(quoted, 1, quoted.length - 2);
                };
    }

    ValidCheck ofLength(ValidRule rule, long limit) {
        boolean isLeast = rule.keyword().equals("minLength");
        return new Check(source, text -> isLeast ? text.numChars() >= limit : text.numChars() <= limit, rule);
    }

    ValidCheck listed(ValidRule rule, List<String> known) {
        Set<UTF8String> texts = new HashSet<>();
        known.forEach(one -> texts.add(UTF8String.fromString(one)));
        return new Listed(source, texts, known, rule);
    }

    ValidCheck ofFormat(ValidRule rule, String format) {
        boolean isSure = column instanceof DateType && format.equals("date")
                || column instanceof TimestampType && format.equals("date-time");
        return isSure ? ValidCheck.ALWAYS : new Check(source, text -> ValidFormats.isValid(format, ascii(text)), rule);
    }

    ValidCheck ofPattern(ValidRule rule, ValidPattern pattern) {
        return new Check(source, pattern::matches, rule);
    }

    ValidCheck ofBase64(ValidRule rule) {
        return column instanceof BinaryType
                ? ValidCheck.ALWAYS
                : new Check(source, text -> ValidFormats.isBase64(ascii(text)), rule);
    }

    /** Return a text in which bytes beyond ASCII are characters that no format has. */
    private static String ascii(UTF8String text) {
        return new String(text.getBytes(), StandardCharsets.ISO_8859_1);
    }

    /** The formats of RFC 3339, and base64, as strict as in the validator of the Python path. */
    static final class ValidFormats {
        private static final Pattern DATE = Pattern.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})");
        private static final Pattern TIME =
                Pattern.compile("([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\\.[0-9]++)?"
                        + "(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))");
        private static final Pattern BASE64 =
                Pattern.compile("(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?");
        private static final int DATE_LENGTH = 10;
        private static final int DAY_MINUTES = 24 * 60;

        private ValidFormats() {}

        static boolean isValid(String format, String text) {
            return switch (format) {
                case "date" -> isDate(text);
                case "time" -> isTime(text);
                default -> text.length() > DATE_LENGTH
                        && Character.toLowerCase(text.charAt(DATE_LENGTH)) == 't'
                        && isDate(text.substring(0, DATE_LENGTH))
                        && isTime(text.substring(DATE_LENGTH + 1));
            };
        }

        static boolean isBase64(String text) {
            return BASE64.matcher(text).matches();
        }

        private static boolean isDate(String text) {
            Matcher found = DATE.matcher(text);
            try {
                return found.matches() && LocalDate.of(number(found, 1), number(found, 2), number(found, 3)) != null;
            } catch (DateTimeException noSuchDay) {
                return false;
            }
        }

        /** Return whether a text is a time of day; a leap second is at the end of the day in UTC. */
        private static boolean isTime(String text) {
            Matcher found = TIME.matcher(text);
            if (!found.matches()) {
                return false;
            }
            int minutes = number(found, 1) * 60 + number(found, 2);
            if (found.group(4) != null) {
                int offset = number(found, 5) * 60 + number(found, 6);
                minutes += found.group(4).equals("+") ? -offset : offset;
            }
            return number(found, 3) < 60 || Math.floorMod(minutes, DAY_MINUTES) == DAY_MINUTES - 1;
        }

        private static int number(Matcher found, int group) {
            return Integer.parseInt(found.group(group));
        }
    }
}
