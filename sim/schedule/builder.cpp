#include "sim/schedule/builder.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

bool ends_backward(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::WeightGradient; }

/// Stage and micro-batch of every recomputation that the order has itself.
std::set<std::pair<int, int>> recomputed_in(const std::vector<Op>& row) {
  std::set<std::pair<int, int>> found;
  for (const Op& op : row)
    if (op.kind == OpKind::Recompute) found.emplace(op.stage, op.micro);
  return found;
}

void require_equal_sizes(const Plan& plan, std::string_view schedule) {
  const Stage& first = plan.stages.front();
  if (first.group != 1)
    throw InputError(
        fmt::format("the schedule '{}' takes one micro-batch at a time, but stage 0 groups {}", schedule, first.group),
        "use the schedule 'graph', or group: 1");
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.micro_batch_size == first.micro_batch_size && stage.group == first.group) continue;
    throw InputError(
        fmt::format(
            "the schedule '{}' needs the same micro-batch size and group on every stage, but stage 0 has {} and "
            "{}, and stage {} has {} and {}",
            schedule, first.micro_batch_size, first.group, s, stage.micro_batch_size, stage.group),
        "use the schedule 'graph'");
  }
}

}  // namespace

void alternate(int micro_batches, int warmup, int group, OpList& ops) {
  int forward = 0, backward = 0;
  while (forward < std::min(warmup, micro_batches)) ops.forward(forward++);
  while (backward < micro_batches) {
    for (int i = 0; i < group && backward < forward; ++i) ops.backward(backward++);
    for (int i = 0; i < group && forward < micro_batches; ++i) ops.forward(forward++);
  }
}

Schedule complete(const Schedule& iteration, const Plan& plan, int iterations) {
  Schedule all;
  all.devices.resize(iteration.devices.size());
  for (std::size_t d = 0; d < all.devices.size(); ++d) {
    const auto& row = iteration.devices[d];
    auto& ops = all.devices[d];
    std::vector<int> finished(plan.stages.size(), 0);
    const auto recomputed = recomputed_in(row);
    ops.reserve(row.size() * static_cast<std::size_t>(iterations));
    for (int i = 0; i < iterations; ++i) {
      for (std::size_t begin = 0, end = 0; begin < row.size(); begin = end) {
        end = group_end(row, begin);
        for (std::size_t n = begin; n < end; ++n) {
          const Op& op = row[n];
          if (plan.stage(op.stage).recompute && passes_gradient(op.kind) && !recomputed.contains({op.stage, op.micro}))
            ops.push_back({OpKind::Recompute, false, op.stage, op.micro + i * plan.micro_batches(op.stage)});
        }
        for (std::size_t n = begin; n < end; ++n) {
          if (row[n].kind == OpKind::Update) continue;
          ops.push_back(row[n]);
          ops.back().micro += i * plan.micro_batches(row[n].stage);
        }
        for (std::size_t n = begin; n < end; ++n) {
          const StageId stage = row[n].stage;
          if (!ends_backward(row[n].kind)) continue;
          const int own = plan.own_micro_batches(stage), count = ++finished[static_cast<std::size_t>(stage)];
          if (count % own == 0) ops.push_back({OpKind::Update, false, stage, count / own - 1});
        }
      }
    }
  }
  return all;
}

Schedule by_stage(const Plan& plan, std::string_view schedule, bool share,
                  const std::function<void(StageId, OpList&)>& order) {
  Schedule result;
  result.devices.resize(static_cast<std::size_t>(plan.device_count()));
  std::vector<StageId> owner(result.devices.size());
  for (int s = 0; s < plan.stage_count(); ++s) {
    const StageId stage{s};
    for (const DeviceId device : plan.stage(stage).devices) {
      const StageId other = owner[static_cast<std::size_t>(device)];
      if (other.valid() && !share)
        throw InputError(fmt::format("the schedule '{}' runs one stage on a device, but device {} has stages {} and {}",
                                     schedule, device.value, other.value, s),
                         "give every stage a device of its own, or give the order yourself with the schedule 'csv'");
      owner[static_cast<std::size_t>(device)] = stage;
      OpList list(result.devices[static_cast<std::size_t>(device)], stage);
      order(stage, list);
    }
  }
  return result;
}

Schedule build_schedule(const ScheduleDef& def, ScheduleInput in) {
  if (def.equal_sizes) require_equal_sizes(in.plan, def.name);
  in.depth = depth_to_sink(in.plan.graph());
  if (def.whole) return complete(def.whole(in), in.plan, in.iterations);
  const int passes = def.flushes ? 1 : in.iterations;
  const auto order = [&](StageId stage, OpList& ops) {
    def.stage(in, stage, in.plan.own_micro_batches(stage) * passes, ops);
  };
  return complete(by_stage(in.plan, def.name, !def.trains, order), in.plan, def.flushes ? in.iterations : 1);
}

}  // namespace stagecraft
