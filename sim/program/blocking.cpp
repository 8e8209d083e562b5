// Lowers a schedule for runtimes whose grouped messages block computation (`overlap: false`), and finds deadlocks.

#include "sim/program/blocking.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/schedule/wait_graph.hpp"

namespace stagecraft {
namespace {

/// A row is slots (an op, or ops that run as one); group g stands before slot g, the last group after all slots.
class Blocking {
 public:
  Blocking(const Schedule& schedule, ProgramWriter& writer)
      : schedule_(schedule), writer_(writer), devices_(devices_by_stage(writer.plan(), schedule.device_count())) {
    const int devices = schedule.device_count();
    slots_.resize(devices);
    groups_.resize(devices);
    position_.assign(devices, 0);
    barriers_.resize(writer.barriers().list().size());
    for (const DeviceId d : slots_.ids()) cut_into_slots(d);
    collect_messages();
  }

  void run() {
    for (const DeviceId d : devices_) launch(d);
    StopCounter stops;
    while (!ready_.empty()) {
      const DeviceId d = ready_.back();
      ready_.pop_back();
      while (advance(d)) {
        stops.pass();
      }
    }
    for (const DeviceId d : slots_.ids())
      if (!done(d)) explain();
  }

 private:
  struct Slot {
    std::size_t first = 0, count = 0;
  };
  struct Group {
    std::vector<std::size_t> sends, receives;  ///< Messages.
    std::size_t pending = 0;
    std::vector<InstructionId> written;
    bool launched = false;
  };
  struct Traffic {
    Message message;
    int from_group = 0, to_group = 0;
    InstructionId send, receive;
  };
  /// One pass of all devices through a barrier of updates.
  struct BarrierPass {
    int arrived = 0;
    bool released = false;
  };

  const std::vector<Op>& row_of(DeviceId d) const { return schedule_.row(d); }
  Group& group(DeviceId d, std::size_t g) { return groups_[d][g]; }
  Group& current(DeviceId d) { return group(d, position_[d]); }
  bool done(DeviceId d) const {
    return position_[d] == slots_[d].size() && groups_[d].back().launched && groups_[d].back().pending == 0;
  }

  void cut_into_slots(DeviceId d) {
    const auto& row = schedule_.row(d);
    auto& slots = slots_[d];
    for (std::size_t i = 0; i < row.size();) {
      const std::size_t end = group_end(row, i);
      slots.push_back({i, end - i});
      i = end;
    }
    groups_[d].resize(slots.size() + 1);
  }

  void collect_messages() {
    std::vector<int> forward_slot(writer_.pieces().size(), -1), backward_slot(forward_slot);
    const auto each_op = [&](auto&& visit) {
      for (const DeviceId d : devices_)
        for (std::size_t s = 0; s < slots_[d].size(); ++s)
          for (std::size_t i = 0; i < slots_[d][s].count; ++i) visit(d, s, row_of(d)[slots_[d][s].first + i]);
    };
    each_op([&](DeviceId d, std::size_t s, const Op& op) {
      if (op.kind == OpKind::Update) return;
      const std::size_t piece =
          writer_.pieces().index(op.stage, op.micro, replica_on(writer_.plan().stage(op.stage), d));
      if (op.kind == OpKind::Forward) forward_slot[piece] = static_cast<int>(s);
      if (passes_gradient(op.kind)) backward_slot[piece] = static_cast<int>(s);
    });
    each_op([&](DeviceId d, std::size_t s, const Op& op) {
      writer_.for_each_message(d, op, [&](const Message& m) {
        const int to_group = (m.gradient ? backward_slot : forward_slot)[m.consumer];
        const std::size_t index = traffic_.size();
        traffic_.push_back({m, static_cast<int>(s) + 1, to_group, {}, {}});
        group(d, s + 1).sends.push_back(index);
        group(m.to, static_cast<std::size_t>(to_group)).receives.push_back(index);
      });
    });
    for (auto& row : groups_)
      for (Group& g : row) g.pending = g.sends.size() + g.receives.size();
  }

  /// Posts the group the device has come to.
  void launch(DeviceId d) {
    Group& g = current(d);
    g.launched = true;
    if (g.pending == 0) ready_.push_back(d);
    for (const std::size_t m : g.sends) try_write(m);
    for (const std::size_t m : g.receives) try_write(m);
  }

  void try_write(std::size_t index) {
    Traffic& t = traffic_[index];
    const bool sender = group(t.message.from, static_cast<std::size_t>(t.from_group)).launched;
    const bool receiver = group(t.message.to, static_cast<std::size_t>(t.to_group)).launched;
    if (writer_.options().rendezvous && !(sender && receiver)) return;
    if (sender && !t.send.valid()) {
      t.send = writer_.send(t.message, writer_.last_compute(t.message.from));
      finish(t.message.from, t.from_group, t.send);
    }
    if (receiver && t.send.valid() && !t.receive.valid()) {
      t.receive = writer_.receive(t.message, t.send, writer_.last_compute(t.message.to));
      finish(t.message.to, t.to_group, t.receive);
    }
  }

  void finish(DeviceId d, int g, InstructionId written) {
    Group& device_group = group(d, static_cast<std::size_t>(g));
    device_group.written.push_back(written);
    if (--device_group.pending == 0) ready_.push_back(d);
  }

  /// Writes the device's next slot when its group is through; false when it has to wait.
  bool advance(DeviceId d) {
    auto& position = position_[d];
    if (position == slots_[d].size() || !current(d).launched || current(d).pending != 0) return false;
    const Slot slot = slots_[d][position];
    const Op& front = row_of(d)[slot.first];
    Group& g = current(d);
    if (front.kind == OpKind::Update && !reduce(d, front, g)) return false;
    const InstructionId last = writer_.compute(d, slot.first, slot.first + slot.count, g.written);
    for (const std::size_t m : g.receives) writer_.consume(traffic_[m].receive, last);
    g.written = {};
    ++position;
    const bool idle = current(d).pending == 0;
    current(d).launched = true;
    if (idle) return true;
    launch(d);
    return false;
  }

  /// An update waits for the reductions of its barrier, which are written when the last device arrives there.
  bool reduce(DeviceId d, const Op& op, Group& g) {
    const UpdateBarriers& barriers = writer_.barriers();
    if (!barriers.delays(op.stage)) return true;
    const auto& devices = barriers.at(op.stage).devices;
    auto& passes = barriers_[barriers.index(op.stage)];
    passes.resize(std::max(std::ssize(passes), std::ptrdiff_t{op.micro} + 1));
    BarrierPass& pass = passes[op.micro];
    if (pass.released) {
      writer_.add_reduced(op.stage, d, g.written);
      return true;
    }
    if (++pass.arrived < std::ssize(devices)) return false;
    writer_.reduce_before_update(op.stage, op.micro);
    pass.released = true;
    for (const DeviceId other : devices) ready_.push_back(other);
    return false;
  }

  std::string at(DeviceId d) const {
    if (position_[d] == slots_[d].size()) return fmt::format("rank {} at its end", d.value);
    return fmt::format("rank {} before {}", d.value, to_text(row_of(d)[slots_[d][position_[d]].first]));
  }

  /// The update that a device waits to run; null when it waits for a message or has ended.
  const Op* update_at(DeviceId d) const {
    const std::size_t position = position_[d];
    if (position == slots_[d].size()) return nullptr;
    const Group& group = groups_[d][position];
    if (!group.launched || group.pending != 0) return nullptr;
    const Op& op = row_of(d)[slots_[d][position].first];
    return op.kind == OpKind::Update ? &op : nullptr;
  }

  /// A device at an update waits for the devices of its barrier that have not reached it.
  void wait_for_group(DeviceId d, WaitGraph& waits) const {
    const Op* const update = update_at(d);
    if (update == nullptr) return;
    const UpdateBarriers& barriers = writer_.barriers();
    if (!barriers.delays(update->stage)) return;
    for (const DeviceId other : barriers.at(update->stage).devices) {
      const Op* const theirs = update_at(other);
      const bool arrived = theirs != nullptr && theirs->micro == update->micro &&
                           barriers.index(theirs->stage) == barriers.index(update->stage);
      if (other != d && !arrived)
        waits.add(d.value, other.value, fmt::format("{} waits for rank {} to join the all-reduce", at(d), other.value));
    }
  }

  void wait_for_messages(DeviceId d, WaitGraph& waits) const {
    const Group& group = groups_[d][position_[d]];
    for (const auto* list : {&group.sends, &group.receives})
      for (const std::size_t m : *list) {
        const Traffic& t = traffic_[m];
        const bool sends = t.message.from == d;
        if (t.receive.valid() || (sends && t.send.valid())) continue;
        const DeviceId other = sends ? t.message.to : t.message.from;
        waits.add(
            d.value, other.value,
            fmt::format("{} waits to {} {}{}{} {} rank {}", at(d), sends ? "send" : "receive", t.message.stage.value,
                        t.message.gradient ? 'B' : 'F', t.message.micro, sends ? "to" : "from", other.value));
      }
  }

  [[noreturn]] void explain() const {
    WaitGraph waits(static_cast<int>(slots_.size()));
    for (const DeviceId d : slots_.ids())
      if (!done(d)) wait_for_messages(d, waits);
    for (const DeviceId d : slots_.ids()) wait_for_group(d, waits);
    throw Infeasible(
        "deadlock", "communication blocks forever",
        "set run.overlap: true, or run.transfers: eager, so that an exchange is not in the way of the op it waits for",
        joined_reasons(waits.shortest_cycle()));
  }

  const Schedule& schedule_;
  ProgramWriter& writer_;
  std::vector<DeviceId> devices_;  ///< Sorted by stage, so that the order of the cluster does not matter.
  IdVector<DeviceId, std::vector<Slot>> slots_;
  IdVector<DeviceId, std::vector<Group>> groups_;
  std::vector<Traffic> traffic_;
  IdVector<DeviceId, std::size_t> position_;
  std::vector<std::vector<BarrierPass>> barriers_;  ///< [barrier][number of the update]
  std::vector<DeviceId> ready_;
};

}  // namespace

void lower_blocking(const Schedule& schedule, ProgramWriter& writer) { Blocking(schedule, writer).run(); }

}  // namespace stagecraft
