// Reads from a Program which part of each stash goes to host memory, and what waits for the start of a computation.

#include "backends/real/host_copies.hpp"

#include <algorithm>

#include "sim/cost/offloaded_arrays.hpp"

namespace stagecraft::real {

bool is_host_copy(const Program& p, const Instruction& i) {
  return i.stream.valid() && p.streams[i.stream].kind == StreamKind::Copy;
}

ModuleInputs module_inputs(const StageNet& net, const Workload& workload) {
  ModuleInputs arrays;
  if (workload.offload_modules.empty()) return arrays;
  for (int n = 0; n < std::ssize(net.nodes); ++n) {
    const Node& node = net.nodes[n];
    if (node.exchange != Exchange::None && node.exchange != Exchange::RingKeys) continue;
    const std::vector<Operation>& operations = workload.layers[LayerId{node.layer}].operations;
    const std::vector<int>& inputs = operations[node.place].inputs;
    for (const KeptArray& array : kept_arrays(operations)) {
      if (array.operation != node.place || !is_input_of(workload.offload_modules, array, operations)) continue;
      const auto input = std::find(inputs.begin(), inputs.end(), array.producer) - inputs.begin();
      if (keeps(*node.operation).inputs || array.producer == array.operation)
        arrays.values.push_back(array.producer == array.operation ? node.output : node.inputs[input]);
      else
        arrays.norms.push_back(n);
    }
  }
  return arrays;
}

HostCopies::HostCopies(const Program& p) {
  std::map<InstructionId, double> stays, moves;  // Bytes by forward, and by the copy that takes them away.
  for (const Buffer& b : p.buffers) {
    if (b.kind == BufferKind::Host) moves[b.allocated_by] = b.size.value;
    if (b.kind == BufferKind::Stash) stays[b.allocated_by] = b.size.value;
  }
  for (int n = 0; n < std::ssize(p.collectives); ++n) {
    const CollectiveCall& c = p.collectives[n];
    if (c.purpose != Purpose::Stash && c.purpose != Purpose::LateForward) continue;
    for (const InstructionId on : p.waits_for(c.first)) {
      if (!p.at(on).is_compute()) continue;
      if (c.after == 0) from_start_[on].push_back(c.first);
      if (const auto part = moves.find(c.first); part != moves.end())
        parts_[n] = {part->second / (part->second + stays.at(on)), part->second};
    }
  }
}

std::span<const InstructionId> HostCopies::from_start_of(InstructionId computation) const {
  const auto members = from_start_.find(computation);
  return members == from_start_.end() ? std::span<const InstructionId>{} : members->second;
}

}  // namespace stagecraft::real
