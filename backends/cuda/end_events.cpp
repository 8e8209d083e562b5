#include "backends/cuda/end_events.hpp"

#include <algorithm>
#include <map>

namespace stagecraft::cuda {

std::vector<EndEvent> end_events(const Program& p) {
  constexpr int kSeen = 16;  // The host sees that a device moves at every so many ops.
  std::vector<EndEvent> ends(p.size(), EndEvent::None);
  std::vector<int> ops(p.devices, 0);
  std::map<std::pair<DeviceId, int>, std::size_t> last;
  for (std::size_t n = 0; n < p.size(); ++n) {
    const Instruction& i = p.instructions[n];
    if (!i.is_compute()) ends[n] = EndEvent::Plain;
    for (const InstructionId w : p.waits_for(InstructionId{static_cast<std::int64_t>(n)}))
      if (!i.is_compute() || p.at(w).device != i.device) ends[w] = EndEvent::Plain;
    if (!i.is_compute()) continue;
    if (++ops[i.device] % kSeen == 0) ends[n] = EndEvent::Plain;
    last[{i.device, p.iteration_of(i)}] = n;
  }
  for (const auto& [where, n] : last) ends[n] = EndEvent::Timed;
  return ends;
}

void spread_over_iterations(const Program& p, std::vector<double>& start, std::vector<double>& end) {
  std::vector<double> last(static_cast<std::size_t>(p.iterations) + 1, 0);
  const auto of = [&](std::size_t n) { return static_cast<std::size_t>(p.iteration_of(p.instructions[n])) + 1; };
  for (std::size_t n = 0; n < p.size(); ++n) last[of(n)] = std::max(last[of(n)], end[n]);
  for (std::size_t k = 1; k < last.size(); ++k) last[k] = std::max(last[k], last[k - 1]);
  start.resize(p.size());
  for (std::size_t n = 0; n < p.size(); ++n) {
    start[n] = last[of(n) - 1];
    end[n] = last[of(n)];
  }
}

}  // namespace stagecraft::cuda
