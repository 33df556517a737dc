/* A timer service with its own thread, a mutex and a condition variable, in real and in virtual time: a subject in
   C++17, standard library only.

     c++ -std=c++17 -O1 -pthread -o thread_timer examples/subjects/thread_timer.cpp
     purgatorio verify --engine process --command ./thread_timer

   Part 1 is the timer. Part 2 speaks the protocol, and knows no timer: copy it. Part 3 joins both: write your own.
   With `--bug earlier-add`, `earlier-reset` or `late-cancel`, the timer has a bug, and `verify` says what it breaks. */

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

using Lock = std::unique_lock<std::mutex>;
using Text = std::string;

/* ---- Part 1: the timer. It asks a Clock for the time and for sleep, so that a test can bring its own clock. ---- */
constexpr int64_t NEVER = INT64_MAX;

class Clock {
  std::condition_variable wake;

 public:
  using Steady = std::chrono::steady_clock;
  virtual ~Clock() = default;
  virtual int64_t now() { return std::chrono::nanoseconds(Steady::now().time_since_epoch()).count(); }
  virtual void notify() { wake.notify_one(); }
  virtual void wait_until(Lock &lock, int64_t time) { /* or until `notify`; the lock is free meanwhile */
    if (time == NEVER) wake.wait(lock);
    else wake.wait_until(lock, Steady::time_point(std::chrono::nanoseconds(time)));
  }
};

class Timer {
  struct Task { int64_t deadline, period; std::function<void()> callback; };
  Clock &clock;
  const Text bug;
  std::mutex mutex, joins;
  std::map<Text, Task> tasks;
  std::set<std::pair<int64_t, Text>> queue; /* the deadlines of the tasks */
  bool stopped = false;
  std::thread worker;

  void queue_at(int64_t deadline, const Text &id) {
    Task &task = tasks.at(id);
    queue.erase({task.deadline, id});
    queue.emplace(task.deadline = deadline, id);
  }
  bool drop(const Text &id) {
    auto found = tasks.find(id);
    if (found != tasks.end()) queue.erase({found->second.deadline, id});
    return tasks.erase(id);
  }
  void work() {
    for (Lock lock(mutex); !stopped;) {
      int64_t due = queue.empty() ? NEVER : queue.begin()->first;
      if (clock.now() < due) { clock.wait_until(lock, due); continue; } /* An earlier task may have come. */
      const Text id = queue.begin()->second;
      const Task task = tasks.at(id);
      if (task.period) queue_at(due + task.period, id);
      else if (bug == "late-cancel") queue.erase(queue.begin()); /* `cancel` still finds the task in `tasks`. */
      else drop(id);
      lock.unlock();
      task.callback();
      lock.lock();
      if (bug == "late-cancel" && !task.period) drop(id);
    }
  }

 public:
  Timer(Clock &clock, const Text &bug) : clock(clock), bug(bug), worker([this] { work(); }) {}
  ~Timer() { stop(); }
  /* Run the callback after the delay, and then in each period (0: only once). No run is left out. */
  void schedule(const Text &id, int64_t delay, int64_t period, std::function<void()> callback) {
    Lock lock(mutex);
    drop(id);
    tasks[id] = {0, period, std::move(callback)};
    queue_at(clock.now() + delay, id);
    bool wakes = bug == "earlier-add" ? queue.size() == 1 : queue.begin()->second == id;
    if (wakes) clock.notify(); /* The worker sleeps until a later deadline. */
  }
  /* True: the callback will not start any more. */
  bool cancel(const Text &id) { Lock lock(mutex); return drop(id); }
  /* True: the callback runs after this delay, and not at its former time. */
  bool reschedule(const Text &id, int64_t delay) {
    Lock lock(mutex);
    if (!tasks.count(id)) return false;
    queue_at(clock.now() + delay, id);
    if (bug != "earlier-reset" && queue.begin()->second == id) clock.notify();
    return true;
  }
  size_t size() { Lock lock(mutex); return tasks.size(); }
  void stop() { /* afterwards no callback runs; callbacks must not call it */
    { Lock lock(mutex); stopped = true; clock.notify(); }
    Lock lock(joins);
    if (worker.joinable()) worker.join();
  }
};

/* ---- Part 2: the protocol. The driver writes its lines without spaces, and ids without escapes. ---- */
const char *value(const Text &line, const Text &name) {
  size_t at = line.find("\"" + name + "\":");
  return at == Text::npos ? "" : line.c_str() + at + name.size() + 3;
}
int64_t number(const Text &line, const Text &name) { return strtoll(value(line, name), nullptr, 10); }
Text text(const Text &line, const Text &name) {
  const char *at = value(line, name);
  return *at == '"' ? Text(at + 1, strchr(at + 1, '"')) : "";
}
void print(const Text &line) { fputs((line + "\n").c_str(), stdout), fflush(stdout); }
Text answer(const Text &call, const Text &fields = "", const Text &m = "answer") {
  return "{\"m\":\"" + m + "\",\"n\":" + std::to_string(number(call, "n")) + fields + "}";
}

using Job = std::function<void()>;
class Mailbox { /* what a thread is to do */
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<Job> jobs;

 public:
  void put(Job job) { Lock lock(mutex); jobs.push_back(std::move(job)); filled.notify_one(); }
  Job take() {
    Lock lock(mutex);
    filled.wait(lock, [this] { return !jobs.empty(); });
    Job job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }
};

class TestClock : public Clock { /* In virtual time, only `notify` and the time end a sleep. */
  std::mutex mutex;
  std::condition_variable changed;
  int64_t time, until = 0, paused = 0;
  bool asleep = false, ended = false;
  void awake() { asleep = false, changed.notify_all(); }

 public:
  const bool is_virtual;
  explicit TestClock(const Text &start) : time(number(start, "now_ns")), is_virtual(text(start, "time") == "virtual") {}
  int64_t now() override { Lock lock(mutex); return is_virtual ? time : Clock::now(); }
  void notify() override { Lock lock(mutex); awake(); Clock::notify(); }
  void wait_until(Lock &timers, int64_t to) override {
    Lock lock(mutex);
    if (is_virtual && to <= time) return;
    asleep = true, until = to, changed.notify_all();
    if (is_virtual) { timers.unlock(); changed.wait(lock, [this] { return !asleep; }); lock.unlock(); timers.lock(); }
    else { lock.unlock(); Clock::wait_until(timers, to); lock.lock(); asleep = false; }
  }
  /* To wake every sleep would hide a lost `notify`. */
  void advance(int64_t to) { Lock lock(mutex); time = to; if (asleep && until <= time) awake(); }
  void settle(bool or_paused) { /* When the timer's thread sleeps again, all that was due has run. */
    Lock lock(mutex);
    changed.wait(lock, [&] { return asleep || ended || (or_paused && paused > 0); });
  }
  void pause(int more) { Lock lock(mutex); paused += more, changed.notify_all(); }
  void end() { Lock lock(mutex); ended = true, changed.notify_all(); }
};

class Run { /* from one `start` to the next */
  std::mutex mutex;
  const bool gated;
  bool over = false;
  std::map<int64_t, std::shared_ptr<Mailbox>> holds; /* the paused threads */
  void say(const Text &line) { Lock lock(mutex); if (!over) print(line); }

 public:
  TestClock clock;
  explicit Run(const Text &start) : gated(!strncmp(value(start, "gates"), "[\"", 2)), clock(start) {}
  virtual ~Run() = default;
  virtual Text make(const Text &call) = 0; /* gives the fields of the answer */
  virtual void stop() = 0;                 /* afterwards the timer runs nothing */

  void fire(const Text &id) { /* the callback of a task, on the timer's thread */
    static int64_t last = 0;
    const Text about = ",\"f\":\"timer_fire\",\"id\":\"" + id + "\",\"th\":\"worker\"}";
    say("{\"m\":\"enter\"" + about);
    if (Lock lock(mutex); gated && !over) {
      auto box = holds[++last] = std::make_shared<Mailbox>();
      print("{\"m\":\"held\",\"hold\":" + std::to_string(last) + about);
      lock.unlock();
      clock.pause(1);
      while (Job job = box->take()) job();
    }
    say("{\"m\":\"leave\"" + about);
  }
  void perform(const Text &call, bool inside) {
    const Text m = text(call, "m");
    if (m == "advance") clock.advance(number(call, "now_ns"));
    if (!inside && (m == "advance" || m == "quiesce")) clock.settle(false);
    if (m == "stop") end(!number(call, "drain"));
    const Text fields = make(call);
    if (!inside && clock.is_virtual && m != "advance") clock.settle(true); /* First tell what the call causes. */
    m == "stop" ? print(answer(call)) : say(answer(call, fields));
  }
  void tell(int64_t hold, Job job) { /* To a paused thread: make a call, or (without a job) go on. */
    Lock lock(mutex);
    holds.at(hold)->put(job);
    if (!job) holds.erase(hold), clock.pause(-1);
  }
  void end(bool now) { /* Its threads end. `now`: paused threads go on, and nothing more is told. */
    { Lock lock(mutex); over |= now; if (now) for (auto &hold : holds) hold.second->put(nullptr); }
    stop(), clock.end();
  }
};

void serve(const Text &description, int lanes, const std::function<std::shared_ptr<Run>(const Text &start)> &begin) {
  std::deque<Mailbox> boxes(lanes); /* This thread only reads. Each caller has a thread of its own. */
  std::deque<std::thread> callers;
  for (Mailbox &box : boxes) callers.emplace_back([&box] { while (Job job = box.take()) job(); });
  std::shared_ptr<Run> run;
  for (Text line; std::getline(std::cin, line);) {
    const Text m = text(line, "m");
    if (m == "describe") print(answer(line, description, "description"));
    else if (m == "start") {
      if (run) run->end(true);
      run = begin(line), print(answer(line));
    } else if (m == "go") {
      for (char *at = const_cast<char *>(value(line, "holds")); *at == '[' || *at == ',';)
        run->tell(strtoll(at + 1, &at, 10), nullptr);
      print(answer(line));
    } else if (*value(line, "hold")) run->tell(number(line, "hold"), [&r = *run, line] { r.perform(line, true); });
    else boxes[number(line, "lane")].put([run, line] { run->perform(line, false); });
  }
  for (int lane = 0; lane < lanes; lane++) boxes[lane].put(nullptr), callers[lane].join();
  std::_Exit(0);
}

/* ---- Part 3: this timer in the protocol. If yours gives each task a handle, keep the handles by `id`. ---- */
struct TimerRun : Run {
  Timer timer;
  TimerRun(const Text &start, const Text &bug) : Run(start), timer(clock, bug) {}
  void stop() override { timer.stop(); }
  Text make(const Text &call) override {
    const Text m = text(call, "m"), id = text(call, "id");
    const int64_t delay = number(call, "delay_ns"), period = number(call, "period_ns");
    if (m == "cancel") return timer.cancel(id) ? ",\"out\":1" : ",\"out\":0";
    if (m == "reset") return timer.reschedule(id, delay) ? ",\"out\":1" : ",\"out\":0";
    if (m == "gauge" || m == "quiesce") return ",\"delayed\":" + std::to_string(timer.size());
    if (m == "add" || m == "repeat") timer.schedule(id, delay, period, [this, id] { fire(id); });
    return "";
  }
};

int main(int count, char **words) {
  serve(R"(,"protocol":"purgatorio-subject/1.2","name":"thread-timer","version":"1","language":"C++","lanes":3,)"
        R"("profile":"timer-cancel-barrier","tick_ns":1,"early_ns":0,"late_ns":0,"late_real_ns":5000000,)"
        R"("gates":["timer_fire"],"reports":["timer_fire"],"catch_up":"burst","capabilities":["timer","real-time",)"
        R"("virtual-time","cancel","reset","fixed-rate","lasting","gauge","halts"])", 3,
        [=](const Text &start) { return std::make_shared<TimerRun>(start, count == 3 ? words[2] : ""); });
}
