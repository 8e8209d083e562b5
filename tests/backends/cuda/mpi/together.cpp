// A run of several processes, each with emulated GPUs, against the CPU: mpirun -n N together CASE GPUS TIMEOUT [HANG
// [FILE]]. GPUS: how many each process sees, which are the same for all. HANG: the process whose GPU stops in the
// middle; FILE is made then. CASE may be a group of devices, such as "tensor", or "group7" for the seventh at random;
// with "graph-" or "graph+" before it iterations are graphs.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>

#include <fmt/core.h>

#include "backends/real/byte_text.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/multi_process_run.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/collective_steps.hpp"

using namespace stagecraft;

namespace {

test::Case chain(int depth, const char* schedule, const char* policy = "flush") {
  test::Case c;
  c.iterations = 4;
  c.schedule = schedule;
  c.policy = policy;
  c.model = test::deep_net(depth, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  return c;
}

test::Case interleaved() {
  test::Case c = chain(8, "interleaved");
  for (int s = 0; s < 8; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % 4}});
  return c;
}

test::Case replicas(const char* schedule, const char* policy) {
  test::Case c = chain(3, schedule, policy);
  c.plan = test::stage_each(c.model, 4, 4);
  c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  return c;
}

test::Case eager(StreamModel streams) {
  test::Case c = chain(4, "1f1b");
  c.lowering.rendezvous = false;
  c.lowering.streams = streams;
  return c;
}

/// Iterations as graphs, however messages and sums go.
test::Case graph_case(const std::string& how) {
  test::Case c = how.find("replicas") != std::string::npos ? replicas("1f1b", "flush") : chain(4, "1f1b");
  c.timing = GpuTiming::Off;
  c.graph = true;
  c.iterations = how == "graph-uneven" ? 12 : 6;
  if (how.find("eager") != std::string::npos) c.lowering.rendezvous = false;
  if (how.find("sums") != std::string::npos) c.sums = GpuSums::Collective;
  return c;
}

test::Case case_of(const std::string& name) {
  if (name.starts_with("graph-")) return graph_case(name);
  if (name == "gpipe" || name == "1f1b") return chain(4, name.c_str());
  if (name == "iterations") {
    test::Case c = chain(4, "1f1b");
    c.timing = GpuTiming::Off;
    return c;
  }
  if (name == "interleaved") return interleaved();
  if (name == "2bw") return chain(4, "2bw", "2bw");
  if (name == "pipedream") return replicas("pipedream", "stash");
  if (name == "replicas") return replicas("1f1b", "flush");
  if (name.starts_with("steps")) {
    test::Case c = replicas("1f1b", "flush");
    c.plan = test::stage_each(c.model, 4, 3);
    c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}, DeviceId{4}});
    return c;
  }
  if (name.starts_with("whole-steps")) {  // All four devices are members.
    test::Case c = chain(1, "1f1b");
    c.plan = test::stage_each(c.model, 2, 4);
    c.plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}});
    return c;
  }
  if (name == "sums") {
    test::Case c = replicas("1f1b", "flush");
    c.sums = GpuSums::Collective;
    return c;
  }
  if (name == "one-stage") {  // On four devices.
    test::Case c = chain(1, "1f1b");
    c.model = test::deep_net(1, 6, 8, 3, OperationKind::Relu, OperationKind::SumSquare);
    c.plan = test::stage_each(c.model, 4, 4);
    c.plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}});
    c.training = test::training_of(OptimizerKind::Integer, 1, "integers");
    c.sums = GpuSums::Collective;
    return c;
  }
  if (name == "eager") return eager(StreamModel::Single);
  if (name == "streamless") return eager(StreamModel::None);
  if (name == "nccl-inside") {
    test::Case c = chain(4, "1f1b");
    c.messages = GpuMessages::Nccl;
    return c;
  }
  throw InputError("no such case: " + name);
}

using test::GroupCase;

const std::map<std::string, GroupCase> kGroups = {
    {"tensor", {.degrees = {.tensor = 4}}},
    {"pair", {.stages = 2, .degrees = {.tensor = 2}, .micro_batches = 2}},
    {"sequence", {.stages = 2, .degrees = {.replicas = 2, .tensor = 2, .sequence = true}}},
    {"ring", {.stages = 2, .degrees = {.context = 4}, .exchange = ContextExchange::Ring}},
    {"heads", {.degrees = {.context = 2, .tensor = 2, .sequence = true}, .exchange = ContextExchange::AllToAll}},
    {"zero-1", {.stages = 2, .degrees = {.replicas = 4}, .sharding = StateSharding::Optimizer}},
    {"zero-2", {.degrees = {.replicas = 2, .tensor = 2}, .sharding = StateSharding::Gradients}},
    {"zero-3", {.schedule = "zb-h1", .stages = 2, .degrees = {.replicas = 4}, .sharding = StateSharding::Weights}},
    {"zero-3-reshard",
     {.degrees = {.replicas = 2, .tensor = 2, .sequence = true}, .sharding = StateSharding::Weights, .reshard = true}},
    {"experts", {.degrees = {.replicas = 2, .tensor = 2, .expert = 4, .sequence = true}}},
    // All messages of stages share a communicator, whose kernels follow each other.
    {"single", {.stages = 4, .degrees = {.tensor = 2}, .lowering = {.streams = StreamModel::Single}}},
    {"single-eager",
     {.stages = 4, .degrees = {.tensor = 2}, .lowering = {.rendezvous = false, .streams = StreamModel::Single}}},
    // Two processes have two devices each, which are in no group together.
    {"crossed", {.degrees = {.context = 2, .tensor = 2, .expert = 2, .sequence = true}, .places = {0, 2, 3, 1}}},
    {"experts-unequal",
     {.stages = 2, .degrees = {.replicas = 4, .expert = 2, .expert_tensor = 2}, .micro_batch_size = 6}},
};

GroupCase random_group(std::uint64_t seed) {
  Rng rng(seed, "groups on GPUs of several processes");
  GroupCase c;
  c.schedule = std::vector{"gpipe", "1f1b", "zb-h1"}[rng.integer(0, 2)];
  c.stages = rng.integer(1, 2);
  c.degrees.tensor = rng.integer(1, 2);
  c.degrees.sequence = c.degrees.tensor > 1 && rng.integer(0, 1) == 1;
  c.degrees.context = rng.integer(1, 2);
  c.exchange = static_cast<ContextExchange>(rng.integer(0, 2));
  c.degrees.replicas = rng.integer(1, 2);
  while (c.stages * c.degrees.devices() < 4) c.degrees.replicas *= 2;
  c.sharding = static_cast<StateSharding>(rng.integer(0, 3));
  c.reshard = c.sharding == StateSharding::Weights && rng.integer(0, 1) == 1;
  if (rng.integer(0, 2) == 0) c.degrees.expert = 2, c.degrees.sequence = c.degrees.tensor > 1;
  c.micro_batches = 2;
  return c;
}

/// What runs, and the same on the CPU.
struct Trial {
  test::Case how;
  Program program;
  Timeline cpu;
};

Trial group_trial(const GroupCase& c, bool graph = false, double width = 8) {
  const bool experts = c.degrees.expert > 1;
  const ModelGraph model =
      test::in_precision(experts ? test::mixture_net(1, false) : test::decoder_net(2, false, c.stages == 1), width);
  test::GroupRun run = test::run_group(model, c, test::training_of(OptimizerKind::Momentum, 1e-2), graph ? 4 : 2);
  test::Case how;
  how.graph = graph;
  if (graph) how.timing = GpuTiming::Off;
  how.schedule = c.schedule;
  return {how, std::move(run.program), std::move(run.timeline)};
}

/// The update of device 0 waits for one of its four sends, another one in each iteration, or in every fifth for none.
void add_waits(Program& p) {
  std::vector<InstructionId> waits;
  std::vector<std::uint32_t> first_wait{0};
  std::map<int, std::vector<InstructionId>> sends;  // By iteration.
  for (const InstructionId id : p.instructions.ids()) {
    const Instruction& i = p.at(id);
    const int iteration = p.iteration_of(i);
    for (const InstructionId w : p.waits_for(id)) waits.push_back(w);
    if (i.device == DeviceId{0} && i.kind == InstructionKind::Send) sends[iteration].push_back(id);
    if (i.device == DeviceId{0} && i.kind == InstructionKind::Update && iteration % 5 < 4)
      waits.push_back(sends.at(iteration).at(iteration % 5));
    first_wait.push_back(static_cast<std::uint32_t>(waits.size()));
  }
  p.waits = waits;
  p.first_wait = first_wait;
}

/// "steps2": its sums of gradients in other collectives, the third way.
Program program_of(const test::Case& c, const std::string& name) {
  if (name == "graph-uneven") {
    Program program = c.program();
    add_waits(program);
    return program;
  }
  if (name.find("steps") == std::string::npos) return c.program();
  return test::in_steps(c.program(), test::sums_in_steps().at(name.back() - '0'));
}

/// When the iterations of a device began and ended, on the clock of the machine, which emulated GPUs use, too. The
/// first entry is the iteration that is dropped.
struct Seen {
  std::vector<double> begun, ended;
};
std::deque<Seen> seen;

/// The first work of an iteration is a forward, the last an update.
class Noting final : public test::QueuedCpu {
 public:
  Noting(cudaStream_t stream, std::size_t width) : QueuedCpu(stream, width), on_(stream), seen_(&seen.emplace_back()) {}
  void forward(const real::Call& call) override {
    if (updated_) note(seen_->begun, ++iteration_);
    updated_ = false;
    QueuedCpu::forward(call);
  }
  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    QueuedCpu::update(rule, options, count, gradient, state, from, to);
    updated_ = true;
    note(seen_->ended, iteration_);
  }

 private:
  void note(std::vector<double>& times, int iteration) const {
    times.resize(std::max(times.size(), static_cast<std::size_t>(iteration) + 1));
    emulated_gpu::enqueue(
        on_, [&times, iteration] { times[iteration] = real::steady_seconds(); }, 0);
  }

  cudaStream_t on_;
  Seen* seen_;
  int iteration_ = -1;
  bool updated_ = true;
};

/// The latest of all devices and processes, iteration by iteration.
std::vector<double> latest(std::vector<double> Seen::*column) {
  std::vector<double> local, merged;
  const auto merge = [](std::vector<double>& into, const std::vector<double>& more) {
    into.resize(std::max(into.size(), more.size()), 0);
    for (std::size_t k = 0; k < more.size(); ++k) into[k] = std::max(into[k], more[k]);
  };
  for (const Seen& s : seen) merge(local, s.*column);
  real::ByteWriter out;
  out.put(local);
  for (const std::string& text : real::all_gather_texts(out.take()))
    merge(merged, real::ByteReader(text).get_list<double>());
  return merged;
}

/// An iteration ends after the last update of every device, and before the next one has begun on all of them. That
/// bounds the time between two ends from below and above.
void hold_ends(const Program& p, const Timeline& gpu) {
  const std::vector<double> begun = latest(&Seen::begun), ended = latest(&Seen::ended);
  if (gpu.elsewhere) return;
  std::vector<double> end(static_cast<std::size_t>(p.iterations), 0);
  for (std::size_t n = 0; n < p.size(); ++n) {
    double& last = end[p.iteration_of(p.instructions[InstructionId{n}])];
    last = std::max(last, gpu.end[InstructionId{n}]);
  }
  const double off = 2 * gpu.clock_uncertainty.value;
  int checked = 0;
  for (std::size_t k = 0; k + 1 < end.size(); ++k)
    for (std::size_t j = 0; j < k; ++j) {
      const double seconds = end[k] - end[j];
      const double lower = ended[k + 1] - begun[j + 2] - off, upper = begun[k + 2] - ended[j + 1] + off;
      if (lower <= seconds && seconds <= upper)
        ++checked;
      else
        fmt::print("iterations {} to {} took {} s, not {} to {}\n", j, k, seconds, lower, upper);
    }
  fmt::print("{} times between iterations held\n", checked);
}

/// Its GPU stops before its seventh forward operation.
class Hanging final : public test::QueuedCpu {
 public:
  Hanging(cudaStream_t stream, std::size_t width, const char* file)
      : QueuedCpu(stream, width), on_(stream), file_(file) {}
  void forward(const real::Call& call) override {
    if (++forwards_ == 7) {
      emulated_gpu::hang(on_);
      if (file_) std::ofstream{file_};
    }
    QueuedCpu::forward(call);
  }

 private:
  cudaStream_t on_;
  const char* file_;
  int forwards_ = 0;
};

Timeline run(const test::Case& c, const Program& program, double timeout, bool hangs, const char* file) {
  const auto maker = [hangs, file](cudaStream_t stream, int, std::size_t width) -> std::unique_ptr<real::Kernels> {
    if (hangs) return std::make_unique<Hanging>(stream, width, file);
    return std::make_unique<Noting>(stream, width);
  };
  cuda::Options options;
  options.gpu.messages = c.messages;
  options.gpu.sums = c.sums;
  options.gpu.timing = c.timing;
  options.gpu.graph = c.graph;
  options.timeout = timeout;
  options.fills_new_memory = true;
  return cuda::run(program, maker, options);
}

Trial trial_of(const std::string& name) {
  if (const auto it = kGroups.find(name); it != kGroups.end()) return group_trial(it->second);
  if (name.starts_with("graph+")) return group_trial(kGroups.at(name.substr(6)), true);
  if (name.starts_with("mixed+")) return group_trial(kGroups.at(name.substr(6)), false, 2);
  if (name.starts_with("group")) return group_trial(random_group(std::stoull(name.substr(5))));
  const test::Case c = case_of(name);
  Program program = program_of(c, name);
  Timeline cpu = test::on_cpu(c, program);
  return {c, std::move(program), std::move(cpu)};
}

Ending attempt(char** argv) try {
  const auto [c, program, cpu] = trial_of(argv[1]);  // Before others join.
  join_world("of the test");
  emulated_gpu::Machine machine;
  machine.devices = std::atoi(argv[2]);
  machine.real_clock = true;
  machine.seed = static_cast<std::uint64_t>(world().rank) + 1;
  machine.order = static_cast<emulated_gpu::Order>(world().rank % 3);
  emulated_gpu::reset(machine);
  const bool hangs = argv[4] && std::atoi(argv[4]) == world().rank;
  const Timeline gpu = run(c, program, std::atof(argv[3]), hangs, hangs ? argv[5] : nullptr);
  // Launches of a graph note what its capture has noted.
  const bool has_ends = c.policy == "flush" && c.schedule == "1f1b" && program.iterations > 2 && !c.graph;
  if (has_ends) hold_ends(program, gpu);
  if (gpu.elsewhere) return {};
  const bool same = gpu.learnt->losses == cpu.learnt->losses && gpu.learnt->weights == cpu.learnt->weights &&
                    gpu.learnt->versions == cpu.learnt->versions;
  fmt::print("{} on {} processes: {}; {}\n", argv[1], gpu.processes, same ? "the same bits" : "OTHER NUMBERS",
             gpu.provenance.machine);
  if (c.graph)
    fmt::print("{} launches of {} graphs, {} recorded {}\n", gpu.enqueued->launches, gpu.enqueued->graphs,
               gpu.enqueued->recorded, gpu.enqueued->no_graph);
  for (std::size_t t = 0; t < program.transfers.size(); ++t) {
    const InstructionId s = program.transfers[t].send, r = program.transfers[t].receive;
    if (gpu.end[r] < gpu.start[s] - 2 * gpu.clock_uncertainty.value)
      fmt::print("message {} ends before it starts\n", t);
  }
  return {};
} catch (const InputError& e) {
  return {2, e.what()};
} catch (const BackendError& e) {
  return {4, e.what()};
} catch (const FailedElsewhere&) {
  return {4, {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const Ending ending = finish_all(attempt(argv));
  if (!ending.text.empty()) fmt::print(stderr, "{}\n", ending.text);
  std::fflush(nullptr);
  leave_world(ending.code);
  std::_Exit(ending.code);  // What a GPU that hangs holds is not given back.
}
