// Rule: devices that wait for the host, which launches kernels one after the other.

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/finding.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"

namespace stagecraft::diagnosis {

/// Launches cost as much for a small micro-batch as for a large one; CUDA graphs launch a whole pass at once.
std::optional<Finding> launches(const DiagnosisInput& in) {
  const Seconds lost = in.period - in.idealized.without(Cost::Launches);
  Finding f = finding(in, "launches", "host", lost);
  f.sentence = fmt::format("Devices wait for their hosts, which launch kernels one after the other: {} of the period.",
                           percent(f.share));
  if (std::optional<Suggestion> larger = larger_micro_batches(in)) f.suggestions.push_back(std::move(*larger));
  if (in.experiment().software().prices && !in.experiment().software().graphs)
    f.suggestions.push_back({{"software.graphs=true"}, "CUDA graphs, which launch whole passes"});
  return f;
}

}  // namespace stagecraft::diagnosis
