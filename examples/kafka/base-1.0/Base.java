import kafka.server.DelayedOperation;
import scala.Option;

/** What Kafka 1.0 to 3.9 call an operation: one with a lock of its own. */
abstract class Base extends DelayedOperation {
  Base(long delayMs) {
    super(delayMs, Option.empty());
  }
}
