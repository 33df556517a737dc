/* A toy timing wheel that speaks purgatorio-subject/1: a subject in C, standard library only.

     cc -o toy_wheel examples/subjects/toy_wheel.c
     purgatorio verify --engine process --command ./toy_wheel

   With --bug one character of `add` is another, and `verify` says what that breaks. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS 1000000
#define BUCKETS 8

typedef struct Task {
  struct Task *next;
  int64_t due_tick;
  char id[104];
} Task;

static Task *buckets[BUCKETS];
static int64_t tick, now_ns, during;
static int size, bug, gated, holds;

static void serve(void);

/* The wheel. A task of a later revolution waits in its bucket until it is due. */

static void report(const char *m, const char *id) {
  printf("{\"m\":%s,\"f\":\"timer_fire\",\"id\":\"%s\",\"during\":%" PRId64 "}\n", m, id, during);
}

static void fire(Task *task) {
  char held[32];
  snprintf(held, sizeof held, "\"held\",\"hold\":%d", ++holds);
  report("\"enter\"", task->id);
  if (gated) {
    report(held, task->id); /* The driver now makes calls from inside the callback, until its `go`. */
    serve();
  }
  report("\"leave\"", task->id);
  free(task);
}

static void add(const char *id, int64_t delay_ns) {
  Task *task = calloc(1, sizeof *task);
  strcpy(task->id, id);
  task->due_tick = (now_ns + delay_ns + TICK_NS - 1) / TICK_NS; /* rounded up: never early */
  if (bug ? task->due_tick <= tick + 1 : task->due_tick < tick + 1) {
    fire(task);
    return;
  }
  Task **bucket = &buckets[task->due_tick % BUCKETS];
  task->next = *bucket;
  *bucket = task;
  size++;
}

static int cancel(const char *id) {
  for (int at = 0; at < BUCKETS; at++)
    for (Task **link = &buckets[at], *task; (task = *link); link = &task->next)
      if (!strcmp(task->id, id)) {
        *link = task->next;
        free(task);
        size--;
        return 1;
      }
  return 0;
}

static void advance(int64_t to_ns) {
  int64_t last = tick;
  now_ns = to_ns;
  tick = now_ns / TICK_NS;
  /* Over a whole revolution and more every bucket is visited once. */
  for (int64_t at = last + BUCKETS < tick ? tick - BUCKETS + 1 : last + 1; at <= tick; at++)
    for (Task **link = &buckets[at % BUCKETS], *task; (task = *link);)
      if (task->due_tick <= tick) {
        *link = task->next;
        size--;
        fire(task);
        link = &buckets[at % BUCKETS]; /* the callback may have changed the bucket */
      } else
        link = &task->next;
}

static void start(int64_t at_ns) {
  for (int at = 0; at < BUCKETS; at++)
    for (Task *task; (task = buckets[at]); free(task))
      buckets[at] = task->next;
  now_ns = at_ns;
  tick = now_ns / TICK_NS;
  size = 0;
}

/* The protocol: one line a message. The driver writes its lines without spaces, and ids without escapes. */

static const char *value(const char *line, const char *name) {
  char field[32];
  snprintf(field, sizeof field, "\"%s\":", name);
  const char *found = strstr(line, field);
  return found ? found + strlen(field) : "0";
}

static int64_t number(const char *line, const char *name) { return strtoll(value(line, name), NULL, 10); }

static int is(const char *line, const char *call) { return !strncmp(value(line, "m") + 1, call, strlen(call)); }

static void answer(const char *line) {
  char id[104] = "";
  int64_t outer = during, n = during = number(line, "n");
  sscanf(value(line, "id"), "\"%103[^\"]", id);
  if (is(line, "start\"")) {
    start(number(line, "now_ns"));
    gated = value(line, "gates")[1] == '"';
  } else if (is(line, "add\""))
    add(id, number(line, "delay_ns"));
  else if (is(line, "advance\""))
    advance(number(line, "now_ns"));
  printf("{\"m\":\"answer\",\"n\":%" PRId64, n);
  if (is(line, "cancel\""))
    printf(",\"out\":%d", cancel(id));
  if (is(line, "gauge\"") || is(line, "quiesce\""))
    printf(",\"delayed\":%d", size);
  puts("}");
  during = outer;
}

/* late_ns: the driver's times lie between ticks, and an add rounds up. With unit_ns = TICK_NS it would be 0. */
static void serve(void) {
  char line[(1 << 16) + 2];
  do {
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
      exit(0);
    if (is(line, "describe\""))
      printf("{\"m\":\"description\",\"n\":%" PRId64 ",\"protocol\":\"purgatorio-subject/1.1\",\"name\":\"toy-wheel\","
             "\"version\":\"1\",\"language\":\"C\",\"reports\":[\"timer_fire\"],\"tick_ns\":%d,\"wheel_size\":%d,"
             "\"capabilities\":[\"timer\",\"virtual-time\",\"cancel\",\"gauge\"],\"profile\":\"timer-cancel-barrier\","
             "\"gates\":[\"timer_fire\"],\"early_ns\":0,\"late_ns\":%d}\n",
             number(line, "n"), TICK_NS, BUCKETS, TICK_NS);
    else
      answer(line);
  } while (!is(line, "go\""));
}

int main(int count, char **words) {
  bug = count > 1 && !strcmp(words[1], "--bug");
  for (;;)
    serve();
}
