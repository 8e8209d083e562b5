// Writes collectives inside ops, and opens the sums of gradients that are messages or come in buckets (part of
// ProgramWriter). An op begins with what it waits for: its exposed collectives, one after another. The rest of them
// runs next to its computation, and the next op, and messages with its results, wait for it.

#include <algorithm>

#include "sim/program/group_sets.hpp"
#include "sim/program/writer.hpp"

namespace stagecraft {
namespace {

Purpose purpose_of(const Collective& c) {
  switch (c.axis) {
    case Axis::Tensor:
      return Purpose::TensorActivation;
    case Axis::Context:
      return Purpose::ContextActivation;
    case Axis::Expert:
      return Purpose::ExpertActivation;
    case Axis::Data:
      break;
  }
  return c.kind == CollectiveKind::AllGather ? Purpose::ParameterGather : Purpose::GradientSum;
}

std::uint64_t whole_bytes(Bytes bytes) { return static_cast<std::uint64_t>(bytes.value + 0.5); }

}  // namespace

/// Which device stands for which, and the sums of gradients inside a group that updates contain.
void ProgramWriter::find_leaders() {
  for (const StageCost& c : costs_.values()) has_collectives_ = has_collectives_ || c.written() != Written::None;
  if (!has_collectives_) return;
  const std::size_t devices = std::max(program_.devices, plan_.device_count());
  program_.leaders.resize(devices);
  placed_.resize(plan_.stages.size());
  update_collectives_.resize(plan_.stages.size());
  for (auto* list : {&ready_, &overlapped_, &deferred_}) list->resize(devices);
  chain_.resize(devices);
  group_stream_.resize(devices);
  IdVector<DeviceId, bool> is_named(devices, false);
  for (const StageId s : plan_.stages.ids()) {
    const Stage& stage = plan_.stage(s);
    for (const std::vector<DeviceId>& cell : cells_of(stage)) {
      const DeviceId leader =
          *std::find_if(cell.begin(), cell.end(), [&](DeviceId d) { return place_of(stage.leaders, d) >= 0; });
      for (const DeviceId d : cell) {
        program_.leaders[d] = !is_named[d] || program_.leaders[d] == leader ? leader : DeviceId{};
        is_named[d] = true;
      }
    }
    if (cost(s, 0).written() != Written::All) continue;
    const StageCollectives* c = cost(s, 0).collectives.get();
    if (stage.replicas() == 1 && !stage.twin.valid()) update_collectives_[s] = c->gradient_sum;
    append(update_collectives_[s], c->update, true);
  }
}

/// Collectives that are messages move what the first replica has; where collectives have a cost, each replica has its
/// own.
const StageCollectives* ProgramWriter::collectives_on(const Op& op, DeviceId device) const {
  switch (cost(op.stage, 0).written()) {
    case Written::None:
      return nullptr;
    case Written::Exchanges:
    case Written::Braided:
      return cost(op, replica_on(plan_.stage(op.stage), device)).collectives.get();
    case Written::All:
      break;
  }
  return cost(op, 0).collectives.get();
}

const Collectives& ProgramWriter::collectives_of(const Op& op, DeviceId device) const {
  static const Collectives none;
  const StageCollectives* c = collectives_on(op, device);
  if (c == nullptr || op.kind == OpKind::Scores || op.kind == OpKind::ScoresGradient) return none;
  return op.kind == OpKind::Update ? update_collectives_[op.stage] : pass_of(c->passes, op.kind);
}

/// A forward and a backward that run as one, or any ops that do and hide each other's collectives.
bool ProgramWriter::is_pair(std::span<const Op> ops) const {
  if (cost(ops.front().stage, 0).collectives && cost(ops.front().stage, 0).collectives->braids) return ops.size() > 1;
  const auto has = [&](auto&& matches) { return std::any_of(ops.begin(), ops.end(), matches); };
  return has([](const Op& op) { return op.kind == OpKind::Forward; }) &&
         has([](const Op& op) { return passes_gradient(op.kind); });
}

bool ProgramWriter::hides_collectives(const Op& op, DeviceId device) const {
  const StageCollectives* c = collectives_on(op, device);
  if (c == nullptr) return false;
  const Collectives& list = collectives_of(op, device);
  return std::any_of(list.begin(), list.end(), [&](const Collective& o) { return c->hidden_share(o) > 0; });
}

/// Time of the computation of a pair over that of its ops alone. While hidden exchanges run, for H seconds, they take
/// a share s of the multiprocessors: computation of C seconds takes C + s H, or C / (1 - s) where H is longer than
/// that.
double ProgramWriter::pair_slowdown(DeviceId device, std::span<const Op> ops) const {
  if (!has_collectives_ || !is_pair(ops)) return 1;
  Seconds compute, hidden;
  double taken = 0;
  for (const Op& op : ops) {
    compute += duration_of(op, replica_on(plan_.stage(op.stage), device));
    const StageCollectives* c = collectives_on(op, device);
    if (c == nullptr || c->pair_overlap <= 0) continue;
    taken = c->taken;
    hidden += c->pair_overlap * exposed_on(Axis::Expert, collectives_of(op, device));
  }
  if (taken == 0 || compute.value <= 0) return 1;
  return std::min(1 + taken * (hidden / compute), 1 / (1 - taken));
}

void ProgramWriter::exchange(std::span<const DeviceId> devices, std::size_t first, std::size_t end,
                             const IdVector<DeviceId, std::vector<InstructionId>>& inputs) {
  if (!has_collectives_) return;
  const auto& row = schedule_.row(devices.front());
  const std::span<const Op> ops(row.data() + first, row.data() + end);
  const bool paired = is_pair(ops);
  for (const DeviceId d : devices) {
    Chain& chain = chain_[d];
    chain.newest = overlapped_[d];
    ready_[d] = overlapped_[d];
    chain.newest.push_back(last_compute(d));
    chain.newest.insert(chain.newest.end(), inputs[d].begin(), inputs[d].end());
  }
  const std::size_t before = program_.size();
  for (const Op& op : ops) write_collectives(devices, op, paired, false);
  const bool has_exposed = program_.size() > before;
  for (const DeviceId d : devices) {
    if (has_exposed) ready_[d] = chain_[d].newest;
    overlapped_[d] = std::exchange(deferred_[d], {});
  }
  for (const Op& op : ops) {
    const std::size_t hidden = program_.size();
    write_collectives(devices, op, paired, true);
    if (program_.size() == hidden) continue;
    for (const DeviceId d : devices)  // The gather of updated weights runs next to the first op that follows.
      (op.kind == OpKind::Update ? deferred_ : overlapped_)[d] = chain_[d].newest;
  }
}

void ProgramWriter::write_collectives(std::span<const DeviceId> devices, const Op& op, bool in_pair, bool hidden) {
  const DeviceId first = devices.front();
  const bool pair_hides = in_pair && hides_collectives(op, first);
  for (const Collective& c : collectives_of(op, first)) {
    const StageCollectives& stage = *collectives_on(op, first);
    if (!stage.writes(c)) continue;
    const double overlap = pair_hides ? stage.hidden_share(c) : 0;
    const double exposed = (1 - overlap) * c.exposed_share();
    const double share = hidden ? 1 - exposed : exposed;
    if (share <= 0) continue;
    if (!c.parallel)
      for (const DeviceId d : devices) chain_[d].before = std::exchange(chain_[d].newest, {});
    const PlacedCollective& where = placed(op.stage, c);
    for (const DeviceId d : devices)
      if (const auto set = where.set_led_by.find(d); set != where.set_led_by.end())
        write_members(where.sets[set->second].first, op, c, where.sets[set->second].second, share, hidden);
    for (const DeviceId d : devices)  // A device outside of all groups goes on with what it had.
      if (chain_[d].newest.empty()) chain_[d].newest = chain_[d].before;
  }
}

void ProgramWriter::write_members(std::span<const DeviceId> leaders, const Op& op, const Collective& c,
                                  std::int32_t shape, double share, bool hidden) {
  CollectiveCall collective;
  collective.first = program_.instructions.next_id();
  collective.members = static_cast<std::int32_t>(std::ssize(leaders));
  collective.shape = shape;
  collective.rounds = c.rounds;
  collective.micro_batch = op.kind == OpKind::Update ? -1 : op.micro;
  collective.op = letter(op.kind);
  collective.hidden = hidden;
  collective.share = share;
  collective.purpose = purpose_of(c);
  program_.collectives.push_back(collective);
  const bool flows = cost(op.stage, 0).written() == Written::All;
  for (const DeviceId d : leaders) {
    Instruction i;
    i.kind = InstructionKind::Collective;
    i.duration = flows ? Seconds{} : collective.repeats() * c.cost;
    if (!hidden && !c.parallel) {
      if (!group_stream_[d].valid()) group_stream_[d] = stream(d, StreamKind::Collective, DeviceId{});
      i.stream = group_stream_[d];
    }
    i.device = d;
    i.stage = op.stage;
    i.number =
        op.kind == OpKind::Update
            ? op.micro
            : static_cast<int>(std::int64_t{op.micro} * program_.updates[op.stage] / program_.micro_batches[op.stage]);
    i.payload = static_cast<std::int32_t>(std::ssize(program_.collectives)) - 1;
    const InstructionId id = begin(i);
    for (const InstructionId before : chain_[d].before) wait(before);
    follow(i.stream);
    chain_[d].newest.push_back(id);
  }
}

/// Made at the first use: collectives that differ in nothing but their rounds and shares have the same groups.
const ProgramWriter::PlacedCollective& ProgramWriter::placed(StageId s, const Collective& c) {
  for (const PlacedCollective& it : placed_[s])
    if (it.what.axis == c.axis && it.what.of_experts == c.of_experts && it.what.kind == c.kind &&
        it.what.part == c.part && it.what.bytes == c.bytes)
      return it;
  PlacedCollective& fresh = placed_[s].emplace_back(PlacedCollective{c, {}, {}});
  if (cost(s, 0).written() != Written::All) {  // With a cost each device is by itself.
    for (const DeviceId d : plan_.stage(s).leaders) {
      fresh.set_led_by[d] = static_cast<int>(std::ssize(fresh.sets));
      fresh.sets.push_back({{d}, static_cast<std::int32_t>(std::ssize(program_.collective_shapes))});
      program_.collective_shapes.push_back(
          {c.kind, whole_bytes(c.bytes), static_cast<std::int32_t>(std::ssize(program_.phases)), 0});
    }
    return fresh;
  }
  for (GroupSet& set : group_sets(plan_.stage(s), c, options_.node_of)) {
    const CollectiveAlgorithm& algorithm =
        c.axis == Axis::Data ? collective_algorithms::ring : choose_algorithm(c.kind, set.groups);
    fresh.set_led_by[set.leaders.front()] = static_cast<int>(std::ssize(fresh.sets));
    fresh.sets.push_back({set.leaders, add_shape(program_, c.kind, algorithm, set.groups, whole_bytes(c.bytes))});
  }
  return fresh;
}

/// Whether software says what a sum of gradients moves, and it is played.
bool ProgramWriter::plays_groups(const Reduction& reduction) const {
  return cost(reduction.stages.front(), 0).written() == Written::All;
}

/// Tied parameters are summed by each member of a cell with the members of the same place in the cells of the other
/// stages.
std::vector<std::int32_t> ProgramWriter::open_group_shapes(const Reduction& reduction) {
  for (const std::vector<DeviceId>& group : reduction.groups) open_collective_streams(group);
  const Stage& stage = plan_.stage(reduction.stages.front());
  std::vector<std::int32_t> shapes;
  const auto add = [&](CollectiveKind kind, const std::vector<DeviceGroup>& groups, Bytes bytes) {
    shapes.push_back(add_shape(program_, kind, collective_algorithms::ring, groups, whole_bytes(bytes)));
  };
  if (reduction.source == ReductionSource::TiedParameters) {
    for (const std::vector<DeviceId>& leaders : reduction.groups) {
      std::vector<DeviceGroup> groups(stage.shape.degrees.group());
      for (const DeviceId leader : leaders)
        for (const StageId s : reduction.stages)
          if (const int r = replica_on(plan_.stage(s), leader); r >= 0) {
            const std::vector<DeviceId> cell = cells_of(plan_.stage(s))[r];
            for (std::size_t i = 0; i < groups.size(); ++i) groups[i].devices.push_back(cell.at(i));
            break;
          }
      add(CollectiveKind::AllReduce, groups, reduction.bytes / stage.shape.degrees.tensor);
    }
    return shapes;
  }
  for (const Collective& c : cost(reduction.stages.front(), 0).collectives->gradient_sum)
    shapes.push_back(open_sum_shape(reduction, c, c.bytes));
  return shapes;
}

/// A stage and its twin have equal meshes, and their n-th groups have the same parameters. In the middle of an odd
/// number of ranks both are on the same devices, which add up their gradients without messages.
std::int32_t ProgramWriter::open_sum_shape(const Reduction& reduction, const Collective& sum, Bytes bytes) {
  for (const std::vector<DeviceId>& group : reduction.groups) open_collective_streams(group);
  std::vector<DeviceGroup> groups = groups_of(plan_.stage(reduction.stages.front()), sum, options_.node_of);
  for (std::size_t s = 1; s < reduction.stages.size(); ++s) {
    const std::vector<DeviceGroup> more = groups_of(plan_.stage(reduction.stages[s]), sum, options_.node_of);
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const DeviceId d : more.at(g).devices)
        if (place_of(groups[g].devices, d) < 0) groups[g].devices.push_back(d);
  }
  return add_shape(program_, sum.kind, collective_algorithms::ring, groups, whole_bytes(bytes));
}

/// Buckets have one group. Where messages are played, each has its share of the sums of the stage.
std::vector<ProgramWriter::SumPart> ProgramWriter::open_bucket_parts(const Reduction& reduction) {
  std::vector<SumPart> parts;
  if (reduction.groups.empty()) return parts;
  const StageCollectives* c = cost(reduction.stages.front(), 0).collectives.get();
  DeviceParameters whole;
  for (const ReductionBucket& b : reduction.buckets) {
    whole.dense += b.gradients.parameters.dense;
    whole.experts += b.gradients.parameters.experts;
  }
  for (int b = 0; b < std::ssize(reduction.buckets); ++b) {
    const ReductionBucket& bucket = reduction.buckets[b];
    if (!plays_groups(reduction)) {
      for (const std::vector<DeviceId>& group : reduction.groups)
        parts.push_back({.shape = open_shape(reduction, group, bucket.bytes),
                         .bucket = b,
                         .cost = bucket.cost.value_or(Seconds{})});
      continue;
    }
    for (const Collective& sum : c->gradient_sum) {
      double DeviceParameters::*const of_class = sum.of_experts ? &DeviceParameters::experts : &DeviceParameters::dense;
      const double share = bucket.gradients.parameters.*of_class / whole.*of_class;
      if (share > 0) parts.push_back({.shape = open_sum_shape(reduction, sum, share * sum.bytes), .bucket = b});
    }
  }
  return parts;
}

}  // namespace stagecraft
