#include <algorithm>

#include "sim/program/writer.hpp"

namespace stagecraft {

void ProgramWriter::keep_resident(bool trains) {
  program_.memory.resize(program_.devices);
  for (int s = 0; s < plan_.stage_count(); ++s) {
    const Stage& stage = plan_.stage(StageId{s});
    for (std::size_t r = 0; r < stage.devices.size(); ++r) {
      const StageCost& c = cost(StageId{s}, static_cast<int>(r));
      const StageNeeds needs = reads_.needs(StageId{s}, static_cast<int>(r));
      auto& memory = program_.memory[stage.devices[r]];
      auto& delay = program_.delays[s];
      delay = std::max(delay, needs.delay);
      memory.weights += c.weights * needs.buffers;
      memory.weight_buffers += needs.buffers;
      if (!trains) continue;
      const int each = plan_.replica_micro_batches(StageId{s}) / schedule_.updates_of(StageId{s});
      memory.gradients += c.gradients * (options_.gradient_slots ? each : 1);
      memory.optimizer += c.optimizer;
      if (weights_.needs_momentum() && !options_.keeps_momentum) memory.optimizer += c.weights;
    }
  }
}

/// The stash lives from the forward to the backward, or to the weight gradient when the two halves are apart. With
/// recomputation only the stage's input waits; the rest lives from the recomputation on. A `Stash` counts as a whole
/// one: what is a part, or a tensor of a single task, is a `Boundary`.
void ProgramWriter::keep_activations(InstructionId id, const Op& op, int replica) {
  if (op.kind == OpKind::Update) return;
  const std::size_t piece = pieces_.of(op.stage, op.micro, replica);
  const StageCost& c = cost(op.stage, replica);
  const DeviceId device = program_.at(id).device;
  switch (op.kind) {
    case OpKind::Forward:
      forward_[piece] = id;
      if (tasks_.any(op.stage))
        for (const auto& [from, to, size] :
             tasks_.done_with(op.stage, [&](StageId s) { return forward_[pieces_.of(s, op.micro, 0)]; }))
          program_.buffers.push_back({size, from, to, device, BufferKind::Boundary});
      break;
    case OpKind::Recompute:
      recomputed_.resize(pieces_.size());
      recomputed_[piece] = id;
      break;
    case OpKind::Backward:
    case OpKind::WeightGradient:
      if (!recomputed_.empty() && recomputed_[piece].valid()) {
        const Bytes kept = std::min(c.boundary, c.stash);
        program_.buffers.push_back({kept, forward_[piece], id, device, BufferKind::Boundary});
        program_.buffers.push_back({c.stash - kept, recomputed_[piece], id, device, BufferKind::Stash});
      } else {
        program_.buffers.push_back({c.stash, forward_[piece], id, device, BufferKind::Stash});
      }
      break;
    case OpKind::InputGradient:
    case OpKind::Update:
      break;
  }
  if (c.remade.value > 0 && passes_gradient(op.kind))
    program_.buffers.push_back({c.remade, id, id, device, BufferKind::Boundary});
}

}  // namespace stagecraft
