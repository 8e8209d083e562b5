// How the rows of a search compare: which choice covers another, which stand out enough to be printed, and what sets
// one apart.

#include <algorithm>

#include "sim/core/text.hpp"
#include "sim/output/choice_table.hpp"

namespace stagecraft {
namespace {

constexpr double kSame = 1 + 1e-9;
constexpr double kKneeMemory = 0.95;  // Share of the first row's memory that is worth some time.
constexpr double kKnee = 1.02;        // Time that a row may take longer than the first for the sake of its memory.

}  // namespace

bool is_tie(const Choice& c, const ChoiceTable& t) {
  const Choice& first = t.front.front();
  return t.interval && t.unit.is_time() && c.id != first.id &&
         known_period(c) <= (1 + t.interval->half_width) * known_period(first);
}

bool may_be_knee(double amount, Bytes memory, const Choice& first) {
  return memory < kKneeMemory * first.memory && amount <= kKnee * first.amount;
}

const Choice* knee_of(const ChoiceTable& t) {
  const Choice* knee = nullptr;
  for (const Choice& c : t.front) {
    const Choice& first = t.front.front();
    const bool is_worth_it = c.id == first.id || may_be_knee(c.amount, c.memory, first);
    if (!is_worth_it || c.is_tight != first.is_tight) continue;
    if (!knee || c.memory < knee->memory) knee = &c;
  }
  return knee;
}

std::string remark_of(const Choice& c, const ChoiceTable& t) {
  std::vector<std::string> remarks;
  const Choice* knee = knee_of(t);
  if (knee && knee->id == c.id && c.id != t.front.front().id) remarks.emplace_back("least memory within 2 %");
  if (c.is_tight) remarks.emplace_back("tight");
  if (is_tie(c, t)) remarks.emplace_back("tie");
  return join(remarks, ", ");
}

std::vector<bool> stand_out(const std::vector<Choice>& front) {
  constexpr double kLess = 0.6;
  const auto much_less = [&](double less, double more) { return less < more * kLess; };
  std::vector<bool> out(front.size(), false);
  for (std::size_t i = 0; i < front.size(); ++i) {
    out[i] = true;
    for (std::size_t k = 0; k < i; ++k)
      if (out[k] && front[k].devices <= front[i].devices && !much_less(front[i].memory.value, front[k].memory.value) &&
          !much_less(known_period(front[i]).value, known_period(front[k]).value))
        out[i] = false;
  }
  return out;
}

bool covers(const Choice& a, const Choice& b) {
  return a.amount <= b.amount * kSame && a.period.value <= b.period.value * kSame &&
         a.memory.value <= b.memory.value * kSame && a.devices <= b.devices && a.is_tight <= b.is_tight;
}

bool covers_when_known(Choice a, Choice b) {
  a.period = known_period(a), b.period = known_period(b);
  return covers(a, b);
}

}  // namespace stagecraft
