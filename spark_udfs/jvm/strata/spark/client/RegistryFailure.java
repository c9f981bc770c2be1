package strata.spark.client;

/** The registry did not answer, or not as a registry: no record is at fault, and the task may run again. */
public final class RegistryFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public RegistryFailure(String message) {
        super(message);
    }
}
