// Makes a program from a schedule: overlaps communication with computation in one order that cannot deadlock, or leaves
// it to blocking.cpp (`overlap: false`), and has limit_buffers.cpp add waits for buffers.

#include "sim/program/lower.hpp"

#include "sim/core/stop_point.hpp"
#include "sim/program/blocking.hpp"
#include "sim/program/group_sets.hpp"
#include "sim/program/limit_buffers.hpp"
#include "sim/program/writer.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {
namespace {

/// Overlaps communication with computation: each message is sent when its op is written and its receive is posted at
/// that moment on the other side. All streams then agree with one order of the program, so none can block forever.
class OverlappedLowering {
 public:
  OverlappedLowering(const Schedule& schedule, ProgramWriter& writer, std::vector<std::vector<DeviceId>> joint)
      : schedule_(schedule), writer_(writer), sets_(std::move(joint)) {
    forward_inputs_.assign(writer.pieces().size(), -1);
    backward_inputs_.assign(writer.pieces().size(), -1);
    head_.assign(schedule.device_count(), 0);
    gradients_.assign(writer.plan().reductions.size(), 0);
    const std::size_t devices = head_.size();
    inputs_.resize(devices);
    is_prepared_.assign(devices, false);
    joint_.assign(devices, -1);
    for (int set = 0; set < std::ssize(sets_); ++set)
      for (const DeviceId d : sets_[set]) joint_[d] = set;
  }

  void run(const GlobalOrder& order) {
    StopCounter stops;
    for (std::size_t i = 0; i < order.devices.size(); stops.pass()) i += step(order.devices[i]);
  }

 private:
  struct Input {
    InstructionId receive;
    std::int32_t next = -1;
  };

  std::size_t step(DeviceId device) {
    auto& head = head_[device];
    const auto& row = schedule_.row(device);
    const std::size_t first = head, end = group_end(row, first);
    const std::span<const Op> group{row.data() + first, row.data() + end};
    head = end;

    if (!is_prepared_[device]) prepare(device, group, first, end);
    is_prepared_[device] = false;
    const InstructionId last = writer_.compute(device, first, end, inputs_[device]);
    for (const Op& op : group) reduce_early(op);
    for (const InstructionId input : inputs_[device])
      if (group.front().kind != OpKind::Update) writer_.consume(input, last);
    for (const Op& op : group) {
      writer_.for_each_message(device, op, [&](const Message& m) {
        const InstructionId send = writer_.send(m, last);
        push(m.gradient ? backward_inputs_[m.consumer] : forward_inputs_[m.consumer],
             writer_.receive(m, send, InstructionId{}));
      });
    }
    return group.size();
  }

  /// Gathers the inputs of the ops, and writes the collectives inside them, on all devices that begin them together.
  void prepare(DeviceId device, std::span<const Op> group, std::size_t first, std::size_t end) {
    const std::span<const DeviceId> devices =
        joint_[device] < 0 ? std::span<const DeviceId>(&device, 1) : std::span<const DeviceId>(sets_[joint_[device]]);
    for (const DeviceId d : devices) {
      is_prepared_[d] = true;
      inputs_[d].clear();
      for (const Op& op : group) gather(d, op);
    }
    writer_.exchange(devices, first, end, inputs_);
  }

  /// Moves the receives for an op to `inputs_`.
  void gather(DeviceId device, const Op& op) {
    if (op.kind == OpKind::Update) {
      writer_.reduce_before_update(op.stage, op.micro);
      writer_.add_reduced(op.stage, device, inputs_[device]);
      return;
    }
    const bool forward = op.kind == OpKind::Forward;
    if (!forward && !passes_gradient(op.kind)) return;
    const int replica = replica_on(writer_.plan().stage(op.stage), device);
    auto& list = (forward ? forward_inputs_ : backward_inputs_)[writer_.pieces().index(op.stage, op.micro, replica)];
    while (list >= 0) {
      Input& node = pool_[list];
      inputs_[device].push_back(node.receive);
      const std::int32_t next = node.next;
      node.next = free_;
      free_ = list;
      list = next;
    }
  }

  /// Updates with tied parameters wait for the end of an iteration, but the reductions before the tie's own start as
  /// soon as the last of their gradients is made.
  void reduce_early(const Op& op) {
    if (op.kind != OpKind::Backward && op.kind != OpKind::WeightGradient) return;
    if (schedule_.vocabulary != VocabularyPasses::None) return;  // Other gradients of the stage come later.
    const UpdateBarriers& barriers = writer_.barriers();
    if (!barriers.delays(op.stage) || barriers.at(op.stage).reductions.size() == 1) return;
    const Plan& plan = writer_.plan();
    const ReductionId reduction = barriers.reductions(op.stage).front();
    if (plan.reductions[reduction].source != ReductionSource::Replicas) return;
    int each = 0;
    for (const StageId s : plan.reductions[reduction].stages)
      each += plan.micro_batches_per_replica(s) * plan.stage(s).replicas();
    int& count = gradients_[reduction];
    if (++count % each == 0) writer_.reduce(reduction, count / each - 1);
  }

  void push(std::int32_t& list, InstructionId receive) {
    if (free_ < 0) {
      free_ = static_cast<std::int32_t>(pool_.size());
      pool_.emplace_back();
    }
    const std::int32_t node = free_;
    free_ = pool_[node].next;
    pool_[node] = {receive, list};
    list = node;
  }

  const Schedule& schedule_;
  ProgramWriter& writer_;
  std::vector<std::int32_t> forward_inputs_, backward_inputs_;  ///< [piece]: head of its list in `pool_`; -1: empty.
  std::vector<Input> pool_;
  std::int32_t free_ = -1;
  IdVector<DeviceId, std::size_t> head_;
  IdVector<ReductionId, int> gradients_;  ///< [reduction]: gradients made so far, on any device.
  IdVector<DeviceId, std::vector<InstructionId>>
      inputs_;                               ///< What the next ops of a device wait for, or what its newest did.
  IdVector<DeviceId, char> is_prepared_;     ///< Whether `inputs_` belong to the next ops.
  std::vector<std::vector<DeviceId>> sets_;  ///< Devices that begin their ops together.
  IdVector<DeviceId, int> joint_;            ///< The set of each device; -1: none.
};

}  // namespace

Program lower(const Schedule& schedule, const Plan& plan, const StageCosts& costs, const WeightsRule& weights,
              const LoweringOptions& options) {
  std::vector<std::vector<DeviceId>> joint = joint_devices(plan, costs, options.node_of);
  const GlobalOrder order = global_order(schedule, plan, options.iterations, joint);
  if (!order.cycle.empty()) throw Infeasible("cycle", "the order of work can never end", {}, order.cycle);
  STAGECRAFT_CHECK(options.overlap || schedule.vocabulary == VocabularyPasses::None);  // Refused in scenarios.
  ProgramWriter writer(schedule, plan, costs, weights, options);
  if (options.overlap)
    OverlappedLowering(schedule, writer, std::move(joint)).run(order);
  else
    lower_blocking(schedule, writer);
  Program program = writer.finish();
  if (options.buffers.is_limited()) limit_buffers(program, options.buffers);
  return program;
}

}  // namespace stagecraft
