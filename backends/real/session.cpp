#include "backends/real/session.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

/// A number on the device is as wide as the model says.
std::size_t width_of(const ModelGraph& model) {
  const Precision& p = model.precision;
  const bool whole = p.weight == p.activation && p.weight == p.gradient && (p.weight == 4 || p.weight == 8);
  if (!whole)
    throw InputError(
        fmt::format("the model '{}' mixes 16-bit and 32-bit numbers, which this backend cannot", model.name),
        "--set model.precision=fp32, or fp64");
  return static_cast<std::size_t>(p.weight);
}

bool trains(const Program& program, StageId stage) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& i) { return i.stage == stage && i.kind == InstructionKind::Update; });
}

/// The gradient of an evaluation is never asked for, and its samples need no stages.
double evaluate(const Dataset& data, Kernels& kernels, const StageNet& net, std::span<const double> numbers) {
  DeviceMemory memory(kernels);
  Array weights(memory, 1, net.weights, Use::Weights);
  kernels.upload(numbers, weights.data());
  Activations a;
  const std::int64_t count = data.evaluation_samples();
  NetRun(net, memory, data).forward({0, count, count, true}, weights.data(), false, a);
  return a.loss;
}

}  // namespace

Session::Session(const Program& program, const Work& work, const KernelFactory& factory,
                 const std::function<bool(DeviceId)>& here)
    : p_(program), work_(work), factory_(factory), width_(width_of(work.model)), versions_(program.size(), -1) {
  const Plan& plan = work.plan;
  const TaskDef& task = get_from(tasks::all(), "task", work.training.task);
  data_ = task.make(task_shape(work.model, plan.mini_batch), work.training.seed);
  kernels_.resize(static_cast<std::size_t>(program.devices));
  memories_.resize(kernels_.size());
  nets_.reserve(plan.stages.size());
  std::vector<const StageNet*> nets;
  for (int s = 0; s < plan.stage_count(); ++s) {
    nets.push_back(&nets_.emplace_back(compile_stage(work.model, plan, StageId{s}, width_)));
    for (const DeviceId d : plan.stage(StageId{s}).devices) {
      const auto at = static_cast<std::size_t>(d);
      if (kernels_[at] || !here(d)) continue;
      kernels_[at] = factory(width_);
      memories_[at] = std::make_unique<DeviceMemory>(*kernels_[at]);
    }
  }
  std::vector<DeviceMemory*> memories;
  for (const auto& m : memories_) memories.push_back(m.get());
  mail_ = std::make_unique<Mail>(program, plan, nets, memories);
  const bool whole = work.training.optimizer.kind == OptimizerKind::Integer;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const StageId id{s};
    const Stage& stage = plan.stage(id);
    const StageNet& net = nets_[static_cast<std::size_t>(s)];
    const bool learns = trains(program, id);
    const std::vector<double> start = initial_weights(net, work.model, work.training.seed, whole);
    auto& replicas = stages_.emplace_back(stage.devices.size());
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      const DeviceId device = stage.devices[r];
      if (!here(device)) continue;
      DeviceMemory& memory = *memories_[static_cast<std::size_t>(device)];
      auto store = std::make_unique<WeightStore>(memory, start, work.training, work.weights, learns,
                                                 count_readers(program, id, device),
                                                 program.delays[static_cast<std::size_t>(s)]);
      replicas[r] =
          std::make_unique<StageExecutor>(net, StagePlace{id, static_cast<int>(r), learns && !stage.recompute, learns},
                                          plan, work.model, memory, *mail_, *data_, work.training, std::move(store));
    }
  }
}

StageExecutor& Session::stage_on(StageId stage, DeviceId device) {
  const auto s = static_cast<std::size_t>(stage);
  return *stages_[s][static_cast<std::size_t>(replica_on(work_.plan.stage(stage), device))];
}

void Session::compute(InstructionId id) {
  const Instruction& i = p_.at(id);
  StageExecutor& stage = stage_on(i.stage, i.device);
  stage.compute(id, i);
  versions_[static_cast<std::size_t>(id)] = stage.last_version();
}

/// Sums in the order of the replicas, so that nothing depends on who comes last.
void Session::reduce(int collective) {
  const Collective& c = p_.collectives[static_cast<std::size_t>(collective)];
  std::vector<Tensor> parts;
  for (int m = 0; m < c.members; ++m) {
    const Instruction& i = p_.at(InstructionId{c.first + m});
    parts.push_back(stage_on(i.stage, i.device).gradient());
  }
  Kernels& kernels = *kernels_[static_cast<std::size_t>(p_.at(c.first).device)];
  for (std::size_t m = 1; m < parts.size(); ++m) kernels.add(parts[m], parts[0]);
  for (std::size_t m = 1; m < parts.size(); ++m)
    kernels.copy(parts[0].data, parts[m].data, static_cast<std::size_t>(parts[0].size()) * width_);
}

std::vector<Evaluation> Session::evaluations() const {
  std::vector<Evaluation> all;
  if (work_.training.evaluate_every == 0 || data_->evaluation_samples() == 0) return all;
  Plan whole;
  Stage& stage = whole.stages.emplace_back();
  for (std::size_t l = 0; l < work_.model.layers.size(); ++l) stage.layers.emplace_back(static_cast<std::int64_t>(l));
  stage.devices = {DeviceId{0}};
  const StageNet net = compile_stage(work_.model, whole, StageId{0}, width_);
  const std::unique_ptr<Kernels> kernels = factory_(width_);
  for (const auto& [updates, first] : stages_.front().front()->snapshots()) {
    std::vector<double> numbers(static_cast<std::size_t>(net.weights), 0);
    bool complete = true;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto& snapshots = stages_[s].front()->snapshots();
      const auto found = snapshots.find(updates);
      complete = complete && found != snapshots.end();
      if (!complete) break;
      for (const Node& from : nets_[s].nodes)
        for (const Node& to : net.nodes)
          if (to.owns_weights && from.owns_weights && from.layer == to.layer && from.place == to.place)
            std::copy_n(found->second.begin() + from.weights, from.count, numbers.begin() + to.weights);
    }
    if (complete) all.push_back({updates, evaluate(*data_, *kernels, net, numbers)});
  }
  return all;
}

Learnt Session::learnt() const {
  Learnt learnt;
  learnt.versions = versions_;
  learnt.losses.assign(static_cast<std::size_t>(p_.iterations), 0);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const int micro_batches = work_.plan.micro_batches(StageId{static_cast<std::int64_t>(s)});
    for (const auto& replica : stages_[s])
      if (replica)
        for (const auto& [micro, loss] : replica->losses())
          learnt.losses[static_cast<std::size_t>(micro / micro_batches)] += loss;
    learnt.weights.push_back(stages_[s].front() ? stages_[s].front()->weights().download() : std::vector<double>{});
  }
  for (std::size_t d = 0; d < memories_.size(); ++d)
    learnt.memory.push_back(memories_[d] ? memories_[d]->peak() : MeasuredMemory{});
  for (int s = 0; s < work_.plan.stage_count(); ++s)
    for (std::size_t r = 0; r < stages_[static_cast<std::size_t>(s)].size(); ++r)
      if (const auto& stage = stages_[static_cast<std::size_t>(s)][r])
        learnt.memory[static_cast<std::size_t>(work_.plan.stage(StageId{s}).devices[r])].weight_buffers +=
            stage->weights().most_buffers();
  learnt.evaluations = evaluations();
  return learnt;
}

}  // namespace stagecraft::real
