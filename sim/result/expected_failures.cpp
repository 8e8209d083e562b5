// Estimates goodput from published rates of failures, for the page of a run whose scenario has none.

#include "sim/result/expected_failures.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// Llama 3 had 419 unexpected interruptions in 54 days on 16,384 H100 (Grattafiori et al., The Llama 3 Herd of Models,
// 2024, section 3.3.4): one for each 50,676 hours of a device.
constexpr double kHoursBetweenFailures = 54.0 * 24 * 16384 / 419;
// Its storage wrote 2 TB/s all the time (section 3.3.1): this much for each of its devices.
constexpr double kBytesPerSecond = 2e12 / 16384;
// MegaScale finds a failure in ten minutes and has caught up within fifteen (Jiang et al., NSDI 2024, section 6.3).
constexpr double kRestart = 15 * 60;
constexpr double kSecondsOfHour = 3600;
constexpr int kFewestDevices = 64;  ///< Smaller jobs rarely see a failure.

/// Weights and optimizer state that one device writes: replicas with equal states write them once.
double checkpoint_bytes(const PipelineRank& r) {
  return r.resident.weights.value / std::max(1, r.replicas()) + r.resident.optimizer.value;
}

}  // namespace

std::optional<Json> expected_failures(const Program& program, const Report& report) {
  const int devices = program.work.devices;
  if (!report.rates || devices < kFewestDevices || report.ranks.empty()) return {};
  if (report.economics && report.economics->interval.value > 0) return {};
  double largest = 0;
  for (const PipelineRank& r : report.ranks) largest = std::max(largest, checkpoint_bytes(r));
  const Seconds mtbf{kHoursBetweenFailures * kSecondsOfHour / devices},
      checkpoint{std::max(1.0, largest / kBytesPerSecond)};
  const Seconds interval = best_checkpoint_interval(mtbf, checkpoint);
  return JsonObject{{"failures_per_day", 24 * kSecondsOfHour / mtbf.value},
                    {"goodput", goodput(mtbf, checkpoint, Seconds{kRestart}, interval)},
                    {"checkpoint_s", checkpoint.value},
                    {"checkpoint_interval_s", interval.value},
                    {"restart_s", kRestart}};
}

config::Field expected_failures_field() {
  using namespace config;
  static const MapSpec fields{
      .title = "What failures cost a long training on these devices, by published rates.",
      .fields = {
          real("failures_per_day", 0, kInfinity)
              .doc("As often for each device as in the training of Llama 3: 419 times in 54 days on 16,384 H100."),
          real("goodput", 0, 1).doc("Share of the time that is training which no failure undoes (Daly 2006)."),
          real("checkpoint_s", 0, kInfinity)
              .doc("Time to write weights and optimizer state at 122 MB/s for each device, as the storage of Llama 3."),
          real("checkpoint_interval_s", 0, kInfinity).doc("Computation between two checkpoints, the optimum."),
          real("restart_s", 0, kInfinity).doc("From a failure until the job computes again, as MegaScale has it.")}};
  return map("expected_failures", fields)
      .optional()
      .doc("Failures of a long training, for 64 devices or more where report.failures is absent.");
}

}  // namespace stagecraft
