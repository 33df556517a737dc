import kafka.server.DelayedOperation;

/** What Kafka 0.10 and 0.11 call an operation. */
abstract class Base extends DelayedOperation {
  Base(long delayMs) {
    super(delayMs);
  }
}
