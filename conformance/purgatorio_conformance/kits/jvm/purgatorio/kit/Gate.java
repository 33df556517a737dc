package purgatorio.kit;

/** A place inside a callback that the one who drives may hold, slow down or make fail. */
interface Gate {
    /** The calling thread is inside {@code f} of this operation or task. May throw a {@link Failure}. */
    void pass(String f, String id);

    /** The error that a callback was told to end with. */
    final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Failure(String f) {
            super(f + " was told to fail");
        }
    }
}
