#pragma once

#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// A Program in which every device has its instructions, as real backends need it.
struct UnfoldedProgram {
  Program program;
  /// By the number of an instruction of the folded Program: the instruction that its first device has here.
  IdVector<InstructionId, InstructionId> leaders;
};

/// Whether groups of devices compute a replica together or replicas divide their states.
bool has_groups(const Plan&);

/// Gives each device of a group the instructions of the device that stands for it. Member i of a group sends to member
/// i of another one. A sum of gradients over replicas becomes one for each tensor rank, over all devices with equal
/// parameters; where states are divided, each of them gets its part of the sum (reduce-scatter). Each copy waits for
/// the copies of the same member, so what could not block there cannot block here. Collectives inside an instruction
/// are no instructions: every member of a group runs the same instructions in the same order, and the devices meet
/// inside of them. Phases of collectives, which only simulators read, are dropped.
///
/// Throws InputError where groups differ by stage, or stages with groups have twins or take micro-batches in turn.
UnfoldedProgram unfold(const Program&, const Plan&);

/// Gives each device its instructions as unfold() does, for simulators and for emulated runs whose collectives are
/// messages: with all collectives and their phases, and without a workload. Where an instruction stands for collectives
/// of several groups at the same time, each group has its own instruction, whose members start without the other
/// groups.
///
/// Throws InputError where groups differ by stage.
UnfoldedProgram unfold_with_collectives(const Program&, const Plan&);

}  // namespace stagecraft
