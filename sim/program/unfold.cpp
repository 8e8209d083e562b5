// Gives each device of a group its own instructions, for real backends and `run.detail: devices`.

#include "sim/program/unfold.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/program/collective_groups.hpp"
#include "sim/program/group_members.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft {
namespace {

void require_one_direction(const Plan& plan) {
  for (const Stage& stage : plan.stages)
    if (stage.twin.valid() || stage.turns() > 1)
      throw InputError(fmt::format("stage '{}' {}, and real runs with groups of devices or divided states do not "
                                   "know that",
                                   stage.name,
                                   stage.twin.valid() ? "has a twin that runs the other half of the micro-batches"
                                                      : "takes micro-batches in turn with its replicas"),
                       "a schedule with one direction, such as 1f1b; or --backend ideal, fluid or simgrid");
}

void require_equal_groups(const Plan& plan, const char* reason, const char* help) {
  const Stage& first = plan.stages.front();
  for (const Stage& stage : plan.stages) {
    if (stage.shape.degrees.tensor == first.shape.degrees.tensor &&
        stage.shape.degrees.context == first.shape.degrees.context)
      continue;
    throw InputError(
        fmt::format("stages '{}' and '{}' have groups of different shapes, and {}", first.name, stage.name, reason),
        help);
  }
}

class Unfolder {
 public:
  enum class Collectives { OfReplicas, All };

  Unfolder(const Program& folded, const Plan& plan, Collectives written)
      : p_(folded),
        plan_(plan),
        writes_all_(written == Collectives::All),
        members_(plan, folded.devices),
        size_(members_.size()) {}

  UnfoldedProgram run() {
    Program& u = out_.program;
    u.predictions = p_.predictions;
    u.edges = p_.edges;
    u.micro_batches = p_.micro_batches;
    u.updates = p_.updates;
    u.delays = p_.delays;
    u.parts = p_.parts;
    u.work = p_.work;
    u.host_states = p_.host_states;
    u.devices = members_.devices();
    u.iterations = p_.iterations;
    u.mini_batch = p_.mini_batch;
    u.load_iterations = p_.load_iterations;
    u.drain_every = p_.drain_every;
    u.rendezvous = p_.rendezvous;
    u.handshakes = p_.handshakes;
    streams();
    messages();
    memory();
    instructions();
    buffers();
    if (p_.workload && !writes_all_) workload();
    return std::move(out_);
  }

 private:
  /// Every device has a stream for its computations; these come first.
  void streams() {
    IdVector<StreamId, Stream>& streams = out_.program.streams;
    for (int d = 0; d < members_.devices(); ++d) streams.push_back({DeviceId{d}, StreamKind::Compute, DeviceId{}});
    for (const Stream& s : p_.streams) {
      auto& copies = streams_.emplace_back();
      for (int m = 0; m < size_; ++m) {
        const DeviceId device = members_.at(s.device, m);
        copies.push_back(
            s.kind == StreamKind::Compute
                ? StreamId{device.value}
                : streams.push_back({device, s.kind, s.peer.valid() ? members_.at(s.peer, m) : DeviceId{}}));
      }
    }
  }

  /// Copy m of number n of any list is number n * size + m.
  std::int32_t copy_of(std::int32_t number, int member) const { return number * size_ + member; }
  InstructionId copy_of(InstructionId old, int member) const {
    return old.valid() ? copies_[old][member] : InstructionId{};
  }

  /// Routes of collectives have other ends in a folded program, which lists them too.
  void messages() {
    std::map<std::int32_t, std::int32_t> first_copy;
    for (const TransferShape& shape : p_.transfer_shapes) {
      std::vector<RouteEnds>& routes = out_.program.routes;
      const auto [first, is_new] = first_copy.try_emplace(shape.route, static_cast<std::int32_t>(routes.size()));
      const RouteEnds ends = p_.routes[shape.route];
      for (int m = 0; m < size_; ++m) {
        if (is_new) routes.push_back({members_.at(ends.from, m), members_.at(ends.to, m)});
        out_.program.transfer_shapes.emplace_back(shape).route = first->second + m;
      }
    }
    for (const Transfer& t : p_.transfers)
      for (int m = 0; m < size_; ++m) out_.program.transfers.emplace_back(t).shape = copy_of(t.shape, m);
  }

  void memory() {
    out_.program.memory.resize(members_.devices());
    for (const DeviceId d : out_.program.memory.ids())
      if (const DeviceId leader = members_.place_of(d).first; leader.value < std::ssize(p_.memory))
        out_.program.memory[d] = p_.memory[leader];
  }

  InstructionId emit(InstructionId old, int member, std::int32_t payload) {
    Program& u = out_.program;
    Instruction i = p_.at(old);
    i.device = members_.at(i.device, member);
    if (i.stream.valid()) i.stream = streams_[i.stream][member];
    i.payload = payload;
    const InstructionId id = u.instructions.push_back(i);
    for (const InstructionId w : p_.waits_for(old)) u.waits.push_back(copy_of(w, member));
    u.first_wait.push_back(static_cast<std::uint32_t>(u.waits.size()));
    if (!p_.traffic.empty()) u.traffic.push_back(p_.traffic[old]);
    copies_[old][member] = id;
    return id;
  }

  void instructions() {
    out_.program.first_wait.push_back(0);
    copies_.assign(p_.size(), std::vector<InstructionId>(size_));
    for (const InstructionId old : p_.instructions.ids()) {
      const Instruction& i = p_.at(old);
      if (i.kind == InstructionKind::Collective) {
        if (p_.collective(i).first == old) writes_all_ ? split_collective(i) : collective(i);
      } else if (i.is_message()) {
        message(old);
      } else {
        for (int m = 0; m < size_; ++m) emit(old, m, i.payload);
      }
    }
    for (const InstructionId old : p_.instructions.ids()) out_.leaders.push_back(copies_[old][0]);
    for (Transfer& t : out_.program.transfers) {
      const int member = static_cast<int>(&t - out_.program.transfers.data()) % size_;
      t.producer = copy_of(t.producer, member);
      t.consumer = copy_of(t.consumer, member);
    }
  }

  /// With rendezvous each receive is next to its send.
  void message(InstructionId old) {
    const Instruction& i = p_.at(old);
    if (i.kind == InstructionKind::Receive && p_.rendezvous) return;
    for (int m = 0; m < size_; ++m) {
      Transfer& t = out_.program.transfers[copy_of(i.payload, m)];
      if (i.kind == InstructionKind::Receive) {
        t.receive = emit(old, m, copy_of(i.payload, m));
        continue;
      }
      t.send = emit(old, m, copy_of(i.payload, m));
      if (p_.rendezvous) t.receive = emit(p_.transfers[i.payload].receive, m, copy_of(i.payload, m));
    }
  }

  /// One collective for each tensor rank; its ranks are the replicas, and in each of them the context ranks.
  void collective(const Instruction& first) {
    const CollectiveCall& c = p_.collective(first);
    if (!sums_gradients(c.purpose)) return for_each_member(c);
    const StageShape& shape = plan_.stage(first.stage).shape;
    Program& u = out_.program;
    const int tensor = shape.degrees.tensor, context = shape.degrees.context;
    for (int t = 0; t < tensor; ++t) {
      CollectiveCall copy = c;
      copy.first = u.instructions.next_id();
      copy.members = c.members * context;
      copy.shape = shape_of(c.shape, t, shape.sharding != StateSharding::None && c.purpose == Purpose::GradientSum);
      u.collectives.push_back(copy);
      for (int rank = 0; rank < c.members; ++rank)
        for (int k = 0; k < context; ++k) emit(c.member(rank), k * tensor + t, newest_collective());
    }
  }

  std::int32_t shape_of(std::int32_t old, int tensor, bool scatters) {
    shapes_.resize(p_.collective_shapes.size() * size_, -1);
    std::int32_t& index = shapes_[copy_of(old, tensor)];
    if (index >= 0) return index;
    CollectiveShape shape = p_.collective_shapes[old];
    if (scatters) shape.kind = CollectiveKind::ReduceScatter;
    shape.first_phase = shape.phases = 0;
    out_.program.collective_shapes.push_back(shape);
    return index = static_cast<std::int32_t>(std::ssize(out_.program.collective_shapes)) - 1;
  }

  void begin_collective(const CollectiveCall& like, std::int32_t shape, std::size_t members) {
    Program& u = out_.program;
    CollectiveCall copy = like;
    copy.first = u.instructions.next_id();
    copy.members = static_cast<std::int32_t>(members);
    copy.shape = shape;
    u.collectives.push_back(copy);
  }

  /// Where collectives have a cost, one for each place in the groups. Else one for each group that the phases join.
  void split_collective(const Instruction& first) {
    const CollectiveCall& c = p_.collective(first);
    const bool has_leaders_alone = c.purpose == Purpose::Vocabulary && p_.leaders.empty();
    if (p_.phases_of(c).empty() || c.purpose == Purpose::Stash || has_leaders_alone) return for_each_member(c);
    std::map<DeviceId, InstructionId> instruction_on;
    for (int rank = 0; rank < c.members; ++rank) instruction_on[p_.at(c.member(rank)).device] = c.member(rank);
    for (const CollectiveGroup& group : groups_of(c)) {
      begin_collective(c, group.shape, group.devices.size());
      for (const DeviceId d : group.devices) {
        const auto [leader, member] = members_.place_of(d);
        emit(instruction_on.at(leader), member, newest_collective());
      }
    }
  }

  std::int32_t newest_collective() const { return static_cast<std::int32_t>(std::ssize(out_.program.collectives)) - 1; }

  /// One for each place in the groups, of the devices at this place. A copy of a stash is of one device.
  void for_each_member(const CollectiveCall& c) {
    for (int m = 0; m < size_; ++m) {
      begin_collective(c,
                       c.purpose == Purpose::Stash        ? copy_shape(c, m)
                       : c.purpose == Purpose::Vocabulary ? exchange_shape(c, m)
                                                          : shape_of(c.shape, m, false),
                       c.members);
      for (int rank = 0; rank < c.members; ++rank) emit(c.member(rank), m, newest_collective());
    }
  }

  /// A copy to or from host memory on the route of one member, of the routes of all.
  std::int32_t copy_shape(const CollectiveCall& c, int member) {
    Program& u = out_.program;
    const std::int32_t shape = shape_of(c.shape, member, false);
    CollectiveShape& of_member = u.collective_shapes[shape];
    if (of_member.phases > 0) return shape;
    CollectivePhase phase = p_.phases_of(c).front();
    of_member.first_phase = static_cast<std::int32_t>(std::ssize(u.phases)), of_member.phases = 1;
    u.routes.push_back(p_.routes[phase.first_route + member]);
    phase.first_route = static_cast<std::int32_t>(std::ssize(u.routes)) - 1, phase.routes = 1;
    u.phases.push_back(phase);
    return shape;
  }

  /// What leaders exchange, between the devices in one place of their groups.
  std::int32_t exchange_shape(const CollectiveCall& c, int member) {
    Program& u = out_.program;
    const std::int32_t shape = shape_of(c.shape, member, false);
    if (u.collective_shapes[shape].phases > 0) return shape;
    const auto first = static_cast<std::int32_t>(std::ssize(u.phases));
    for (CollectivePhase phase : p_.phases_of(c)) {
      const std::int32_t first_route =
          std::exchange(phase.first_route, static_cast<std::int32_t>(std::ssize(u.routes)));
      for (std::int32_t k = 0; k < phase.routes; ++k) {
        const RouteEnds& route = p_.routes[first_route + k];
        u.routes.push_back({members_.at(route.from, member), members_.at(route.to, member)});
      }
      u.phases.push_back(phase);
    }
    CollectiveShape& of_member = u.collective_shapes[shape];
    of_member.first_phase = first, of_member.phases = static_cast<std::int32_t>(std::ssize(u.phases)) - first;
    return shape;
  }

  /// Collectives of one shape have the same members.
  const std::vector<CollectiveGroup>& groups_of(const CollectiveCall& c) {
    groups_.resize(p_.collective_shapes.size());
    std::vector<CollectiveGroup>& groups = groups_[c.shape];
    if (!groups.empty()) return groups;
    std::vector<DeviceId> devices;
    for (int rank = 0; rank < c.members; ++rank)
      for (int m = 0; m < size_; ++m) devices.push_back(members_.at(p_.at(c.member(rank)).device, m));
    return groups = split_by_groups(p_, c, devices, out_.program);
  }

  void buffers() {
    std::vector<Buffer>& buffers = out_.program.buffers;
    for (const Buffer& b : p_.buffers)
      for (int m = 0; m < size_; ++m)
        buffers.push_back(
            {b.size, copy_of(b.allocated_by, m), copy_of(b.freed_by, m), members_.at(b.device, m), b.kind});
    std::stable_sort(buffers.begin(), buffers.end(),
                     [](const Buffer& a, const Buffer& b) { return a.freed_by < b.freed_by; });
  }

  void workload() {
    auto copy = std::make_shared<Workload>(*p_.workload);
    for (const StageId s : copy->stages.ids()) {
      StageWorkload& stage = copy->stages[s];
      const StageShape& shape = plan_.stage(s).shape;
      std::vector<StageReplica> replicas;
      for (const StageReplica& replica : stage.replicas)
        for (int m = 0; m < size_; ++m) replicas.push_back({members_.at(replica.device, m), replica.samples});
      stage.replicas = std::move(replicas);
      stage.degrees = shape.degrees;
      stage.sharding = shape.sharding;
      stage.reshard = shape.reshard;
      stage.exchange = shape.exchange;
    }
    out_.program.workload = std::move(copy);
  }

  const Program& p_;
  const Plan& plan_;
  bool writes_all_;
  GroupMembers members_;
  int size_;
  IdVector<StreamId, std::vector<StreamId>> streams_;           ///< [folded stream][member]
  IdVector<InstructionId, std::vector<InstructionId>> copies_;  ///< [folded instruction][member]
  std::vector<std::vector<CollectiveGroup>> groups_;            ///< [shape of collectives]
  std::vector<std::int32_t> shapes_;                            ///< [copy of a shape of collectives]; -1: not made yet.
  UnfoldedProgram out_;
};

}  // namespace

bool has_groups(const Plan& plan) {
  return std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& s) {
    return s.shape.degrees.divides() || s.shape.sharding != StateSharding::None;
  });
}

UnfoldedProgram unfold(const Program& program, const Plan& plan) {
  require_one_direction(plan);
  require_equal_groups(plan, "real runs send messages between equal groups only",
                       "one group for all stages; or --backend ideal, fluid or simgrid");
  return Unfolder(program, plan, Unfolder::Collectives::OfReplicas).run();
}

UnfoldedProgram unfold_with_collectives(const Program& program, const Plan& plan) {
  require_equal_groups(plan, "messages of single devices are known between equal groups only",
                       "one group for all stages; or run.detail: ops or layers");
  return Unfolder(program, plan, Unfolder::Collectives::All).run();
}

}  // namespace stagecraft
