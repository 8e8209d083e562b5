// The current activity of a program, shown to a user who waits.

#include "sim/core/activity.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <doctest/doctest.h>

#include "tests/support/patience.hpp"

using stagecraft::Activity;
using stagecraft::ActivityState;
using stagecraft::current_activities;
using stagecraft::current_activity;
using stagecraft::progress_text;

TEST_CASE("the current activity is the innermost step, with its count so far") {
  CHECK(current_activity().empty());
  const Activity planning("planning with 'brute'");
  CHECK(current_activity() == "planning with 'brute'");
  {
    Activity inner("looking at divisions");
    inner.count(3, "divisions");
    CHECK(current_activity() == "looking at divisions: 3 divisions so far");
  }
  CHECK(current_activity() == "planning with 'brute'");
}

TEST_CASE("a process that is forked while another thread asks can begin steps") {
  const Activity outer("outer");
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) (void)current_activity();
  });
  bool succeeded = true;
  for (int i = 0; i < 200 && succeeded; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(static_cast<unsigned>(stagecraft::test::kHung));  // A locked mutex would hang here.
      const Activity inner("inner");
      _exit(current_activity() == "inner" ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  stop = true;
  reader.join();
  CHECK(succeeded);
}

TEST_CASE("progress has what is counted, its rate, and the time that is left at this rate") {
  ActivityState sweep{
      .what = "running points", .unit = "points", .done = 820, .total = 2000, .before = 500, .seconds = 4};
  CHECK(progress_text(sweep) ==
        "running points: 820 of 2000 points, 80/s, 15 s left");  // 320 points in 4 s; 1180 to go.
  sweep = {.what = "a", .unit = "points", .done = 5000, .total = 9000, .seconds = 3};
  CHECK(progress_text(sweep) == "a: 5000 of 9000 points, 1667/s, 3 s left");
  sweep = {.what = "a", .unit = "points", .done = 5, .total = 10, .before = 4, .note = "1 failed", .seconds = 100};
  CHECK(progress_text(sweep) == "a: 5 of 10 points, 0.01/s, 8 min 20 s left; 1 failed");
  CHECK(progress_text({.what = "a", .unit = "plans", .seconds = 4}) == "a: 0 plans");
  CHECK(progress_text({.what = "a", .unit = "plans", .done = 8, .seconds = 4}) == "a: 8 plans, 2/s");
  CHECK(progress_text(ActivityState{.what = "a", .seconds = 4}) == "a");
}

TEST_CASE("progress is that of the outermost step that counts, with the newest step") {
  CHECK(progress_text(current_activities()).empty());
  const Activity command("planning");
  CHECK(progress_text(current_activities()) == "planning");
  Activity counted("comparing planners");
  counted.count(0, "planners", 3);
  Activity inner("looking at divisions");
  inner.count(7, "divisions");
  CHECK(progress_text(current_activities()) == "comparing planners: 0 of 3 planners; looking at divisions");
}
