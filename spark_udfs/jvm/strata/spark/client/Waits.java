package strata.spark.client;

import java.io.Serializable;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * What a query waits for the registry: accumulators, which Spark shows with its stages; and what a process logs of it.
 *
 * @param milliseconds how long look-ups took
 * @param retries how many requests were sent again
 */
public record Waits(LongAccumulator milliseconds, LongAccumulator retries) implements Serializable {
    private static final Logger LOG = LoggerFactory.getLogger("strata.spark.Waits");
    private static final long LOG_EVERY_NANOS = 10_000_000_000L;
    private static final AtomicLong NEXT = new AtomicLong(System.nanoTime());
    private static final Map<TaskContext, Count> TASKS = Collections.synchronizedMap(new WeakHashMap<>());

    /** What one task has waited so far. Spark may run parts of a task in a second thread. */
    public record Count(AtomicLong milliseconds, AtomicLong retries) {
        public Count() {
            this(new AtomicLong(), new AtomicLong());
        }
    }

    /** Return new accumulators, on the driver. They live as long as the plan that holds them. */
    public static Waits ofQuery(SparkContext spark) {
        return new Waits(
                accumulator(spark, "strata: ms waited for the registry"),
                accumulator(spark, "strata: requests sent again"));
    }

    /** Return an accumulator that counts tasks that fail too: they have waited longest. */
    private static LongAccumulator accumulator(SparkContext spark, String name) {
        LongAccumulator made = new LongAccumulator();
        made.register(spark, Option.apply(name), true);
        return made;
    }

    /** Return what the task of this thread has waited; null outside a task, and in one that decodes nothing. */
    public static Count ofTask() {
        TaskContext task = TaskContext.get();
        return task == null ? null : TASKS.get(task);
    }

    /** Begin to count for the task of this thread. */
    public static void begin() {
        TaskContext task = TaskContext.get();
        if (task != null) {
            TASKS.putIfAbsent(task, new Count());
        }
    }

    /** Return the result of a look-up, and count how long it took. */
    public <T> T counted(Supplier<T> lookup) {
        Count count = ofTask();
        if (count == null) { // the driver, which decodes a few rows while it plans
            return lookup.get();
        }
        long began = System.nanoTime();
        long before = count.retries.get();
        try {
            return lookup.get();
        } finally {
            long waited = (System.nanoTime() - began) / 1_000_000L;
            count.milliseconds.addAndGet(waited);
            milliseconds.add(waited);
            retries.add(count.retries.get() - before);
        }
    }

    /** Note that a request failed and is sent again; log it, unless that was done a moment ago. */
    public static void again(String path, String failure, long began) {
        Count count = ofTask();
        if (count != null) {
            count.retries.incrementAndGet();
        }
        long now = System.nanoTime();
        long next = NEXT.get();
        if (now - next >= 0 && NEXT.compareAndSet(next, now + LOG_EVERY_NANOS)) {
            LOG.warn(
                    "waiting for the registry for {} s now (GET {}): {}",
                    (now - began) / 1_000_000_000L,
                    path,
                    failure);
        }
    }
}
