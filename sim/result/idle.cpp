// Divides the time in which a device does not compute by what it waits for; the report sums it up.

#include "sim/result/idle.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

enum class Phase : std::uint8_t { Filling, Steady, Draining };

bool goes_forward(const Program& p, const Instruction& i) {
  return i.kind == InstructionKind::Forward || (i.kind == InstructionKind::Predict && !p.prediction(i).for_backward);
}

/// Iterations between two drains belong together.
int group_of(const Program& p, const Instruction& i) {
  return p.drain_every > 0 && p.iterations > 1 ? p.iteration_of(i) / p.drain_every : 0;
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

/// Whether an instruction is work: an op, or a collective of an op, which may begin before its computation.
bool begins_work(const Program& p, const Instruction& i) {
  return i.is_compute() || (i.kind == InstructionKind::Collective && p.collective(i).op != 0);
}

class Accounting {
 public:
  Accounting(const Program& program, const Timeline& timeline, std::span<const TimeSpan> spans)
      : p_(program), t_(timeline), spans_(spans), phases_(phases_of(program)), seen_(program.size(), 0) {
    idle_.assign(spans.size(), IdVector<DeviceId, IdleTimes>(program.devices));
  }

  std::vector<IdVector<DeviceId, IdleTimes>> run() {
    const TimeSpan whole = whole_run(p_, t_);
    ends_of_groups();
    IdVector<DeviceId, double> free(p_.devices, whole.begin);
    IdVector<DeviceId, int> group(p_.devices, 0);
    IdVector<DeviceId, InstructionId> last_op(p_.devices);
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      if (!i.is_compute()) continue;
      const DeviceId d = i.device;
      const int current = group_of(p_, i);
      const double emptied = current != group[d] && last_op[d].valid() ? ends_[group[d]] : free[d];
      if (t_.start[n] > free[d]) {
        collect(n, free[d]);
        gap(d, phases_[n], free[d], t_.start[n], std::clamp(emptied, free[d], t_.start[n]));
      }
      free[d] = std::max(free[d], t_.end[n]);
      group[d] = current;
      last_op[d] = n;
    }
    after_last_ops(last_op, free, whole.end);
    return std::move(idle_);
  }

 private:
  /// What a device waits for while it is on the wire.
  struct Message {
    double begin, end;
    bool is_outgoing;  ///< Sent from here.
    Seconds TimeByClass::*part;
  };
  struct Cause {
    Seconds IdleTimes::*idle = nullptr;
    Seconds TimeByClass::*exposed = nullptr;  ///< In place of `idle`.
  };

  void ends_of_groups() {
    for (const InstructionId n : p_.instructions.ids()) {
      const int g = group_of(p_, p_.at(n));
      if (std::ssize(ends_) <= g) ends_.resize(g + 1, 0);
      ends_[g] = std::max(ends_[g], t_.end[n]);
    }
  }

  /// After its last op, a device waits for its own collectives and for the others.
  void after_last_ops(const IdVector<DeviceId, InstructionId>& last_op, const IdVector<DeviceId, double>& free,
                      double end) {
    IdVector<DeviceId, std::vector<Message>> collectives(p_.devices);
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      if (i.kind == InstructionKind::Collective && t_.end[n] > free[i.device])
        collectives[i.device].push_back({t_.start[n], t_.end[n], false, class_of(p_.collective(i).purpose)});
    }
    for (const DeviceId d : last_op.ids()) {
      if (!last_op[d].valid() || free[d] >= end) continue;
      messages_ = std::move(collectives[d]);
      gap(d, Phase::Draining, free[d], end, end);
    }
  }

  /// Splits the time in which a device does not compute; what other devices did before `emptied` was to drain.
  void gap(DeviceId device, Phase phase, double from, double to, double emptied) {
    cuts_.assign({from, emptied, to});
    for (const Message& m : messages_)
      for (const double at : {m.begin, m.end})
        if (at > from && at < to) cuts_.push_back(at);
    std::sort(cuts_.begin(), cuts_.end());
    for (std::size_t k = 1; k < cuts_.size(); ++k) {
      const Cause why = cause(cuts_[k - 1], cuts_[k] <= emptied, phase);
      for (std::size_t s = 0; s < spans_.size(); ++s) {
        IdleTimes& idle = idle_[s][device];
        (why.exposed ? idle.exposed.*why.exposed : idle.*why.idle) +=
            Seconds{spans_[s].overlap(cuts_[k - 1], cuts_[k])};
      }
    }
  }

  /// Collects the messages and collectives that n waits for, and what these wait for in turn: a collective for what is
  /// before it on its device, a message for earlier messages of the same stream.
  void collect(InstructionId n, double from) {
    messages_.clear();
    left_.assign(1, n);
    while (!left_.empty()) {
      const InstructionId at = left_.back();
      left_.pop_back();
      for (const InstructionId w : p_.waits_for(at)) {
        const Instruction& i = p_.at(w);
        if (i.is_compute() || t_.end[w] <= from || std::exchange(seen_[w], n.value + 1) == n.value + 1) continue;
        const bool is_collective = i.kind == InstructionKind::Collective;
        const InstructionId begins = i.kind == InstructionKind::Receive ? p_.transfer(i).send : w;
        messages_.push_back({t_.start[begins], t_.end[w], i.kind == InstructionKind::Send,
                             is_collective ? class_of(p_.collective(i).purpose) : &TimeByClass::messages});
        if (is_collective || (i.stream.valid() && i.stream == p_.at(n).stream)) left_.push_back(w);
      }
    }
  }

  /// Copies from host memory and forwards that are late on purpose are the cause only where nothing else is missing.
  static bool is_last_cause(const Message& m) { return !m.part || m.part == &TimeByClass::host_memory; }

  /// What it waits for from `at` to the next cut: a collective on the wire, a message on the wire, else the first that
  /// is not there yet.
  Cause cause(double at, bool before_emptied, Phase phase) const {
    const Message* next = nullptr;
    const Message* now = nullptr;
    const bool waits_for_others = std::any_of(messages_.begin(), messages_.end(),
                                              [&](const Message& m) { return !is_last_cause(m) && m.end > at; });
    for (const Message& m : messages_) {
      if (waits_for_others && is_last_cause(m)) continue;
      if (m.begin <= at && at < m.end && (!now || m.part != &TimeByClass::messages)) now = &m;
      // Messages of one group begin together; what the device needs from others then decides, not what it sends.
      if (m.begin > at && (!next || m.begin < next->begin || (m.begin == next->begin && next->is_outgoing))) next = &m;
    }
    if (now && !now->part) return {&IdleTimes::start_up};
    if (now) return {.exposed = now->part};
    if (next && next->is_outgoing) return {&IdleTimes::receiver};
    if (before_emptied) return {&IdleTimes::drain};
    if (!next) return {&IdleTimes::other};
    return {phase == Phase::Filling    ? &IdleTimes::start_up
            : phase == Phase::Draining ? &IdleTimes::drain
                                       : &IdleTimes::input};
  }

  const Program& p_;
  const Timeline& t_;
  std::span<const TimeSpan> spans_;
  IdVector<InstructionId, Phase> phases_;
  IdVector<InstructionId, std::int32_t> seen_;       ///< One more than the op that met it last.
  std::vector<IdVector<DeviceId, IdleTimes>> idle_;  ///< [span]
  std::vector<double> ends_;                         ///< [group]: the last end on any device.
  std::vector<Message> messages_;
  std::vector<InstructionId> left_;
  std::vector<double> cuts_;
};

}  // namespace

double TimeSpan::overlap(double from, double to) const {
  return std::max(0.0, std::min(to, end) - std::max(from, begin));
}

TimeSpan whole_run(const Program& program, const Timeline& timeline) {
  TimeSpan span{kInfinity, 0};
  for (const InstructionId n : program.instructions.ids()) {
    if (begins_work(program, program.at(n))) span.begin = std::min(span.begin, timeline.start[n]);
    span.end = std::max(span.end, timeline.end[n]);
  }
  if (span.begin == kInfinity) span.begin = 0;
  return span;
}

Seconds TimeByClass::*class_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::TensorActivation:
    case Purpose::Vocabulary:
      return &TimeByClass::tensor;
    case Purpose::ContextActivation:
      return &TimeByClass::context;
    case Purpose::ExpertActivation:
      return &TimeByClass::expert;
    case Purpose::Stash:
      return &TimeByClass::host_memory;
    case Purpose::LateForward:
      return nullptr;
    case Purpose::GradientSum:
    case Purpose::TiedGradientSum:
    case Purpose::ParameterGather:
      break;
  }
  return &TimeByClass::data;
}

std::vector<IdVector<DeviceId, IdleTimes>> idle_times(const Program& program, const Timeline& timeline,
                                                      std::span<const TimeSpan> spans) {
  return Accounting(program, timeline, spans).run();
}

IdVector<DeviceId, IdleTimes> idle_times(const Program& program, const Timeline& timeline) {
  return std::move(idle_times(program, timeline, std::vector{whole_run(program, timeline)}).front());
}

}  // namespace stagecraft
