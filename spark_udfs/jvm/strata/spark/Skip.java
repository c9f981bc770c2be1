package strata.spark;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/** The skipping of a value that no column needs: it finds the end of the bytes without interpreting them. */
abstract class Skip {
    abstract void pass(Cursor in);

    /** Return how generated code skips the value. */
    Shortcut shortcut() {
        return Shortcut.NONE;
    }

    /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
    int nullByte() {
        return -1;
    }

    /** A factory of skips: one for each record however often it is met, because a record may contain itself. */
    static final class Maker {
        private final Map<Schema, RecordSkip> records = new IdentityHashMap<>();
        private final Map<Schema, Integer> weights = new IdentityHashMap<>();
        private final Budget budget;

        Maker(Budget budget) {
            this.budget = budget;
        }

        Skip of(Schema schema) {
            budget.spend();
            return switch (schema.getType()) {
                case NULL -> new FixedSkip(0);
                case BOOLEAN -> new FixedSkip(1);
                case FLOAT -> new FixedSkip(4);
                case DOUBLE -> new FixedSkip(8);
                case FIXED -> new FixedSkip(schema.getFixedSize());
                case INT -> new IntSkip();
                case LONG -> new LongSkip();
                case BYTES, STRING -> new LengthSkip();
                case ENUM -> new EnumSkip(schema.getEnumSymbols().size());
                case ARRAY -> new ItemsSkip(of(schema.getElementType()), weight(schema.getElementType()));
                case MAP -> new EntriesSkip(of(schema.getValueType()));
                case UNION -> new UnionSkip(schema.getTypes().stream().map(this::of).toArray(Skip[]::new));
                case RECORD -> record(schema);
            };
        }

        private Skip record(Schema schema) {
            RecordSkip known = records.get(schema);
            if (known != null) {
                known.recursive |= known.open;
                return known;
            }
            RecordSkip made = new RecordSkip();
            records.put(schema, made);
            List<String> names = new ArrayList<>();
            List<Skip> fields = new ArrayList<>();
            for (Schema.Field field : schema.getFields()) {
                names.add(field.name());
                fields.add(of(field.schema()));
            }
            made.names = names.toArray(String[]::new);
            made.fields = fields.toArray(Skip[]::new);
            made.open = false;
            return made;
        }

        /** Return how many values a type without bytes holds; 0 for a type with bytes, such as a recursive record. */
        int weight(Schema schema) {
            if (schema.getType() == Schema.Type.NULL
                || (schema.getType() == Schema.Type.FIXED && schema.getFixedSize() == 0)) {
                return 1;
            }
            if (schema.getType() != Schema.Type.RECORD) {
                return 0;
            }
            Integer known = weights.putIfAbsent(schema, 0);
            if (known != null) {
                return known;
            }
            int sum = 1;
            for (Schema.Field field : schema.getFields()) {
                int one = weight(field.schema());
                if (one == 0) {
                    return 0;
                }
                sum = Math.min(sum + one, Limits.WEIGHTLESS_TYPE + 1);
            }
            if (sum > Limits.WEIGHTLESS_TYPE) {
                throw new UnusableSchema(
                    "the type " + schema.getFullName() + " takes no bytes and holds too many values");
            }
            weights.put(schema, sum);
            return sum;
        }
    }

    private static final class FixedSkip extends Skip {
        private final int size;

        FixedSkip(int size) {
            this.size = size;
        }

        @Override
        void pass(Cursor in) {
            in.take(size);
        }

        @Override
        Shortcut shortcut() {
            return Shortcut.fixed(size);
        }
    }

    private static final class IntSkip extends Skip {
        @Override
        void pass(Cursor in) {
            in.readInt();
        }

        @Override
        Shortcut shortcut() {
            return Shortcut.number(true, true, 1);
        }
    }

    private static final class LongSkip extends Skip {
        @Override
        void pass(Cursor in) {
            in.readLong();
        }

        @Override
        Shortcut shortcut() {
            return Shortcut.number(false, false, 1);
        }
    }

    private static final class LengthSkip extends Skip {
        @Override
        void pass(Cursor in) {
            in.take(in.readLength());
        }

        @Override
        Shortcut shortcut() {
            return Shortcut.skippedBytes();
        }
    }

    private static final class EnumSkip extends Skip {
        private final int count;

        EnumSkip(int count) {
            this.count = count;
        }

        @Override
        void pass(Cursor in) {
            in.readIndex(count);
        }
    }

    private static final class ItemsSkip extends Skip {
        private final Skip item;
        private final int weightless;

        ItemsSkip(Skip item, int weightless) {
            this.item = item;
            this.weightless = weightless;
        }

        @Override
        void pass(Cursor in) {
            try {
                for (int count = in.readCount(weightless); count > 0; count = in.readCount(weightless)) {
                    for (int i = 0; i < count; i++) {
                        item.pass(in);
                    }
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("[]") : damage;
            }
        }
    }

    private static final class EntriesSkip extends Skip {
        private final Skip value;

        EntriesSkip(Skip value) {
            this.value = value;
        }

        @Override
        void pass(Cursor in) {
            try {
                for (int count = in.readCount(0); count > 0; count = in.readCount(0)) {
                    for (int i = 0; i < count; i++) {
                        in.take(in.readLength());
                        value.pass(in);
                    }
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("{}") : damage;
            }
        }
    }

    private static final class UnionSkip extends Skip {
        private final Skip[] branches;

        UnionSkip(Skip[] branches) {
            this.branches = branches;
        }

        @Override
        void pass(Cursor in) {
            branches[in.readIndex(branches.length)].pass(in);
        }

        @Override
        int nullByte() {
            boolean isOptional = branches.length == 2 && isNothing(0) != isNothing(1);
            return !isOptional ? -1 : isNothing(0) ? 0 : 2;
        }

        /** Return the shortcut of the branch that is not null. */
        @Override
        Shortcut shortcut() {
            return nullByte() < 0 ? Shortcut.NONE : branches[isNothing(0) ? 1 : 0].shortcut();
        }

        private boolean isNothing(int index) {
            return branches[index] instanceof FixedSkip one && one.size == 0;
        }
    }

    private static final class RecordSkip extends Skip {
        private String[] names = {};
        private Skip[] fields = {};
        private boolean recursive;
        private boolean open = true;

        @Override
        void pass(Cursor in) {
            if (recursive) {
                in.enterRecord();
            }
            int field = 0;
            try {
                for (; field < fields.length; field++) {
                    fields[field].pass(in);
                }
            } catch (Damage damage) {
                throw in.tracing ? damage.within("." + names[field]) : damage;
            }
            if (recursive) {
                in.leaveRecord();
            }
        }
    }
}
