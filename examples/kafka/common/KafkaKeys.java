// The keys that have a list, which no release tells: read from the fields of its purgatory.

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;

final class KafkaKeys {
  private KafkaKeys() {}

  /** How many they are; null for a release that keeps them elsewhere. */
  static Long count(Object purgatory) throws Exception {
    Object shards = field(purgatory, "watcherLists");
    if (shards == null) {
      return null;
    }
    long count = 0;
    Object[] each = shards instanceof List ? ((List<?>) shards).toArray() : (Object[]) shards;
    for (Object shard : each) {
      Object lists = field(shard, "watchersByKey");
      Method size = lists.getClass().getMethod("size");
      size.setAccessible(true);
      count += (Integer) size.invoke(lists);
    }
    return count;
  }

  /** Scala may put the class before the name. */
  private static Object field(Object of, String name) throws Exception {
    for (Field field : of.getClass().getDeclaredFields()) {
      if (field.getName().endsWith(name)) {
        field.setAccessible(true);
        return field.get(of);
      }
    }
    return null;
  }
}
