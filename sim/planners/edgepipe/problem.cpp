// PipeEdge's problem (a chain of layers on any devices in any order), the times and memory of a solution, and which
// stages each kind of device may run within limits.

#include "sim/planners/edgepipe/problem.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft::edgepipe {
Runs::Runs(int layers, const std::function<double(int, int)>& value)
    : layers_(layers), values_(std::int64_t{layers + 1} * (layers + 1)) {
  for (int from = 0; from < layers; ++from)
    for (int to = from + 1; to <= layers; ++to) values_[from * (layers + 1) + to] = value(from, to);
}

Runs Runs::sums(const std::vector<double>& layers) {
  double sum = 0;
  return Runs(static_cast<int>(layers.size()), [&](int from, int to) {
    sum = to == from + 1 ? layers[from] : sum + layers[to - 1];
    return sum;
  });
}

std::vector<int> counts_of(const ChainProblem& p) {
  std::vector<int> counts;
  for (const MachineKind& m : p.machines) counts.push_back(m.count);
  return counts;
}

double memory_of(const ChainProblem& p, int from, int to) {
  const double in = p.message[from], out = p.message[to];
  return p.weights.at(from, to) + (from > 0 ? in * p.buffers_in : 0) + out * p.buffers_out + in + out;
}

bool fits(const ChainProblem& p, const ChainStage& part) {
  return p.machines[part.machines].memory > memory_of(p, part.from, part.to);
}

double hop_seconds(double bytes, double bandwidth) { return bandwidth > 0 ? bytes / bandwidth : kInfinity; }

ChainFigures figures_of(const ChainProblem& p, const Chain& chain) {
  ChainFigures f;
  for (std::size_t s = 0; s < chain.size(); ++s) {
    const ChainStage& part = chain[s];
    const MachineKind& machine = p.machines[part.machines];
    const double compute = machine.compute.at(part.from, part.to);
    f.slowest_stage = std::max(f.slowest_stage, compute);
    f.latency += compute;
    f.memory = std::max(f.memory, memory_of(p, part.from, part.to));
    if (s + 1 == chain.size()) continue;
    const double bandwidth = std::min(machine.bandwidth, p.machines[chain[s + 1].machines].bandwidth);
    const double hop = hop_seconds(p.message[part.to], bandwidth);
    f.slowest_hop = std::max(f.slowest_hop, hop);
    f.all_hops += hop;
    f.latency += hop;
  }
  return f;
}

namespace {

void add(std::uint64_t* cuts, int cut) { cuts[cut / 64] |= std::uint64_t{1} << (cut % 64); }

}  // namespace

Allowed::Allowed(const ChainProblem& p, Limits limits)
    : layers_(p.layers),
      words_(p.layers / 64 + 1),
      starts_(p.machines.size(), Cuts(words_)),
      ends_(p.machines.size() * (p.layers * words_)) {
  for (int u = 0; u < static_cast<int>(p.machines.size()); ++u) {
    const MachineKind& machine = p.machines[u];
    const auto hop_allowed = [&](int cut) { return hop_seconds(p.message[cut], machine.bandwidth) <= limits.hop; };
    for (int from = 0; from < layers_; ++from) {
      if (from > 0 && (machine.first_only || !hop_allowed(from))) continue;
      add(starts_[u].data(), from);
      for (int to = from + 1; to <= layers_; ++to)
        if (machine.compute.at(from, to) <= limits.stage && (to == layers_ || hop_allowed(to)) &&
            fits(p, {from, to, u}))
          add(&ends_[(u * layers_ + from) * words_], to);
    }
  }
}

}  // namespace stagecraft::edgepipe
