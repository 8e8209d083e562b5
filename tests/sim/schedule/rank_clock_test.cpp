// The clock of list schedules gives ranks their turns in the order of a priority queue of all turns.

#include <doctest/doctest.h>

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/schedule/rank_clock.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::rank_clock_test {
namespace {

/// A RankClock that keeps every turn in one queue and skips the turns of busy ranks.
class QueueClock {
 public:
  explicit QueueClock(std::size_t ranks) : busy_until_(ranks, 0) {}
  void wake(int rank, double time) { turns_.push({std::max(time, busy_until_[rank]), rank}); }
  void occupy(int rank, double until) {
    busy_until_[rank] = until;
    turns_.push({until, rank});
  }
  template <class Decide>
  void run(Decide&& decide) {
    while (!turns_.empty()) {
      const auto [now, rank] = turns_.top();
      turns_.pop();
      if (now >= busy_until_[rank]) decide(rank, now);
    }
  }

 private:
  using Turn = std::pair<double, int>;
  std::vector<double> busy_until_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

struct Job {
  double arrival, length, delay;  ///< Negative arrival: it comes when another job sends it.
  int receiver, priority;
  bool is_done = false;
};

struct Start {
  int rank;
  std::size_t job;
  double time;
  friend bool operator==(const Start&, const Start&) = default;
};

/// Each free rank starts the job that is there with the least priority; where a better one is about to come, it waits.
/// A job sends the next one to another rank at its end. Lengths and delays of zero make many turns at one time.
template <class Clock>
std::vector<Start> starts_of(int seed) {
  constexpr double kSoon = 2;
  Rng random(static_cast<std::uint64_t>(seed), "rank clock");
  const int ranks = random.integer(1, 9);
  std::vector<std::vector<Job>> jobs(ranks);
  for (std::vector<Job>& row : jobs)
    for (int i = 0; i < 12; ++i)
      row.push_back({random.integer(0, 2) == 0 ? random.integer(0, 4) : -1.0, double(random.integer(0, 3)),
                     double(random.integer(0, 2)), random.integer(0, ranks - 1), random.integer(0, 49)});
  Clock clock(ranks);
  for (int r = 0; r < ranks; ++r) clock.wake(r, 0);
  std::vector<Start> starts;
  clock.run([&](int rank, double now) {
    Job *best = nullptr, *coming = nullptr;
    double next = 1e9;
    for (Job& job : jobs[rank]) {
      if (job.is_done || job.arrival < 0) continue;
      if (job.arrival > now) next = std::min(next, job.arrival);
      Job*& candidate = job.arrival <= now ? best : coming;
      if (!candidate || job.priority < candidate->priority) candidate = &job;
    }
    if (best && coming && coming->priority < best->priority && coming->arrival - now < kSoon)
      return clock.wake(rank, coming->arrival);
    if (!best) return next < 1e9 ? clock.wake(rank, next) : void();
    best->is_done = true;
    starts.push_back({rank, static_cast<std::size_t>(best - jobs[rank].data()), now});
    clock.occupy(rank, now + best->length);
    for (Job& job : jobs[best->receiver])
      if (job.arrival < 0) {
        job.arrival = now + best->length + best->delay;
        return clock.wake(best->receiver, job.arrival);
      }
  });
  return starts;
}

}  // namespace

TEST_CASE("a tournament of ranks has the turns of one queue") {
  std::size_t started = 0;
  for (int trial = 0; trial < test::trials(20000); ++trial) {
    CAPTURE(trial);
    const std::vector<Start> starts = starts_of<RankClock<double>>(trial);
    started += starts.size();
    REQUIRE(starts == starts_of<QueueClock>(trial));
  }
  CHECK(started > static_cast<std::size_t>(test::trials(20000)) * 5);
}

}  // namespace stagecraft::rank_clock_test
