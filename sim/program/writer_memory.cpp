// How a ProgramWriter writes the memory of devices: resident memory and buffers.

#include <algorithm>

#include "sim/program/least_memory.hpp"
#include "sim/program/writer.hpp"

namespace stagecraft {

void ProgramWriter::keep_resident(bool trains) {
  program_.memory.resize(program_.devices);
  for (const StageId s : plan_.stages.ids()) {
    const Stage& stage = plan_.stage(s);
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const StageNeeds needs = reads_.needs(s, static_cast<int>(r));
      auto& memory = program_.memory[stage.leaders[r]];
      auto& delay = program_.delays[s];
      delay = std::max(delay, needs.delay);
      MemoryCounts counts{.versions = needs.buffers, .gradients = 0, .optimizers = 0};
      if (trains) {
        const int each = plan_.micro_batches_per_replica(s) / schedule_.updates_of(s);
        counts.gradients = options_.gradient_slots ? each : 1;
        counts.optimizers = 1;
        counts.momenta = weights_.needs_momentum() && !options_.keeps_momentum ? 1 : 0;
      }
      const StageMemory stage_needs = stage_memory(cost(s, static_cast<int>(r)).memory, counts);
      memory.weights += stage_needs.weights;
      memory.gradients += stage_needs.gradients;
      memory.optimizer += stage_needs.optimizer;
      memory.weight_buffers += needs.buffers;
    }
  }
}

/// The stash lives from the forward to the backward, or to the weight gradient when the two halves are apart. With
/// recomputation only the stage's input waits; the rest lives from the recomputation on. A `Stash` counts as a whole
/// one: what is a part, or an array of an edge, is a `Boundary`.
void ProgramWriter::keep_activations(InstructionId id, const Op& op, int replica) {
  if (op.kind == OpKind::Update) return;
  const std::size_t piece = pieces_.index(op.stage, op.micro, replica);
  const StageCost& stage_cost = cost(op, replica);
  const MemoryUnits& units = stage_cost.memory;
  const DeviceId device = program_.at(id).device;
  switch (op.kind) {
    case OpKind::Forward:
      forward_[piece] = id;
      if (edge_arrays_.any(op.stage))
        for (const Buffer& b : edge_arrays_.done_with(
                 op.stage, device, [&](StageId s) { return forward_[pieces_.index(s, op.micro, 0)]; }))
          program_.buffers.push_back(b);
      break;
    case OpKind::Recompute:
      recomputed_.resize(pieces_.size());
      recomputed_[piece] = id;
      break;
    case OpKind::Backward:
    case OpKind::WeightGradient:
      if (!recomputed_.empty() && recomputed_[piece].valid()) {
        const Bytes whole = units.whole_stash();
        const Bytes boundary = stash_before_recompute(plan_.stage(op.stage).shape, stage_cost);
        program_.buffers.push_back({boundary, forward_[piece], id, device, BufferKind::Boundary});
        program_.buffers.push_back({whole - boundary, recomputed_[piece], id, device, BufferKind::Stash});
      } else {
        program_.buffers.push_back({units.whole_stash(), forward_[piece], id, device, BufferKind::Stash});
      }
      break;
    case OpKind::ScoresGradient:
      if (const StageCost* part = stage_cost.vocabulary.get()) {
        const InstructionId scores = came_[meeting_of(OpKind::Scores)][piece];
        program_.buffers.push_back({part->memory.stash, scores, id, device, BufferKind::Boundary});
        program_.buffers.push_back({part->memory.workspace, id, id, device, BufferKind::Boundary});
      }
      break;
    case OpKind::InputGradient:
    case OpKind::Update:
    case OpKind::Scores:
      break;
  }
  if (units.backward_peak().value > 0 && passes_gradient(op.kind))
    program_.buffers.push_back({units.backward_peak(), id, id, device, BufferKind::Boundary});
}

}  // namespace stagecraft
