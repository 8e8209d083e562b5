#include "sim/program/task_memory.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// Updates work on gradients that stay.
bool passes_tensors(const Stage& from, const Stage& to) {
  const bool makes = from.shape.task == StageTask::Forward || from.shape.task == StageTask::InputGradient;
  return makes && to.shape.task != StageTask::Update && to.shape.task != StageTask::TakeWeights;
}

}  // namespace

TaskMemory::TaskMemory(const Plan& plan) : uses_(plan.stages.size()) {
  std::map<std::tuple<StageId, bool, LayerId>, std::size_t> tensor_index;
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    if (from.shape.task == StageTask::Whole || from.leaders != to.leaders || !passes_tensors(from, to)) continue;
    STAGECRAFT_CHECK(from.leaders.size() == 1 && from.micro_batch_size == to.micro_batch_size);
    const LayerId layer = to.shape.layers.front();
    const bool is_first_layer = layer == from.shape.layers.front(),
               output = from.shape.task == StageTask::Forward && !is_first_layer;
    const auto [it, fresh] =
        tensor_index.try_emplace({edge.from, is_first_layer, output ? LayerId{} : layer}, tensors_.size());
    if (fresh) tensors_.push_back({edge.from, {}});
    tensors_[it->second].users.push_back({edge.to, edge.bytes * from.micro_batch_size});
    uses_[edge.to].push_back(it->second);
  }
}

std::vector<TaskMemory::ReleasedBytes> TaskMemory::done_with(StageId stage,
                                                             const std::function<InstructionId(StageId)>& ran) const {
  std::vector<ReleasedBytes> released;
  for (const std::size_t t : uses_[stage]) {
    const Tensor& tensor = tensors_[t];
    std::vector<std::pair<InstructionId, Bytes>> ends;
    for (const User& user : tensor.users) ends.emplace_back(ran(user.stage), user.size);
    std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (!ends.back().first.valid()) continue;
    Bytes largest;
    for (const auto& [end, size] : ends) {
      if (size > largest) released.push_back({ran(tensor.maker), end, size - largest});
      largest = std::max(largest, size);
    }
  }
  return released;
}

}  // namespace stagecraft
