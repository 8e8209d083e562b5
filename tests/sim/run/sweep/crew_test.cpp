// Workers in the care of another process, and the line between processes.

#include "sim/run/sweep/crew.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/run/sweep/hand_out.hpp"

using namespace stagecraft;
using How = JobEnd::How;

namespace {

std::map<int, JobEnd> ends_of(Crew& crew, std::size_t count) {
  std::map<int, JobEnd> ends;
  while (ends.size() < count)
    for (const std::string& bytes : crew.wait(100)) {
      JobEnd end = job_end_from_bytes(bytes);
      ends[end.job] = std::move(end);
    }
  return ends;
}

std::string parent_of_worker(int) { return std::to_string(getppid()); }

}  // namespace

TEST_CASE("texts of any length go over a line, in order and whole") {
  const auto [a, b] = open_line();
  Line one(a), other(b);
  const std::string longer(100000, 'x');
  CHECK(!other.take());
  CHECK(one.send(""));
  CHECK(one.send("second"));
  CHECK(one.send(longer));
  CHECK(other.next() == "");
  CHECK(other.next() == "second");
  CHECK(other.next() == longer);
  CHECK(other.listen());
  close(a);
  CHECK(!other.listen());
  CHECK(!other.next());
  CHECK(!other.send("to nobody"));
  close(b);
}

TEST_CASE("the end of a job is the same behind its bytes, whatever its text has") {
  const JobEnd end{7, How::TimedOut, std::string("\0\xff text", 7), 0.1 + 0.2};
  const JobEnd again = job_end_from_bytes(to_bytes(end));
  CHECK(again.job == 7);
  CHECK(again.how == How::TimedOut);
  CHECK(again.text == end.text);
  CHECK(again.seconds == 0.1 + 0.2);
}

TEST_CASE("a crew does its jobs in workers that are not ours, and outlives their ends") {
  Crew crew({.workers = 2, .timeout = Seconds{0.3}}, [](int job) -> std::string {
    if (job == 3) std::raise(SIGKILL);
    if (job == 4) pause();
    return job == 5 ? std::string(1 << 20, 'x') : parent_of_worker(job);
  });
  for (int job = 0; job < 8; ++job) crew.give(job);
  const auto ends = ends_of(crew, 8);
  CHECK(ends.at(3).how == How::Crashed);
  CHECK(ends.at(3).text == "signal 9, Killed");
  CHECK(ends.at(4).how == How::TimedOut);
  CHECK(ends.at(5).text.size() == 1 << 20);
  CHECK(ends.at(0).text == ends.at(7).text);
  CHECK(ends.at(0).text != std::to_string(getpid()));
}

TEST_CASE("many jobs and a large result at the same time hold neither side up") {
  constexpr int kMany = 2000;  // More than a socket holds.
  Crew crew({}, [](int job) { return job == 0 ? std::string(8 << 20, 'x') : std::string("small"); });
  crew.give(0);
  poll(nullptr, 0, 500);  // Its end is on the way, and nobody reads it.
  alarm(15);              // Ends this process where both sides wait.
  for (int job = 1; job < kMany; ++job) crew.give(job);
  const auto ends = ends_of(crew, kMany);
  alarm(0);
  CHECK(ends.at(0).text.size() == 8 << 20);
  CHECK(ends.at(kMany - 1).text == "small");
}

TEST_CASE("of a lost process only the jobs count that its workers were at") {
  Losses losses;
  CHECK(losses.too_many({1, 2, 3, 4}, 2).empty());
  CHECK(losses.too_many({3, 4, 5}, 2).empty());  // 3 and 4 only waited before.
  CHECK(losses.too_many({2, 6, 1}, 2) == std::vector<int>{2});
  CHECK(losses.too_many({5, 3}, 8) == std::vector<int>{3});
  CHECK(losses.too_many({}, 1).empty());
}

TEST_CASE("a crew that dies is told from one that has nothing to say") {
  Crew crew({}, parent_of_worker);
  CHECK(crew.wait(1).empty());
  crew.give(0);
  kill(std::stoi(ends_of(crew, 1).at(0).text), SIGKILL);
  CHECK_THROWS_AS(for (int i = 0; i < 100; ++i) crew.wait(100), BackendError);
}
