// What torchtitan demands: tag 0.2.2 (2026-02-20), and main of 2026-08-21 (b5bcd76), which is configured in Python; and
// the schedules of torch.distributed.pipelining (PyTorch 00722e64), restated; and which of these rules a run breaks.

#include "sim/interchange/rules/torchtitan.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kMakesMesh = "when it makes the device mesh",
                           kParallelizes = "when it parallelizes the model",
                           kBuildsSchedule = "when it builds the schedule",
                           kReadsConfiguration = "when it reads its configuration";

constexpr FrameworkRule kTorchtitanRules[] = {
    {"keys", "keys of the release: 0.2.2 has local_batch_size, main num_tokens_per_microbatch_per_dp_rank", "exit",
     kReadsConfiguration},
    {"mesh", "W = replicate x shard x C x T x P", "AssertionError", kMakesMesh},
    {"expert-devices", "shard x C x T mod E = 0", "AssertionError", kMakesMesh},
    {"experts", "experts mod E = 0", "AssertionError", kMakesMesh},
    {"expert-tensor", "U = T or 1", "AssertionError", kMakesMesh},
    {"heads", "heads mod T = 0", "ValueError", kParallelizes},
    {"key-value-heads", "key-value heads mod T = 0 (main)", "ValueError", kParallelizes},
    {"sequence", "sequence mod (T 2C) = 0, with T > 1 or C > 1", "AssertionError", kMakesMesh},
    {"replicas-alone", "replicate > 1 with shard = C = 1: T = E = P = 1", "RuntimeError", kParallelizes},
    {"micro-batch", "local batch mod micro-batch = 0, with P > 1", "ValueError", kBuildsSchedule},
    {"accumulation", "global batch mod (local batch x replicate x shard) = 0", "AssertionError", kReadsConfiguration},
    {"stages-of-ranks", "stages mod P = 0", "ValueError", kBuildsSchedule},
    {"stages-of-schedule", "stages of a rank: 1F1B and GPipe 1; ZBVZeroBubble and DualPipeV 2; others 2 or more",
     "ValueError", kBuildsSchedule},
    {"few-micro-batches", "1F1B and GPipe: M >= stages; DualPipeV: M >= 2P", "ValueError", kBuildsSchedule},
    {"rounds", "interleaved schedules: M mod max(1, M div P) = 0", "ValueError", kBuildsSchedule},
    {"compiled-schedule", "InterleavedZeroBubble, ZBVZeroBubble and DualPipeV: the model is not compiled (0.2.2)",
     "RuntimeError", kBuildsSchedule},
    {"async-tensor", "asynchronous tensor parallelism: the model is compiled", "RuntimeError", kParallelizes},
    {"graphs", "P > 1: CUDA graphs are disabled (main)", "ValueError", kReadsConfiguration},
};

constexpr TorchtitanFlavor kTorchtitanFlavors[] = {{"llama3", "8B", "llama-3-8b", 32, 4096, 32, 8, 0},
                                                   {"llama3", "70B", "llama-3-70b", 80, 8192, 64, 8, 0},
                                                   {"llama3", "405B", "llama-3-405b", 126, 16384, 128, 8, 0},
                                                   {"qwen3", "32B", "qwen3-32b", 64, 5120, 64, 8, 0},
                                                   {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, 2048, 32, 4, 128},
                                                   {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, 4096, 64, 4, 128},
                                                   {"deepseek_v3", "671B", "deepseek-v3", 61, 7168, 128, 0, 256}};

constexpr const char* kTorchtitanPlaces[] = {"group", "shard", "schedule", "batch"};

class TorchtitanRuleCheck {
 public:
  explicit TorchtitanRuleCheck(const TorchtitanRun& run) : r_(run) {}

  std::vector<Diagnostic> broken_rules() {
    check_mesh();
    check_model();
    check_batch();
    if (r_.ranks > 1) check_schedule();
    require(!r_.async_tensor || r_.compiles_model, "async-tensor", 0, "the model is not compiled",
            "compile.enable with the component model");
    require(!r_.main || r_.ranks == 1 || r_.disables_graphs, "graphs", 2, "a pipeline runs with CUDA graphs",
            "--training.disable_cuda_graphs");
    return std::move(broken_);
  }

 private:
  void require(bool holds, const char* rule, int place, std::string message, std::string help) {
    if (!holds) broken_.push_back({{}, kTorchtitanPlaces[place], std::move(message), std::move(help), rule});
  }

  void check_mesh() {
    const std::int64_t sharded = std::int64_t{r_.shard} * r_.context * r_.tensor;
    require(r_.replicate == 1 || r_.shard * r_.context > 1 || (r_.tensor == 1 && r_.expert == 1 && r_.ranks == 1),
            "replicas-alone", 1, "replicas without divided weights go with no other parallelism", "shard: weights");
    require(r_.expert == 1 || r_.expert_tensor <= 1 || r_.expert_tensor == r_.tensor, "expert-tensor", 0,
            fmt::format("expert_tensor is {}", r_.expert_tensor), fmt::format("expert_tensor: 1, or {}", r_.tensor));
    require(
        r_.expert == 1 || sharded % r_.expert == 0, "expert-devices", 0,
        fmt::format("expert {} does not divide the {} that divide weights", r_.expert, pluralize(sharded, "device")),
        fmt::format("expert: a divisor of {}", sharded));
    const int parts = r_.tensor * 2 * r_.context;
    require(r_.sequence % parts == 0 || r_.tensor * r_.context == 1, "sequence", 0,
            fmt::format("a sequence of {} is no multiple of tensor x 2 context = {}", r_.sequence, parts),
            fmt::format("a sequence that is a multiple of {}", parts));
    const std::int64_t devices = std::int64_t{r_.replicate} * r_.shard * r_.context * r_.tensor * r_.ranks;
    require(r_.devices == 0 || devices == r_.devices, "mesh", 0,
            fmt::format("the degrees have {}, and there are {}", pluralize(devices, "GPU"), r_.devices),
            "degrees whose product is the number of GPUs");
  }

  void check_model() {
    require(r_.experts == 0 || r_.experts % r_.expert == 0, "experts", 0,
            fmt::format("expert {} does not divide {}", r_.expert, pluralize(r_.experts, "expert")),
            "a divisor of the experts");
    require(r_.heads % r_.tensor == 0, "heads", 0,
            fmt::format("tensor {} does not divide {}", r_.tensor, pluralize(r_.heads, "head")),
            "a divisor of the heads");
    require(!r_.main || r_.key_value_heads % r_.tensor == 0, "key-value-heads", 0,
            fmt::format("tensor {} does not divide {}", r_.tensor, pluralize(r_.key_value_heads, "key-value head")),
            "a divisor of the key-value heads");
  }

  void check_batch() {
    require(r_.ranks == 1 || r_.micro_batch == 0 || r_.local_batch % r_.micro_batch == 0, "micro-batch", 3,
            fmt::format("a local batch of {} is no multiple of the micro-batch {}", r_.local_batch, r_.micro_batch),
            "a multiple of the micro-batch");
    const std::int64_t pass = r_.local_batch * r_.replicate * r_.shard;
    require(pass == 0 || r_.global_batch % pass == 0, "accumulation", 3,
            fmt::format("{} are no multiple of the {} of one pass", pluralize(r_.global_batch, "sample"), pass),
            fmt::format("run.global_batch: a multiple of {}", pass));
  }

  void check_schedule() {
    const bool single = r_.schedule == "1F1B" || r_.schedule == "GPipe";
    const bool both_ways = r_.schedule == "ZBVZeroBubble" || r_.schedule == "DualPipeV";
    const bool in_rounds = r_.schedule == "Interleaved1F1B" || r_.schedule == "InterleavedZeroBubble";
    const bool has_limit = single || both_ways || in_rounds || r_.schedule == "LoopedBFS";
    require(r_.stages % r_.ranks == 0, "stages-of-ranks", 2,
            fmt::format("{} on {}", pluralize(r_.stages, "stage"), pluralize(r_.ranks, "rank")),
            "as many stages on each rank");
    const std::int64_t each = r_.stages / r_.ranks;
    require(!has_limit || (single      ? each == 1
                           : both_ways ? each == 2
                                       : each >= 2),
            "stages-of-schedule", 2, fmt::format("{} on each rank with {}", pluralize(each, "stage"), r_.schedule),
            single      ? "1 stage on each rank"
            : both_ways ? "2 stages on each rank"
                        : "at least 2 stages on each rank");
    const std::int64_t count = r_.micro_batches;
    if (count == 0) return;
    require(!single || count >= r_.stages, "few-micro-batches", 2,
            fmt::format("{} on {}", pluralize(count, "micro-batch", "es"), pluralize(r_.stages, "stage")),
            fmt::format("run.micro_batches: {}", r_.stages));
    require(r_.schedule != "DualPipeV" || count >= 2 * r_.ranks, "few-micro-batches", 2,
            fmt::format("{} on {}", pluralize(count, "micro-batch", "es"), pluralize(r_.ranks, "rank")),
            fmt::format("run.micro_batches: {}", 2 * r_.ranks));
    const std::int64_t rounds = std::max<std::int64_t>(1, count / r_.ranks);
    require(
        !in_rounds || count % rounds == 0, "rounds", 2,
        fmt::format("{} cannot be divided into {}", pluralize(count, "micro-batch", "es"), pluralize(rounds, "round")),
        fmt::format("run.micro_batches: {}", (count / r_.ranks + 1) * r_.ranks));
    require(r_.main || !r_.compiles_model || !(both_ways || r_.schedule == "InterleavedZeroBubble"),
            "compiled-schedule", 2, fmt::format("{} does not run a compiled model", r_.schedule),
            "compile without the component model, or another schedule");
  }

  const TorchtitanRun& r_;
  std::vector<Diagnostic> broken_;
};

}  // namespace

const FrameworkRules& torchtitan_rules() {
  static constexpr FrameworkRules rules{"torchtitan", "torchtitan", kTorchtitanRules};
  return rules;
}

std::span<const TorchtitanFlavor> torchtitan_flavors() { return kTorchtitanFlavors; }

std::vector<int> torchtitan_layers(int layers, int stages, int of_embedding, int of_scores) {
  const int units = layers + of_embedding + of_scores;
  if (stages < 1 || stages > units) return {};
  std::vector<int> counts(static_cast<std::size_t>(stages), units / stages);
  for (int s = 0; s < units % stages; ++s) ++counts[static_cast<std::size_t>(s)];
  counts.front() -= of_embedding, counts.back() -= of_scores;
  if (counts.front() < 0 || counts.back() < 0) return {};
  return counts;
}

std::vector<Diagnostic> broken_torchtitan_rules(const TorchtitanRun& run) {
  return TorchtitanRuleCheck(run).broken_rules();
}

}  // namespace stagecraft
