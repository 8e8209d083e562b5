// Adds what `plan.offload` asks for to a finished program: forwards that start late, and copies of stashes to the
// memory of hosts and back.

#include "sim/program/offload.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/program/extra_waits.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

/// Forwards and backwards: ops in the order of a device, without its updates.
bool is_pass(const Instruction& i) {
  return i.is_compute() && i.kind != InstructionKind::Update && i.kind != InstructionKind::Predict;
}

IdVector<DeviceId, std::vector<InstructionId>> passes_of(const Program& p) {
  IdVector<DeviceId, std::vector<InstructionId>> rows(p.devices);
  for (const InstructionId n : p.instructions.ids())
    if (is_pass(p.at(n))) rows[p.at(n).device].push_back(n);
  return rows;
}

/// Adds collectives of one member to a program; finish() numbers all instructions again.
class Additions {
 public:
  explicit Additions(Program& program) : p_(program) {}

  /// One for the micro-batch of an op, with what it waits for.
  InstructionId add(CollectiveCall call, const Instruction op, Seconds duration, StreamId stream,
                    std::initializer_list<InstructionId> waits) {
    Instruction i;
    i.kind = InstructionKind::Collective;
    i.duration = duration;
    i.stream = stream;
    i.device = op.device;
    i.stage = op.stage;
    i.number = p_.update_of(op);
    i.payload = static_cast<std::int32_t>(std::ssize(p_.collectives));
    const InstructionId id = p_.instructions.push_back(i);
    for (const auto* on = waits.begin(); on != waits.end(); ++on)
      if (on->valid() && std::find(waits.begin(), on, *on) == on) p_.waits.push_back(*on);
    p_.first_wait.push_back(static_cast<std::uint32_t>(p_.waits.size()));
    if (!p_.traffic.empty()) p_.traffic.push_back(0);
    call.first = id;
    call.members = 1;
    call.micro_batch = op.number;
    call.op = letter(op.kind);
    call.hidden = true;
    p_.collectives.push_back(call);
    return id;
  }
  void wait(InstructionId op, InstructionId on) { extra_.push_back({op, on}); }

  void finish() {
    if (extra_.empty()) return;
    std::vector<ExtraWait> waits = extra_;
    if (!p_.rendezvous)  // An eager receive comes after its send, though it does not wait for it.
      for (const Transfer& t : p_.transfers) waits.push_back({t.receive, t.send});
    renumber(p_, order_with(p_, waits), extra_);
  }

 private:
  Program& p_;
  std::vector<ExtraWait> extra_;
};

/// When instructions may start at the latest without a delay for others. Ops keep the times of the timeline, but for
/// those that may be late.
class LatestStarts {
 public:
  LatestStarts(const Program& p, const Timeline& early, const IdVector<InstructionId, char>& may_be_late)
      : p_(p), early_(early), may_be_late_(may_be_late), start_(early.start), end_(p.size(), kInfinity) {
    for (InstructionId n{p.size() - 1}; n.valid(); --n.value) visit(n);
  }

  double operator[](InstructionId n) const { return start_[n]; }

 private:
  void visit(InstructionId n) {
    const Instruction& i = p_.at(n);
    if (end_[n] < kInfinity && (i.is_message() ? moves(i) : may_be_late_[n]))
      start_[n] = std::max(early_.start[n], end_[n] - (early_.end[n] - early_.start[n]));
    const bool after_start = i.kind == InstructionKind::Collective && p_.collective(i).after < 1;
    for (const InstructionId on : p_.waits_for(n))
      end_[on] = std::min(end_[on], after_start ? early_.end[on] : start_[n]);
    // Both ends of a rendezvous start and end together, and the receive of an eager message ends with its send.
    if (i.kind == InstructionKind::Receive) {
      const InstructionId send = p_.transfer(i).send;
      end_[send] = std::min(end_[send], p_.rendezvous ? start_[n] + (early_.end[send] - early_.start[send]) : end_[n]);
    } else if (i.kind == InstructionKind::Send && p_.rendezvous) {
      for (const InstructionId on : p_.waits_for(p_.transfer(i).receive)) end_[on] = std::min(end_[on], start_[n]);
    }
  }

  /// The end of an eager message that receives may wait for as long as it likes.
  bool moves(const Instruction& i) const { return p_.rendezvous || i.kind == InstructionKind::Send; }

  const Program& p_;
  const Timeline& early_;
  const IdVector<InstructionId, char>& may_be_late_;
  IdVector<InstructionId, double> start_, end_;
};

/// The first pass of each drained part of a device's row, and the forwards after it that come before a backward.
IdVector<InstructionId, InstructionId> first_of_late_forwards(const Program& p) {
  IdVector<InstructionId, InstructionId> first_of(p.size());
  for (const std::vector<InstructionId>& row : passes_of(p)) {
    InstructionId first;
    int group = -1;
    bool fills = false;
    for (const InstructionId n : row) {
      const Instruction& i = p.at(n);
      const int of_op = p.drain_every > 0 ? p.iteration_of(i) / p.drain_every : 0;
      const bool is_forward = i.kind == InstructionKind::Forward;
      if (of_op != group) {
        group = of_op, first = n, fills = is_forward;
        continue;
      }
      fills = fills && is_forward;
      if (fills) first_of[n] = first;
    }
  }
  return first_of;
}

}  // namespace

Program with_late_forwards(Program p, const Timeline& early) {
  const IdVector<InstructionId, InstructionId> first_of = first_of_late_forwards(p);
  IdVector<InstructionId, char> may_be_late(p.size(), false);
  for (const InstructionId n : first_of.ids()) may_be_late[n] = first_of[n].valid();
  const LatestStarts latest(p, early, may_be_late);
  Additions additions(p);
  CollectiveCall late;
  late.purpose = Purpose::LateForward;
  late.after = 0;  // It waits for the start of the first forward.
  const auto first_shape = static_cast<std::int32_t>(std::ssize(p.collective_shapes));
  p.collective_shapes.resize(first_shape + p.devices, {CollectiveKind::Broadcast, 0, 0, 0});  // One of each device.
  for (const InstructionId n : first_of.ids()) {
    if (!first_of[n].valid() || latest[n] <= early.start[n] * (1 + 1e-12)) continue;
    const Seconds delay{latest[n] - early.start[first_of[n]]};
    late.shape = first_shape + p.at(n).device.value;
    additions.wait(n, additions.add(late, p.at(n), delay, StreamId{}, {first_of[n]}));
  }
  additions.finish();
  return p;
}

namespace {

/// Writes the copies of all devices.
class StashCopies {
 public:
  StashCopies(Program& p, const Plan& plan, const Cluster& cluster, const Timeline& base, int ahead,
              const OffloadShare& share, bool partly)
      : p_(p),
        plan_(plan),
        cluster_(cluster),
        router_(cluster),
        base_(base),
        ahead_(ahead),
        share_(share),
        partly_(partly),
        additions_(p) {}

  void run() {
    const IdVector<DeviceId, std::vector<InstructionId>> rows = passes_of(p_);
    find_stashes();
    for (const DeviceId d : rows.ids())
      if (!rows[d].empty()) copy(d, rows[d]);
    additions_.finish();
  }

 private:
  /// A part of a stash that goes to host memory.
  struct Moved {
    std::size_t forward = 0, backward = 0;  ///< Places in the row of the device.
    std::size_t buffer = 0;
    std::uint64_t bytes = 0;
    InstructionId down;
  };
  struct CopyStreams {
    StreamId down, up;
    Seconds latency_down, latency_up;
    Bandwidth rate_down, rate_up;

    /// What goes down and up in this time, alone on its links; a rounding more.
    double most_bytes(double seconds) const {
      const double left = seconds * (1 + 1e-9) - (latency_down + latency_up).value;
      return left / (1 / rate_down.value + 1 / rate_up.value);
    }
  };

  /// The stash that each forward leaves.
  void find_stashes() {
    stash_.assign(p_.size(), -1);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b)
      if (const Buffer& buffer = p_.buffers[b];
          buffer.kind == BufferKind::Stash && p_.at(buffer.allocated_by).kind == InstructionKind::Forward)
        stash_[buffer.allocated_by] = static_cast<std::int32_t>(b);
  }

  CopyStreams open_streams(DeviceId d) {
    const Route down = router_.require(d, DeviceId{}), up = router_.require(DeviceId{}, d);
    const StreamId first = p_.streams.push_back({d, StreamKind::Copy, DeviceId{}});
    const bool takes_turns = cluster_.devices[d].down == cluster_.devices[d].up;
    return {first,          takes_turns ? first : p_.streams.push_back({d, StreamKind::Copy, DeviceId{}}),
            down.latency,   up.latency,
            down.bandwidth, up.bandwidth};
  }

  /// The parts that there is time for, by the places of their forwards.
  std::vector<Moved> moved_on(const std::vector<InstructionId>& row, const CopyStreams& streams) const {
    std::vector<Moved> moved;
    std::map<std::pair<StageId, int>, std::size_t> with_stash;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const Instruction& i = p_.at(row[k]);
      if (i.kind == InstructionKind::Forward) {
        with_stash[{i.stage, i.number}] = k;
        continue;
      }
      const auto forward = with_stash.find({i.stage, i.number});
      if (forward == with_stash.end() || !passes_gradient(*op_kind(i.kind))) continue;
      const InstructionId f = row[forward->second];
      const std::int32_t buffer = stash_[f];
      if (buffer < 0) continue;
      const double asked = share_(p_.at(f)) * p_.buffers[buffer].size.value;
      const double fit = streams.most_bytes(base_.start[row[k]] - base_.end[f]);
      const double bytes = partly_ ? std::min(asked, fit) : asked <= fit ? asked : 0;
      if (bytes >= 1)
        moved.push_back({forward->second, k, static_cast<std::size_t>(buffer), static_cast<std::uint64_t>(bytes + 0.5),
                         InstructionId{}});
    }
    std::sort(moved.begin(), moved.end(), [](const Moved& a, const Moved& b) { return a.forward < b.forward; });
    return moved;
  }

  /// Copies of a device in the order in which they are asked for: fetches at the start of an op, what goes down at its
  /// end.
  void copy(DeviceId d, const std::vector<InstructionId>& row) {
    const CopyStreams streams = open_streams(d);
    std::vector<Moved> moved = moved_on(row, streams);
    std::vector<std::vector<Moved*>> asked(row.size());
    std::vector<Moved*> by_backward;
    for (Moved& m : moved) by_backward.push_back(&m);
    std::sort(by_backward.begin(), by_backward.end(),
              [](const Moved* a, const Moved* b) { return a->backward < b->backward; });
    for (Moved* m : by_backward) asked[std::max(ask(*m), m->forward)].push_back(m);
    auto next = moved.begin();
    for (std::size_t k = 0; k < row.size(); ++k) {
      for (Moved* m : asked[k])
        if (m->forward != k) fetch(*m, row, streams);
      for (; next != moved.end() && next->forward == k; ++next) offload(*next, row, streams);
      for (Moved* m : asked[k])
        if (m->forward == k) fetch(*m, row, streams);
    }
  }

  std::size_t ask(const Moved& m) const { return m.backward - std::min<std::size_t>(m.backward, ahead_); }

  void offload(Moved& m, const std::vector<InstructionId>& row, const CopyStreams& streams) {
    const InstructionId forward = row[m.forward];
    m.down = add(forward, streams.down, m.bytes, false, {forward, last_[streams.down]});
  }

  void fetch(const Moved& m, const std::vector<InstructionId>& row, const CopyStreams& streams) {
    const InstructionId backward = row[m.backward];
    const InstructionId up = add(backward, streams.up, m.bytes, true, {row[ask(m)], m.down, last_[streams.up]});
    additions_.wait(backward, up);
    Buffer& stash = p_.buffers[m.buffer];
    const Bytes part{static_cast<double>(m.bytes)};
    const Buffer whole = stash;
    stash.size = std::max(Bytes{}, stash.size - part);
    p_.buffers.push_back({part, whole.allocated_by, m.down, whole.device, BufferKind::Boundary});
    p_.buffers.push_back({part, up, whole.freed_by, whole.device, BufferKind::Boundary});
    p_.buffers.push_back({part, m.down, up, whole.device, BufferKind::Host});
  }

  InstructionId add(InstructionId op, StreamId stream, std::uint64_t bytes, bool up,
                    std::initializer_list<InstructionId> waits) {
    const Instruction i = p_.at(op);
    CollectiveCall copy;
    copy.purpose = Purpose::Stash;
    copy.shape = shape_of(i, bytes, up);
    if (up) copy.after = 0;  // It waits for the start of an op.
    return last_[stream] = additions_.add(copy, i, {}, stream, waits);
  }

  /// One phase with the routes of all devices that the device stands for.
  std::int32_t shape_of(const Instruction& i, std::uint64_t bytes, bool up) {
    const auto [it, is_new] = shapes_.try_emplace({i.device, i.stage, up, bytes}, 0);
    if (!is_new) return it->second;
    const Stage& stage = plan_.stage(i.stage);
    const auto replica = std::find(stage.leaders.begin(), stage.leaders.end(), i.device) - stage.leaders.begin();
    const int group = stage.shape.degrees.group();
    const auto first_route = static_cast<std::int32_t>(std::ssize(p_.routes));
    for (int m = 0; m < group; ++m) {
      const DeviceId device = stage.all_devices()[replica * group + m];
      p_.routes.push_back(up ? RouteEnds{DeviceId{}, device} : RouteEnds{device, DeviceId{}});
    }
    p_.collective_shapes.push_back(
        {CollectiveKind::Broadcast, bytes, static_cast<std::int32_t>(std::ssize(p_.phases)), 1});
    p_.phases.push_back({bytes, 1, first_route, group});
    return it->second = static_cast<std::int32_t>(std::ssize(p_.collective_shapes)) - 1;
  }

  Program& p_;
  const Plan& plan_;
  const Cluster& cluster_;
  Router router_;
  const Timeline& base_;
  int ahead_;
  const OffloadShare& share_;
  bool partly_;
  Additions additions_;
  IdVector<InstructionId, std::int32_t> stash_;  ///< Index into Program::buffers; -1: it leaves none.
  std::map<StreamId, InstructionId> last_;
  std::map<std::tuple<DeviceId, StageId, bool, std::uint64_t>, std::int32_t> shapes_;
};

}  // namespace

Program with_offloaded_stashes(Program p, const Plan& plan, const Cluster& cluster, const Timeline& base, int ahead,
                               const OffloadShare& share, bool partly) {
  StashCopies(p, plan, cluster, base, ahead, share, partly).run();
  return p;
}

bool copies_stashes(const Program& p) {
  return std::any_of(p.collectives.begin(), p.collectives.end(),
                     [](const CollectiveCall& c) { return c.purpose == Purpose::Stash; });
}

}  // namespace stagecraft
