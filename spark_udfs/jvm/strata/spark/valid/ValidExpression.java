package strata.spark.valid;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A regular expression of a JSON Schema as the table of a finite automaton, which {@link ValidPattern} follows.
 *
 * <p>Only expressions that mean the same to every engine: characters of ASCII, classes of them, {@code \d} and
 * {@code \w}, groups, alternatives and repeats, {@code ^} at the start and {@code $} at the end. An automaton needs no
 * backtracking, so no text is slow.
 */
public final class ValidExpression {
    /** Adds a part of the expression after a state, and returns the state after the part. */
    private interface Part {
        int add(ValidSteps steps, int start);
    }

    private static final int LONGEST = 500;
    private static final int MOST_REPEATS = 1000;
    private static final int UNBOUNDED = Integer.MAX_VALUE;
    private static final String DIGITS = "0123456789";
    private static final String LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    private static final String PLAIN = LETTERS + DIGITS + " _-!\"#%&',/:;<=>@`~";
    private static final String ESCAPED = "^$\\.*+?()[]{}|/";

    /** Without the operators of sets that some engines have. */
    private static final String IN_CLASS = PLAIN.replaceAll("[-&~]", "") + ".*+?(){}|$";

    private static final String REPEATS = "?*+{";
    private static final Pattern BOUNDS = Pattern.compile("\\{([0-9]{1,9})(,([0-9]{0,9}))?\\}");
    private static final String OPTIONAL = "?";

    private final String text;
    private final List<String> repeats = new ArrayList<>();
    private int at;
    private boolean hasAlternatives;

    private ValidExpression(String text) {
        this.text = text;
    }

    /**
     * Return the table of an expression; null if it has other parts, or needs too many states.
     *
     * @param work what all expressions of the schema may cost
     */
    public static ObjectNode automaton(String pattern, ValidSteps.Work work) {
        try {
            return table(pattern, work);
        } catch (ValidSteps.Unknown unknown) {
            return null;
        }
    }

    private static ObjectNode table(String pattern, ValidSteps.Work work) {
        if (pattern.length() > LONGEST) {
            throw new ValidSteps.Unknown();
        }
        boolean isFound = !pattern.startsWith("^");
        String body = isFound ? pattern : pattern.substring(1);
        boolean isOpen = !body.endsWith("$") || body.endsWith("\\$");
        ValidExpression parser = new ValidExpression(isOpen ? body : body.substring(0, body.length() - 1));
        Part part = parser.alternatives(false);
        boolean isAnchored = !isFound || !isOpen;
        if (parser.at < parser.text.length() || isAnchored && parser.hasAlternatives || parser.isMisread()) {
            throw new ValidSteps.Unknown();
        }
        ValidSteps steps = new ValidSteps(work);
        if (isFound) {
            steps.step(0, ValidSteps.all(), 0);
        }
        return steps.table(part.add(steps, steps.after(0)), isOpen);
    }

    /**
     * Return whether the same part is repeated by {@code +} twice, with something optional between.
     *
     * <p>The validator of Python (jsonschema-rs 0.60) reads {@code [a-z]+-?[a-z]+} as if the second repeat were
     * optional too.
     */
    private boolean isMisread() {
        Set<String> seen = new HashSet<>();
        Set<String> beforeOptional = new HashSet<>();
        for (String one : repeats) {
            if (beforeOptional.contains(one)) {
                return true;
            }
            if (one.equals(OPTIONAL)) {
                beforeOptional.addAll(seen);
            } else {
                seen.add(one);
            }
        }
        return false;
    }

    private boolean sees(char one) {
        return at < text.length() && text.charAt(at) == one;
    }

    private boolean sees(String any) {
        return at < text.length() && any.indexOf(text.charAt(at)) >= 0;
    }

    private char take() {
        if (at == text.length()) {
            throw new ValidSteps.Unknown();
        }
        return text.charAt(at++);
    }

    private Part alternatives(boolean isInside) {
        List<Part> branches = new ArrayList<>(List.of(sequence()));
        while (sees('|')) {
            at++;
            branches.add(sequence());
        }
        hasAlternatives |= !isInside && branches.size() > 1;
        return (steps, start) -> {
            int end = steps.fresh();
            for (Part branch : branches) {
                steps.step(branch.add(steps, steps.after(start)), null, end);
            }
            return end;
        };
    }

    private Part sequence() {
        List<Part> parts = new ArrayList<>();
        while (at < text.length() && !sees("|)")) {
            int from = at;
            int before = repeats.size();
            Part part = atom();
            parts.add(repeated(part, text.substring(from, at), before));
        }
        return (steps, start) -> {
            int end = start;
            for (Part part : parts) {
                end = part.add(steps, end);
            }
            return end;
        };
    }

    private Part atom() {
        char one = take();
        if (one == '(') {
            at += text.startsWith("?:", at) ? 2 : 0;
            Part part = alternatives(true);
            if (take() != ')') {
                throw new ValidSteps.Unknown();
            }
            return part;
        }
        BitSet symbols = one == '[' ? symbolsOfClass() : symbols(one, PLAIN);
        return (steps, start) -> {
            int end = steps.fresh();
            steps.step(start, symbols, end);
            return end;
        };
    }

    /** Return the symbols of a character, or of an escape. */
    private BitSet symbols(char one, String plain) {
        char meant = one;
        if (one == '\\') {
            meant = take();
            if (meant == 'd' || meant == 'w') {
                return symbols(meant == 'd' ? DIGITS : LETTERS + DIGITS + "_");
            }
            boolean isDash = meant == '-' && plain.equals(IN_CLASS);
            if (!isDash && ESCAPED.indexOf(meant) < 0) {
                throw new ValidSteps.Unknown();
            }
        } else if (plain.indexOf(one) < 0) {
            throw new ValidSteps.Unknown();
        }
        return symbols(String.valueOf(meant));
    }

    private static BitSet symbols(String characters) {
        BitSet symbols = new BitSet();
        characters.chars().forEach(symbols::set);
        return symbols;
    }

    private BitSet symbolsOfClass() {
        boolean isNegated = sees('^');
        at += isNegated ? 1 : 0;
        BitSet symbols = new BitSet();
        while (at < text.length() && !sees(']')) {
            char one = take();
            if (one == '-' && (symbols.isEmpty() || sees(']'))) {
                symbols.set('-');
                continue;
            }
            BitSet low = symbols(one, IN_CLASS);
            if (sees('-') && at + 1 < text.length() && text.charAt(at + 1) != ']') {
                at++;
                symbols.or(range(low, symbols(take(), IN_CLASS)));
            } else {
                symbols.or(low);
            }
        }
        if (take() != ']' || symbols.isEmpty()) {
            throw new ValidSteps.Unknown();
        }
        if (isNegated) {
            BitSet others = ValidSteps.all();
            others.andNot(symbols);
            return others;
        }
        return symbols;
    }

    private static BitSet range(BitSet low, BitSet high) {
        if (low.cardinality() != 1 || high.cardinality() != 1 || low.nextSetBit(0) > high.nextSetBit(0)) {
            throw new ValidSteps.Unknown();
        }
        BitSet symbols = new BitSet();
        symbols.set(low.nextSetBit(0), high.nextSetBit(0) + 1);
        return symbols;
    }

    /**
     * Return a part with its repeats.
     *
     * @param partText its text
     * @param before how many repeats were noted before it
     */
    private Part repeated(Part part, String partText, int before) {
        int[] bounds = bounds();
        int low = bounds[0];
        int high = bounds[1];
        note(partText, low, high, before);
        if (low == 1 && high == 1) {
            return part;
        }
        if (sees(REPEATS) || low > MOST_REPEATS || high != UNBOUNDED && high > MOST_REPEATS) {
            throw new ValidSteps.Unknown();
        }
        return (steps, start) -> {
            int from = start;
            for (int time = 0; time < low; time++) {
                from = part.add(steps, from);
            }
            int end = steps.after(from);
            if (high == UNBOUNDED) {
                int again = steps.after(from);
                steps.step(part.add(steps, again), null, again);
                steps.step(again, null, end);
                return end;
            }
            for (int time = low; time < high; time++) {
                from = part.add(steps, steps.after(from));
                steps.step(from, null, end);
            }
            return end;
        };
    }

    private void note(String partText, int low, int high, int before) {
        List<String> inside = high == 1 ? List.of() : List.copyOf(repeats.subList(before, repeats.size()));
        repeats.addAll(inside); // they come again after themselves
        if (low == 0) {
            repeats.add(OPTIONAL);
        } else if (high == UNBOUNDED) {
            repeats.add(partText);
        }
        if (repeats.size() > MOST_REPEATS) {
            throw new ValidSteps.Unknown();
        }
    }

    /** Return the least and most repeats. */
    private int[] bounds() {
        if (!sees(REPEATS)) {
            return new int[] {1, 1};
        }
        if (!sees('{')) {
            char one = take();
            return new int[] {one == '+' ? 1 : 0, one == '?' ? 1 : UNBOUNDED};
        }
        Matcher found = BOUNDS.matcher(text).region(at, text.length());
        if (!found.lookingAt()) {
            throw new ValidSteps.Unknown();
        }
        at = found.end();
        int low = Integer.parseInt(found.group(1));
        if (found.group(2) == null) {
            return new int[] {low, low};
        }
        int high = found.group(3).isEmpty() ? UNBOUNDED : Integer.parseInt(found.group(3));
        if (high < low) {
            throw new ValidSteps.Unknown();
        }
        return new int[] {low, high};
    }

    /** The steps of an automaton that may be in several states at once, from which a table of one state each is made. */
    public static final class ValidSteps {
        /** The symbol of all characters beyond ASCII; those before it are ASCII's. */
        public static final int OTHER = 128;

        private static final int SYMBOLS = OTHER + 1;
        private static final int MOST_STATES = 500;
        private static final int MOST_STEPS = 5000;

        /** An expression that is left to the validator of Python. */
        static final class Unknown extends RuntimeException {
            private static final long serialVersionUID = 1L;

            Unknown() {
                super(null, null, false, false);
            }
        }

        /** What all tables of one schema may cost, in steps that are looked at. */
        public static final class Work {
            private int left = 2_000_000;

            public void spend(int steps) {
                left -= steps;
                if (left < 0) {
                    left = 0;
                    throw new Unknown();
                }
            }
        }

        /**
         * A step to another state.
         *
         * @param symbols by which characters; null for none
         */
        private record Step(BitSet symbols, int end) {}

        private final Work work;
        private final List<List<Step>> steps = new ArrayList<>();

        public ValidSteps(Work work) {
            this.work = work;
            fresh();
        }

        public static BitSet all() {
            BitSet all = new BitSet();
            all.set(0, SYMBOLS);
            return all;
        }

        /** Return a new state. */
        int fresh() {
            if (steps.size() >= MOST_STEPS) {
                throw new Unknown();
            }
            work.spend(1);
            steps.add(new ArrayList<>());
            return steps.size() - 1;
        }

        /** Return a new state that is reached from another one without a symbol. */
        public int after(int state) {
            int made = fresh();
            step(state, null, made);
            return made;
        }

        /** Add a step: by some characters, or by none if {@code symbols} is null. */
        public void step(int start, BitSet symbols, int end) {
            steps.get(start).add(new Step(symbols, end));
        }

        /** Add the states that are reached without a symbol. */
        private BitSet closed(BitSet states) {
            List<Integer> rest = new ArrayList<>(states.stream().boxed().toList());
            while (!rest.isEmpty()) {
                for (Step one : steps.get(rest.remove(rest.size() - 1))) {
                    if (one.symbols == null && !states.get(one.end)) {
                        states.set(one.end);
                        rest.add(one.end);
                    }
                }
            }
            return states;
        }

        /**
         * Return the table for {@link ValidPattern}: for each state its next states by column, -1 for none.
         *
         * @param end the state in which the text matches
         * @param isOpen whether it matches whatever follows
         */
        public ObjectNode table(int end, boolean isOpen) {
            ObjectNode made = JsonNodeFactory.instance.objectNode();
            List<Integer> columns = addClasses(made.putArray("classes"));
            ArrayNode table = made.putArray("table");
            ArrayNode accepting = made.putArray("accepting");
            Map<BitSet, Integer> numbers = new HashMap<>();
            List<BitSet> order = new ArrayList<>();
            BitSet start = new BitSet();
            start.set(0);
            order.add(closed(start));
            numbers.put(start, 0);
            for (int number = 0; number < order.size(); number++) {
                BitSet state = order.get(number);
                ArrayNode row = table.addArray();
                work.spend(state.cardinality() * columns.size());
                for (int symbol : columns) {
                    BitSet next = next(state, symbol);
                    if (!next.isEmpty() && numbers.putIfAbsent(next, order.size()) == null) {
                        order.add(next);
                        if (order.size() > MOST_STATES) {
                            throw new Unknown();
                        }
                    }
                    row.add(next.isEmpty() ? -1 : numbers.get(next));
                }
                if (state.get(end)) {
                    accepting.add(number);
                }
            }
            return made.put("open", isOpen);
        }

        private BitSet next(BitSet state, int symbol) {
            BitSet reached = new BitSet();
            for (int one = state.nextSetBit(0); one >= 0; one = state.nextSetBit(one + 1)) {
                for (Step step : steps.get(one)) {
                    if (step.symbols != null && step.symbols.get(symbol)) {
                        reached.set(step.end);
                    }
                }
            }
            return closed(reached);
        }

        /** Add the column of each symbol, and return a symbol of each column: equal symbols share a column. */
        private List<Integer> addClasses(ArrayNode classes) {
            Set<BitSet> sets = new LinkedHashSet<>();
            steps.forEach(ones -> ones.forEach(one -> sets.add(one.symbols)));
            sets.remove(null);
            Map<BitSet, Integer> kinds = new HashMap<>();
            List<Integer> columns = new ArrayList<>();
            for (int symbol = 0; symbol < SYMBOLS; symbol++) {
                BitSet kind = new BitSet();
                int place = 0;
                for (BitSet set : sets) {
                    kind.set(place++, set.get(symbol));
                }
                if (kinds.putIfAbsent(kind, columns.size()) == null) {
                    columns.add(symbol);
                }
                classes.add(kinds.get(kind));
            }
            return columns;
        }
    }

    /** A regular expression as the table of an automaton, which {@link ValidExpression} makes. */
    public static final class ValidPattern {
        private static final int OTHER = ValidSteps.OTHER;
        private static final int CONTINUATION_END = 0xC0;

        private final int[] classes;
        private final int[][] table;
        private final boolean[] isAccepting;
        private final boolean isOpen;

        public ValidPattern(JsonNode check) {
            classes = ints(check.path("classes"));
            table = new int[check.path("table").size()][];
            Arrays.setAll(table, state -> ints(check.path("table").get(state)));
            isAccepting = new boolean[table.length];
            check.path("accepting").forEach(state -> isAccepting[state.asInt()] = true);
            isOpen = check.path("open").asBoolean();
        }

        private static int[] ints(JsonNode numbers) {
            int[] made = new int[numbers.size()];
            Arrays.setAll(made, place -> numbers.get(place).asInt());
            return made;
        }

        /** Return whether the expression is found in a text. */
        public boolean matches(UTF8String text) {
            int state = 0;
            Object base = text.getBaseObject(); // Spark 3.5 has no public getByte
            long start = text.getBaseOffset();
            int size = text.numBytes();
            for (int i = 0; i < size; i++) {
                if (isOpen && isAccepting[state]) {
                    return true;
                }
                int one = Platform.getByte(base, start + i) & 0xFF;
                if (one < OTHER || one >= CONTINUATION_END) { // the first byte of a character
                    state = table[state][classes[Math.min(one, OTHER)]];
                    if (state < 0) {
                        return false;
                    }
                }
            }
            return isAccepting[state];
        }
    }
}
