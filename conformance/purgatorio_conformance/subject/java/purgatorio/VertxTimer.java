package purgatorio;

import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import java.util.Map;
import purgatorio.kit.TimerUnderTest;

/** Vert.x's setTimer and cancelTimer, on `pool` event loops. Its delays are milliseconds: the plan holds no other. */
final class VertxTimer extends TimerUnderTest {
    private final Vertx vertx;

    VertxTimer(Map options) throws Exception {
        VertxOptions wanted = new VertxOptions().setEventLoopPoolSize((int) Timers.number(options, "pool"));
        // By reflection, since janino compiles no call of a static method of an interface.
        vertx = (Vertx) Vertx.class.getMethod("vertx", new Class[] {VertxOptions.class})
                .invoke(null, new Object[] {wanted});
    }

    private static final class Task implements Handler {
        private final Runnable task;

        Task(Runnable task) {
            this.task = task;
        }

        public void handle(Object id) {
            task.run();
        }
    }

    public Object add(Runnable task, long delayNs) {
        return Long.valueOf(vertx.setTimer(delayNs / 1000000L, new Task(task)));
    }

    public Boolean cancel(Object handle) {
        return Boolean.valueOf(vertx.cancelTimer(((Long) handle).longValue()));
    }

    public void close() {
        vertx.close();
    }
}
