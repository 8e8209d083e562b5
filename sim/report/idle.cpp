#include "sim/report/idle.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

enum class Phase : std::uint8_t { Filling, Steady, Draining };

bool goes_forward(const Program& p, const Instruction& i) {
  return i.kind == InstructionKind::Forward || (i.kind == InstructionKind::Predict && !p.prediction(i).for_backward);
}

/// Iterations between two drains belong together.
int group_of(const Program& p, const Instruction& i) {
  return p.drain_every > 0 ? p.iteration_of(i) / p.drain_every : 0;
}

/// In each group a device fills up to its first op that is no forward, and drains after its last forward. A program
/// with forwards alone is filled by its first op.
IdVector<InstructionId, Phase> phases_of(const Program& p) {
  struct GroupState {
    int group = -1;
    bool passed = false;
  };
  IdVector<InstructionId, Phase> phases(p.size(), Phase::Steady);
  const int devices = p.devices;
  IdVector<DeviceId, bool> turns(devices, false);
  for (const Instruction& i : p.instructions)
    if (i.is_compute() && !goes_forward(p, i) && i.kind != InstructionKind::Update) turns[i.device] = true;
  const auto walk = [&](InstructionId n, IdVector<DeviceId, GroupState>& places, Phase phase) {
    const Instruction& i = p.at(n);
    if (!i.is_compute()) return;
    const DeviceId d = i.device;
    GroupState& at = places[d];
    if (const int group = group_of(p, i); at.group != group) at = {group, false};
    const bool passes = phase == Phase::Draining ? goes_forward(p, i) : !turns[d] || !goes_forward(p, i);
    if (phase == Phase::Draining) at.passed = at.passed || passes;
    if (!at.passed) phases[n] = phase;
    at.passed = at.passed || passes;
  };
  IdVector<DeviceId, GroupState> from_end(devices), from_start(devices);
  for (InstructionId n{p.size() - 1}; n.valid(); --n.value) walk(n, from_end, Phase::Draining);
  for (const InstructionId n : p.instructions.ids()) walk(n, from_start, Phase::Filling);
  return phases;
}

class Accounting {
 public:
  Accounting(const Program& program, const Timeline& timeline)
      : p_(program), t_(timeline), phases_(phases_of(program)), idle_(program.devices) {}

  IdVector<DeviceId, IdleTimes> run() {
    bounds();
    IdVector<DeviceId, double> free(idle_.size(), begin_);
    IdVector<DeviceId, int> group(idle_.size(), 0);
    IdVector<DeviceId, bool> used(idle_.size(), false);
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      if (!i.is_compute()) continue;
      const DeviceId d = i.device;
      const int current = group_of(p_, i);
      const double emptied = current != group[d] && used[d] ? ends_[group[d]] : free[d];
      if (t_.start[n] > free[d]) gap(n, free[d], std::clamp(emptied, free[d], t_.start[n]));
      free[d] = std::max(free[d], t_.end[n]);
      group[d] = current;
      used[d] = true;
    }
    for (const DeviceId d : idle_.ids())
      if (used[d]) idle_[d].drain += Seconds{end_ - free[d]};
    return std::move(idle_);
  }

 private:
  struct Message {
    double begin, end;
    bool is_outgoing;    ///< Sent from here.
    bool is_collective;  ///< A collective of this device and others.
  };

  void bounds() {
    begin_ = kInfinity;
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      if (i.is_compute()) begin_ = std::min(begin_, t_.start[n]);
      const int g = group_of(p_, i);
      if (std::ssize(ends_) <= g) ends_.resize(g + 1, 0);
      ends_[g] = std::max(ends_[g], t_.end[n]);
      end_ = std::max(end_, t_.end[n]);
    }
  }

  /// Splits the time from `from` to the start of n; what other devices did before `emptied` was to drain.
  void gap(InstructionId n, double from, double emptied) {
    collect(n, from);
    cuts_.assign({from, emptied, t_.start[n]});
    for (const Message& m : messages_)
      for (const double at : {m.begin, m.end})
        if (at > from && at < t_.start[n]) cuts_.push_back(at);
    std::sort(cuts_.begin(), cuts_.end());
    IdleTimes& idle = idle_[p_.at(n).device];
    for (std::size_t k = 1; k < cuts_.size(); ++k) {
      const Seconds length{cuts_[k] - cuts_[k - 1]};
      cause(idle, cuts_[k - 1], cuts_[k] <= emptied, phases_[n]) += length;
      if (in_collective(cuts_[k - 1])) idle.collective += length;
    }
  }

  /// Collects the messages that n waits for, and earlier messages of the same stream.
  void collect(InstructionId n, double from) {
    messages_.clear();
    std::vector<InstructionId>& left = left_;
    left.assign(1, n);
    while (!left.empty()) {
      const InstructionId at = left.back();
      left.pop_back();
      for (const InstructionId w : p_.waits_for(at)) {
        const Instruction& i = p_.at(w);
        if (i.is_compute() || t_.end[w] <= from) continue;
        const bool received = i.kind == InstructionKind::Receive;
        const InstructionId begins = received ? p_.transfer(i).send : w;
        messages_.push_back(
            {t_.start[begins], t_.end[w], i.kind == InstructionKind::Send, i.kind == InstructionKind::Collective});
        if (i.stream.valid() && i.stream == p_.at(n).stream) left.push_back(w);
      }
    }
  }

  bool in_collective(double at) const {
    return std::any_of(messages_.begin(), messages_.end(),
                       [&](const Message& m) { return m.is_collective && m.begin <= at && at < m.end; });
  }

  /// What it waits for from `at` to the next cut: what is on the wire, else the first message that is not there yet.
  Seconds& cause(IdleTimes& idle, double at, bool before_emptied, Phase phase) const {
    const Message* next = nullptr;
    for (const Message& m : messages_) {
      if (m.begin <= at && at < m.end) return idle.transfer;
      // Messages of one group begin together; what the device needs from others then decides, not what it sends.
      if (m.begin > at && (!next || m.begin < next->begin || (m.begin == next->begin && next->is_outgoing))) next = &m;
    }
    if (next && next->is_outgoing) return idle.receiver;
    if (before_emptied) return idle.drain;
    if (!next) return idle.other;
    return phase == Phase::Filling ? idle.start_up : phase == Phase::Draining ? idle.drain : idle.input;
  }

  const Program& p_;
  const Timeline& t_;
  IdVector<InstructionId, Phase> phases_;
  IdVector<DeviceId, IdleTimes> idle_;
  double begin_ = 0, end_ = 0;
  std::vector<double> ends_;  ///< [group]: the last end on any device.
  std::vector<Message> messages_;
  std::vector<InstructionId> left_;
  std::vector<double> cuts_;
};

}  // namespace

IdVector<DeviceId, IdleTimes> idle_times(const Program& program, const Timeline& timeline) {
  if (program.size() == 0) return IdVector<DeviceId, IdleTimes>(program.devices);
  return Accounting(program, timeline).run();
}

}  // namespace stagecraft
