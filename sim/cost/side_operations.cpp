// Finds the operations of a layer, such as shared experts, that can run next to the exchanges of its experts;
// layer_passes.cpp asks.

#include "sim/cost/side_operations.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

bool reads_one_of(const Operation& op, const std::vector<bool>& marked) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](int input) { return input >= 0 && marked[input]; });
}

/// What the results of these operations go into, themselves included.
std::vector<bool> readers_of(const std::vector<Operation>& operations, std::vector<bool> marked) {
  for (std::size_t i = 0; i < operations.size(); ++i) marked[i] = marked[i] || reads_one_of(operations[i], marked);
  return marked;
}

/// What these operations read, themselves included.
std::vector<bool> sources_of(const std::vector<Operation>& operations, std::vector<bool> marked) {
  for (std::size_t i = operations.size(); i-- > 0;)
    for (const int input : operations[i].inputs)
      if (marked[i] && input >= 0) marked[input] = true;
  return marked;
}

}  // namespace

SideOperations side_operations(const std::vector<Operation>& operations) {
  std::vector<bool> dispatches(operations.size(), false);
  for (std::size_t i = 0; i < operations.size(); ++i) dispatches[i] = operations[i].kind == OperationKind::Dispatch;
  if (std::find(dispatches.begin(), dispatches.end(), true) == dispatches.end()) return {};
  const std::vector<bool> after = readers_of(operations, dispatches), before = sources_of(operations, dispatches);
  std::vector<bool> products(operations.size(), false);
  for (std::size_t i = 0; i < operations.size(); ++i)
    products[i] = !after[i] && !before[i] && operations[i].kind == OperationKind::Linear;
  const std::vector<bool> product_before = readers_of(operations, products);
  SideOperations side;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (after[i] || before[i]) continue;
    const bool is_second = products[i] && reads_one_of(operations[i], product_before);
    std::vector<bool> it(operations.size(), false);
    it[i] = true;
    const std::vector<bool> later = readers_of(operations, it);
    bool is_last = true;
    for (std::size_t j = i + 1; j < operations.size(); ++j) is_last = is_last && !(later[j] && products[j]);
    (is_second && is_last ? side.next_to_combine : side.next_to_dispatch).push_back(static_cast<int>(i));
  }
  return side;
}

}  // namespace stagecraft
