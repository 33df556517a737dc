import purgatorio.kit.*;

public final class LazyWheelAdapter extends Factory {
  @Override public TimerUnderTest<?> timer(boolean virtual, long nowNs) {
    LazyWheel wheel = new LazyWheel();
    return new TimerUnderTest<LazyWheel.Task>() {
      public LazyWheel.Task add(Runnable task, long delayNs) { return wheel.add(task, delayNs); }
      public Boolean cancel(LazyWheel.Task handle) { return handle.take(); }
      public void close() { wheel.close(); }
    };
  }
  public static void main(String[] a) throws Exception {
    Kit.run(new Promises("lazy-wheel", "timer").version("1").tickNs(5_000_000).wheelSize(64).earlyNs(0).lateNs(1_000_000_000L).lanes(4)
        .can("timer", "real-time", "cancel"), new LazyWheelAdapter(), a);
  }
}
