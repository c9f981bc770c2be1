package strata.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.runtime.AbstractPartialFunction;
import scala.util.Properties;

/**
 * Calls of Scala methods whose signatures differ between Scala 2.12 (Spark 3.5) and 2.13, so that one jar runs on both.
 *
 * <p>Only plans are handled here, never rows.
 */
@SuppressWarnings({"deprecation", "unchecked", "rawtypes"})
final class Scala {
    private Scala() {}

    /** Return whether classes of Spark can be extended whose methods take sequences: the jar is compiled for Scala 2.13. */
    static boolean isExtensible() {
        return !Properties.versionNumberString().startsWith("2.12");
    }

    /** Return the sequence that a method without parameters returns. */
    public static <T> List<T> list(Object target, String method) {
        try {
            return JavaConverters.seqAsJavaList(
                    (Seq<T>) target.getClass().getMethod(method).invoke(target));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Return the items of a sequence. */
    public static <T> List<T> items(Object sequence) {
        return JavaConverters.seqAsJavaList((Seq<T>) sequence);
    }

    /** Return a list of Scala's, which is a sequence in both versions. */
    public static <T> scala.collection.immutable.List<T> list(Collection<T> items) {
        scala.collection.Iterable<T> copied = JavaConverters.asScalaBuffer(List.copyOf(items));
        return copied.toList();
    }

    /** Call a method with one parameter. */
    static <T> T call(Object target, String method, Object value) {
        for (Method one : target.getClass().getMethods()) {
            if (one.getName().equals(method)) {
                try {
                    return (T) one.invoke(target, value);
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new IllegalStateException("no method " + method);
    }

    /** Call a method of a Scala object. */
    public static <T> T of(String object, String method, Object... values) {
        try {
            Object target = Class.forName(object + "$").getField("MODULE$").get(null);
            for (Method one : target.getClass().getMethods()) {
                if (one.getName().equals(method)) {
                    return (T) one.invoke(target, values);
                }
            }
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        throw new IllegalStateException("no method " + method);
    }

    /** Throw what Java would have to declare. */
    static <E extends Throwable> E thrown(Throwable error) throws E {
        throw (E) error;
    }

    /** Call the first constructor of a class. */
    public static <T> T make(Class<T> kind, Object... arguments) {
        try {
            return ((Constructor<T>) kind.getConstructors()[0]).newInstance(arguments);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** A function that replaces some values, and leaves the others as they are. */
    interface Change<T> {
        /** Return the replacement, or null. */
        T of(T value);
    }

    static <T> scala.PartialFunction<T, T> partial(Change<T> change) {
        return new AbstractPartialFunction<T, T>() {
            @Override
            public boolean isDefinedAt(T value) {
                return change.of(value) != null;
            }

            @Override
            public Object applyOrElse(Object value, scala.Function1 other) {
                T changed = change.of((T) value);
                return changed == null ? other.apply(value) : changed;
            }
        };
    }
}
