package purgatorio;

import java.util.concurrent.ThreadFactory;

/** Daemon threads of one name: the lane of a trace is named for what runs on it. */
final class NamedThreads implements ThreadFactory {
    private final String name;

    NamedThreads(String name) {
        this.name = name;
    }

    public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }
}
