package tools;

/** One run of a scenario, for Fray's command line. */
public final class FrayRun {
  public static void main(String[] arguments) throws Throwable {
    try {
      Scenarios.class.getMethod(arguments[0]).invoke(null);
    } catch (java.lang.reflect.InvocationTargetException failed) {
      throw failed.getCause();
    }
  }
}
