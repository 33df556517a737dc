// Requests that wait for data of their keys: a predicate, a callback, and no lock. Its own code needs only `await` and
// `arrived`. The adapter overrides the five methods that are marked as steps.

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

class Requests implements AutoCloseable {
  static class Request {
    private final BooleanSupplier predicate;
    private final Consumer<Boolean> callback;
    private final long delayNs;
    private final AtomicBoolean answered = new AtomicBoolean();
    private volatile List<String> keys = List.of();
    private volatile ScheduledFuture<?> timeOut;

    Request(BooleanSupplier predicate, Consumer<Boolean> callback, long delayNs) {
      this.predicate = predicate;
      this.callback = callback;
      this.delayNs = delayNs;
    }
  }

  final Map<String, List<Request>> waiting = new ConcurrentHashMap<>();
  final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1);

  Requests() {
    timer.setRemoveOnCancelPolicy(true);
  }

  /** Answers the request at once, or when `arrived` finds it ready, or at its time-out. Whether it is answered here. */
  boolean await(Request request, List<String> keys) {
    request.keys = keys;
    if (test(request)) {
      return true;
    }
    keys.forEach(key -> waiting.compute(key, (same, list) -> with(list, request)));
    // Data may have arrived before the request was in the lists.
    boolean here = test(request);
    if (!here) {
      arm(request);
    }
    if (request.answered.get()) {
      disarm(request);
      remove(request);
    }
    return here;
  }

  /** Data of the key has arrived. The number of requests that this answers. */
  int arrived(String key) {
    int answered = 0;
    for (Request request : waiting.getOrDefault(key, List.of())) {
      answered += test(request) ? 1 : 0;
    }
    return answered;
  }

  /** Step: test the predicate, and answer. */
  boolean test(Request request) {
    return !request.answered.get() && request.predicate.getAsBoolean() && answer(request, true);
  }

  /** Step: claim the request, and call back. Whether this call answered. */
  boolean answer(Request request, boolean ready) {
    if (!request.answered.compareAndSet(false, true)) {
      return false;
    }
    disarm(request);
    remove(request);
    request.callback.accept(ready);
    return true;
  }

  /** Step: the time-out begins. */
  void arm(Request request) {
    request.timeOut = timer.schedule(() -> expire(request), request.delayNs, TimeUnit.NANOSECONDS);
  }

  /** Step: the time-out is not needed any more. */
  void disarm(Request request) {
    ScheduledFuture<?> timeOut = request.timeOut;
    if (timeOut != null) {
      timeOut.cancel(false);
    }
  }

  /** Step: the time-out has passed. Whether this answered. */
  boolean expire(Request request) {
    return answer(request, false);
  }

  private void remove(Request request) {
    for (String key : request.keys) {
      waiting.computeIfPresent(key, (same, list) -> {
        list.remove(request);
        return list.isEmpty() ? null : list;
      });
    }
  }

  private static List<Request> with(List<Request> list, Request request) {
    List<Request> more = list == null ? new CopyOnWriteArrayList<>() : list;
    more.add(request);
    return more;
  }

  @Override
  public void close() {
    timer.shutdownNow();
  }
}
