// How rows go to the devices of their experts, and back.

#include "backends/real/net_run.hpp"

namespace stagecraft::real {
namespace {

void* row_of(const Tensor& array, std::int64_t row, std::size_t width) {
  return static_cast<char*>(array.data) + row * array.columns * static_cast<std::int64_t>(width);
}

}  // namespace

/// Every member learns where the rows of all members go, so all of them know the same order.
ExpertRouting NetRun::route(const Node& node, const Activations& a) const {
  const Tensor scores = a.values[node.inputs[1]].tensor();
  std::vector<std::int32_t> choices(scores.rows * node.operation->active);
  memory_->kernels().choose_experts(*node.operation, scores, choices);
  ExpertRouting routing;
  // Host memory in place of an array of the device: kernels of groups work on host memory.
  const Tensor mine{choices.data(), 1, std::ssize(choices)};
  groups_.experts.exchange(mine, sizeof(std::int32_t), [&](std::span<const Tensor> members) {
    std::vector<std::span<const std::int32_t>> of_members;
    for (const Tensor& m : members)
      of_members.emplace_back(static_cast<const std::int32_t*>(m.data), static_cast<std::size_t>(m.size()));
    routing = route_rows(node.operation->experts, of_members, expert_place_);
  });
  return routing;
}

/// An all-to-all with as many rows as the router says; all expert-tensor ranks get the same rows.
void NetRun::send_rows(const Node& node, const Activations& a, const Tensor& in, const Tensor& out) const {
  Kernels& kernels = memory_->kernels();
  const ExpertRouting& routing = a.routings.at(node.routing);
  groups_.experts.collective(CollectiveKind::AllToAll, in.size(), in, kernels.width(),
                             [&](std::span<const Tensor> members) {
                               for (std::int64_t row = 0; row < out.rows; ++row) {
                                 const auto& [member, copy] = routing.rows[row];
                                 kernels.copy(row_of(members[member], copy, kernels.width()),
                                              row_of(out, row, kernels.width()), out.columns * kernels.width());
                               }
                             });
}

/// Each expert-tensor rank has a part of every sum.
void NetRun::return_rows(const Node& node, const Activations& a, const Tensor& in, const Tensor& out) const {
  Kernels& kernels = memory_->kernels();
  const std::vector<ExpertRouting::Destination>& destinations = a.routings.at(node.routing).destinations;
  const int ranks = expert_place_.expert_tensor_ranks;
  // As large as the rows were before they were sent: the router decides how many rows a device has of them.
  groups_.experts.collective(
      CollectiveKind::AllToAll, out.size(), in, kernels.width(), [&](std::span<const Tensor> members) {
        for (std::int64_t copy = 0; copy < out.rows; ++copy) {
          const auto& [expert_rank, row] = destinations[copy];
          const Tensor to{row_of(out, copy, kernels.width()), 1, out.columns};
          for (int t = 0; t < ranks; ++t) {
            const Tensor from{row_of(members[expert_rank * ranks + t], row, kernels.width()), 1, out.columns};
            if (t == 0)
              kernels.copy(from.data, to.data, out.columns * kernels.width());
            else
              kernels.add(from, to);
          }
        }
      });
}

}  // namespace stagecraft::real
