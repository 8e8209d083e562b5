// The current activity of a program, shown to a user who waits.

#include "sim/core/activity.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <doctest/doctest.h>

using stagecraft::Activity;
using stagecraft::current_activity;

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
      alarm(10);  // A locked mutex would hang here.
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
