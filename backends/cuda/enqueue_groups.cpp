// Instructions of devices that meet inside of them.
#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/enqueue_order.hpp"
#include "backends/cuda/queued_communicator.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

/// Where devices meet inside of instructions, each instruction runs on the thread of its device until it has to wait
/// for another device, and others go on meanwhile.
void Enqueuer::put(std::span<const InstructionId> instructions) {
  if (!has_groups_) {
    for (const InstructionId id : instructions) put(id);
    return;
  }
  EnqueueOrder order(p_, instructions);
  while (true) {
    if (threads_.resume()) continue;
    const std::optional<InstructionId> id = order.next();
    if (!id) break;
    const auto work = [this, &order, next = *id] {
      put(next);
      order.done(next);
    };
    const Instruction& i = p_.at(*id);
    i.is_compute() && here(i) ? threads_.run(device(i.device), work) : work();
  }
  if (!order.is_over()) throw InternalError("devices of a group do not come to the same exchange");
}

std::unique_ptr<real::GroupCommunicator> Enqueuer::communicator(const std::vector<DeviceId>& members) {
  has_groups_ = true;
  std::vector<int> devices;
  for (const DeviceId d : members) devices.push_back(device(d));
  return queued_communicator(runtime_, threads_, std::move(devices));
}

}  // namespace stagecraft::cuda
