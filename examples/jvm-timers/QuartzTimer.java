import java.util.Date;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.JobKey;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;
import purgatorio.kit.TimerUnderTest;

/**
 * org.quartz-scheduler:quartz, jobs in memory. Its clock is the wall clock in milliseconds, and it waits while more
 * than 2 ms are left: nothing promises how exact it is, so no bound is declared. "True if the Job was found and deleted" (Scheduler.deleteJob).
 */
public final class QuartzTimer extends TimerUnderTest<JobKey> {
  private static final Map<JobKey, Runnable> TASKS = new ConcurrentHashMap<>();
  private final Scheduler scheduler;

  private QuartzTimer() {
    Properties settings = new Properties();
    settings.put("org.quartz.scheduler.instanceName", UUID.randomUUID().toString());
    settings.put("org.quartz.threadPool.threadCount", "4");
    settings.put("org.quartz.scheduler.skipUpdateCheck", "true");
    try {
      scheduler = new StdSchedulerFactory(settings).getScheduler();
      scheduler.start();
    } catch (SchedulerException broken) {
      throw new IllegalStateException(broken);
    }
  }

  /** Quartz makes it. */
  public static final class Runs implements Job {
    @Override
    public void execute(JobExecutionContext context) {
      Runnable task = TASKS.remove(context.getJobDetail().getKey());
      if (task != null) {
        task.run();
      }
    }
  }

  @Override
  public JobKey add(Runnable task, long delayNs) throws SchedulerException {
    JobDetail job = JobBuilder.newJob(Runs.class).withIdentity(UUID.randomUUID().toString()).build();
    TASKS.put(job.getKey(), task);
    Date when = new Date(System.currentTimeMillis() + delayNs / OneTimer.NS_IN_MS);
    scheduler.scheduleJob(job, TriggerBuilder.newTrigger().startAt(when).build());
    return job.getKey();
  }

  @Override
  public Boolean cancel(JobKey key) throws SchedulerException {
    return scheduler.deleteJob(key);
  }

  @Override
  public void close() throws SchedulerException {
    scheduler.shutdown();
  }

  public static void main(String[] arguments) throws Exception {
    OneTimer.run(
        OneTimer.promises("quartz", "timer", Scheduler.class).unitNs(OneTimer.NS_IN_MS),
        QuartzTimer::new,
        arguments);
  }
}
