// Pipeline parallelism in Megatron-LM's arguments.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

/// Stages of a layout string, in which "(tt|)*3" and "|*3" repeat; 0 where its parentheses are wrong, which the planner
/// of that name reports.
std::int64_t stages_of(const std::string& layout, std::size_t& at, int depth) {
  constexpr std::int64_t kMost = 1'000'000;
  constexpr int kDeepest = 100;
  std::int64_t bars = 0;
  while (at < layout.size() && layout[at] != ')') {
    const char c = layout[at++];
    std::int64_t here = c == '|';
    if (c == '(') {
      if (depth == kDeepest) return 0;
      here = stages_of(layout, at, depth + 1);
      if (at == layout.size()) return 0;
      ++at;
    }
    if (at < layout.size() && layout[at] == '*') {
      std::int64_t times = 0;
      for (++at; at < layout.size() && layout[at] >= '0' && layout[at] <= '9'; ++at)
        times = std::min(kMost, 10 * times + (layout[at] - '0'));
      here *= times;
    }
    bars = std::min(kMost, bars + here);
  }
  return bars;
}

constexpr const char* kFirst = "decoder-first-pipeline-num-layers";
constexpr const char* kLast = "decoder-last-pipeline-num-layers";
constexpr const char* kWithEmbedding = "account-for-embedding-in-pipeline-split";
constexpr const char* kWithLoss = "account-for-loss-in-pipeline-split";
constexpr const char* kEachVirtual = "num-layers-per-virtual-pipeline-stage";
constexpr const char* kVirtual = "num-virtual-stages-per-pipeline-rank";
constexpr const char* kLayout = "pipeline-model-parallel-layout";

/// The chunks of each rank follow from the number of stages.
void read_layout(MegatronArguments& a, TrainingSetup& s) {
  s.layout = a.word(kLayout);
  if (s.layout.empty()) return;
  std::size_t at = 0;
  const std::int64_t stages = stages_of(s.layout, at, 0) + 1;
  if (stages % s.ranks != 0)
    a.refuse(kLayout,
             refused_by_megatron("when it checks its arguments (AssertionError)") +
                 fmt::format("{} are no multiple of {}", pluralize(stages, "stage"), pluralize(s.ranks, "rank")),
             "a layout with a multiple of the ranks as its stages");
  s.chunks = static_cast<int>(stages / s.ranks);
  note_match(s, kLayout, "plan.layout", s.layout);
}

/// The option that decides how layers are divided, for messages.
std::string dividing_option(const MegatronArguments& a) {
  for (const char* option : {kFirst, kLast, kWithEmbedding, kWithLoss, kEachVirtual, kVirtual})
    if (a.has(option)) return option;
  return "pipeline-model-parallel-size";
}

[[noreturn]] void refuse_division(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                                  const char* when) {
  const std::string chunks = s.chunks > 1 ? " of " + pluralize(s.chunks, "chunk") : "";
  a.refuse(dividing_option(a),
           refused_by_megatron(when) + fmt::format("{} cannot be divided so on {}{}", pluralize(shape.layers, "layer"),
                                                   pluralize(s.ranks, "rank"), chunks),
           "--pipeline-model-parallel-layout, or a number of ranks and virtual stages that divides the layers");
}

/// Layers of each stage in the order of the model, as Megatron-LM divides them: evenly, with the embedding and the loss
/// counted as layers, or with other numbers on the first and the last rank. The chunks of a rank have equal shares.
std::vector<int> layers_of_stages(MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape) {
  const std::int64_t stages = std::int64_t{s.ranks} * s.chunks;
  if (stages > shape.layers + std::int64_t{2})
    refuse_division(a, s, shape, "when it checks its arguments (AssertionError)");
  std::vector<int> counts(static_cast<std::size_t>(stages), 0);
  const bool counts_ends = a.word("pp-partition-method") == "type:transformer|embedding";  // Megatron-DeepSpeed.
  const bool embedding = a.take(kWithEmbedding) || counts_ends, loss = a.take(kWithLoss) || counts_ends;
  const std::optional<int> first = a.find_number(kFirst), last = a.find_number(kLast);
  if (!first && !last) {
    const int units = shape.layers + embedding + loss;
    if (units % s.ranks != 0) refuse_division(a, s, shape, "when it checks its arguments (AssertionError)");
    if (units % stages != 0) refuse_division(a, s, shape, "when it builds the model (AssertionError)");
    counts.assign(counts.size(), static_cast<int>(units / stages));
    counts.front() -= embedding;
    counts.back() -= loss;
    return counts;
  }
  const char* const when = "when it configures the model (ValueError)";
  const int others = s.ranks - (first ? 1 : 0) - (last ? 1 : 0);
  const int rest = shape.layers - first.value_or(0) - last.value_or(0);
  if (others < 0 || rest < 0 || (others == 0 ? rest != 0 : rest == 0 || rest % others != 0))
    refuse_division(a, s, shape, when);
  const int each = others > 0 ? rest / others : 0;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const int rank = static_cast<int>(stage) % s.ranks;
    const int of_rank = rank == 0 ? first.value_or(each) : rank == s.ranks - 1 ? last.value_or(each) : each;
    if (of_rank % s.chunks != 0) refuse_division(a, s, shape, when);
    counts[stage] = of_rank / s.chunks;
  }
  return counts;
}

/// Whether DeepSpeed divides the layers by their parameters, as it does unless it is told otherwise.
bool divides_by_parameters(MegatronArguments& a, const TrainingSetup& s) {
  return s.software == "megatron-deepspeed" && a.word("pp-partition-method") != "type:transformer|embedding";
}

/// Megatron-LM's own division becomes a layout, because a planner would move layers. A single stage needs none.
void write_layout(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  if (s.ranks * std::int64_t{s.chunks} == 1) {
    for (const char* option : {kFirst, kLast, kWithEmbedding, kWithLoss}) a.take(option);
    return;
  }
  if (!s.layout.empty() || divides_by_parameters(a, s)) return;
  const std::vector<int> counts = layers_of_stages(a, s, shape);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    s.layout += r == 0 ? "E" : "|";
    if (counts[r] > 0) s.layout += counts[r] == 1 ? "t" : fmt::format("t*{}", counts[r]);
  }
  s.layout += std::string(static_cast<std::size_t>(std::min(shape.next_tokens, 1000)), 'm') + "L";
  note_match(s, dividing_option(a), "plan.layout", s.layout);
}

/// Virtual stages of each rank, by either option.
void read_chunks(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  if (const std::optional<int> each = a.find_number(kEachVirtual)) {
    const int units = shape.layers + a.has(kWithEmbedding) + a.has(kWithLoss);
    if (units % (std::int64_t{s.ranks} * *each) != 0)
      a.refuse(kEachVirtual,
               refused_by_megatron("when it checks its arguments (AssertionError)") +
                   fmt::format("{} do not divide {} on {}", *each, pluralize(shape.layers, "layer"),
                               pluralize(s.ranks, "rank")),
               "a divisor of the layers of a rank");
    s.chunks = units / s.ranks / *each;
    note_match(s, kEachVirtual, "run.schedule.chunks", std::to_string(s.chunks));
  }
  s.chunks = a.number(s, kVirtual, "run.schedule.chunks", s.chunks);
}

/// Options of which at most one is allowed.
void refuse_contradictions(const MegatronArguments& a) {
  const char* const checks = "when it checks its arguments (AssertionError)";
  const char* const configures = "when it configures the model (ValueError)";
  const auto exclude = [&](const char* option, const char* other, const char* when) {
    if (a.has(option) && a.has(other))
      a.refuse(option, refused_by_megatron(when) + fmt::format("it excludes --{}", other), "leave one of them out");
  };
  for (const char* option : {kEachVirtual, kVirtual}) exclude(kLayout, option, checks);
  exclude(kEachVirtual, kVirtual, checks);
  for (const char* option : {kFirst, kLast}) {
    exclude(option, kEachVirtual, checks);
    for (const char* account : {kWithEmbedding, kWithLoss}) exclude(option, account, configures);
  }
  for (const char* option : {kFirst, kLast, kWithEmbedding, kWithLoss}) exclude(kLayout, option, configures);
}

/// Virtual stages need a pipeline, and a longer one without overlap of messages.
void check_virtual_stages(const MegatronArguments& a, const TrainingSetup& s) {
  const std::string checks = refused_by_megatron("when it checks its arguments (AssertionError)");
  if (s.chunks > 1 && s.ranks == 1)
    a.refuse(a.has(kVirtual)  ? kVirtual
             : a.has(kLayout) ? kLayout
                              : kEachVirtual,
             checks + "a single pipeline rank has no virtual stages",
             "--pipeline-model-parallel-size 2, or leave it out");
  if (s.chunks > 1 && s.ranks == 2 && a.has("no-overlap-p2p-communication"))
    a.refuse("no-overlap-p2p-communication", checks + "virtual stages without it need more than two pipeline ranks",
             "leave it out");
}

}  // namespace

std::string refused_by_megatron(std::string_view when) {
  return fmt::format("Megatron-LM 0.20 refuses this {}: ", when);
}

void read_megatron_pipeline(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  s.ranks = a.number(s, "pipeline-model-parallel-size", "pipeline ranks", 1);
  refuse_contradictions(a);
  read_chunks(a, s, shape);
  read_layout(a, s);
  check_virtual_stages(a, s);
  write_layout(a, s, shape);
  s.schedule = s.chunks > 1 ? "interleaved" : "1f1b";
  s.chunk_group = a.find_number("microbatch-group-size-per-virtual-pipeline-stage").value_or(s.ranks);
  if (s.chunks > 1 && s.chunk_group != s.ranks)
    note_match(s, "microbatch-group-size-per-virtual-pipeline-stage", "run.schedule.group",
               std::to_string(s.chunk_group));
}

}  // namespace stagecraft
