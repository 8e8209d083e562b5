// Diagnosis of a real run, from its timeline; suggestions come from a simulation of the same scenario.

#include "sim/diagnosis/diagnose.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"

namespace stagecraft {
namespace {

/// Means over the devices that have a stage, as shares of the whole run.
struct MeasuredShares {
  double busy = 0, bubble = 0, input = 0, messages = 0, collectives = 0, other = 0;
  DeviceId busiest;
  double most_busy = 0;
};

MeasuredShares shares_of(const Report& report) {
  MeasuredShares shares;
  int used = 0;
  for (const DeviceId d : report.devices.ids()) {
    const DeviceReport& device = report.devices[d];
    if (!device.used) continue;
    ++used;
    const auto share = [&](Seconds time) { return time / report.length; };
    shares.busy += 1 - share(device.idle.total());
    shares.bubble += share(device.idle.start_up + device.idle.drain);
    shares.input += share(device.idle.input + device.idle.receiver);
    shares.messages += share(device.idle.exposed.messages);
    shares.collectives += share(device.idle.exposed.collectives());
    shares.other += share(device.idle.other);
    if (device.utilisation > shares.most_busy) shares.most_busy = device.utilisation, shares.busiest = d;
  }
  for (double* share :
       {&shares.busy, &shares.bubble, &shares.input, &shares.messages, &shares.collectives, &shares.other})
    *share /= std::max(used, 1);
  return shares;
}

Finding waiting(const Report& report, const char* cause, std::string where, double share, const std::string& what) {
  return {.cause = cause,
          .where = std::move(where),
          .lost = share * report.period,
          .share = share,
          .sentence = fmt::format("Measured: devices wait {} of the run {}.", percent(share), what)};
}

/// Causes of a simulation that explain the same waiting.
bool explains(const std::string& simulated, const std::string& measured) {
  if (measured == "messages") return simulated == "slow-link" || simulated == "shared-link" || simulated == "placement";
  if (measured == "unequal-stages")
    return simulated == "unequal-stages" || simulated == "empty-stage" || simulated == "slow-device";
  return simulated == measured;
}

/// Adds the changes that help against the same cause in a simulation.
void add_simulated_suggestions(CompiledExperiment& c, const ScenarioReader& read, Finding& finding) try {
  const Diagnosis simulated = diagnose(c, run(c, "fluid"), "fluid", read);
  if (simulated.findings.empty() || !explains(simulated.first().cause, finding.cause)) return;
  finding.suggestions = simulated.first().suggestions;
} catch (const InputError&) {  // What really runs may be no scenario for a simulation.
} catch (const Infeasible&) {
}

}  // namespace

Diagnosis diagnose_measured(CompiledExperiment& c, const Outcome& outcome, const ScenarioReader& read) {
  constexpr double kSmallShare = 0.05;
  Diagnosis d{.findings = {}, .samples = c.program.mini_batch, .not_simulated = {}, .measured = true};
  const Report& report = outcome.report;
  if (!report.instruction_times || report.length.value <= 0 || report.period.value <= 0) return d;
  const MeasuredShares shares = shares_of(report);
  if (!shares.busiest.valid()) return d;
  const std::string busiest = c.cluster().devices[shares.busiest].name;
  d.findings = {
      waiting(report, "bubble", c.experiment.schedule.name(), shares.bubble, "while the pipeline fills and drains"),
      waiting(report, "unequal-stages", busiest, shares.input,
              fmt::format("for inputs that another stage still computes; the busiest, {}, computes {}", busiest,
                          percent(shares.most_busy))),
      waiting(report, "messages", "", shares.messages, "for messages on their way"),
      waiting(report, "gradient-sums", "", shares.collectives, "for sums of gradients and other collectives"),
      waiting(report, "machine", "", shares.other, "although their input is there: other work of this machine")};
  std::stable_sort(d.findings.begin(), d.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.share > b.share; });
  std::erase_if(d.findings, [](const Finding& f) { return f.share < kSmallShare; });
  d.findings.push_back({.cause = "computation",
                        .where = busiest,
                        .lost = {},
                        .sentence = fmt::format("Measured: devices compute {} of the run, {} most: {}.",
                                                percent(shares.busy), busiest, percent(shares.most_busy))});
  add_simulated_suggestions(c, read, d.findings.front());
  return d;
}

}  // namespace stagecraft
