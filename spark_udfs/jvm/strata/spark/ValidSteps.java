package strata.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The steps of an automaton that may be in several states at once, from which a table of one state each is made. */
final class ValidSteps {
    /** The symbol of all characters beyond ASCII; those before it are ASCII's. */
    static final int OTHER = 128;

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
    static final class Work {
        private int left = 2_000_000;

        void spend(int steps) {
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

    ValidSteps(Work work) {
        this.work = work;
        fresh();
    }

    static BitSet all() {
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
    int after(int state) {
        int made = fresh();
        step(state, null, made);
        return made;
    }

    /** @param symbols by which characters; null for none */
    void step(int start, BitSet symbols, int end) {
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
    ObjectNode table(int end, boolean isOpen) {
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
