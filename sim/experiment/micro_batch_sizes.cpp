// Finds the micro-batch sizes in a checked plan, and how many replicas share each micro-batch.

#include "sim/experiment/micro_batch_sizes.hpp"

#include <algorithm>

#include "sim/config/fields.hpp"
#include "sim/plan/device_ranges.hpp"

namespace stagecraft {
namespace {

using config::Value;

template <class Plan>
std::vector<Plan*> plan_parts(Plan& plan) {
  auto* stages = plan.find("stages");
  if (!stages || stages->is_scalar()) return {&plan};
  std::vector<Plan*> parts;
  for (auto& stage : stages->items) parts.push_back(&stage);
  for (auto& stage : stages->members) parts.push_back(&stage.value);
  return parts;
}

int count_in(const Value& map, const char* field) {
  const Value* value = map.find(field);
  return value ? config::as_int(*value) : 1;
}

/// Devices of a replica of a part, which divides itself or is divided as the plan says.
int group_size(const Value& part, const Value& plan) {
  const Value* group = part.has("group") ? part.find("group") : plan.find("group");
  return group ? count_in(*group, "tensor") * count_in(*group, "context") : 1;
}

}  // namespace

std::vector<Value*> sized_parts(Value& plan) { return plan_parts(plan); }

std::vector<int> sharing_replicas(const Value& plan) {
  std::vector<int> replicas;
  for (const Value* part : plan_parts(plan)) {
    const Value* share = part->find("share");
    const Value* devices = part == &plan ? nullptr : part->find("devices");
    int count = count_in(*part, "replicas");
    if (devices) {
      count = 0;
      for (const Value& device : devices->items) count += static_cast<int>(expand_device_range(device.text).size());
      count = std::max(1, count / group_size(*part, plan));
    }
    const bool divides = part->has("micro_batch_size") && !(share && share->text == "micro_batches");
    replicas.push_back(divides ? count : 1);
  }
  return replicas;
}

std::int64_t largest_micro_batch(const Value& plan) {
  const std::vector<const Value*> parts = plan_parts(plan);
  const std::vector<int> replicas = sharing_replicas(plan);
  std::int64_t largest = 0;
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (const Value* size = parts[p]->find("micro_batch_size"))
      largest = std::max(largest, std::int64_t{config::as_int(*size)} * replicas[p]);
  return largest;
}

}  // namespace stagecraft
