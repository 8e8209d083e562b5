#include "sim/search/replay.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

namespace stagecraft {

ContendedResult contended_result(const CompiledExperiment& c) {
  try {
    const Report report = run(c, kReplayBackend).report;
    static_cast<void>(fullest_device_memory(report, c.cluster()));
    return {report.makespan, report.period};
  } catch (const Infeasible& e) {
    return {{}, {}, e.problem().message};
  }
}

bool Shortest::takes(Seconds time) {
  if (limit_ == 0) return false;
  // Times that differ in the last digits alone are one, so the first of them to come must not be all that is kept.
  constexpr double kSame = 1 + 1e-8;
  if (times_.size() < static_cast<std::size_t>(limit_)) return times_.insert(time), true;
  if (time.value > times_.rbegin()->value * kSame) return false;
  if (time < *times_.rbegin()) times_.erase(std::prev(times_.end())), times_.insert(time);
  return true;
}

namespace {

bool same(const Choice& a, const Choice& b) { return a.id == b.id; }

const Choice* find(const std::vector<Choice>& list, const Choice& c) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const Choice& other) { return same(other, c); });
  return at == list.end() ? nullptr : &*at;
}

/// covers() with the periods of the replay, where messages share links.
bool covers_then(Choice a, Choice b) {
  if (!a.replayed || !a.replayed->ran()) return false;
  a.period = a.replayed->period, b.period = b.replayed->period;
  return covers(a, b);
}

}  // namespace

void ShortestChoices::add(const Choice& c) {
  const auto before = [](const Choice& a, const Choice& b) {
    if (shorter(a.period, b.period) || shorter(b.period, a.period)) return a.period < b.period;
    return std::tuple(a.memory, a.devices) < std::tuple(b.memory, b.devices);
  };
  list_.insert(std::upper_bound(list_.begin(), list_.end(), c, before), c);
  if (list_.size() > limit_) list_.pop_back();
}

void replay_choices(ChoiceTable& table, int rows, const std::vector<Choice>& shortest,
                    const std::function<ContendedResult(const Choice&)>& replay) {
  const std::size_t replayed_rows = rows;
  const std::vector<bool> out = stand_out(table.front);
  std::size_t standing = 0;
  for (std::size_t i = 0; i < table.front.size(); ++i) {
    standing += out[i];
    if (i < replayed_rows || (out[i] && standing <= replayed_rows)) table.front[i].replayed = replay(table.front[i]);
  }
  std::vector<Choice> extra;
  for (std::size_t i = 0; i < std::min(replayed_rows, shortest.size()); ++i)
    if (!find(table.front, shortest[i])) extra.push_back(shortest[i]), extra.back().replayed = replay(shortest[i]);
  for (const Choice& c : extra) {
    const auto covered = [&](const Choice& other) { return covers_then(other, c); };
    if (c.replayed->ran() && std::none_of(table.front.begin(), table.front.end(), covered)) table.front.push_back(c);
  }
  std::stable_sort(table.front.begin(), table.front.end(),
                   [](const Choice& a, const Choice& b) { return a.period < b.period; });
  for (const Choice& c : table.front) count(table.replay, c.period, c.replayed);
  for (const Choice& c : shortest)
    if (!find(table.front, c) && !find(extra, c)) count(table.replay, c.period, {});
  order_by_replay(table.front, table.replay, [](const ContendedResult& r) { return r.period; });
}

}  // namespace stagecraft
