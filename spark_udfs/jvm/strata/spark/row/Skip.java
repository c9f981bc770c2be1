package strata.spark.row;

import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.avro.Schema;
import strata.spark.bytes.Cursor;
import strata.spark.bytes.Cursor.Damage;
import strata.spark.bytes.Limits;
import strata.spark.bytes.Limits.Budget;
import strata.spark.bytes.Limits.UnusableSchema;
import strata.spark.row.Node.SimpleForm;

/** The skipping of a value that no column needs: it finds the end of the bytes without interpreting them. */
public abstract class Skip {
    private static final Skip NOTHING = fixed(0);

    private final SimpleForm simpleForm;

    private Skip(SimpleForm simpleForm) {
        this.simpleForm = simpleForm;
    }

    public abstract void pass(Cursor in);

    /** Return how generated code skips the value. */
    public final SimpleForm simpleForm() {
        return simpleForm;
    }

    /** Return the index byte that means null (0 or 2) in a union of null and one other type, else -1. */
    public int nullByte() {
        return -1;
    }

    /** A factory of skips: one for each record however often it is met, because a record may contain itself. */
    public static final class Maker {
        private final Map<Schema, RecordSkip> records = new IdentityHashMap<>();
        private final Map<Schema, Integer> weights = new IdentityHashMap<>();
        private final Budget budget;

        public Maker(Budget budget) {
            this.budget = budget;
        }

        public Skip of(Schema schema) {
            budget.spend();
            return switch (schema.getType()) {
                case NULL -> NOTHING;
                case BOOLEAN -> fixed(1);
                case FLOAT -> fixed(4);
                case DOUBLE -> fixed(8);
                case FIXED -> schema.getFixedSize() == 0 ? NOTHING : fixed(schema.getFixedSize());
                case INT -> integer(true);
                case LONG -> integer(false);
                case BYTES, STRING -> prefixed();
                case ENUM -> index(schema.getEnumSymbols().size());
                case ARRAY -> items(of(schema.getElementType()), weight(schema.getElementType()), false);
                case MAP -> items(of(schema.getValueType()), 0, true);
                case UNION -> union(schema.getTypes().stream().map(this::of).toArray(Skip[]::new));
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
            made.names = schema.getFields().stream().map(Schema.Field::name).toArray(String[]::new);
            made.fields =
                    schema.getFields().stream().map(field -> of(field.schema())).toArray(Skip[]::new);
            made.open = false;
            return made;
        }

        /** Return how many values a type without bytes holds; 0 for a type with bytes, such as a recursive record. */
        public int weight(Schema schema) {
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

    private static Skip fixed(int size) {
        return new Skip(SimpleForm.fixed(size)) {
            @Override
            public void pass(Cursor in) {
                in.take(size);
            }
        };
    }

    private static Skip integer(boolean narrow) {
        return new Skip(SimpleForm.number(narrow, narrow, 1)) {
            @Override
            public void pass(Cursor in) {
                if (narrow) {
                    in.readInt();
                } else {
                    in.readLong();
                }
            }
        };
    }

    /** Return the skip of bytes or text. */
    private static Skip prefixed() {
        return new Skip(SimpleForm.SKIPPED_BYTES) {
            @Override
            public void pass(Cursor in) {
                in.take(in.readLength());
            }
        };
    }

    private static Skip index(int count) {
        return new Skip(SimpleForm.NONE) {
            @Override
            public void pass(Cursor in) {
                in.readIndex(count);
            }
        };
    }

    /** Return the skip of an array, or of a map, whose items have keys. */
    private static Skip items(Skip item, int weightless, boolean hasKeys) {
        return new Skip(SimpleForm.NONE) {
            @Override
            public void pass(Cursor in) {
                try {
                    for (int count = in.readCount(weightless); count > 0; count = in.readCount(weightless)) {
                        for (int i = 0; i < count; i++) {
                            if (hasKeys) {
                                in.take(in.readLength());
                            }
                            item.pass(in);
                        }
                    }
                } catch (Damage damage) {
                    throw in.tracing ? damage.within(hasKeys ? "{}" : "[]") : damage;
                }
            }
        };
    }

    private static Skip union(Skip[] branches) {
        boolean isOptional = branches.length == 2 && branches[0] == NOTHING != (branches[1] == NOTHING);
        int other = branches.length == 2 && branches[0] == NOTHING ? 1 : 0;
        return new Skip(isOptional ? branches[other].simpleForm : SimpleForm.NONE) {
            @Override
            public void pass(Cursor in) {
                branches[in.readIndex(branches.length)].pass(in);
            }

            @Override
            public int nullByte() {
                return !isOptional ? -1 : other == 1 ? 0 : 2;
            }
        };
    }

    private static final class RecordSkip extends Skip {
        private String[] names = {};
        private Skip[] fields = {};
        private boolean recursive;
        private boolean open = true;

        RecordSkip() {
            super(SimpleForm.NONE);
        }

        @Override
        public void pass(Cursor in) {
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
