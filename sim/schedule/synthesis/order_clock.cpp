// Times orders for the search of `synthesised`: the first iteration and the period without contention, and the critical
// path.

#include "sim/schedule/synthesis/order_clock.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/numbers.hpp"

namespace stagecraft::synthesis {
namespace {

constexpr int kMostIterations = 8;
constexpr double kSame = 1e-9;

}  // namespace

OrderClock::OrderClock(const SchedulingProblem& problem)
    : problem_(problem),
      ready_(problem.inputs.size()),
      free_(problem.ranks()),
      card_(problem.ranks()),
      index_(problem.ranks()),
      blocked_(problem.ranks()),
      finished_(problem.rank_of.size()),
      last_gradient_(problem.rank_of.size()) {
  updates_ = !problem.exchanges.updates.empty();
  for (const StageTimes& t : problem.times) updates_ |= t.update > 0;
  for (Record& r : records_)
    r.from.resize(problem.inputs.size()), r.waited.resize(problem.ranks()), r.last.resize(problem.ranks());
}

double OrderClock::last_end() const { return *std::max_element(free_.begin(), free_.end()); }

Score OrderClock::score(const Rows& rows, bool with_period) {
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(card_.begin(), card_.end(), 0);
  iteration_ = 0;
  Score score;
  if (!run_iteration(rows)) return score;
  score.makespan = last_end();
  if (!with_period) return score;
  std::vector<double> ends{score.makespan}, before;
  for (bool in_step = false; !in_step && iteration_ < kMostIterations;) {
    before = free_;
    run_iteration(rows);
    ends.push_back(last_end());
    double shortest = kInfinity, longest = 0;
    for (std::size_t r = 0; r < before.size(); ++r) {
      shortest = std::min(shortest, free_[r] - before[r]);
      longest = std::max(longest, free_[r] - before[r]);
    }
    in_step = longest - shortest <= kSame * longest;
  }
  const std::size_t half = iteration_ < kMostIterations ? ends.size() - 2 : ends.size() / 2 - 1;
  score.period = (ends.back() - ends[half]) / static_cast<double>(ends.size() - 1 - half);
  return score;
}

bool OrderClock::run_iteration(const Rows& rows) {
  missing_ = problem_.inputs;
  std::fill(ready_.begin(), ready_.end(), 0);
  std::fill(index_.begin(), index_.end(), 0);
  std::fill(blocked_.begin(), blocked_.end(), -1);
  std::fill(finished_.begin(), finished_.end(), 0);
  Record& record = records_[iteration_ % 2];
  awake_.clear();
  for (int r = problem_.ranks() - 1; r >= 0; --r) {
    record.waited[r].assign(rows[r].size(), 0);
    awake_.push_back(r);
  }
  while (!awake_.empty()) {
    const int r = awake_.back();
    awake_.pop_back();
    run_row(rows, r);
  }
  ++iteration_;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    steps_run_ += index_[r];
    if (index_[r] < std::ssize(rows[r])) return false;
    record.last[r] = {static_cast<int>(r), index_[r] - 1};
  }
  if (!problem_.exchanges.updates.empty()) exchange(record);
  return true;
}

void OrderClock::run_row(const Rows& rows, int rank) {
  const auto& row = rows[rank];
  Record& record = records_[iteration_ % 2];
  double now = free_[rank];
  int i = index_[rank];
  blocked_[rank] = -1;
  for (; i < std::ssize(row); ++i) {
    const Step step = row[i];
    const Kind kind = step.kind();
    const int piece = step.piece(), stage = problem_.stage_of[piece];
    const StageTimes& times = problem_.times[stage];
    if (kind != kWeightGradient) {
      const int slot = 2 * piece + (kind != kForward);
      if (missing_[slot] > 0) {
        blocked_[rank] = slot;
        break;
      }
      if (kind != kForward) now += times.prelude;
      if (ready_[slot] > now) now = ready_[slot], record.waited[rank][i] = 1;
    }
    now += times.time_of(kind);
    if (kind == kForward) send(problem_.forward_outputs[piece], 0, rank, now, step);
    if (step.passes_gradient()) send(problem_.gradient_outputs[piece], 1, rank, now, step);
    if (!updates_ || !step.frees() || ++finished_[stage] < problem_.micros[stage]) continue;
    if (problem_.exchanges.tied[stage])
      last_gradient_[stage] = {now, {rank, i}};
    else
      now += times.update;
  }
  index_[rank] = i;
  free_[rank] = now;
}

void OrderClock::send(const std::vector<Output>& outputs, int kind, int rank, double end, Step step) {
  for (const Output& output : outputs) {
    const int slot = 2 * output.piece + kind;
    double there = end;
    if (output.sending > 0) there = card_[rank] = std::max(end, card_[rank]) + output.sending;
    there += output.delay;
    if (there > ready_[slot]) {
      ready_[slot] = there;
      records_[iteration_ % 2].from[slot] = step.code;
    }
    if (--missing_[slot] > 0) continue;
    const int other = problem_.rank_of[problem_.stage_of[output.piece]];
    if (blocked_[other] == slot) awake_.push_back(other);
  }
}

void OrderClock::exchange(Record& record) {
  const auto later = [](Ready& a, const Ready& b) {
    if (b.time > a.time) a = b;
  };
  exchanged_.assign(problem_.rank_of.size(), {});
  exchanging_.assign(free_.size(), {});
  for (const TiedSum& e : problem_.exchanges.list) {
    Ready ready;
    for (const int s : e.stages) later(ready, last_gradient_[s]), later(ready, exchanging_[problem_.rank_of[s]]);
    ready.time += e.time;
    for (const int s : e.stages) exchanged_[s] = exchanging_[problem_.rank_of[s]] = ready;
  }
  for (const int s : problem_.exchanges.updates) {
    const auto rank = problem_.rank_of[s];
    const Ready& ready = exchanged_[s];
    if (ready.time > free_[rank]) free_[rank] = ready.time, record.last[rank] = ready.from;
    free_[rank] += problem_.times[s].update;
  }
}

std::vector<StepPosition> OrderClock::critical_path(const Rows& rows) const {
  std::vector<StepPosition> gradient(problem_.stage_of.size()), forward(problem_.stage_of.size());
  int latest = -1;
  for (int r = 0; r < problem_.ranks(); ++r) {
    for (int i = 0; i < std::ssize(rows[r]); ++i) {
      const Step s = rows[r][i];
      if (s.kind() == kForward) forward[s.piece()] = {r, i};
      if (s.passes_gradient()) gradient[s.piece()] = {r, i};
    }
    if (latest < 0 || free_[r] > free_[latest]) latest = r;
  }
  const int iterations = std::min(iteration_, 2);
  const auto last = [&](int rank, int back) { return records_[(iteration_ - 1 - back) % 2].last[rank]; };
  StepPosition now = last(latest, 0);
  std::vector<StepPosition> path;
  for (int back = 0; back < iterations;) {
    if (now.index < 0) {
      if (++back < iterations) now = last(now.rank, back);
      continue;
    }
    path.push_back(now);
    const Record& record = records_[(iteration_ - 1 - back) % 2];
    if (!record.waited[now.rank][now.index]) {
      --now.index;
      continue;
    }
    const Step s = rows[now.rank][now.index];
    Step from;
    from.code = record.from[2 * s.piece() + (s.kind() != kForward)];
    now = from.kind() == kForward ? forward[from.piece()] : gradient[from.piece()];
  }
  return path;
}

}  // namespace stagecraft::synthesis
