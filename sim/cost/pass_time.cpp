// The classes of time, such as products, launches and collectives: adds what a pass takes by class, and takes
// collectives that are instructions out again.

#include "sim/cost/pass_time.hpp"

#include <algorithm>

namespace stagecraft {

std::span<const TimeClass> time_class_list() {
  using T = TimeByClass;
  static constexpr TimeClass classes[] = {
      {"products", "products_s", "Matrix products.", &T::products},
      {"attention", "attention_s", "Core of attention.", &T::attention},
      {"memory-bound kernels", "memory_bound_s", "Kernels that only move bytes.", &T::memory_bound},
      {"other", "other_s", "Layers with given or measured times.", &T::other},
      {"launches", "launches_s", "Waiting for launches of kernels.", &T::launches},
      {"tensor", "tensor_s", "Collectives of the tensor group.", &T::tensor},
      {"context", "context_s", "Collectives of the context group.", &T::context},
      {"expert", "expert_s", "Collectives of the expert group.", &T::expert},
      {"data", "data_s", "Sums of gradients, and gathers of divided weights.", &T::data},
      {"messages", "messages_s", "Waiting for messages between stages that are on the wire.", &T::messages},
      {"host memory", "host_memory_s", "Waiting for activations that come back from host memory.", &T::host_memory},
      {"optimizer", "optimizer_s", "Updates of the weights.", &T::optimizer}};
  return classes;
}

TimeByClass& TimeByClass::operator+=(const TimeByClass& t) {
  for (const TimeClass& c : time_class_list()) this->*c.part += t.*c.part;
  return *this;
}

TimeByClass operator*(double factor, TimeByClass t) {
  for (const TimeClass& c : time_class_list()) t.*c.part = factor * t.*c.part;
  return t;
}

TimeByClass kernel_time(std::span<const Kernel> kernels, const Accelerator& device) {
  TimeByClass times;
  for (const Kernel& kernel : kernels) {
    const bool is_product = kernel.kind == KernelKind::Product || kernel.kind == KernelKind::GroupedProduct;
    Seconds& of_class = kernel.attention_core ? times.attention : is_product ? times.products : times.memory_bound;
    of_class += time_of(kernel, device);
  }
  return times;
}

double launch_count(std::span<const Kernel> kernels) {
  double count = 0;
  for (const Kernel& kernel : kernels) count += kernel.count;
  return count;
}

TimeByClass in_op(TimeByClass pass, Written written) {
  if (written != Written::None) pass.expert = {};
  if (written == Written::Braided) pass.tensor = {};
  if (written == Written::All) pass.tensor = pass.context = pass.data = {};
  return pass;
}

namespace {

Seconds& of_axis(TimeByClass& times, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return times.tensor;
    case Axis::Context:
      return times.context;
    case Axis::Expert:
      return times.expert;
    case Axis::Data:
      break;
  }
  return times.data;
}

}  // namespace

TimeByClass pass_time(TimeByClass kernels, double launch_count, const Collectives& collectives,
                      const Accelerator& device, const SoftwareStack& software, Seconds beside) {
  TimeByClass times = kernels;
  Seconds ahead;
  for (const Collective& c : collectives)
    if (!c.parallel) {
      of_axis(times, c.axis) += c.rounds * c.exposed();
      ahead += c.rounds * c.hidden_by_pass();
    }
  times.data += std::max(Seconds{}, ahead - beside - times.total());
  const Seconds launches = launch_count * device.launch;
  times.launches += software.blocking_launches ? launches : std::max(Seconds{}, launches - times.total());
  return times;
}

}  // namespace stagecraft
