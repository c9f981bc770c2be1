package strata.spark.avro;

import java.lang.invoke.MethodHandles;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.codehaus.commons.compiler.CompileException;
import org.codehaus.commons.compiler.InternalCompilerException;
import org.codehaus.janino.SimpleCompiler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import strata.spark.avro.FieldSource.FieldShape;
import strata.spark.avro.RecordNode.Step;
import strata.spark.bytes.Cursor;
import strata.spark.row.RowBuffer;

/** Code generated for the fields of one record: {@link FieldSource} writes it, {@link FieldReaders} caches it. */
public abstract class FieldReader {
    /** The least end of a payload, so that its last bytes can be read as a word. */
    public static final int LEAST = Long.BYTES;

    /**
     * Read all fields, except defaults, into a row that has just begun.
     *
     * @param in of a payload that ends after at least {@link #LEAST} bytes of its array; it must not be tracing
     * @throws Damage if the bytes are not such a record
     */
    public abstract void read(Cursor in, RowBuffer out, int row);

    /** Drop a value that no column needs. */
    static void ignore(long word) {
        // Nothing.
    }

    /**
     * Cache of generated field readers, shared by all tasks of a process. Records of the same shape share a class, whatever
     * their schemas. Janino, which Spark uses for its own generated code, compiles a class in some ten milliseconds.
     */
    public static final class FieldReaders {
        /** After this many records, a program gets a generated class. */
        public static volatile int worthwhile = 1000;

        private static final Logger LOG = LoggerFactory.getLogger("strata.spark.FieldReaders");
        private static final int MAX_CLASSES = 256;
        private static final int MAX_FIELDS = 500;
        private static final Map<Fields, Optional<Class<?>>> CLASSES = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Fields, Optional<Class<?>>> eldest) {
                return size() > MAX_CLASSES;
            }
        };

        /** The key of the cache: fields in the writer's order, and the number of fields of the row. */
        private record Fields(List<FieldShape> shapes, int size) {}

        private FieldReaders() {}

        /**
         * Return a reader of fields, or null if the nodes must read them: if several fields are read from the same bytes,
         * or there are very many.
         */
        public static FieldReader of(Step[] steps, int size) {
            boolean isShared = Arrays.stream(steps).anyMatch(Step::isShared);
            if (isShared || steps.length > MAX_FIELDS || !RowBuffer.LITTLE) {
                return null;
            }
            Optional<Class<?>> made =
                    classOf(new Fields(Arrays.stream(steps).map(FieldShape::of).toList(), size));
            try {
                return made.isEmpty()
                        ? null
                        : (FieldReader)
                                made.get().getDeclaredConstructor(Step[].class).newInstance((Object) steps);
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        }

        /** Return whether any generated source did not compile. */
        public static boolean haveFailed() {
            synchronized (CLASSES) {
                return CLASSES.containsValue(Optional.empty());
            }
        }

        private static Optional<Class<?>> classOf(Fields fields) {
            synchronized (CLASSES) {
                return CLASSES.computeIfAbsent(fields, one -> compile(FieldSource.write(one.shapes(), one.size())));
            }
        }

        private static Optional<Class<?>> compile(String source) {
            try {
                SimpleCompiler compiler = new SimpleCompiler();
                compiler.setParentClassLoader(FieldReaders.class.getClassLoader());
                compiler.cook(source);
                byte[] bytes = compiler.getBytecodes().get(FieldSource.CLASS);
                // A hidden class is in this package, whose members it calls, and is unloaded when nothing refers to it.
                return Optional.of(
                        MethodHandles.lookup().defineHiddenClass(bytes, true).lookupClass());
            } catch (CompileException | InternalCompilerException | IllegalAccessException | LinkageError failed) {
                LOG.warn("decoding without generated code, which is slower: {}", failed.toString());
                return Optional.empty();
            }
        }
    }
}
