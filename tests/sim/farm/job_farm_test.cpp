// Jobs in threads and in worker processes: each job has exactly one end.

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <stdexcept>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/farm/workers.hpp"
#include "tests/support/patience.hpp"

namespace stagecraft::job_farm_test {
using How = JobEnd::How;

namespace {

std::vector<int> jobs_up_to(int count) {
  std::vector<int> jobs(static_cast<std::size_t>(count));
  std::iota(jobs.begin(), jobs.end(), 0);
  return jobs;
}

const std::function<bool()> kNeverStop = [] { return false; };

[[noreturn]] void hang() {
  for (;;) pause();
}

/// The ends of all jobs; each job must have one.
std::map<int, JobEnd> ends_of(int count, FarmOptions options, const JobFunction& work) {
  std::map<int, JobEnd> ends;
  options.forks = true;
  JobFarm(options, work).run(jobs_up_to(count), kNeverStop, [&](const JobEnd& end) {
    CHECK(ends.emplace(end.job, end).second);
  });
  CHECK(static_cast<int>(ends.size()) == count);
  return ends;
}

/// Shared memory of forked processes.
std::atomic<int>* shared_numbers(std::size_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<std::atomic<int>*>(memory);
}

/// A process that is not reaped yet counts as dead.
bool gone(int id) {
  std::FILE* const stat = std::fopen(("/proc/" + std::to_string(id) + "/stat").c_str(), "r");
  if (!stat) return true;
  char state = '?';
  const bool read = std::fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
  std::fclose(stat);
  return read && state == 'Z';
}

std::map<int, JobEnd> ends_of(Workers& workers, std::size_t count) {
  std::map<int, JobEnd> ends;
  while (ends.size() < count)
    for (const JobEnd& end : workers.wait(100)) ends[end.job] = end;
  return ends;
}

std::string parent_of_worker(int) { return std::to_string(getppid()); }

}  // namespace

TEST_CASE("each job is done once, whatever the number of workers, and long answers arrive whole") {
  for (const int workers : {1, 3, 40}) {
    const auto ends = ends_of(25, {.workers = workers}, [](int job) {
      return std::string(static_cast<std::size_t>(job) * 40000, static_cast<char>('a' + job));
    });
    for (const auto& [job, end] : ends) {
      CHECK(end.how == How::Done);
      CHECK(end.text == std::string(static_cast<std::size_t>(job) * 40000, static_cast<char>('a' + job)));
    }
  }
  CHECK(ends_of(0, {}, [](int) { return ""; }).empty());
}

TEST_CASE("a worker does many jobs, all outside the main process") {
  std::map<std::string, int> processes;
  for (const auto& [job, end] : ends_of(20, {.workers = 2}, [](int) { return std::to_string(getpid()); }))
    ++processes[end.text];
  CHECK(processes.size() <= 2);
  CHECK(!processes.contains(std::to_string(getpid())));
}

TEST_CASE("a job that ends its process costs that job only") {
  const auto ends = ends_of(12, {.workers = 2}, [](int job) -> std::string {
    if (job == 3) raise(SIGSEGV);
    if (job == 5) std::abort();
    if (job == 7) _exit(9);
    if (job == 8) throw std::runtime_error("not caught anywhere");
    return "fine";
  });
  for (const auto& [job, end] : ends) {
    const bool bad = job == 3 || job == 5 || job == 7 || job == 8;
    CHECK(end.how == (bad ? How::Crashed : How::Done));
    if (!bad) CHECK(end.text == "fine");
  }
  CHECK(ends.at(3).text == "signal 11, Segmentation fault");
  CHECK(ends.at(5).text == "signal 6, Aborted");
  CHECK(ends.at(7).text == "exit 9");
  CHECK(ends.at(8).text == "signal 6, Aborted");
}

TEST_CASE("a job that hangs is stopped after its time, with all processes that it started") {
  std::atomic<int>* const children = shared_numbers(3);
  const auto stops_all = [&](double timeout) {
    // One worker after another: the next job is done although the last one had to be stopped.
    const auto ends = ends_of(3, {.workers = 1, .timeout = Seconds{timeout}}, [&](int job) -> std::string {
      const int id = fork();
      if (id != 0) children[job] = id;
      hang();
    });
    for (const auto& [job, end] : ends) {
      CHECK(end.how == How::TimedOut);
      CHECK(end.seconds >= timeout);
    }
    return children[0] > 0 && children[1] > 0 && children[2] > 0;  // Each job had time to start a process.
  };
  REQUIRE(test::holds_after_some_timeout(stops_all));
  for (int job = 0; job < 3; ++job) CHECK(test::comes_true([&] { return gone(children[job]); }));
}

TEST_CASE("a stop ends all workers at once") {
  int heard = 0, undone = 0;
  {
    JobFarm farm({.workers = 2, .forks = true}, [](int job) -> std::string {
      if (job > 4) hang();
      return "fine";
    });
    farm.run(
        jobs_up_to(100), [&] { return heard >= 3; },
        [&](const JobEnd& end) { ++(end.how == How::Done ? heard : undone); });
  }
  CHECK(heard >= 3);
  CHECK(heard <= 5);
  CHECK(heard + undone == 100);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // No child is left, not even a dead one.
}

TEST_CASE("workers die with their parent, even when it is killed") {
  std::atomic<int>* const ids = shared_numbers(3);
  const int parent = fork();
  if (parent == 0) {
    ends_of(3, {.workers = 3}, [&](int job) -> std::string {
      ids[job] = getpid();
      hang();
    });
    _exit(0);
  }
  REQUIRE(test::comes_true([&] { return ids[0] > 0 && ids[1] > 0 && ids[2] > 0; }));
  for (int i = 0; i < 3; ++i) CHECK(!gone(ids[i]));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (int i = 0; i < 3; ++i) CHECK(test::comes_true([&] { return gone(ids[i]); }));
}

TEST_CASE("the end of a job survives serialization, whatever its text contains") {
  const JobEnd end{
      .job = 7, .how = How::TimedOut, .text = std::string("\0\xff text", 7), .seconds = 0.1 + 0.2, .rank = 3};
  const std::vector<JobEnd> again = job_ends_from_bytes(to_bytes({end, {.job = 8, .text = {}}}));
  REQUIRE(again.size() == 2);
  CHECK(again[0].job == 7);
  CHECK(again[0].how == How::TimedOut);
  CHECK(again[0].text == end.text);
  CHECK(again[0].seconds == 0.1 + 0.2);
  CHECK(again[0].rank == 3);
  CHECK(again[1].job == 8);
}

TEST_CASE("remote workers do jobs as workers of another process, and it survives their ends") {
  const auto remote = remote_workers({.workers = 2}, [](int job) -> std::string {
    if (job == 3) std::raise(SIGKILL);
    return job == 5 ? std::string(1 << 20, 'x') : parent_of_worker(job);
  });
  for (int job = 0; job < 8; ++job) remote->add(job, {});
  const auto ends = ends_of(*remote, 8);
  CHECK(ends.at(3).how == How::Crashed);
  CHECK(ends.at(3).text == "signal 9, Killed");
  CHECK(ends.at(5).text.size() == 1 << 20);
  CHECK(ends.at(0).text == ends.at(7).text);
  CHECK(ends.at(0).text != std::to_string(getpid()));
  const auto limited = remote_workers({.timeout = Seconds{0.1}}, [](int) -> std::string { hang(); });
  limited->add(0, {});
  CHECK(ends_of(*limited, 1).at(0).how == How::TimedOut);
}

TEST_CASE("many jobs and a large result at the same time block neither side") {
  constexpr int kMany = 2000;  // More than a socket holds.
  std::atomic<int>* const computed = shared_numbers(1);
  const auto remote = remote_workers({}, [&](int job) {
    *computed = 1;
    return job == 0 ? std::string(8 << 20, 'x') : std::string("small");
  });
  remote->add(0, {});
  REQUIRE(test::comes_true([&] { return *computed == 1; }));
  poll(nullptr, 0, 100);                      // Usually its end fills the socket by then; the jobs fit in any case.
  alarm(static_cast<unsigned>(test::kHung));  // Ends this process where both sides wait.
  for (int job = 1; job < kMany; ++job) remote->add(job, {});
  const auto ends = ends_of(*remote, kMany);
  alarm(0);
  CHECK(ends.at(0).text.size() == 8 << 20);
  CHECK(ends.at(kMany - 1).text == "small");
}

TEST_CASE("a lost process costs only the jobs that its workers were running") {
  std::map<int, int> losses;
  CHECK(lost_too_often(losses, {1, 2, 3, 4}, 2).empty());
  CHECK(lost_too_often(losses, {3, 4, 5}, 2).empty());  // 3 and 4 only waited before.
  CHECK(lost_too_often(losses, {2, 6, 1}, 2) == std::vector<int>{2});
  CHECK(lost_too_often(losses, {5, 3}, 8) == std::vector<int>{3});
  CHECK(lost_too_often(losses, {}, 1).empty());
}

TEST_CASE("remote workers whose process has died throw, and silent ones do not") {
  const auto remote = remote_workers({}, parent_of_worker);
  CHECK(remote->wait(1).empty());
  remote->add(0, {});
  kill(std::stoi(ends_of(*remote, 1).at(0).text), SIGKILL);
  CHECK_THROWS_AS(for (;;) remote->wait(100), BackendError);
}

TEST_CASE("threads do each job once, run after run, whatever their number") {
  for (const int workers : {1, 2, 5}) {
    JobFarm farm({.workers = workers}, [](int job) { return std::to_string(job * job); });
    for (const int count : {0, 1, 40}) {
      std::map<int, std::string> texts;
      farm.run(jobs_up_to(count), kNeverStop, [&](const JobEnd& end) { texts[end.job] = end.text; });
      REQUIRE(std::ssize(texts) == count);
      for (const auto& [job, text] : texts) CHECK(text == std::to_string(job * job));
    }
  }
}

TEST_CASE("the error of the smallest job is thrown, after all others were done") {
  std::atomic<int> done = 0;
  JobFarm farm({.workers = 3}, [&](int job) {
    ++done;
    if (job % 10 == 4) throw InputError(std::to_string(job));
    return std::string();
  });
  CHECK_THROWS_WITH_AS(farm.run(jobs_up_to(30), kNeverStop, [](const JobEnd&) {}), "error: 4", InputError);
  CHECK(done == 30);
}

TEST_CASE("a reason to stop leaves jobs undone, those too that run, and is their text") {
  for (const int workers : {1, 3}) {
    std::atomic<bool> over = false;
    JobFarm farm({.workers = workers, .stop = [&] { return std::string(over ? "over" : ""); }}, [&](int job) {
      if (job == 5) over = true;
      if (job >= 5)
        for (;;) stop_point();
      return std::string("fine");
    });
    int fine = 0, undone = 0;
    farm.run(jobs_up_to(20), kNeverStop, [&](const JobEnd& end) {
      CHECK(end.text == (end.how == How::Done ? "fine" : "over"));
      ++(end.how == How::Done ? fine : undone);
    });
    CHECK(fine <= 5);
    CHECK(fine + undone == 20);
  }
}

}  // namespace stagecraft::job_farm_test
