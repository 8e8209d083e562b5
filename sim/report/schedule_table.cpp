#include "sim/report/schedule_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

double nine_digits(double value) { return std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr); }
double period_of(const ScheduleRow& r) { return nine_digits(r.period.value); }
double known_period_of(const ScheduleRow& r) { return nine_digits(known_period(r).value); }
double memory_of(const ScheduleRow& r) { return nine_digits(r.memory.value); }

double key_of(const ScheduleRow& r, SortKey key) {
  switch (key) {
    case SortKey::Time:
      return nine_digits(r.makespan.value);
    case SortKey::Period:
      return period_of(r);
    case SortKey::Memory:
      return memory_of(r);
    case SortKey::Traffic:
      return r.traffic.value;
  }
  return 0;
}

/// The row with the smallest `key` among those that ran and that `counts` accepts.
template <class Counts, class Key>
const ScheduleRow* least(const ScheduleTable& table, Counts&& counts, Key&& key) {
  const ScheduleRow* best = nullptr;
  for (const ScheduleRow& r : table.rows)
    if (r.ran() && counts(r) && (!best || key(r) < key(*best))) best = &r;
  return best;
}

}  // namespace

SortKey parse_sort_key(std::string_view word) {
  const std::vector<std::string> words{"time", "period", "memory", "traffic"};
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end()) throw InputError(fmt::format("--by: '{}' is not known here", word), suggest(word, words));
  return static_cast<SortKey>(at - words.begin());
}

void sort_rows(ScheduleTable& table, SortKey key) {
  const auto rank = [&](const ScheduleRow& r) {
    return r.ran()
               ? std::tuple(0, key_of(r, key), period_of(r), nine_digits(r.makespan.value), std::string_view(r.name))
               : std::tuple(1, 0.0, 0.0, 0.0, std::string_view(r.name));
  };
  std::sort(table.rows.begin(), table.rows.end(),
            [&](const ScheduleRow& a, const ScheduleRow& b) { return rank(a) < rank(b); });
  if (key == SortKey::Time) order_by_replay(table.rows, table.replay, [](const Replayed& r) { return r.makespan; });
  if (key == SortKey::Period) order_by_replay(table.rows, table.replay, [](const Replayed& r) { return r.period; });
}

Seconds known_period(const ScheduleRow& r) { return r.replayed && r.replayed->ran() ? r.replayed->period : r.period; }

std::vector<bool> pareto_front(const ScheduleTable& table) {
  const bool all = std::all_of(table.rows.begin(), table.rows.end(),
                               [](const ScheduleRow& r) { return !r.ran() || (r.replayed && r.replayed->ran()); });
  const auto time_of = [&](const ScheduleRow& r) { return all ? known_period_of(r) : period_of(r); };
  const auto beats = [&](const ScheduleRow& a, const ScheduleRow& b) {
    const double period_a = time_of(a), period_b = time_of(b), memory_a = memory_of(a), memory_b = memory_of(b);
    return period_a <= period_b && memory_a <= memory_b && (period_a < period_b || memory_a < memory_b);
  };
  std::vector<bool> front;
  for (const ScheduleRow& r : table.rows)
    front.push_back(r.ran() && std::none_of(table.rows.begin(), table.rows.end(),
                                            [&](const ScheduleRow& other) { return other.ran() && beats(other, r); }));
  return front;
}

BestRows best_of(const ScheduleTable& table) {
  const auto any = [](const ScheduleRow&) { return true; };
  const auto by_period = [](const ScheduleRow& r) {  // Rows with contention were the shortest without.
    const int unknown = !r.replayed ? 1 : r.replayed->ran() ? 0 : 2;
    return std::tuple(unknown, known_period_of(r), memory_of(r), std::string_view(r.name));
  };
  const auto by_memory = [](const ScheduleRow& r) {
    return std::tuple(memory_of(r), period_of(r), std::string_view(r.name));
  };
  return {least(
              table, [](const ScheduleRow& r) { return r.staleness == 0; }, by_period),
          least(table, any, by_period), least(table, any, by_memory)};
}

std::vector<Strip> strips_of(const ScheduleTable& table) {
  std::vector<Strip> strips;
  for (const ScheduleRow& r : table.rows)
    if (r.kept)
      strips.push_back({fmt::format("{}: period {}, memory {}", r.name, to_text(r.period), to_text(r.memory)),
                        r.kept->program, r.kept->timeline});
  return strips;
}

}  // namespace stagecraft
