// Checks a finished program independently of the code that made it, and that it fits in memory.

#include "sim/program/check.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/thread_scope.hpp"
#include "sim/program/check_weights.hpp"

namespace stagecraft {
namespace {

/// First every instruction alone, then what connects them.
class Checker {
 public:
  explicit Checker(const Program& program)
      : p_(program),
        last_compute_(p_.streams.size()),
        last_(p_.streams.size()),
        first_of_shape_(p_.collective_shapes.size()),
        sent_(std::max(p_.memory.size(), p_.leaders.size())),
        received_(sent_) {}

  void run() {
    const InstructionId whole;
    require(p_.first_wait.size() == p_.size() + 1 && p_.first_wait.front() == 0 &&
                p_.first_wait.back() == p_.waits.size() && std::is_sorted(p_.first_wait.begin(), p_.first_wait.end()),
            whole, "has wait lists that do not match its instructions");
    require(p_.memory.size() == static_cast<std::size_t>(p_.devices), whole, "has no memory figures for some device");
    require(p_.delays.size() == p_.micro_batches.size(), whole, "has no delay for some stage");
    for (const CollectiveCall& c : p_.collectives)
      require(c.shape >= 0 && c.shape < std::ssize(p_.collective_shapes) && c.rounds >= 1, whole,
              "has a collective without a shape or rounds");
    constexpr int kRanges = 64;
    run_parts(p_.size(), kRanges, [&](int n) { indices(p_.size() * n / kRanges, p_.size() * (n + 1) / kRanges); });
    // From here on every index of an instruction leads somewhere.
    constexpr void (Checker::*kParts[])() = {&Checker::streams, &Checker::weights, &Checker::transfers,
                                             &Checker::collectives, &Checker::buffers};
    run_parts(p_.size(), std::size(kParts), [&](int n) { (this->*kParts[n])(); });
  }

 private:
  void require(bool holds, InstructionId id, const char* what) const {
    if (!holds) fail(id, what);
  }
  [[noreturn]] void fail(InstructionId id, const char* what) const {
    const std::string name = id.valid() ? to_text(p_, id) : "the program";
    throw InternalError(fmt::format("broken program: {} {}", name, what));
  }
  bool waits(InstructionId id, InstructionId on) const {
    const auto list = p_.waits_for(id);
    return std::find(list.begin(), list.end(), on) != list.end();
  }

  /// What the instructions of a range name exists, and what they wait for is before them.
  void indices(std::size_t first, std::size_t end) const {
    for (InstructionId id{first}; id < InstructionId{end}; ++id.value) {
      in_range(id);
      for (const InstructionId w : p_.waits_for(id))
        require(w.valid() && w < id, id, "waits for an instruction that is not before it");
    }
  }

  void in_range(InstructionId id) const {
    const Instruction& i = p_.at(id);
    const auto exists = [](std::int32_t index, std::size_t count) {
      return index >= 0 && static_cast<std::size_t>(index) < count;
    };
    // A message is named by its transfer, so one without cannot be named.
    const bool collective = i.kind == InstructionKind::Collective;
    require(i.is_compute() || exists(i.payload, collective ? p_.collectives.size() : p_.transfers.size()),
            InstructionId{}, "has a message that is in no transfer");
    require(!i.is_message() || exists(p_.transfer(i).shape, p_.transfer_shapes.size()), InstructionId{},
            "has a transfer without a shape");
    require(i.kind != InstructionKind::Predict || exists(i.payload, p_.predictions.size()), InstructionId{},
            "has a prediction that does not exist");
    require(p_.memory.contains(i.device), id, "is on a device that does not exist");
    require(p_.micro_batches.contains(i.stage), id, "is of a stage that does not exist");
    const std::int64_t each = (i.is_numbered_by_update() ? p_.updates : p_.micro_batches)[i.stage];
    require(i.number >= 0 && i.number < p_.iterations * each, id, "is in no iteration");
    require(i.duration.value >= 0 && std::isfinite(i.duration.value), id, "takes no time that a clock can show");
    if (!p_.traffic.empty()) {
      const double bytes = p_.traffic[id];
      require(bytes >= 0 && std::isfinite(bytes), id, "moves no number of bytes in memory");
    }
    require(!i.stream.valid() || p_.streams.contains(i.stream), id, "is in a stream that does not exist");
  }

  void stream_order(InstructionId id) {
    const Instruction& i = p_.at(id);
    if (!i.stream.valid()) return require(!i.is_compute(), id, "computes outside a stream");
    const Stream& stream = p_.streams[i.stream];
    require(stream.device == i.device, id, "is in a stream of another device");
    require(!i.is_compute() || stream.kind == StreamKind::Compute, id, "computes outside a stream");
    auto& last = (stream.kind == StreamKind::Compute ? last_compute_ : last_)[i.stream];
    require(!last.valid() || waits(id, last), id, "does not wait for the instruction before it in its stream");
    if (i.is_compute() || stream.kind != StreamKind::Compute) last = id;
  }

  void streams() {
    for (const InstructionId id : p_.instructions.ids()) stream_order(id);
  }
  void weights() { check_weights(p_); }
  void collectives() {
    for (const CollectiveCall& c : p_.collectives) collective(c);
  }

  void transfers() {
    IdVector<InstructionId, bool> used(p_.size(), false);
    for (const InstructionId w : p_.waits) used[w] = true;
    for (const Transfer& t : p_.transfers) transfer(t, used);
  }

  void transfer(const Transfer& t, const IdVector<InstructionId, bool>& used) const {
    require(t.send.valid() && t.receive.valid(), t.send, "is half a transfer");
    const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
    const RouteEnds& route = p_.ends(t);
    const TransferShape& shape = p_.shape(t);
    require(s.kind == InstructionKind::Send && r.kind == InstructionKind::Receive, t.send,
            "is paired with the wrong kind");
    require(s.payload == r.payload && s.stage == r.stage && s.number == r.number, t.send, "does not match its receive");
    require(shape.edge >= 0 && shape.rows.first >= 0 && shape.rows.count > 0, t.send,
            "is for no edge or has no samples");
    require(s.device == route.from && r.device == route.to && s.device != r.device, t.send, "does not match its route");
    require(!t.producer.valid() ||
                (t.producer < t.send && t.consumer >= t.receive && t.consumer < p_.instructions.next_id()),
            t.send, "is sent before its data are there, or freed before it is received");
    require(!p_.rendezvous || t.receive.value == t.send.value + 1, t.send, "is not next to its receive");
    require(used[t.receive], t.receive, "is received but never used");
    bool producer = false;
    for (const InstructionId w : p_.waits_for(t.send))
      producer = producer || (p_.at(w).is_compute() && p_.at(w).device == s.device);
    require(producer, t.send, "does not wait for the op that makes its data");
  }

  void collective(const CollectiveCall& c) {
    for (int m = 0; m < c.members; ++m)
      require(p_.at(c.member(m)).kind == InstructionKind::Collective &&
                  p_.at(c.member(m)).payload == p_.at(c.first).payload,
              c.member(m), "is not a member of its collective");
    const CollectiveCall*& reference = first_of_shape_[c.shape];
    if (reference == nullptr) {
      reference = &c;
      return c.purpose == Purpose::Stash ? copy(c) : routes(c);
    }
    require(c.members == reference->members, c.first, "has another group than its shape");
    for (int m = 0; m < c.members; ++m)
      require(p_.at(c.member(m)).device == p_.at(reference->member(m)).device, c.member(m),
              "has another group than its shape");
  }

  /// Routes join members, and in a phase none sends or receives on two of them.
  void routes(const CollectiveCall& c) {
    const int group = ++stamp_;
    for (int m = 0; m < c.members; ++m) sent_[p_.at(c.member(m)).device] = received_[p_.at(c.member(m)).device] = group;
    for (const DeviceId d : p_.leaders.ids())
      if (const DeviceId leader = p_.leaders[d]; leader != d && (!leader.valid() || sent_[leader] == group))
        sent_[d] = received_[d] = group;
    for (const CollectivePhase& phase : p_.phases_of(c)) {
      const int before = stamp_++;
      for (std::int32_t k = 0; k < phase.routes; ++k) {
        const RouteEnds& route = p_.routes[phase.first_route + k];
        int &sent = sent_[route.from], &received = received_[route.to];
        require(sent >= group && sent <= before && received >= group && received <= before, c.first,
                "does not match its routes");
        sent = received = stamp_;
      }
    }
  }

  /// Between the device, and those that it stands for, and the memory of their hosts.
  void copy(const CollectiveCall& c) const {
    require(c.members == 1 && p_.phases_of(c).size() == 1, c.first, "is a copy with other members than its device");
    const CollectivePhase& phase = p_.phases_of(c).front();
    for (std::int32_t k = 0; k < phase.routes; ++k) {
      const RouteEnds& route = p_.routes[phase.first_route + k];
      require(route.from.valid() != route.to.valid(), c.first, "does not lead to or from host memory");
      require(k > 0 || std::max(route.from, route.to) == p_.at(c.first).device, c.first, "is of another device");
    }
  }

  void buffers() {
    for (const Buffer& b : p_.buffers) {
      require(b.allocated_by.valid() && b.allocated_by <= b.freed_by && b.freed_by < p_.instructions.next_id(),
              b.allocated_by, "has a buffer that ends before it begins");
      require(b.size.value >= 0, b.allocated_by, "has a buffer of negative size");
    }
  }

  const Program& p_;
  IdVector<StreamId, InstructionId> last_compute_, last_;
  std::vector<const CollectiveCall*> first_of_shape_;
  IdVector<DeviceId, int> sent_, received_;  ///< The stamp of the newest group or phase that used it.
  int stamp_ = 0;
};

std::string breakdown(const ResidentMemory& m, Bytes activations) {
  return fmt::format("weights {}, gradients {}, optimizer state {}, activations {}", to_text(m.weights),
                     to_text(m.gradients), to_text(m.optimizer), to_text(activations));
}

std::string remedy(Bytes resident, Bytes peak, Bytes capacity) {
  if (resident > capacity)
    return fmt::format(
        "weights, gradients and optimizer state alone take {:.2f} times the device: cut the model into more stages, or "
        "use "
        "devices with at least {}",
        resident / capacity, to_text(resident));
  return fmt::format(
      "bring the activations down by {}: smaller micro-batches, recompute: full, a schedule with fewer micro-batches "
      "in "
      "flight, or more stages",
      to_text(peak - capacity));
}

/// Memory of every device over its computations, in program order: the stash, what an op receives, what is resident.
/// Calls visit(device, instruction, live) at each.
template <class Visit>
void for_each_need(const Program& program, Visit&& visit) {
  // A third of all instructions compute; what others take is in place 0 and is not read.
  IdVector<InstructionId, std::uint32_t> place(program.size());
  std::uint32_t computations = 0;
  for (const InstructionId i : program.instructions.ids()) place[i] = program.at(i).is_compute() ? ++computations : 0;
  std::vector<double> taken(computations + 1, 0), given(taken), arriving(taken);
  for (const Transfer& t : program.transfers)
    if (t.consumer.valid()) arriving[place[t.consumer]] += static_cast<double>(program.bytes(t));
  for (const Buffer& b : program.buffers) {
    taken[place[b.allocated_by]] += b.size.value;
    given[place[b.freed_by]] += b.size.value;
  }
  IdVector<DeviceId, double> live;
  for (const ResidentMemory& memory : program.memory) live.push_back(memory.total().value);
  for (const InstructionId i : program.instructions.ids()) {
    const std::uint32_t n = place[i];
    if (n == 0) continue;
    const DeviceId d = program.at(i).device;
    live[d] += taken[n];
    visit(d, i, live[d] + arriving[n]);
    live[d] -= given[n];
  }
}

}  // namespace

void check_program(const Program& program) { Checker(program).run(); }

IdVector<DeviceId, MemoryNeed> memory_peaks(const Program& program) {
  IdVector<DeviceId, MemoryNeed> peaks;
  for (const ResidentMemory& memory : program.memory) peaks.push_back({memory.total(), InstructionId{}});
  for_each_need(program, [&](DeviceId d, InstructionId at, double need) {
    if (Bytes{need} > peaks[d].total) peaks[d] = {Bytes{need}, at};
  });
  return peaks;
}

IdVector<DeviceId, Bytes> memory_needs(const Program& program) {
  IdVector<DeviceId, Bytes> needs;
  for (const MemoryNeed& peak : memory_peaks(program)) needs.push_back(peak.total);
  return needs;
}

void check_memory(const Program& program, const Cluster& cluster, const IdVector<DeviceId, MemoryNeed>& peaks,
                  const std::function<std::string(DeviceId)>& about_device) {
  const auto capacity_of = [&](DeviceId d) { return cluster.type_of(d).usable_memory(); };
  const auto overflow = [&](DeviceId d, Bytes need, const std::string& at) {
    const DeviceType& type = cluster.type_of(d);
    const Bytes capacity = capacity_of(d), resident = program.memory[d].total();
    throw Infeasible("memory",
                     fmt::format("{}{} needs {}{}, but has {} ({} too much)", cluster.devices[d].name,
                                 about_device ? about_device(d) : "", to_text(need), at,
                                 usable_text(capacity, type.memory_reserve), to_text(need - capacity)),
                     remedy(resident, need, capacity), breakdown(program.memory[d], need - resident));
  };
  for (const DeviceId d : program.memory.ids())
    if (capacity_of(d).value > 0 && program.memory[d].total() > capacity_of(d))
      overflow(d, program.memory[d].total(), " for the model alone");
  // The device that lacks most, at its peak; the first of equals. That much more memory on every device is enough.
  const auto excess = [&](DeviceId d) { return peaks[d].total - capacity_of(d); };
  DeviceId worst;
  for (const DeviceId d : peaks.ids()) {
    if (capacity_of(d).value <= 0 || excess(d).value <= 0) continue;
    if (!worst.valid() || excess(d) > excess(worst) || (excess(d) == excess(worst) && peaks[d].at < peaks[worst].at))
      worst = d;
  }
  if (worst.valid()) overflow(worst, peaks[worst].total, " at " + to_text(program, peaks[worst].at));
}

void check_memory(const Program& program, const Cluster& cluster,
                  const std::function<std::string(DeviceId)>& about_device) {
  for (const DeviceId d : program.memory.ids())
    if (cluster.type_of(d).usable_memory().value > 0)
      return check_memory(program, cluster, memory_peaks(program), about_device);
}

}  // namespace stagecraft
