#include "sim/schedule/synthesis/clock.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft::synthesis {
namespace {

constexpr int kMostIterations = 8;
constexpr double kSame = 1e-9;

std::size_t at(int i) { return Problem::at(i); }

}  // namespace

Clock::Clock(const Problem& problem)
    : problem_(problem),
      ready_(problem.inputs.size()),
      free_(at(problem.ranks())),
      card_(at(problem.ranks())),
      index_(at(problem.ranks())),
      blocked_(at(problem.ranks())),
      finished_(problem.rank_of.size()),
      made_(problem.rank_of.size()) {
  updates_ = !problem.exchanges.updates.empty();
  for (const StageTimes& t : problem.times) updates_ |= t.update > 0;
  for (Record& r : records_)
    r.from.resize(problem.inputs.size()), r.waited.resize(at(problem.ranks())), r.last.resize(at(problem.ranks()));
}

double Clock::last_end() const { return *std::max_element(free_.begin(), free_.end()); }

Score Clock::score(const Rows& rows, bool with_period) {
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(card_.begin(), card_.end(), 0);
  iteration_ = 0;
  Score score;
  if (!play(rows)) return score;
  score.makespan = last_end();
  if (!with_period) return score;
  std::vector<double> ends{score.makespan}, before;
  for (bool in_step = false; !in_step && iteration_ < kMostIterations;) {
    before = free_;
    play(rows);
    ends.push_back(last_end());
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::size_t r = 0; r < before.size(); ++r) {
      least = std::min(least, free_[r] - before[r]);
      most = std::max(most, free_[r] - before[r]);
    }
    in_step = most - least <= kSame * most;
  }
  const std::size_t half = iteration_ < kMostIterations ? ends.size() - 2 : ends.size() / 2 - 1;
  score.period = (ends.back() - ends[half]) / static_cast<double>(ends.size() - 1 - half);
  return score;
}

bool Clock::play(const Rows& rows) {
  missing_ = problem_.inputs;
  std::fill(ready_.begin(), ready_.end(), 0);
  std::fill(index_.begin(), index_.end(), 0);
  std::fill(blocked_.begin(), blocked_.end(), -1);
  std::fill(finished_.begin(), finished_.end(), 0);
  Record& record = records_[at(iteration_ % 2)];
  awake_.clear();
  for (int r = problem_.ranks() - 1; r >= 0; --r) {
    record.waited[at(r)].assign(rows[at(r)].size(), 0);
    awake_.push_back(r);
  }
  while (!awake_.empty()) {
    const int r = awake_.back();
    awake_.pop_back();
    run(rows, r);
  }
  ++iteration_;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    played_ += index_[r];
    if (at(index_[r]) < rows[r].size()) return false;
    record.last[r] = {static_cast<int>(r), index_[r] - 1};
  }
  if (!problem_.exchanges.updates.empty()) exchange(record);
  return true;
}

void Clock::run(const Rows& rows, int rank) {
  const auto& row = rows[at(rank)];
  Record& record = records_[at(iteration_ % 2)];
  double now = free_[at(rank)];
  int i = index_[at(rank)];
  blocked_[at(rank)] = -1;
  for (; at(i) < row.size(); ++i) {
    const Step step = row[at(i)];
    const Kind kind = step.kind();
    const int piece = step.piece(), stage = problem_.stage_of[at(piece)];
    const StageTimes& times = problem_.times[at(stage)];
    if (kind != kWeightGradient) {
      const int slot = 2 * piece + (kind != kForward);
      if (missing_[at(slot)] > 0) {
        blocked_[at(rank)] = slot;
        break;
      }
      if (kind != kForward) now += times.prelude;
      if (ready_[at(slot)] > now) now = ready_[at(slot)], record.waited[at(rank)][at(i)] = 1;
    }
    now += times.of(kind);
    if (kind == kForward) send(problem_.forward_outputs[at(piece)], 0, rank, now, step);
    if (step.passes_gradient()) send(problem_.gradient_outputs[at(piece)], 1, rank, now, step);
    if (!updates_ || !step.frees() || ++finished_[at(stage)] < problem_.micros[at(stage)]) continue;
    if (problem_.exchanges.tied[at(stage)])
      made_[at(stage)] = {now, {rank, i}};
    else
      now += times.update;
  }
  index_[at(rank)] = i;
  free_[at(rank)] = now;
}

void Clock::send(const std::vector<Output>& outputs, int kind, int rank, double end, Step step) {
  for (const Output& output : outputs) {
    const int slot = 2 * output.piece + kind;
    double there = end;
    if (output.sending > 0) there = card_[at(rank)] = std::max(end, card_[at(rank)]) + output.sending;
    there += output.delay;
    if (there > ready_[at(slot)]) {
      ready_[at(slot)] = there;
      records_[at(iteration_ % 2)].from[at(slot)] = step.code;
    }
    if (--missing_[at(slot)] > 0) continue;
    const int other = problem_.rank_of[at(problem_.stage_of[at(output.piece)])];
    if (blocked_[at(other)] == slot) awake_.push_back(other);
  }
}

void Clock::exchange(Record& record) {
  const auto later = [](Ready& a, const Ready& b) {
    if (b.time > a.time) a = b;
  };
  exchanged_.assign(problem_.rank_of.size(), {});
  exchanging_.assign(free_.size(), {});
  for (const Exchange& e : problem_.exchanges.all) {
    Ready ready;
    for (const int s : e.stages) later(ready, made_[at(s)]), later(ready, exchanging_[at(problem_.rank_of[at(s)])]);
    ready.time += e.time;
    for (const int s : e.stages) exchanged_[at(s)] = exchanging_[at(problem_.rank_of[at(s)])] = ready;
  }
  for (const int s : problem_.exchanges.updates) {
    const auto rank = at(problem_.rank_of[at(s)]);
    const Ready& ready = exchanged_[at(s)];
    if (ready.time > free_[rank]) free_[rank] = ready.time, record.last[rank] = ready.from;
    free_[rank] += problem_.times[at(s)].update;
  }
}

std::vector<Place> Clock::critical_path(const Rows& rows) const {
  std::vector<Place> gradient(problem_.stage_of.size()), forward(problem_.stage_of.size());
  int latest = -1;
  for (int r = 0; r < problem_.ranks(); ++r) {
    for (int i = 0; at(i) < rows[at(r)].size(); ++i) {
      const Step s = rows[at(r)][at(i)];
      if (s.kind() == kForward) forward[at(s.piece())] = {r, i};
      if (s.passes_gradient()) gradient[at(s.piece())] = {r, i};
    }
    if (latest < 0 || free_[at(r)] > free_[at(latest)]) latest = r;
  }
  const int played = std::min(iteration_, 2);
  const auto last = [&](int rank, int back) { return records_[at((iteration_ - 1 - back) % 2)].last[at(rank)]; };
  Place now = last(latest, 0);
  std::vector<Place> path;
  for (int back = 0; back < played;) {
    if (now.index < 0) {
      if (++back < played) now = last(now.rank, back);
      continue;
    }
    path.push_back(now);
    const Record& record = records_[at((iteration_ - 1 - back) % 2)];
    if (!record.waited[at(now.rank)][at(now.index)]) {
      --now.index;
      continue;
    }
    const Step s = rows[at(now.rank)][at(now.index)];
    Step from;
    from.code = record.from[at(2 * s.piece() + (s.kind() != kForward))];
    now = from.kind() == kForward ? forward[at(from.piece())] : gradient[at(from.piece())];
  }
  return path;
}

}  // namespace stagecraft::synthesis
