// Jobs in worker processes: each job has exactly one end.

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
#include "sim/sweep/distribute_jobs.hpp"
#include "sim/sweep/worker_pool.hpp"
#include "tests/support/patience.hpp"

namespace stagecraft::worker_pool_test {
using How = JobEnd::How;

namespace {

std::vector<int> jobs_up_to(int count) {
  std::vector<int> jobs(static_cast<std::size_t>(count));
  std::iota(jobs.begin(), jobs.end(), 0);
  return jobs;
}

[[noreturn]] void hang() {
  for (;;) pause();
}

/// The ends of all jobs; each job must have one.
std::map<int, JobEnd> ends_of(int count, const WorkerOptions& options, const std::function<std::string(int)>& work) {
  std::map<int, JobEnd> ends;
  CHECK(do_in_workers(jobs_up_to(count), options, work,
                      [&](const JobEnd& end) { CHECK(ends.emplace(end.job, end).second); }));
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

std::map<int, JobEnd> ends_of(RemoteWorkerPool& pool, std::size_t count) {
  std::map<int, JobEnd> ends;
  while (ends.size() < count)
    for (const std::string& bytes : pool.wait(100)) {
      JobEnd end = job_end_from_bytes(bytes);
      ends[end.job] = std::move(end);
    }
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
  int heard = 0;
  const bool whole = do_in_workers(
      jobs_up_to(100), {.workers = 2, .stop = [&] { return heard >= 3; }},
      [](int job) -> std::string {
        if (job > 4) hang();
        return "fine";
      },
      [&](const JobEnd&) { ++heard; });
  CHECK(!whole);
  CHECK(heard >= 3);
  CHECK(heard <= 5);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // No child is left, not even a dead one.
}

TEST_CASE("workers die with their parent, even when it is killed") {
  std::atomic<int>* const ids = shared_numbers(3);
  const int parent = fork();
  if (parent == 0) {
    do_in_workers(
        jobs_up_to(3), {.workers = 3},
        [&](int job) -> std::string {
          ids[job] = getpid();
          hang();
        },
        [](const JobEnd&) {});
    _exit(0);
  }
  REQUIRE(test::comes_true([&] { return ids[0] > 0 && ids[1] > 0 && ids[2] > 0; }));
  for (int i = 0; i < 3; ++i) CHECK(!gone(ids[i]));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (int i = 0; i < 3; ++i) CHECK(test::comes_true([&] { return gone(ids[i]); }));
}

TEST_CASE("the end of a job survives serialization, whatever its text contains") {
  const JobEnd end{7, How::TimedOut, std::string("\0\xff text", 7), 0.1 + 0.2};
  const JobEnd again = job_end_from_bytes(to_bytes(end));
  CHECK(again.job == 7);
  CHECK(again.how == How::TimedOut);
  CHECK(again.text == end.text);
  CHECK(again.seconds == 0.1 + 0.2);
}

TEST_CASE("a remote pool runs jobs in workers of another process, and survives their ends") {
  RemoteWorkerPool pool({.workers = 2}, [](int job) -> std::string {
    if (job == 3) std::raise(SIGKILL);
    return job == 5 ? std::string(1 << 20, 'x') : parent_of_worker(job);
  });
  for (int job = 0; job < 8; ++job) pool.add(job);
  const auto ends = ends_of(pool, 8);
  CHECK(ends.at(3).how == How::Crashed);
  CHECK(ends.at(3).text == "signal 9, Killed");
  CHECK(ends.at(5).text.size() == 1 << 20);
  CHECK(ends.at(0).text == ends.at(7).text);
  CHECK(ends.at(0).text != std::to_string(getpid()));
  RemoteWorkerPool limited({.timeout = Seconds{0.1}}, [](int) -> std::string { hang(); });
  limited.add(0);
  CHECK(ends_of(limited, 1).at(0).how == How::TimedOut);
}

TEST_CASE("many jobs and a large result at the same time block neither side") {
  constexpr int kMany = 2000;  // More than a socket holds.
  std::atomic<int>* const computed = shared_numbers(1);
  RemoteWorkerPool pool({}, [&](int job) {
    *computed = 1;
    return job == 0 ? std::string(8 << 20, 'x') : std::string("small");
  });
  pool.add(0);
  REQUIRE(test::comes_true([&] { return *computed == 1; }));
  poll(nullptr, 0, 100);                      // Usually its end fills the socket by then; the jobs fit in any case.
  alarm(static_cast<unsigned>(test::kHung));  // Ends this process where both sides wait.
  for (int job = 1; job < kMany; ++job) pool.add(job);
  const auto ends = ends_of(pool, kMany);
  alarm(0);
  CHECK(ends.at(0).text.size() == 8 << 20);
  CHECK(ends.at(kMany - 1).text == "small");
}

TEST_CASE("a lost process costs only the jobs that its workers were running") {
  LostWorkerCounter losses;
  CHECK(losses.too_many({1, 2, 3, 4}, 2).empty());
  CHECK(losses.too_many({3, 4, 5}, 2).empty());  // 3 and 4 only waited before.
  CHECK(losses.too_many({2, 6, 1}, 2) == std::vector<int>{2});
  CHECK(losses.too_many({5, 3}, 8) == std::vector<int>{3});
  CHECK(losses.too_many({}, 1).empty());
}

TEST_CASE("a remote pool whose process has died throws, and a silent one does not") {
  RemoteWorkerPool pool({}, parent_of_worker);
  CHECK(pool.wait(1).empty());
  pool.add(0);
  kill(std::stoi(ends_of(pool, 1).at(0).text), SIGKILL);
  CHECK_THROWS_AS(for (;;) pool.wait(100), BackendError);
}

}  // namespace stagecraft::worker_pool_test
