package strata.spark;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

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
        source = column instanceof StringType ? SpecializedGetters::getUTF8String : (from, i) -> {
            scratch.begin(new byte[0]);
            written.write(from, i, scratch);
            byte[] quoted = scratch.frame();
            return UTF8String.fromBytes(quoted, 1, quoted.length - 2);
        };
    }

    ValidCheck ofLength(ValidRule rule, long limit) {
        boolean isLeast = rule.keyword().equals("minLength");
        return new Check(
            source, text -> isLeast ? text.numChars() >= limit : text.numChars() <= limit, rule);
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
            ? ValidCheck.ALWAYS : new Check(source, text -> ValidFormats.isBase64(ascii(text)), rule);
    }

    /** Return a text in which bytes beyond ASCII are characters that no format has. */
    private static String ascii(UTF8String text) {
        return new String(text.getBytes(), StandardCharsets.ISO_8859_1);
    }
}
