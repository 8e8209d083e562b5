// Makes messages wait for a buffer on both sides (`run.buffers`), by waits that it adds to a program.

#include "sim/program/limit_buffers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/program/extra_waits.hpp"

namespace stagecraft {
namespace {

/// Messages of an edge in one direction that one device receives, or that one device sends, in the order of their
/// sends.
using MessageLists = std::map<std::tuple<int, TensorRole, DeviceId>, std::vector<const Transfer*>>;

MessageLists lists_of(const Program& p, InstructionId Transfer::*end) {
  MessageLists lists;
  for (const Transfer& t : p.transfers) {
    const TransferShape& shape = p.shape(t);
    lists[{shape.edge, shape.role, p.at(t.*end).device}].push_back(&t);
  }
  return lists;
}

/// Sorted by the ops that read them; a message comes before those that its sender sends after it.
std::vector<const Transfer*> order_of_receives(const Program& p, const std::vector<const Transfer*>& messages) {
  std::map<DeviceId, InstructionId> first_reader;  // By sender, of its messages from here on.
  std::vector<std::pair<InstructionId, const Transfer*>> keyed;
  for (auto m = messages.rbegin(); m != messages.rend(); ++m) {
    const auto [it, is_new] = first_reader.try_emplace(p.at((*m)->send).device, (*m)->consumer);
    it->second = std::min(it->second, (*m)->consumer);
    keyed.emplace_back(it->second, *m);
  }
  std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Transfer*> order;
  for (const auto& [reader, message] : keyed) order.push_back(message);
  return order;
}

void limit_received(const Program& p, int buffers, std::vector<ExtraWait>& waits) {
  for (const auto& [key, messages] : lists_of(p, &Transfer::receive)) {
    std::priority_queue<InstructionId, std::vector<InstructionId>, std::greater<>> taken;  // The ops that free them.
    std::map<InstructionId, InstructionId> waits_of;  // By the op that reads a message: the op that leaves it a buffer.
    for (const Transfer* message : order_of_receives(p, messages)) {
      const auto [it, is_new] = waits_of.try_emplace(message->consumer);
      if (is_new && std::ssize(taken) == buffers) it->second = taken.top(), taken.pop();
      if (is_new) taken.push(message->consumer);
      if (it->second.valid()) waits.push_back({message->receive, it->second});
    }
  }
}

void limit_outgoing(const Program& p, int buffers, std::vector<ExtraWait>& waits) {
  for (const auto& [key, messages] : lists_of(p, &Transfer::send)) {
    std::map<InstructionId, std::vector<InstructionId>> sends;  // By the op that makes them.
    for (const Transfer* message : messages) sends[message->producer].push_back(message->send);
    auto frees = sends.begin();
    int count = 0;
    for (const auto& [producer, unused] : sends) {
      if (++count <= buffers) continue;
      for (const InstructionId send : frees->second) waits.push_back({producer, send});
      ++frees;
    }
  }
}

std::vector<ExtraWait> waits_for_buffers(const Program& p, const MessageBuffers& buffers) {
  std::vector<ExtraWait> waits;
  if (buffers.received > 0) limit_received(p, buffers.received, waits);
  if (buffers.outgoing > 0) limit_outgoing(p, buffers.outgoing, waits);
  return waits;
}

/// The least `run.buffers` above `blocked` with which no message blocks forever. More buffers never add a wait.
int least_buffers(const Program& p, int blocked) {
  const auto works = [&](int each) {
    return order_with(p, waits_for_buffers(p, message_buffers(each))).size() == p.size();
  };
  int low = blocked, high = blocked + 1;
  while (!works(high)) low = high, high = 2 * high;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (works(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

void limit_buffers(Program& program, const MessageBuffers& buffers) {
  STAGECRAFT_CHECK(program.rendezvous);
  const std::vector<ExtraWait> waits = waits_for_buffers(program, buffers);
  const std::vector<InstructionId> order = order_with(program, waits);
  if (order.size() == program.size()) return renumber(program, order, waits);
  const int capacity = std::max(buffers.received, 1);
  throw Infeasible("deadlock",
                   fmt::format("messages block forever with {} for each edge", pluralize(capacity, "buffer")),
                   fmt::format("run.buffers: {}, the fewest that are enough", least_buffers(program, capacity)),
                   cycle_text(program, order, waits));
}

}  // namespace stagecraft
