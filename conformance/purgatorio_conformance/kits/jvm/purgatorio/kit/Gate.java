package purgatorio.kit;

/** A place inside a callback, where the driver may pause the thread, delay it, or make the callback fail. */
interface Gate {
    /** The calling thread is inside {@code f} of this operation or task. May throw a {@link Failure}. */
    void pass(String f, String id);

    /** The error that the driver requested from a callback. */
    final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Failure(String f) {
            super(f + " fails, as the driver requested");
        }
    }
}
