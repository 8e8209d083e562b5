// The part of NetRun that sends rows to the devices of their experts, and brings the results back.

#include "backends/real/net_run.hpp"

namespace stagecraft::real {
namespace {

void* row_of(void* rows, std::int64_t row, std::size_t row_bytes) {
  return static_cast<char*>(rows) + static_cast<std::size_t>(row) * row_bytes;
}

std::vector<std::int64_t> sizes_of(const std::vector<std::int64_t>& rows, std::int64_t columns) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t count : rows) sizes.push_back(count * columns);
  return sizes;
}

}  // namespace

/// Every member learns where the rows of all members go, so all of them know the same order.
ExpertRouting NetRun::route(const Node& node, const Activations& a) const {
  const Tensor scores = a.values[node.inputs[1]].tensor();
  std::vector<std::int32_t> choices(scores.rows * node.operation->active);
  memory_->kernels().choose_experts(*node.operation, scores, choices);
  ExpertRouting routing;
  groups_.experts.exchange_on_host(choices, [&](std::span<const GroupCommunicator::HostNumbers> members) {
    routing = route_rows(node.operation->experts, members, expert_place_);
  });
  return routing;
}

/// An all-to-all with as many rows as the router says; all expert-tensor ranks get the same rows.
void NetRun::send_rows(const Node& node, const Activations& a, const Tensor& in, const Tensor& out) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t row_bytes = out.columns * kernels.width();
  const ExpertRouting& routing = a.routings.at(node.routing);
  const auto take_own_rows = [&](std::span<const Tensor> members) {
    for (std::int64_t row = 0; row < out.rows; ++row) {
      const auto& [member, copy] = routing.rows[row];
      kernels.copy(row_of(members[member].data, copy, row_bytes), row_of(out.data, row, row_bytes), row_bytes);
    }
  };
  groups_.experts.collective(CollectiveKind::AllToAll, in.size(), in, kernels.width(), take_own_rows,
                             sizes_of(routing.sent, in.columns));
}

/// Each expert-tensor rank has a part of every sum.
void NetRun::return_rows(const Node& node, const Activations& a, const Tensor& in, const Tensor& out) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t row_bytes = out.columns * kernels.width();
  const ExpertRouting& routing = a.routings.at(node.routing);
  const int ranks = expert_place_.expert_tensor_ranks;
  const auto take_back = [&](std::span<const Tensor> members) {
    for (std::int64_t copy = 0; copy < out.rows; ++copy) {
      const auto& [expert_rank, row] = routing.destinations[copy];
      const Tensor to{row_of(out.data, copy, row_bytes), 1, out.columns};
      for (int t = 0; t < ranks; ++t) {
        const Tensor from{row_of(members[expert_rank * ranks + t].data, row, row_bytes), 1, out.columns};
        if (t == 0)
          kernels.copy(from.data, to.data, row_bytes);
        else
          kernels.add(from, to);
      }
    }
  };
  // As large as the rows were before they were sent: the router decides how many rows a device has of them.
  groups_.experts.collective(CollectiveKind::AllToAll, out.size(), in, kernels.width(), take_back,
                             sizes_of(routing.received, in.columns));
}

}  // namespace stagecraft::real
