// The glossary of `explain`: terms of tables and messages, the notation of operations and collectives such as 0F3,
// metrics, and the entries of all catalogs.

#include "tools/stagecraft/explanation.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/phases.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/pass_time.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/model/builder.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/result/metrics.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/optimizer.hpp"
#include "sim/training/task.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Term = GlossaryTerm;

constexpr Term kTerms[] = {
    // Time.
    {"makespan|first iteration|first|time",
     "Time from the first start to the last end of the first iteration. It includes filling and draining the "
     "pipeline."},
    {"period|iteration|iteration time|one iteration",
     "Time that one more iteration takes when iterations run back to back."},
    {"length|whole run", "Time of all iterations of the run."},
    {"throughput", "Samples per second at the period."},
    {"time per sample", "The period divided by the samples of an iteration: it compares runs with different batches."},
    {"limit|diagnosis",
     "What costs most of the period: the difference to the same program without that cost, such as contention, "
     "messages, "
     "sums of gradients, recomputation, slow devices or unequal stages. `run --what-if` simulates what each cause "
     "suggests."},
    {"unequal-stages|empty-stage", "Stages that compute longer than others, or hardly at all, while the others wait."},
    {"slow-device|uneven-replicas",
     "A device that computes longer than the fastest devices of the plan would, or than another replica of its stage."},
    {"slow-link|shared-link|placement",
     "What devices wait for on the network: messages between stages on one link, or collectives of groups on a link "
     "slower than the others; messages on a link that several pairs of devices share; messages between nodes that "
     "another order of the devices would not cross."},
    {"machine",
     "In a measured run: the time in which devices do nothing although their input is there, such as other work of the "
     "machine."},
    {"gradient-sums|group-collectives",
     "Collectives that no computation hides: all-reduces of gradients, or collectives of tensor, context and expert "
     "groups."},
    {"pack",
     "The sequences that a replica has in one micro-batch, where they differ in length; none attends to another."},
    {"unequal-loads",
     "Micro-batches with sequences of different lengths: a stage waits for the costliest one of its neighbors, and "
     "replicas wait for the one with most work."},
    {"expert-imbalance", "Rows of the busiest device of an expert group over the mean; the others wait for it."},
    {"HFU|hfu",
     "Hardware FLOPs utilization: operations of the model and of its recomputation per second, as a share of the "
     "peak."},
    {"goodput",
     "Share of the time that is training which no failure undoes, with checkpoints at the best interval (Young 1974, "
     "Daly 2006): `report.failures`."},
    {"all tokens", "Tokens per second of all devices together."},
    {"tokens|model TFLOP/s|TFLOP/s",
     "Tokens per second of each device, the floating-point operations of the model per second and device, and their "
     "share of the peak (MFU)."},
    {"samples|global batch",
     "Sequences, images or rows of the training data; run.global_batch is their number in an iteration."},
    {"cost|training|total",
     "Cost: dollars for 10^9 tokens by `report.price`. Training: the time for `report.tokens`, and in tables total: "
     "the "
     "dollars of that time."},
    {"predicted", "The period by the planner's own cost model. `simulated` is the same plan in simulation."},
    {"simulated", "Time of the same thing in simulation, next to a prediction or a measurement."},
    {"measured", "Time on a real machine, next to a simulation of the same program."},
    {"off", "Difference of the simulated from the predicted time, in percent."},
    {"gap", "Distance of a plan from the model's limit, in percent: how good the search of its planner was."},
    {"room",
     "Distance of the simulated time from a lower bound that holds for every plan with micro-batches of this size, in "
     "percent. A large value means that a much better plan is possible, not that one exists."},
    {"model's limit",
     "The time of a micro-batch that no plan of the planner's kind beats in the planner's own cost model. A simulated "
     "plan may "
     "be faster, where that model is slower than the simulation."},
    {"bound|lower bound", "A time that is proved to be at most the best possible."},
    {"fluid",
     "The period or makespan when the row is simulated again on the `fluid` backend, with network contention."},
    {"columns not shown",
     "Columns of a table that have no room on the terminal. `--wide` prints all columns, `--columns` the named ones, "
     "and "
     "a pipe or a file always gets all."},
    {"critical path",
     "The chain of instructions, each waiting for the one before, that determines the length of the run. Only what is "
     "on it can shorten the run."},
    {"expression|condition",
     "A computed value of a sweep, `= 32 / plan.stages`, or a line of its `where:`. It has numbers, texts in single "
     "quotes, names of settings (between backticks where they have other characters than letters, digits, _ . [ ]), "
     "+ - * / %, == != < <= > >=, not, and, or, and parentheses. A name is what the point sets, else what the scenario "
     "has in its file."},
    {"std dev|standard deviation|seed statistics",
     "Spread of a value over points of a sweep that differ in their seeds only: the square root of the sum of squared "
     "distances from the mean, divided by their number less one."},
    {"jitter", "Random deviation of the time of each instruction."},
    // Groups of devices.
    {"group|model parallelism",
     "Devices that compute one replica of a stage together: plan.group. The first of them stands for the others in "
     "tables."},
    {"tensor parallelism|TP", "Devices that divide the matrices of each layer: plan.group.tensor."},
    {"sequence parallelism|SP",
     "Devices of a tensor group that also divide the rows of norms and sums: plan.group.sequence."},
    {"context parallelism|CP", "Devices that divide each sequence: plan.group.context."},
    {"experts|MoE|mixture of experts",
     "Layers in which each token goes to some of many feed-forward networks: model.experts. Devices divide them with "
     "plan.group.expert."},
    {"expert parallelism|EP", "Devices that divide the experts of a layer: plan.group.expert."},
    {"expert tensor parallelism|ETP", "Devices that divide the matrices of each expert: plan.group.expert_tensor."},
    {"pipeline parallelism|PP", "Stages on different devices: plan.stages."},
    {"data parallelism|DP", "Replicas of a stage, which divide the samples: plan.replicas."},
    {"ZeRO|ZeRO-1|ZeRO-2|ZeRO-3|FSDP|distributed optimizer",
     "States of the optimizer, gradients or weights that replicas divide among them: plan.shard with optimizer "
     "(ZeRO-1), "
     "gradients (ZeRO-2) or weights (ZeRO-3, FSDP)."},
    {"HSDP|hybrid sharding",
     "States are divided inside groups of devices, and each group has a copy: plan.shard with `within`, such as "
     "{state: weights, within: 8}."},
    {"MFU|model FLOPs utilization",
     "Floating-point operations of the model in a second, without recomputation, as a share of the peak of the "
     "devices."},
    {"interval|\u00b1|+-",
     "How far a measured time may be from the predicted one: 80 % of the published runs of the same framework "
     "(`software`) on the same device type, in the same number format and with a model of the same kind and size, are "
     "so close to their prediction. Where fewer than five such runs are published, the interval comes from runs that "
     "were priced with the facts of another framework, and is wider; `run --details` says so. With `software: none` "
     "there is none. It says nothing about how well two plans are told apart, because most errors are common to "
     "both."},
    // Idle time.
    {"bubble|pipeline bubble|waiting for stages",
     "Share of a period in which a device waits for other stages, with nothing on the wire for it: the pipeline fills "
     "or "
     "drains, or another stage still computes. Mean over the devices with a stage. Exposed collectives and exposed "
     "messages are not part of it. For GPipe and 1F1B with p equal stages and m micro-batches it is (p-1)/(m+p-1)."},
    {"steady|steady bubble|busiest idle",
     "Share of a period in which the busiest device is neither in an op nor in a collective of one: what no better "
     "balance of the other devices can save."},
    {"exposed collectives",
     "Share of a period in which a device waits for its own collectives on the wire (tensor, context, expert, data), "
     "mean over the devices with a stage. What computation hides does not count."},
    {"exposed messages",
     "Share of a period in which a device waits for a message between stages that is on the wire, mean over the "
     "devices "
     "with a stage."},
    {"host memory|peak host memory|to host memory|from host memory|busiest host link|waiting for host memory",
     "Memory of the hosts of nodes (cluster.host), where plan.offload keeps activations between forward and backward, "
     "and states of the optimizer. As a class of time: waiting for activations that come back from there, and for "
     "nothing else."},
    {"D2H|H2D|fetch",
     "Copies of a stash to the memory of the host and back: 0F3.D2H after the forward 0F3, 0B3.H2D before its "
     "backward. "
     "plan.offload asks for them. 0F3.late is how long a forward waits, so that its stash takes memory later."},
    {"compute",
     "Share of a period in which a device runs forward and backward passes, mean over the devices with a stage."},
    {"unexplained",
     "Time in which a device waits for nothing that the program knows: a busy machine, or one that stands still."},
    {"idle",
     "Time in which a device with a stage does not compute, by cause: start-up, input, drain, transfers, receiver, "
     "other."},
    {"start-up|fill|warm-up", "Idle time while the pipeline fills: waiting for input before the first backward."},
    {"input", "Idle time while a device waits for another device to compute its input, between fill and drain."},
    {"drain|flush",
     "The pipeline empties: no micro-batch is in flight. As idle time: waiting after the last forward before that. "
     "Synchronous schedules drain in each iteration, before the weights are updated."},
    {"transfers|transfer|waits for link|waits for links",
     "Idle time while the input of a device is on its way over a link."},
    {"receiver", "Idle time while a device waits for another one to take its message."},
    {"busy", "Share of the whole run in which the device is in an op or in a collective of one."},
    {"exposed|exposed communication",
     "Communication that a device waits for while it is on the wire: exposed collectives and exposed messages."},
    // Memory.
    {"memory|peak memory",
     "Most memory that a device needs at any time: weights, gradients, optimizer state, stashed activations and "
     "messages."},
    {"activations|peak activations|in flight|in-flight",
     "Micro-batches whose forward has run on a stage and whose backward has not. Each of them keeps a stash."},
    {"stash", "Activations that a stage keeps from the forward of a micro-batch to its backward."},
    {"resident", "Memory that is taken during the whole run: weights and their versions, gradients, optimizer state."},
    {"reserve|reserved", "Memory of a device that programs cannot use, such as a CUDA context."},
    {"recompute|recomputation|activation checkpointing",
     "Backward runs the forward again in place of keeping all activations. `selective` recomputes attention cores, "
     "`half` half of each kernel of a layer, `layers` each layer from its input, `full` everything from the input of "
     "the stage: plan.recompute."},
    // The pipeline.
    {"pass|forward|backward|update",
     "What a stage does with a micro-batch, forward and backward, and once in an iteration the update of its weights. "
     "`stagecraft show FILE --what costs` has their times."},
    {"vpp|virtual pipeline|virtual pipeline parallelism",
     "Parts of the model on each rank of an interleaved pipeline (Megatron-LM's "
     "virtual-pipeline-model-parallel-size): `run.schedule: interleaved` with `plan.stages` of pipeline size times "
     "vpp."},
    {"stage|stages", "Consecutive layers, or a part of the model's graph, that run on the same devices."},
    {"device|devices", "A GPU, TPU or group of cores with its own memory that runs stages."},
    {"rank", "A position in the pipeline with its own order of operations. It runs one or more stages."},
    {"chunk|chunks|virtual stage", "One of several stages of the same rank, as in interleaved schedules."},
    {"replica|replicas",
     "Copies of a stage that divide the samples of its micro-batches among them: data parallelism. They sum their "
     "gradients with an all-reduce."},
    {"micro-batch|micro_batch", "The samples that go through the pipeline together."},
    {"mini-batch", "The samples between two updates of the weights."},
    {"plan", "Which layers form each stage, and on which devices it runs."},
    {"planner", "A method that chooses the plan. `stagecraft list planners` shows them."},
    {"schedule|order of work", "The order in which each rank runs its operations. `stagecraft list schedules`."},
    {"placement", "Where consecutive stages lie: linear (one a rank), loop (interleaved), or v (up and down again)."},
    {"program|instruction", "A program is the schedule with its messages: what each device runs, sends and receives."},
    {"timeline", "Start and end of each instruction, simulated or measured."},
    {"split backward|zero bubble",
     "The backward B of a stage runs as two operations: I computes the gradient of the input, which the stage before "
     "waits for, and W the gradient of the weights, which can fill bubbles."},
    {"vocabulary|vocabulary parallelism|vocab parallelism|vocabulary stages|vocabulary pipeline|vocabulary passes",
     "With `plan.vocabulary: all` every pipeline rank has a part of the words of the embedding and of the scores. S "
     "computes the scores of a micro-batch for them and T their gradients, and sums over all ranks lie between: "
     "`run.schedule: vocab-1, vocab-2 or interlaced`."},
    {"kfkb", "A rank runs k forwards, then k backwards, in turn. GraphPipe gives each stage of a graph its own k."},
    {"staleness|weight version|stale weights",
     "The number of updates between the weights that a micro-batch reads and the newest ones. Schedules that never "
     "drain read old weights; a weights policy says which."},
    {"limited by", "The cause that costs a plan most time, and where it is, as in the diagnosis of its run."},
    {"bottleneck", "What limits the schedule: a device, a link, memory, or stages that wait for each other."},
    // The network.
    {"link", "A network connection with a bandwidth, a latency and a direction; messages on it share the bandwidth."},
    {"contention", "Messages that use a link at the same time share its bandwidth and take longer."},
    {"busiest link|use of a link", "Bytes over a link, divided by what it could carry during the run."},
    {"traffic",
     "Bytes that devices send each other in one iteration; each counts once, however many links it crosses."},
    {"no deadlock|safe streams|streams",
     "Message streams of a rank with which the order cannot deadlock when each operation receives right before it and "
     "sends right after it: single (one stream), pair (one per peer), direction (one per peer and kind of message, "
     "activations or gradients); any: all three. `schedule --streams` checks one of them, by default with messages as "
     "PyTorch places them."},
    {"back-pressure|backpressure|buffers",
     "A stage that is slower than the one before it slows that one too, because messages wait for memory: "
     "`run.buffers` "
     "limits the messages that a device holds."},
    {"rendezvous", "A message starts only when its receiver is ready. An eager message leaves without its receiver."},
    {"handshake",
     "The words of a rendezvous: that the receiver is ready, and that it has the data. `run.transfers: handshake` "
     "simulates the latency of each."},
    {"slow start|congestion window|initial window",
     "A TCP connection begins with ten packets under way and doubles them each round trip. `slow_start: true` of a "
     "link "
     "simulates it for the first message of each connection."},
    {"receive window|tcp window|bandwidth-delay product|BDP",
     "The bytes that a connection may have under way limit it to a window for each round trip: `window` of a link."},
    {"FIFO queue|plain queue|tail queue",
     "One queue in front of a link, in which short packets wait behind data: `queue: fifo` of a link, and `--queue "
     "fifo` of "
     "networks that are built. With fair queues (the default) messages are served in turn."},
    {"nccl-tests",
     "Programs that measure collectives of NCCL. `stagecraft calibrate FILE --out curve.yaml` reads what one of them "
     "prints; `collectives: curve.yaml` in the cluster takes its times."},
    {"collective|collectives",
     "An operation of a group of devices, such as an all-reduce. A rule chooses its algorithm; `stagecraft list "
     "collectives` says which one for what."},
    // Tables.
    {"pareto front|front|*",
     "The rows that no other row beats in time and memory at once; `search` also counts devices."},
    {"states", "Partial plans that the planner examined."},
    {"search", "Time that the planner took. As a command: searches plans and schedules together."},
    {"spread", "Half of the interquartile range of the measured values."},
    {"pays below",
     "The time of an update of the first method over the time of an update of this one. This method reaches the target "
     "sooner if it needs less than this many times as many updates."},
    {"energy", "Energy of all devices during the run, from the power of their types when busy and idle."},
    {"profile", "Measured times of layers on one kind of device, which replace computed costs."},
};

constexpr Term kOperations[] = {
    {"F", "forward"},
    {"B", "backward: the gradients of input and weights"},
    {"I", "gradient of the input, the first half of a split backward"},
    {"W", "gradient of the weights, the second half of a split backward"},
    {"R", "recomputation of the forward before a backward"},
    {"U", "update of the weights"},
    {"S", "scores of the words that a rank has, where all ranks divide the vocabulary"},
    {"T", "gradients of these scores that wait for the loss"},
    {"X", "forward of one micro-batch and backward of another at the same time"},
};

constexpr Term kCollectives[] = {
    {"AR", "all-reduce"}, {"RS", "reduce-scatter"}, {"AG", "all-gather"}, {"A2A", "all-to-all"}, {"BC", "broadcast"}};

/// In small letters, with spaces for - and _.
std::string plain_word(std::string_view word) {
  std::string plain(word);
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](unsigned char c) { return c == '-' || c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
  return plain;
}

bool names_term(const Term& term, std::string_view word) {
  const std::vector<std::string> words = split(plain_word(term.words), '|');
  return std::find(words.begin(), words.end(), plain_word(word)) != words.end();
}

/// 3AR0, 3TAR0 or 3T1AR0: stage, T with the number of the tie for tied weights, kind, iteration.
std::optional<std::string> collective_text(std::string_view word) {
  const std::string whole(word);
  const std::optional<int> stage = read_number(word);
  if (!stage) return {};
  const bool tied = word.starts_with('T');
  if (tied) {
    word.remove_prefix(1);
    read_number(word);
  }
  for (const Term& kind : kCollectives) {
    if (!word.starts_with(kind.words)) continue;
    std::string_view rest = word.substr(kind.words.size());
    const std::optional<int> number = read_number(rest);
    if (!number || !rest.empty()) continue;
    return fmt::format("{}: {} of {} of stage {}, number {}.\n", whole, kind.text,
                       tied ? "the gradients of tied weights" : "the gradients or weights", *stage, *number);
  }
  return {};
}

/// 0>4:0F3 or 4<0:0F3: what one device sends another, and the op that made it.
std::optional<std::string> transfer_text(std::string_view word) {
  const std::string whole(word);
  const std::optional<int> device = read_number(word);
  const bool sends = word.starts_with('>');
  if (!device || (!sends && !word.starts_with('<'))) return {};
  word.remove_prefix(1);
  const std::optional<int> other = read_number(word);
  if (!other || !word.starts_with(':')) return {};
  word.remove_prefix(1);
  const std::optional<Op> op = parse_op(word);
  if (!op) return {};
  return fmt::format(
      "{}: device {} {} device {} the {} that {} made, the {} of micro-batch {} on stage {}. `stagecraft "
      "show SCENARIO --what plan` lists the devices by number.\n",
      whole, *device, sends ? "sends" : "receives from", *other,
      op->kind == OpKind::Forward ? "activations" : "gradients", word,
      op->kind == OpKind::Forward ? "forward" : "backward", op->micro, op->stage.value);
}

/// 0F3, F3 or F: [stage] letter [micro-batch].
std::optional<std::string> operation_text(std::string_view word) {
  const std::string operation(word);
  const std::optional<int> stage = read_number(word);
  if (word.empty()) return {};
  const auto it = std::find_if(std::begin(kOperations), std::end(kOperations),
                               [&](const Term& t) { return t.words == word.substr(0, 1); });
  if (it == std::end(kOperations)) return {};
  word.remove_prefix(1);
  const std::optional<int> micro = word.empty() ? std::nullopt : read_number(word);
  if (!word.empty() || (stage && !micro)) return {};
  std::string text = fmt::format("{}: {}", operation, it->text);
  if (micro)
    text += fmt::format("{} {} {}", it->words == "U" ? ", number" : ", of micro-batch", *micro,
                        stage ? fmt::format("on stage {}", *stage) : "");
  text = std::string(trim(text)) + ".\nOperations are written as stage, letter and micro-batch, such as 0F3:\n";
  for (const Term& t : kOperations) text += fmt::format("  {}  {}\n", t.words, t.text);
  return text;
}

/// Before the field whose choices are the names of a catalog.
constexpr std::string_view kOptions = "options: ";

/// The fields that come with a choice such as cluster.generator.wan; empty where there are none.
std::string options_text(const std::string& path) {
  const std::string text = config::explain(scenario_fields(), path);
  const std::string fields = text.substr(std::min(text.size(), text.find("\n\n") + 2));
  const std::string listed(fields.substr(0, fields.find_last_not_of('\n') + 1));
  return listed.empty() ? ""
                        : fmt::format("  with these options, also in `stagecraft explain {}`:\n\n{}\n", path, listed);
}

template <class Def>
void add_entry(std::string& text, Catalog<Def> catalog, std::string_view kind, std::string_view word,
               std::string_view more) {
  const Def* def = find_in(catalog, word);
  if (!def) return;
  text += fmt::format("{}: {}. {}{}\n", def->name, kind, def->summary, def->summary.ends_with('.') ? "" : ".");
  if (!def->source.empty()) text += fmt::format("  source: {}\n", def->source);
  if (!more.starts_with(kOptions))
    text += fmt::format("  {}\n", more);
  else
    text += options_text(fmt::format("{}.{}", more.substr(kOptions.size()), def->name));
}

/// Calls visit(catalog, kind, where to read more) for each catalog.
template <class Visit>
void for_each_catalog(const Visit& visit) {
  visit(schedules::catalog(), "a schedule", "options: run.schedule.name");
  visit(planners::catalog(), "a planner", "options: plan.planner");
  visit(weights::catalog(), "a weights policy", "options: weights.policy");
  visit(backends::catalog(), "a backend", "use: stagecraft run FILE --backend NAME");
  visit(topology_generators::catalog(), "a generator of clusters", "options: cluster.generator");
  visit(model_builders::catalog(), "a builder of models", "options: model.builder");
  visit(collective_algorithms::catalog(), "an algorithm of collectives", "all: stagecraft list collectives");
  visit(optimizers(), "an optimizer", "options: training.optimizer.name");
  visit(tasks::catalog(), "a task to train on", "field: training.task");
}

}  // namespace

std::optional<std::string> glossary_text(std::string_view word) {
  std::string text;
  for (const std::span<const Term> terms : {std::span<const Term>(kTerms), field_terms()})
    for (const Term& term : terms)
      if (names_term(term, word)) text += fmt::format("{}: {}\n", word, term.text);
  const Metric* m = text.empty() ? find_metric(word) : nullptr;
  if (m)
    text += fmt::format("{}: {}{} Tables and pages say '{}'; in results.json it is {}.\n", word, m->meaning,
                        *unit_name(m->unit) ? fmt::format(" Unit: {}.", unit_name(m->unit)) : "", m->heading,
                        results_path(*m));
  for (const TimeClass& c : time_class_list())
    if (c.name == word) text += fmt::format("{}: a part of the line `time`. {}\n", word, c.contents);
  if (const auto operation = operation_text(word)) text += *operation;
  if (const auto collective = collective_text(word)) text += *collective;
  if (const auto transfer = transfer_text(word)) text += *transfer;
  for_each_catalog([&](const auto& catalog, std::string_view kind, std::string_view more) {
    add_entry(text, catalog, kind, word, more);
  });
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::vector<std::string> glossary_words() {
  std::vector<std::string> words;
  for (const std::span<const Term> terms : {std::span<const Term>(kTerms), field_terms()})
    for (const Term& term : terms)
      for (std::string& word : split(term.words, '|')) words.push_back(std::move(word));
  for (const Metric& m : metrics()) words.emplace_back(m.name);
  for (const TimeClass& c : time_class_list()) words.emplace_back(c.name);
  for_each_catalog([&](const auto& catalog, std::string_view, std::string_view) {
    for (std::string& name : names_of(catalog)) words.push_back(std::move(name));
  });
  return words;
}

}  // namespace stagecraft
