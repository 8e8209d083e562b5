// Everything that a real run holds: stages, memories, groups and messages; hands each instruction to its stage.

#include "backends/real/session.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "backends/real/group_devices.hpp"
#include "backends/real/stage_weights.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/host.hpp"
#include "sim/program/check.hpp"

namespace stagecraft::real {
namespace {

/// All devices that run here live in the memory of one machine.
void require_memory(const Program& program, const std::function<bool(DeviceId)>& here) {
  const IdVector<DeviceId, Bytes> needs = memory_needs(program);
  Bytes sum;
  for (const DeviceId d : needs.ids())
    if (here(d)) sum += needs[d];
  const Bytes there = free_memory();
  if (sum <= there) return;
  throw Infeasible(
      "memory",
      fmt::format("to really run it takes about {} on this machine, which has {} free", to_text(sum), to_text(there)),
      "a smaller model, or fewer or smaller micro-batches; run.compute: emulated sleeps in place of computing");
}

/// Throws if a device has two copies of the same weights: all-reduces connect different devices, so each copy would
/// train on half of the samples.
void require_copies_apart(const Workload& workload) {
  for (const StageWorkload& stage : workload.stages)
    for (const StageReplica& replica : stage.replicas)
      if (stage.twin.valid() && workload.stages[stage.twin].replica_on(replica.device) >= 0)
        throw Infeasible("devices",
                         fmt::format("device {} has both copies of stage '{}', whose gradients are not added up there "
                                     "when it really runs",
                                     replica.device.value, stage.name),
                         "an even number of stages; --backend ideal or simgrid");
}

bool trains(const Program& program, StageId stage) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& i) { return i.stage == stage && i.kind == InstructionKind::Update; });
}

}  // namespace

Session::Session(const Program& program, const KernelFactory& factory, const std::function<bool(DeviceId)>& here,
                 bool queued, const RemoteMaker& remote, const CommunicatorMaker& communicators,
                 const KernelFactory& host_kernels)
    : p_(program),
      w_(*program.workload),
      factory_(factory),
      width_(width_of(w_)),
      buckets_(program),
      host_copies_(program),
      here_(here),
      remote_(remote),
      communicators_(communicators),
      versions_(program.size(), -1) {
  require_copies_apart(w_);
  if (!queued) require_memory(program, here);
  kernels_.resize(program.devices);
  memories_.resize(kernels_.size());
  host_kernels_.resize(kernels_.size());
  hosts_.resize(kernels_.size());
  compile_nets();
  for (const StageId s : w_.stages.ids()) {
    for (const auto& [device, samples] : w_.stages[s].replicas) {
      if (kernels_[device] || !here(device)) continue;
      kernels_[device] = factory(width_, device);
      memories_[device] = std::make_unique<DeviceMemory>(*kernels_[device]);
      if (host_copies_.empty()) continue;
      host_kernels_[device] = (host_kernels ? host_kernels : factory)(width_, device);
      hosts_[device] = std::make_unique<DeviceMemory>(*host_kernels_[device]);
    }
  }
  const TaskShape& shape = w_.task;
  if (w_.training.optimizer.kind == OptimizerKind::Integer &&
      (shape.losses.empty() || shape.losses.front().kind != OperationKind::SumSquare))
    throw InputError("the optimizer 'integer' is for whole numbers, and this model's loss makes others",
                     "give the model relu and the loss sum_square, and take the task integers");
  const TaskDef& task = get_from(tasks::catalog(), "task", w_.training.task);
  data_ = task.make(shape, w_.training.seed);
  if (!w_.vocabulary.empty()) open_vocabulary();
  std::vector<DeviceMemory*> memories;
  for (const auto& m : memories_) memories.push_back(m.get());
  transfers_ = std::make_unique<TransferTensors>(
      program, [this](StageId s, int replica) -> const StageNet& { return net(s, replica); }, memories, width_);
  const bool whole = w_.training.optimizer.kind == OptimizerKind::Integer;
  const bool mean = !shape.losses.empty() && shape.losses.front().kind != OperationKind::SumSquare;
  for (const StageId id : w_.stages.ids()) {
    const StageWorkload& stage = w_.stages[id];
    const bool learns = trains(program, id);
    starts_.push_back(initial_weights(whole_nets_[id], w_, whole));
    auto& replicas = stages_.emplace_back(stage.replicas.size());
    for (int r = 0; r < std::ssize(replicas); ++r) {
      const DeviceId device = stage.replicas[r].device;
      MemberGroups groups = groups_of(id, r);
      std::vector<WeightSection> sections = sections_of(id, r);
      if (!here(device)) continue;
      if (stage.vocabulary_rank >= 0) open_vocabulary_rank(id, r, groups, sections);
      DeviceMemory& memory = *memories_[device];
      const StagePlace place{
          id,
          r,
          learns && !stage.recomputes,
          learns,
          queued,
          stage.recomputes_cores,
          mean ? program.updates[id] : 1.0,
          groups,
          std::move(sections),
          {stage.degrees.expert, stage.degrees.expert_tensor, stage.place(r).expert, stage.place(r).expert_tensor},
          stage.data_ranks() > 1 ? stage.sharding : StateSharding::None,
          stage.reshard,
          vocabulary_.empty() ? nullptr : vocabulary_[device].get()};
      replicas[r] =
          std::make_unique<StageExecutor>(net(id, r), place, program, memory, *transfers_, *data_, new_store(id, r));
      start_words(id, r);
    }
    if (!queued) starts_.back() = {};
  }
  if (queued) prepare_data();
}

/// Devices at the same place of their groups have equal nets.
void Session::compile_nets() {
  whole_nets_.reserve(w_.stages.size());
  nets_.reserve(w_.stages.size());
  for (const StageId s : w_.stages.ids()) {
    const StageWorkload& stage = w_.stages[s];
    whole_nets_.push_back(compile_stage(w_, s, width_));
    auto& members = nets_.emplace_back();
    const Degrees& d = stage.degrees;
    if (!d.divides()) members.push_back(compile_part(w_, s, {}, width_));
    for (int m = 0; m < std::lcm(d.group(), d.expert * d.expert_tensor) && d.divides(); ++m)
      members.push_back(compile_part(w_, s, stage.place(m), width_));
  }
}

GroupMember Session::group_of(StageId stage, const std::vector<DeviceId>& devices, DeviceId member) {
  if (devices.size() < 2) return {};
  const auto [it, is_new] = groups_.try_emplace({stage, devices});
  const auto members_here = std::count_if(devices.begin(), devices.end(), here_);
  if (is_new && members_here > 0 && communicators_) {
    it->second = communicators_(devices);
  } else if (is_new && members_here > 0) {
    waits_.spins = p_.devices <= usable_cores().count();
    std::unique_ptr<RemoteMembers> others;
    if (members_here < std::ssize(devices)) {
      STAGECRAFT_CHECK(remote_);
      others = remote_(static_cast<int>(groups_.size()) - 1, devices);
    }
    it->second = std::make_unique<ThreadCommunicator>(static_cast<int>(devices.size()), waits_, std::move(others));
  }
  return {it->second.get(), static_cast<int>(std::find(devices.begin(), devices.end(), member) - devices.begin())};
}

std::vector<std::vector<DeviceId>> Session::groups() const {
  std::vector<std::vector<DeviceId>> groups;
  for (const auto& [stage_and_devices, unused] : groups_) groups.push_back(stage_and_devices.second);
  return groups;
}

MemberGroups Session::groups_of(StageId s, int replica) {
  const GroupDevices devices = group_devices(w_.stages[s], replica);
  const DeviceId device = w_.stages[s].replicas[replica].device;
  return {group_of(s, devices.tensor, device), group_of(s, devices.context, device),
          group_of(s, devices.experts, device)};
}

/// Devices with equal weights meet inside of instructions where they divide states, or where no collective of the
/// program sums their gradients: collectives are for the replicas of dense layers.
std::vector<WeightSection> Session::sections_of(StageId s, int replica) {
  const StageWorkload& stage = w_.stages[s];
  const GroupDevices devices = group_devices(stage, replica);
  const DeviceId device = stage.replicas[replica].device;
  std::vector<WeightSection> sections = weight_sections(net(s, replica), stage, replica);
  sections.front().sums_here = stage.degrees.context > 1 && stage.degrees.context == stage.data_ranks();
  if (stage.sharding != StateSharding::None || sections.front().sums_here)
    sections.front().group = group_of(s, devices.data, device);
  if (sections.size() == 1) return sections;
  sections.back().sums_here = sections.back().ranks > 1;
  sections.back().group = group_of(s, devices.expert_data, device);
  return sections;
}

std::unique_ptr<WeightStore> Session::new_store(StageId s, int replica) const {
  const StageWorkload& stage = w_.stages[s];
  const DeviceId device = stage.replicas[replica].device;
  std::vector<double> start = starts_[s];
  const bool has_words = stage.vocabulary_rank >= 0;
  if (stage.degrees.divides() || has_words) start = part_of_weights(net(s, replica), whole_nets_[s], start);
  std::vector<UpdatedRange> updated;
  const std::vector<WeightSection> sections = weight_sections(net(s, replica), stage, replica);
  for (const WeightSection& section : sections) {
    const std::int64_t first = section.first + section.shard.first;
    updated.push_back({stage.shards(StateSharding::Weights) ? section.part : first,
                       stage.shards(StateSharding::Gradients) ? section.part : first, section.part,
                       section.shard.count});
  }
  if (stage.shards(StateSharding::Weights)) start = parts_of(sections, start);
  return std::make_unique<WeightStore>(*memories_[device], start, std::move(updated), w_.training, w_.weights,
                                       trains(p_, s), count_readers(p_, s, device), p_.delays[s]);
}

void Session::interrupt() {
  waits_.interrupted = true;
  for (const auto& [devices, group] : groups_)
    if (group) group->interrupt();
}

void Session::rewind(bool again) {
  for (const auto& replicas : stages_)
    for (const auto& stage : replicas)
      if (stage) stage->let_go();
  transfers_->forget();
  for (const auto& memory : memories_)
    if (memory) memory->forget_peaks();
  std::fill(versions_.begin(), versions_.end(), -1);
  for (const StageId s : stages_.ids())
    for (int r = 0; r < std::ssize(stages_[s]); ++r)
      if (stages_[s][r]) stages_[s][r]->start(new_store(s, r)), start_words(s, r);
  if (!again) starts_.clear();
}

void Session::begin_iteration(std::span<const InstructionId> instructions) {
  for (const InstructionId id : instructions)
    if (const Instruction& i = p_.at(id); i.kind == InstructionKind::Forward && here_(i.device))
      stage_on(i.stage, i.device).stage(i.micro_batch());
}

void Session::end_iteration(int iteration) {
  for (const auto& replicas : stages_)
    for (const auto& stage : replicas)
      if (stage) stage->keep_losses(iteration, p_.iterations);
}

std::optional<std::vector<std::uint64_t>> Session::lasting_arrays() const {
  if (has_groups() || !transfers_->empty()) return {};
  std::vector<std::uint64_t> words;
  for (const auto& replicas : stages_)
    for (const auto& stage : replicas)
      if (stage && !stage->note_arrays(words)) return {};
  return words;
}

void Session::repeat(InstructionId id) {
  const Instruction& i = p_.at(id);
  if (!i.is_compute() || !here_(i.device)) return;
  StageExecutor& stage = stage_on(i.stage, i.device);
  stage.repeat(id);
  versions_[id] = stage.last_version();
}

/// Makes the samples before the run: that takes longer than to enqueue their work, and the device would have to wait.
void Session::prepare_data() {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  std::size_t bytes = 0;
  for (const Instruction& i : p_.instructions)
    if (i.kind == InstructionKind::Forward && kernels_[i.device] && bytes < kMaxBytes)
      bytes += stage_on(i.stage, i.device).prepare(i.micro_batch());
}

StageExecutor& Session::stage_on(StageId stage, DeviceId device) {
  return *stages_[stage][w_.stages[stage].replica_on(device)];
}

void Session::compute(InstructionId id) {
  const Instruction& i = p_.at(id);
  StageExecutor& stage = stage_on(i.stage, i.device);
  if (part_done_)
    for (const InstructionId copy : host_copies_.from_start_of(id)) part_done_(id, copy);
  if (buckets_.waiting_for(id).empty())
    stage.compute(id);
  else
    compute_in_buckets(id, stage);
  versions_[id] = stage.last_version();
}

/// A backward after which gradients are summed in buckets: each sum may start when the layers of its bucket are done.
void Session::compute_in_buckets(InstructionId id, StageExecutor& stage) {
  if (!stage.sums_in_place()) {
    stage.compute(id);
    if (!stage.has_divided_gradients()) stage.gradient();  // Now, because two sums may ask for it at one time.
    return;
  }
  std::span<const WaitingSum> left = buckets_.waiting_for(id);
  const std::int64_t numbers = stage.net().dense_weights;
  stage.compute(id, [&](std::int64_t from) {
    for (; !left.empty() && buckets_.range(left.front().collective, numbers).first >= from; left = left.subspan(1))
      if (part_done_ && left.front().after < 1) part_done_(id, left.front().member);
  });
}

void Session::carry(int transfer) {
  const Instruction& receive = p_.at(p_.transfers[transfer].receive);
  Kernels& kernels = *kernels_[receive.device];
  carry(transfer, [&](const void* from, void* to, std::size_t bytes) { kernels.copy(from, to, bytes); });
}

void Session::collective(int index) {
  const CollectiveCall& c = p_.collectives[index];
  if (c.purpose == Purpose::Stash) return copy_stash(index);
  if (c.purpose == Purpose::Vocabulary) return meet(index);
  if (!only_waits(c)) run_collective(p_, c, *this);
}

void Session::copy_stash(int index) {
  const CollectiveCall& c = p_.collectives[index];
  const Instruction& i = p_.at(c.first);
  StageExecutor& stage = stage_on(i.stage, i.device);
  if (goes_up(p_, c))
    stage.fetch(c.micro_batch);
  else
    stage.offload(c.micro_batch, host_copies_.part(index), *hosts_[i.device]);
}

void Session::finish(int index, std::span<const void* const> shares) {
  const CollectiveCall& c = p_.collectives[index];
  if (c.purpose == Purpose::Vocabulary) return finish_exchange(index, shares);
  if (!only_waits(c)) finish_collective(p_, c, *this, shares);
}

/// Gradients of experts are summed in the update, where other devices have copies of experts.
std::int64_t Session::numbers(const CollectiveCall& c) {
  if (c.purpose == Purpose::Vocabulary) return numbers_exchanged(c);
  const std::int64_t dense = net_on(p_.at(c.first)).dense_weights;
  const int index = p_.at(c.first).collective();
  return buckets_.is_bucket(index) ? buckets_.range(index, dense).count : dense;
}

MemberArrays Session::arrays(InstructionId member) {
  const Instruction& i = p_.at(member);
  const CollectiveCall& c = p_.collective(i);
  if (c.purpose == Purpose::Vocabulary) return exchanged_arrays(member);
  StageExecutor& stage = stage_on(i.stage, i.device);
  const bool in_part = buckets_.is_bucket(i.collective());
  const std::int64_t first = in_part ? buckets_.range(i.collective(), stage.net().dense_weights).first : 0;
  char* const gradient =
      static_cast<char*>((in_part && stage.sums_in_place() ? stage.growing_gradient() : stage.gradient()).data);
  const std::size_t width = wide_width(width_);
  const Tensor summed{gradient + first * static_cast<std::int64_t>(width), 1, numbers(c), true};
  return in_place(p_.shape(c).kind, c.members, member.value - c.first.value, summed, width);
}

std::size_t Session::share_bytes(InstructionId member) {
  const CollectiveCall& c = p_.collective(p_.at(member));
  if (only_waits(c)) return 0;
  const std::int64_t share = input_numbers(p_.shape(c).kind, c.members, member.value - c.first.value, numbers(c));
  return share * (is_wide(c) ? wide_width(width_) : width_);
}

void Session::pack_share(InstructionId member, void* into) {
  if (const std::size_t bytes = share_bytes(member); bytes > 0)
    kernels_of(member)->copy(arrays(member).input.data, into, bytes);
}

std::size_t Session::number_bytes(int index) const {
  const CollectiveCall& c = p_.collectives[index];
  const bool joins = c.purpose == Purpose::Vocabulary && c.exchange == VocabularyExchange::Scores;
  const std::size_t width = is_wide(c) ? wide_width(width_) : width_;
  return joins ? width * first_part_.shape(VocabularyExchange::Scores).columns : width;
}

void Session::add_up(int index, std::span<const void* const> parts, std::size_t bytes, void* sum) {
  const CollectiveCall& c = p_.collectives[index];
  if (c.purpose == Purpose::Vocabulary && c.exchange == VocabularyExchange::Scores)
    return add_up_records(index, parts, bytes, sum);
  for (int m = 0; m < c.members; ++m)
    if (Kernels* const kernels = kernels_of(c.member(m))) return real::add_up(*kernels, parts, bytes, is_wide(c), sum);
}

void Session::finish_sum(int index, const void* sum) {
  const CollectiveCall& c = p_.collectives[index];
  if (only_waits(c) || numbers(c) == 0) return;
  real::finish_sum(c, *this, sum);
  if (c.purpose == Purpose::Vocabulary) complete_exchange(c);
}

void Session::require_finite() const {
  for (const auto& replicas : stages_)
    for (const auto& stage : replicas)
      if (stage) stage->require_finite_losses();
}

}  // namespace stagecraft::real
