#include "sim/cost/pass_time.hpp"

#include <algorithm>

namespace stagecraft {

TimeByClass& TimeByClass::operator+=(const TimeByClass& t) {
  products += t.products;
  attention += t.attention;
  memory_bound += t.memory_bound;
  other += t.other;
  launches += t.launches;
  tensor += t.tensor;
  context += t.context;
  expert += t.expert;
  data += t.data;
  messages += t.messages;
  return *this;
}

TimeByClass operator*(double factor, TimeByClass t) {
  for (Seconds* part : {&t.products, &t.attention, &t.memory_bound, &t.other, &t.launches, &t.tensor, &t.context,
                        &t.expert, &t.data, &t.messages})
    *part = factor * *part;
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

TimeByClass pass_time(TimeByClass kernels, double kernel_count, const PassCollectives& collectives,
                      const Accelerator& device, const SoftwareStack& software) {
  TimeByClass times = kernels;
  times.tensor += collectives.tensor;
  times.context += collectives.context;
  times.expert += collectives.expert;
  times.data += std::max(Seconds{}, collectives.weights - times.total());
  const Seconds launches = (kernel_count + collectives.launches) * device.launch;
  times.launches += software.blocking_launches ? launches : std::max(Seconds{}, launches - times.total());
  return times;
}

TimeByClass pass_time(std::span<const Kernel> kernels, const PassCollectives& collectives, const Accelerator& device,
                      const SoftwareStack& software) {
  return pass_time(kernel_time(kernels, device), launch_count(kernels), collectives, device, software);
}

}  // namespace stagecraft
