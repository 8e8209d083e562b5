// Compares a real run with its simulation for `validate`, by iteration, kind of instruction, stage, device and memory,
// and prints the tables; verdict.cpp has the conclusion.

#include "sim/output/validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <type_traits>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {
namespace {

double mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, numbers.size()));
}

/// Simulated and measured readings of one quantity.
struct Both {
  std::vector<double> simulated, measured;

  Pair pair(std::string name) const {
    return {std::move(name), median(simulated), median(measured),
            (quantile(measured, 0.75) - quantile(measured, 0.25)) / 2, measured.size()};
  }
  /// Sums of an iteration. A simulation may have other messages that ops wait for last, so its mean counts for as many.
  Pair total(std::string name, int iterations) const {
    const double readings = static_cast<double>(measured.size()) / iterations;
    return {std::move(name), readings * mean(simulated), readings * mean(measured), 0, measured.size()};
  }
};

/// Seconds between the ends of consecutive iterations.
std::vector<double> iteration_times(const Program& p, const Timeline& t) {
  std::vector<double> last(p.iterations, 0), times;
  for (std::size_t n = 0; n < p.size(); ++n) {
    auto& end = last[p.iteration_of(p.at(InstructionId{n}))];
    end = std::max(end, t.end[InstructionId{n}]);
  }
  // With drains every few iterations, their mean over each interval: single ones are not alike.
  const std::size_t each = p.drain_every > 1 && std::ssize(last) / 2 >= p.drain_every ? p.drain_every : 1;
  for (std::size_t k = 2 * each - 1; k < last.size(); k += each)
    times.push_back((last[k] - last[k - each]) / static_cast<double>(each));
  return times;
}

/// Times from the start of a message to the start of the op for which it was the last input; other messages have none.
std::vector<double> hop_times(const Program& p, const Timeline& t) {
  std::vector<double> times;
  for (const InstructionId n : p.instructions.ids()) {
    const Instruction& op = p.instructions[n];
    if (!op.is_compute() || p.iteration_of(op) == 0) continue;
    InstructionId latest;
    for (const InstructionId w : p.waits_for(n))
      if (!latest.valid() || t.end_of(w) > t.end_of(latest)) latest = w;
    if (!latest.valid() || p.at(latest).kind != InstructionKind::Receive) continue;
    const Transfer& transfer = p.transfer(p.at(latest));
    times.push_back(t.start[n] - t.start_of(transfer.send).value);
  }
  return times;
}

struct Collected {
  std::map<InstructionKind, Both> kinds;
  std::map<std::pair<StageId, char>, Both> ops;
  std::vector<std::pair<double, double>> busy;  ///< Simulated and measured computation of each device.
};

Collected collect(const Program& p, const Timeline& simulated, const Timeline& measured) {
  Collected c;
  c.busy.resize(p.devices);
  for (const InstructionId n : p.instructions.ids()) {
    const Instruction& i = p.at(n);
    if (!i.is_compute() || p.iteration_of(i) == 0) continue;
    const double s = simulated.end[n] - simulated.start[n], m = measured.end[n] - measured.start[n];
    for (Both* both : {&c.kinds[i.kind], &c.ops[{i.stage, letter(i.kind)}]}) {
      both->simulated.push_back(s);
      both->measured.push_back(m);
    }
    auto& [busy_simulated, busy_measured] = c.busy[i.device.value];
    busy_simulated += s;
    busy_measured += m;
  }
  return c;
}

/// Pairs of times or of sizes; only times have a spread.
template <class Unit>
Table pair_table(const std::string& title, const std::vector<Pair>& pairs) {
  const auto spread = [](const Pair& p) {
    return std::is_same_v<Unit, Seconds> ? to_text(Seconds{p.spread}) : std::string();
  };
  return make_table<Pair>(
      {{{.heading = title, .width = 18, .align = TextAlign::Left}, &Pair::name},
       {{.heading = "simulated", .width = 12}, [](const Pair& p) { return Unit{p.simulated}; }},
       {{.heading = "measured", .width = 12}, [](const Pair& p) { return Unit{p.measured}; }},
       {{.heading = "+- spread", .width = 12}, spread},
       {{.heading = "error", .width = 9}, [](const Pair& p) { return signed_percent(p.error()); }},
       {{.heading = "readings", .width = 8}, [](const Pair& p) { return std::to_string(p.count); }}},
      pairs);
}

std::string memory_text(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return {};
  const Table table = pair_table<Bytes>("peak memory", pairs);
  const Table head{{table.columns.begin(), table.columns.begin() + 3}, {}};
  return "\n" + headings_text(head) + rows_text(table);
}

Validation with_memory(Validation v, const Report& report, const Timeline& measured, const Cluster& cluster) {
  if (measured.learnt)
    for (const DeviceId d : measured.learnt->memory.ids())
      if (report.devices.contains(d) && report.devices[d].used)
        v.memory.push_back({cluster.devices[d].name, report.devices[d].memory.total.value,
                            measured.learnt->memory[d].total.value, 0, 1});
  return v;
}

}  // namespace

std::string times_text(const char* title, std::vector<Pair> pairs) {
  constexpr std::size_t kMostShown = 12;
  if (pairs.empty()) return {};
  const std::size_t more = pairs.size() - std::min(pairs.size(), kMostShown);
  pairs.resize(pairs.size() - more);
  return "\n" + to_text(pair_table<Seconds>(title, pairs)) + (more > 0 ? fmt::format("  ... and {} more\n", more) : "");
}

double Pair::error() const {
  if (measured == 0) return simulated == 0 ? 0 : 1;
  return (simulated - measured) / measured;
}

Validation compare(const Program& p, const Timeline& simulated, const Report& report, const Timeline& measured,
                   const Cluster& cluster) {
  Validation v;
  v.iterations = iteration_times(p, measured);
  v.iteration = Both{iteration_times(p, simulated), v.iterations}.pair("iteration");
  v.instructions_timed = measured.instruction_times;
  if (!measured.instruction_times) return with_memory(std::move(v), report, measured, cluster);
  const Collected c = collect(p, simulated, measured);
  for (const auto& [kind, both] : c.kinds) {
    v.kinds.push_back(both.pair(std::string(1, letter(kind))));
    v.totals.push_back(both.total(std::string(label(kind).meaning), p.iterations - 1));
  }
  if (const Both hops{hop_times(p, simulated), hop_times(p, measured)}; !hops.measured.empty()) {
    v.kinds.push_back(hops.pair("message"));
    v.messages = hops.total("messages", p.iterations - 1);
  }
  for (const auto& [key, both] : c.ops)
    v.ops.push_back(both.pair(fmt::format("stage {} {}", key.first.value, key.second)));
  const auto harm = [](const Pair& a) { return std::abs(a.simulated - a.measured) * static_cast<double>(a.count); };
  std::stable_sort(v.ops.begin(), v.ops.end(), [&](const Pair& a, const Pair& b) { return harm(a) > harm(b); });
  const double iterations = std::max(1, p.iterations - 1);
  for (std::size_t d = 0; d < c.busy.size(); ++d)
    if (c.busy[d].second > 0)
      v.devices.push_back({cluster.devices[DeviceId{d}].name, c.busy[d].first / iterations,
                           c.busy[d].second / iterations, 0, static_cast<std::size_t>(iterations)});
  v.waits = core_waits(p, simulated, measured);
  return with_memory(std::move(v), report, measured, cluster);
}

void add_replay(Validation& v, const Program& p, const Timeline& replayed) {
  v.replayed = iteration_times(p, replayed);
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string notes_text(const Validation& v) {
  std::string text;
  for (const std::string& note : v.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string to_text(const Validation& v, double tolerance) {
  std::string text = notes_text(v) + times_text("time", {v.iteration});
  if (!v.iterations.empty())
    text +=
        fmt::format("  {} measured, the fastest {}, the slowest {}\n", pluralize(std::ssize(v.iterations), "iteration"),
                    to_text(Seconds{*std::min_element(v.iterations.begin(), v.iterations.end())}),
                    to_text(Seconds{*std::max_element(v.iterations.begin(), v.iterations.end())}));
  if (!v.replayed.empty()) {
    const ModelError error = model_error(v);
    text += fmt::format(
        "  simulated with the operation times measured in it, an iteration is {} off in the median, {} at worst\n",
        signed_percent(error.median), signed_percent(error.worst));
  }
  text += core_waits_text(v.waits);
  if (!v.instructions_timed) text += "  instructions were not timed (run.gpu.timing: off)\n";
  text += times_text("instruction", v.kinds);
  text += times_text("by stage", v.ops);
  text += times_text("busy, iteration", v.devices);
  text += memory_text(v.memory);
  return text + verdict_text(v, tolerance);
}

}  // namespace stagecraft
