// How an Enqueuer puts instructions whose devices exchange arrays inside of them: each device on a cooperative thread.
// Makes the communicators of these groups.
#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/enqueue_order.hpp"
#include "backends/cuda/queued_communicator.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

void Enqueuer::put(std::span<const InstructionId> instructions) {
  if (has_groups_)
    for (const EnqueueUnit& unit : enqueue_order(p_, instructions)) put_together(unit);
  else
    for (const InstructionId id : instructions) put(id);
}

/// Each device runs on its thread until it has to wait for another one, and others go on meanwhile.
void Enqueuer::put_together(std::span<const InstructionId> unit) {
  if (!p_.at(unit.front()).is_compute()) return put(unit.front());
  int left = 0;
  for (const InstructionId id : unit) {
    if (!here(p_.at(id))) continue;
    ++left;
    threads_.run(device(p_.at(id).device), [this, &left, id] {
      put(id);
      --left;
    });
  }
  while (threads_.resume()) continue;
  if (left > 0) throw InternalError("devices of a group do not come to the same exchange");
}

std::unique_ptr<real::GroupCommunicator> Enqueuer::communicator(const std::vector<DeviceId>& members) {
  has_groups_ = true;
  std::vector<int> devices;
  for (const DeviceId d : members) {
    devices.push_back(device(d));
    if (devices.back() < 0) threads_.let_others_go_on();
  }
  const auto carry = [this, members](const std::vector<MessageEnd>& ends) {
    call_nccl(ends, [this, members, ends] { ranks_->exchange(members, ends); });
  };
  return queued_communicator(runtime_, threads_, {members, std::move(devices)}, carry);
}

}  // namespace stagecraft::cuda
