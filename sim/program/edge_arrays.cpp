// Which arrays a device stores between its stages because an edge of a plan by `layerpipe` carries them, and after
// which op each is free.

#include "sim/program/edge_arrays.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

EdgeArrays::EdgeArrays(const Plan& plan) : uses_(plan.stages.size()) {
  std::map<std::pair<StageId, int>, std::size_t> index;
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    if (edge.array < 0 || from.leaders != to.leaders) continue;
    STAGECRAFT_CHECK(from.leaders.size() == 1 && from.micro_batch_size == to.micro_batch_size);
    const auto [it, fresh] = index.try_emplace({edge.from, edge.array}, arrays_.size());
    if (fresh) arrays_.push_back({edge.from, {}});
    arrays_[it->second].users.push_back({edge.to, edge.bytes * from.micro_batch_size});
    uses_[edge.to].push_back(it->second);
  }
}

std::vector<Buffer> EdgeArrays::done_with(StageId stage, DeviceId device,
                                          const std::function<InstructionId(StageId)>& ran) const {
  std::vector<Buffer> released;
  for (const std::size_t a : uses_[stage]) {
    const Array& array = arrays_[a];
    std::vector<std::pair<InstructionId, Bytes>> ends;
    for (const User& user : array.users) ends.emplace_back(ran(user.stage), user.size);
    std::sort(ends.begin(), ends.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
    if (!ends.back().first.valid()) continue;
    Bytes largest;
    for (const auto& [end, size] : ends) {
      if (size > largest) released.push_back({size - largest, ran(array.maker), end, device, BufferKind::Boundary});
      largest = std::max(largest, size);
    }
  }
  return released;
}

}  // namespace stagecraft
