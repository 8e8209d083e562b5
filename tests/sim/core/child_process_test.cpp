#include "sim/core/child_process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/patience.hpp"

namespace stagecraft::child_process_test {
namespace {

/// How a child ends that only runs `work`.
std::string end_of(const std::function<void()>& work) {
  ChildProcess child({}, [&](MessageSocket&) { work(); });
  CHECK(child.wait({}));
  return to_text(child.kill());
}

}  // namespace

TEST_CASE("messages of any length go over a socket, in order and whole") {
  auto [one, other] = MessageSocket::connected_pair();
  const std::string longer(100000, 'x');
  CHECK(!other.take());
  CHECK(one.send(""));
  CHECK(one.send("second"));
  CHECK(one.send(longer));
  CHECK(other.wait_for_next() == "");
  CHECK(other.wait_for_next() == "second");
  CHECK(other.wait_for_next() == longer);
  CHECK(other.receive());
  one.close();
  CHECK(!other.receive());
  CHECK(!other.wait_for_next());
  CHECK(!other.send("to a closed end"));
}

TEST_CASE("a child has memory of its own and answers by message") {
  int number = 1;
  ChildProcess child({}, [&](MessageSocket& parent) {
    while (const auto message = parent.wait_for_next()) parent.send(*message + std::to_string(++number));
  });
  child.socket().send("a");
  child.socket().send("b");
  CHECK(child.socket().wait_for_next() == "a2");
  CHECK(child.socket().wait_for_next() == "b3");
  CHECK(number == 1);
  child.socket().close();
  CHECK(child.wait(Seconds{test::kHung}));
  CHECK(to_text(child.kill()) == "exit 0");
}

TEST_CASE("how a child ended is reported, and an exception in it aborts") {
  CHECK(end_of([] {}) == "exit 0");
  CHECK(end_of([] { _exit(7); }) == "exit 7");
  CHECK(end_of([] { std::raise(SIGKILL); }) == "signal 9, Killed");
  CHECK(end_of([] { std::raise(SIGTERM); }) == "signal 15, Terminated");
  CHECK(end_of([] { throw std::runtime_error("not caught anywhere"); }) == "signal 6, Aborted");
}

TEST_CASE("wait gives up after its timeout, and the destructor leaves no process") {
  {
    ChildProcess child({}, [](MessageSocket&) { pause(); });
    CHECK(!child.wait(Seconds{0.05}));
    CHECK(to_text(child.kill()) == "signal 9, Killed");
    const ChildProcess other({.own_group = true}, [](MessageSocket&) { pause(); });
  }
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a child that is ending by itself keeps its reason when it gets patience") {
  ChildProcess child({}, [](MessageSocket& parent) {
    parent.close();
    usleep(100000);
    _exit(9);
  });
  while (child.socket().receive()) usleep(1000);
  CHECK(to_text(child.kill(Seconds{test::kHung})) == "exit 9");
}

TEST_CASE("errors are captured up to 64 KiB, and a child that writes more does not hang") {
  ChildProcess child({.capture_errors = true}, [](MessageSocket&) {
    const std::string line(999, 'x');
    for (int i = 0; i < 1000; ++i) std::fprintf(stderr, "%s\n", line.c_str());
  });
  CHECK(child.wait(Seconds{test::kHung}));
  CHECK(child.errors().starts_with(std::string(999, 'x') + "\n"));
  CHECK(child.errors().size() >= 1 << 16);
  CHECK(child.errors().size() < (1 << 16) + 4096);
}

TEST_CASE("a child without files has its socket and /dev/null only") {
  const int file = open("/dev/zero", O_RDONLY);
  ChildProcess child({.without_files = true, .capture_errors = true}, [&](MessageSocket& parent) {
    int open_files = 0;
    for (int i = 0; i < 100; ++i) open_files += fcntl(i, F_GETFD) >= 0;
    std::fputs("captured", stderr);
    std::puts("nowhere");
    parent.send(std::to_string(open_files) + (fcntl(file, F_GETFD) >= 0 && file > 3 ? " kept" : ""));
  });
  CHECK(child.wait(Seconds{test::kHung}));
  CHECK(child.socket().take() == "4");
  CHECK(child.errors() == "captured");
  close(file);
}

}  // namespace stagecraft::child_process_test
