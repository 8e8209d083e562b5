#include "sim/program/blocking.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// A row is slots (an op, or ops that run as one); group g stands before slot g, the last one behind all slots.
class Blocking {
 public:
  Blocking(const Schedule& schedule, ProgramWriter& writer) : schedule_(schedule), writer_(writer) {
    const std::size_t devices = schedule.devices.size();
    slots_.resize(devices);
    groups_.resize(devices);
    position_.assign(devices, 0);
    rounds_.resize(writer.plan().stages.size());
    for (std::size_t d = 0; d < devices; ++d) cut_into_slots(static_cast<int>(d));
    collect_messages();
  }

  void run() {
    for (int d = 0; d < static_cast<int>(slots_.size()); ++d) launch(d);
    while (!ready_.empty()) {
      const int d = ready_.back();
      ready_.pop_back();
      while (advance(d)) {
      }
    }
    for (int d = 0; d < static_cast<int>(slots_.size()); ++d)
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
  struct Round {
    int arrived = 0;
    bool reduced = false;
  };

  Group& group(int d, std::size_t g) { return groups_[d][g]; }
  Group& current(int d) { return group(d, position_[d]); }
  bool done(int d) const {
    const auto i = static_cast<std::size_t>(d);
    return position_[i] == slots_[i].size() && groups_[i].back().launched && groups_[i].back().pending == 0;
  }

  void cut_into_slots(int d) {
    const auto& row = schedule_.devices[d];
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
      for (std::size_t d = 0; d < slots_.size(); ++d)
        for (std::size_t s = 0; s < slots_[d].size(); ++s)
          for (std::size_t i = 0; i < slots_[d][s].count; ++i)
            visit(static_cast<int>(d), s, schedule_.devices[d][slots_[d][s].first + i]);
    };
    each_op([&](int d, std::size_t s, const Op& op) {
      if (op.kind == OpKind::Update) return;
      const std::size_t piece =
          writer_.pieces().of(op.stage, op.micro, replica_on(writer_.plan().stage(op.stage), DeviceId{d}));
      if (op.kind == OpKind::Forward) forward_slot[piece] = static_cast<int>(s);
      if (passes_gradient(op.kind)) backward_slot[piece] = static_cast<int>(s);
    });
    each_op([&](int d, std::size_t s, const Op& op) {
      writer_.for_each_message(DeviceId{d}, op, [&](const Message& m) {
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
  void launch(int d) {
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

  void finish(int d, int g, InstructionId written) {
    Group& own = group(d, static_cast<std::size_t>(g));
    own.written.push_back(written);
    if (--own.pending == 0) ready_.push_back(d);
  }

  /// Writes the device's next slot when its group is through; false when it has to wait.
  bool advance(int d) {
    auto& position = position_[d];
    if (position == slots_[d].size() || !current(d).launched || current(d).pending != 0) return false;
    const Slot slot = slots_[d][position];
    const Op& front = schedule_.devices[d][slot.first];
    Group& g = current(d);
    if (front.kind == OpKind::Update && !reduce(d, front, g)) return false;
    const InstructionId last = writer_.compute(DeviceId{d}, slot.first, slot.first + slot.count, g.written);
    for (const std::size_t m : g.receives) writer_.consume(traffic_[m].receive, last);
    g.written = {};
    ++position;
    const bool idle = current(d).pending == 0;
    current(d).launched = true;
    if (idle) return true;
    launch(d);
    return false;
  }

  /// An update waits for the all-reduces of its round, which are written when the last of those devices arrives.
  bool reduce(int d, const Op& op, Group& g) {
    const GradientGroups& groups = writer_.groups();
    if (!groups.waits(op.stage)) return true;
    const auto& devices = groups.round_devices(op.stage);
    auto& rounds = rounds_[groups.round(op.stage)];
    rounds.resize(std::max(rounds.size(), static_cast<std::size_t>(op.micro) + 1));
    Round& r = rounds[op.micro];
    if (r.reduced) {
      writer_.add_reduced(op.stage, DeviceId{d}, g.written);
      return true;
    }
    if (++r.arrived < static_cast<int>(devices.size())) return false;
    writer_.reduce_round(op.stage, op.micro);
    r.reduced = true;
    for (const DeviceId other : devices) ready_.push_back(other);
    return false;
  }

  std::string at(int d) {
    const auto i = static_cast<std::size_t>(d);
    if (position_[i] == slots_[i].size()) return fmt::format("rank {} at its end", d);
    return fmt::format("rank {} before {}", d, to_text(schedule_.devices[i][slots_[i][position_[i]].first]));
  }

  /// A device at an update waits for the devices of its round that have not come to it.
  void wait_for_group(int d, Digraph& graph) const {
    const auto i = static_cast<std::size_t>(d);
    const auto update_at = [&](std::size_t device) -> const Op* {
      if (position_[device] == slots_[device].size() || !groups_[device][position_[device]].launched ||
          groups_[device][position_[device]].pending != 0)
        return nullptr;
      const Op& op = schedule_.devices[device][slots_[device][position_[device]].first];
      return op.kind == OpKind::Update ? &op : nullptr;
    };
    const Op* const own = update_at(i);
    if (own == nullptr) return;
    const GradientGroups& groups = writer_.groups();
    for (const DeviceId other : groups.round_devices(own->stage)) {
      const Op* const theirs = update_at(static_cast<std::size_t>(other));
      const bool there =
          theirs != nullptr && theirs->micro == own->micro && groups.round(theirs->stage) == groups.round(own->stage);
      if (other != d && !there) graph.add(d, other);
    }
  }

  [[noreturn]] void explain() {
    Digraph graph(static_cast<int>(slots_.size()));
    std::vector<std::vector<std::size_t>> stuck(slots_.size());
    for (int d = 0; d < graph.size(); ++d) {
      if (done(d)) continue;
      for (const auto* list : {&current(d).sends, &current(d).receives})
        for (const std::size_t m : *list) {
          const Traffic& t = traffic_[m];
          if (t.receive.valid() || (t.message.from == d && t.send.valid())) continue;
          graph.add(d, t.message.from == d ? t.message.to : t.message.from);
          stuck[d].push_back(m);
        }
    }
    for (int d = 0; d < graph.size(); ++d) wait_for_group(d, graph);
    const auto cycle = shortest_cycle(graph);
    std::string text;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int d = cycle[i], other = cycle[(i + 1) % cycle.size()];
      bool message_found = false;
      for (const std::size_t m : stuck[d]) {
        const Message& message = traffic_[m].message;
        if (message.from != other && message.to != other) continue;
        message_found = true;
        const char kind = message.gradient ? 'B' : 'F';
        text += fmt::format("{}{} waits to {} {}{}{} {} rank {}", text.empty() ? "" : "; ", at(d),
                            message.from == d ? "send" : "receive", message.stage.value, kind, message.micro,
                            message.from == d ? "to" : "from", other);
        break;
      }
      if (!message_found)
        text += fmt::format("{}{} waits for rank {} to join the all-reduce", text.empty() ? "" : "; ", at(d), other);
    }
    throw Infeasible(
        "deadlock", "communication blocks for ever: " + text,
        "set run.overlap: true, or run.transfers: eager, so that an exchange is not in the way of the op it waits for");
  }

  const Schedule& schedule_;
  ProgramWriter& writer_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<std::vector<Group>> groups_;
  std::vector<Traffic> traffic_;
  std::vector<std::size_t> position_;
  std::vector<std::vector<Round>> rounds_;  ///< Of each round of updates, and number.
  std::vector<int> ready_;
};

}  // namespace

void lower_blocking(const Schedule& schedule, ProgramWriter& writer) { Blocking(schedule, writer).run(); }

}  // namespace stagecraft
