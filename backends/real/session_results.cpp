// What a real run leaves: records of a process and, from all processes, weights, losses and evaluations.

#include <algorithm>

#include "backends/real/session.hpp"
#include "backends/real/stage_weights.hpp"

namespace stagecraft::real {
namespace {

/// Whether two devices of a stage have equal weights of dense layers or, where these lie apart, of experts.
bool has_copy(const GroupPlace& a, const GroupPlace& b, bool of_experts) {
  return of_experts ? a.expert == b.expert && a.expert_tensor == b.expert_tensor : a.tensor == b.tensor;
}

/// The gradient of an evaluation is never asked for, and its samples need no stages.
double evaluate(const Dataset& data, Kernels& kernels, const StageNet& net, std::span<const double> numbers) {
  DeviceMemory memory(kernels);
  Array weights(memory, 1, net.weights, Use::Weights);
  kernels.upload(numbers, weights.data());
  weights = rounded(memory, weights, Use::Weights);
  Activations a;
  const std::int64_t count = data.evaluation_samples();
  const NetRun run(net, memory, data);
  run.forward({0, count, count, true}, weights.data(), false, a);
  return run.loss(a.losses);
}

}  // namespace

/// Where states are divided in mixed precision, a device has the numbers of 32 bits of its part alone.
bool Session::keeps_part(const StageWorkload& stage) const {
  return stage.shards(width_ == kMixedWidth ? StateSharding::Optimizer : StateSharding::Weights);
}

/// One replica is enough, unless its devices have parts of the weights.
bool Session::records_weights(StageId s, int replica) const {
  const StageWorkload& stage = w_.stages[s];
  const GroupPlace place = stage.place(replica);
  if (keeps_part(stage) || (place.replica == 0 && place.context == 0)) return true;
  return place.expert_replica == 0 && net(s, replica).weights > net(s, replica).dense_weights;
}

/// The weights of the undivided stage, with the part of a vocabulary that its rank has, from what its devices have;
/// nothing where one has none.
std::optional<std::vector<double>> Session::whole_weights(StageId s, const Records& records,
                                                          const NumbersOf& numbers_of) const {
  const StageWorkload& stage = w_.stages[s];
  const bool is_part = keeps_part(stage);
  std::vector<std::vector<double>> members;  // By the place in both meshes.
  for (const StageNet& member : nets_[s]) members.emplace_back(member.weights, 0);
  for (const ReplicaRecord& record : records.replicas) {
    if (record.stage != s || !records_weights(s, record.replica)) continue;
    const std::vector<double>* const numbers = numbers_of(record);
    if (numbers == nullptr) return {};
    for (const WeightSection& section : weight_sections(net(s, record.replica), stage, record.replica)) {
      const bool of_experts = section.first > 0;
      const ShardRange range = is_part ? section.shard : ShardRange{0, section.count};
      const std::int64_t from = is_part ? section.part : section.first;
      for (int m = 0; m < std::ssize(members); ++m) {
        if (!has_copy(stage.place(m), stage.place(record.replica), of_experts)) continue;
        // Tensor ranks have other numbers of dense weights, so copies of experts begin elsewhere.
        const std::int64_t to = (of_experts ? net(s, m).dense_weights : 0) + range.first;
        std::copy_n(numbers->begin() + from, range.count, members[m].begin() + to);
      }
    }
  }
  if (!stage.degrees.divides()) return std::move(members.front());
  std::vector<double> weights(whole_nets_[s].weights, 0);
  for (int m = 0; m < std::ssize(members); ++m) add_part(net(s, m), whole_nets_[s], members[m], weights);
  if (stage.vocabulary_rank < 0) return weights;
  return part_of_weights(compile_rank(w_, s, width_), whole_nets_[s], weights);
}

Records Session::records() const {
  Records records;
  for (const StageId s : stages_.ids())
    for (std::size_t r = 0; r < stages_[s].size(); ++r) {
      const StageExecutor* const stage = stages_[s][r].get();
      if (!stage) continue;
      ReplicaRecord& record = records.replicas.emplace_back();
      record.stage = s;
      record.replica = static_cast<int>(r);
      record.weight_buffers = stage->weights().most_buffers();
      if (stage->net().counts_losses) record.losses = stage->losses();
      if (!records_weights(s, record.replica)) continue;
      record.snapshots = stage->snapshots();
      record.weights = stage->weights().download();
    }
  for (const DeviceId d : memories_.ids())
    if (memories_[d]) {
      records.devices.push_back({d, memories_[d]->peak()});
      if (hosts_[d]) records.devices.back().memory.host = hosts_[d]->peak().total;
    }
  for (const InstructionId i : versions_.ids())
    if (versions_[i] >= 0) records.versions.push_back({i, versions_[i]});
  return records;
}

Learnt Session::learnt(const Records& records) const {
  Learnt learnt;
  learnt.versions.assign(p_.size(), -1);
  for (const VersionRecord& v : records.versions) learnt.versions[v.instruction] = v.version;
  learnt.memory.resize(memories_.size());
  for (const DeviceRecord& d : records.devices) learnt.memory[d.device] = d.memory;
  learnt.losses.assign(p_.iterations, 0);
  learnt.weights.resize(stages_.size());
  for (const ReplicaRecord& record : records.replicas) {
    const int micro_batches = p_.micro_batches[record.stage];
    for (const auto& [micro, loss] : record.losses) learnt.losses[micro / micro_batches] += loss;
    learnt.memory[w_.stages[record.stage].replicas[record.replica].device].weight_buffers += record.weight_buffers;
  }
  for (const StageId s : stages_.ids())
    learnt.weights[s] = *whole_weights(s, records, [](const ReplicaRecord& r) { return &r.weights; });
  learnt.evaluations = evaluations(records);
  return learnt;
}

/// Evaluates the weights of all stages after equal numbers of updates, joined into one stage.
std::vector<Evaluation> Session::evaluations(const Records& records) const {
  std::vector<Evaluation> result;
  if (w_.training.evaluate_every == 0 || data_->evaluation_samples() == 0) return result;
  const Workload whole = as_one_stage(w_);
  const StageNet net = compile_stage(whole, StageId{0}, width_);
  const std::unique_ptr<Kernels> kernels = factory_(width_, w_.stages.front().replicas.front().device);
  const auto first = std::find_if(records.replicas.begin(), records.replicas.end(),
                                  [&](const ReplicaRecord& r) { return records_weights(r.stage, r.replica); });
  for (const auto& [updates, unused] : first->snapshots) {
    std::vector<double> numbers(net.weights, 0);
    bool complete = true;
    for (const StageId s : w_.stages.ids()) {
      const auto weights = whole_weights(s, records, [at = updates](const ReplicaRecord& r) {
        const auto it = r.snapshots.find(at);
        return it == r.snapshots.end() ? nullptr : &it->second;
      });
      complete = complete && weights;
      if (!complete) break;
      if (w_.stages[s].vocabulary_rank >= 0) {
        add_part(compile_rank(w_, s, width_), net, *weights, numbers);
        continue;
      }
      for (const Node& from : whole_nets_[s].nodes)
        for (const Node& to : net.nodes)
          if (to.owns_weights && from.owns_weights && from.layer == to.layer && from.place == to.place)
            std::copy_n(weights->begin() + from.weights, from.count, numbers.begin() + to.weights);
    }
    if (complete) result.push_back({updates, evaluate(*data_, *kernels, net, numbers)});
  }
  return result;
}

}  // namespace stagecraft::real
