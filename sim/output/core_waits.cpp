// Sums how long computations of each iteration of a real run waited for a CPU core, next to the same in simulation, and
// says when that makes a validation doubtful.

#include "sim/output/core_waits.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kMarkedWait = 0.01;   // A share of the time of a computation.
constexpr double kMostMarked = 0.05;   // A share of an iteration.
constexpr double kLeastShared = 1e-6;  // A share of a simulated time: less is rounding, not sharing.

/// By how much the simulated time is longer than the computation takes alone.
double simulated_wait(const Instruction& i, double simulated) {
  const double longer = simulated - i.duration.value;
  return longer > kLeastShared * simulated ? longer : 0;
}

/// Seconds by which waits of an iteration are longer than it allows.
double excess(const CoreWaits& w, double period) {
  return w.simulated > 0 ? w.waited - w.simulated - kMostMarked * w.computing : w.marked - kMostMarked * period;
}

double median_of(const std::vector<CoreWaits>& waits, double CoreWaits::*member) {
  std::vector<double> seconds;
  for (const CoreWaits& w : waits) seconds.push_back(w.*member);
  return median(std::move(seconds));
}

}  // namespace

std::vector<CoreWaits> core_waits(const Program& p, const Timeline& simulated, const Timeline& measured) {
  if (measured.core_waits.empty() || p.iterations < 2) return {};
  std::vector<CoreWaits> waits(p.iterations - 1);
  std::vector<std::vector<double>> marked(waits.size(), std::vector<double>(p.devices, 0));
  for (const InstructionId n : p.instructions.ids()) {
    const Instruction& i = p.at(n);
    const int k = p.iteration_of(i);
    if (!i.is_compute() || k == 0) continue;
    CoreWaits& w = waits[k - 1];
    const double seconds = measured.end[n] - measured.start[n];
    w.waited += measured.core_waits[n];
    w.simulated += simulated_wait(i, simulated.end[n] - simulated.start[n]);
    w.computing += seconds;
    if (measured.core_waits[n] > kMarkedWait * seconds)
      marked[k - 1][i.device.value] += std::max(seconds, measured.core_waits[n]);
  }
  for (std::size_t k = 0; k < waits.size(); ++k)
    waits[k].marked = *std::max_element(marked[k].begin(), marked[k].end());
  return waits;
}

std::string core_waits_doubt(const std::vector<CoreWaits>& waits, double period) {
  const auto too_long = [&](const CoreWaits& w) { return excess(w, period) > 0; };
  const auto count = std::count_if(waits.begin(), waits.end(), too_long);
  if (2 * count <= std::ssize(waits)) return {};
  const std::string waited = to_text(Seconds{median_of(waits, &CoreWaits::waited)});
  const double simulated = median_of(waits, &CoreWaits::simulated);
  const std::string in = fmt::format("in {} of {}", count, pluralize(std::ssize(waits), "iteration"));
  if (simulated > 0)
    return fmt::format(
        "{} threads waited longer for a core than the simulation has it, by more than {:.0f} % of their "
        "time: {} in the median, {} simulated",
        in, 100 * kMostMarked, waited, to_text(Seconds{simulated}));
  return fmt::format(
      "{} computations that waited for a core took more than {:.0f} % of the time: {} of waiting in the median, all "
      "threads together, because other programs or threads had the cores",
      in, 100 * kMostMarked, waited);
}

std::string core_waits_text(const std::vector<CoreWaits>& waits) {
  if (waits.empty()) return {};
  const double simulated = median_of(waits, &CoreWaits::simulated);
  return fmt::format("  {} of waiting for a core in the median iteration, all devices together{}\n",
                     to_text(Seconds{median_of(waits, &CoreWaits::waited)}),
                     simulated > 0 ? fmt::format(" ({} simulated)", to_text(Seconds{simulated})) : "");
}

}  // namespace stagecraft
