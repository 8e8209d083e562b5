#include "backends/simgrid/sandbox.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "tests/support/patience.hpp"

namespace stagecraft::sandbox_test {
namespace {

std::string failure(const std::function<void()>& work, Seconds timeout = {}) {
  try {
    sg::run_in_child(work, timeout);
  } catch (const BackendError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("results come back through shared memory, and nothing else") {
  const sg::SharedMemory memory(2 * sizeof(double));
  int mine = 1;
  sg::run_in_child(
      [&] {
        mine = 2;
        memory.as<double>()[1] = 4.5;
      },
      Seconds{test::kHung});
  CHECK(memory.as<double>().size() == 2);
  CHECK(memory.as<double>()[0] == 0);
  CHECK(memory.as<double>()[1] == 4.5);
  CHECK(mine == 1);
}

TEST_CASE("a child that dies is a failed backend, in its own last words") {
  const std::string abortion = failure([] {
    std::fputs("[0.0] [root/INFO] hello\n[0.0] [surf/CRITICAL] no path from a to b\nbacktrace\n", stderr);
    std::abort();
  });
  CHECK(contains(abortion, "signal Aborted"));
  CHECK(contains(abortion, ": no path from a to b"));
  CHECK(!contains(abortion, "backtrace"));
  CHECK(contains(failure([] { _exit(7); }), "exit 7"));
  CHECK(contains(failure([] { std::raise(SIGKILL); }), "signal Killed"));
  CHECK(contains(failure([] { throw std::runtime_error("odd"); }), "odd"));
  CHECK(contains(failure([] { throw 7; }), "an exception"));
}

TEST_CASE("a child that talks a lot does not hang") {
  const std::string line(1000, 'x');
  CHECK(failure([&] {
          for (int i = 0; i < 1000; ++i) std::fputs(line.c_str(), stderr);
        }).empty());
}

TEST_CASE("a child that takes too long is stopped") {
  CHECK(contains(failure([] { pause(); }, Seconds{0.05}), "stopped after 50"));
}

TEST_CASE("errors of ours keep their kind") {
  CHECK_THROWS_WITH_AS(sg::run_in_child([] { throw InputError("bad value", "write 3"); }, {}),
                       doctest::Contains("bad value"), InputError);
  CHECK_THROWS_WITH_AS(sg::run_in_child([] { throw InternalError("a bug"); }, {}), "a bug", InternalError);
  try {
    sg::run_in_child([] { throw Infeasible("memory", "too big", "use less"); }, {});
    FAIL("nothing was thrown");
  } catch (const Infeasible& error) {
    CHECK(error.code() == "memory");
    CHECK(contains(error.what(), "too big"));
  }
}

}  // namespace stagecraft::sandbox_test
