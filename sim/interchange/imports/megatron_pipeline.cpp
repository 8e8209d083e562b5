// Reads the pipeline from Megatron-LM's arguments (ranks, virtual stages, the layout of the layers), and refuses
// divisions of layers that Megatron-LM refuses.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"
#include "sim/interchange/rules/framework_rule.hpp"

namespace stagecraft {
namespace {

/// The letters and bars of a layout string, in which "(tt|)*3" and "|*3" repeat; nothing where its parentheses are
/// wrong, which the planner of that name reports, and more than a model has letters.
std::optional<std::string> letters_of(const std::string& layout, std::size_t& at, int depth) {
  constexpr std::size_t kMost = 1'000'000;
  constexpr int kDeepest = 100;
  std::string letters;
  while (at < layout.size() && layout[at] != ')') {
    const char c = layout[at++];
    std::string here = c == ',' || c == ' ' ? "" : std::string(1, c);
    if (c == '(') {
      const std::optional<std::string> inner = depth < kDeepest ? letters_of(layout, at, depth + 1) : std::nullopt;
      if (!inner || at == layout.size()) return {};
      here = *inner;
      ++at;
    }
    std::size_t times = 1;
    if (at < layout.size() && layout[at] == '*')
      for (times = 0, ++at; at < layout.size() && layout[at] >= '0' && layout[at] <= '9'; ++at)
        times = std::min(kMost, 10 * times + (layout[at] - '0'));
    if (letters.size() + times * here.size() > kMost) return {};
    for (std::size_t n = 0; n < times; ++n) letters += here;
  }
  return letters;
}

constexpr const char* kFirst = "decoder-first-pipeline-num-layers";
constexpr const char* kLast = "decoder-last-pipeline-num-layers";
constexpr const char* kWithEmbedding = "account-for-embedding-in-pipeline-split";
constexpr const char* kWithLoss = "account-for-loss-in-pipeline-split";
constexpr const char* kEachVirtual = "num-layers-per-virtual-pipeline-stage";
constexpr const char* kVirtual = "num-virtual-stages-per-pipeline-rank";
constexpr const char* kLayout = "pipeline-model-parallel-layout";

/// What Megatron-LM demands of the letters.
void check_letters(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                   const std::string& letters) {
  const auto count = [&](char c) { return std::count(letters.begin(), letters.end(), c); };
  const auto demand = [&](bool holds, const char* rule, const std::string& why, const char* help) {
    if (!holds) a.break_rule(rule, kLayout, why, help);
  };
  demand(letters.starts_with('E') && count('E') == 1 && letters.ends_with('L') && count('L') == 1, "layout-layers",
         "it has no E first and L last, each once", "such as Et*2|t*2L");
  demand(count('t') == shape.layers, "layout-layers",
         fmt::format("it has {} t, and the model {}", count('t'), pluralize(shape.layers, "layer")),
         "as many t as --num-layers");
  demand(count('m') == shape.next_tokens, "layout-layers",
         fmt::format("it has {} m, and the model {}", count('m'), pluralize(shape.next_tokens, "next-token module")),
         "as many m as --mtp-num-layers");
  const std::size_t first = letters.find('m');
  if (first == std::string::npos) return;
  const std::size_t last = letters.rfind('m');
  const auto stage = std::count(letters.begin(), letters.begin() + static_cast<std::ptrdiff_t>(first), '|');
  demand(letters.find('t', first) == std::string::npos && letters.find('|', first) > last &&
             stage >= std::int64_t{s.ranks} * (s.chunks - 1),
         "layout-next-tokens", "next-token modules are not together after all layers, in the last chunk of a rank",
         "m directly before L");
}

/// The chunks of each rank follow from the number of stages.
void read_layout(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  s.layout = a.word(kLayout);
  std::erase_if(s.layout, [](char c) { return c == ',' || c == ' '; });  // Megatron-LM skips commas.
  if (s.layout.empty()) return;
  std::size_t at = 0;
  const std::optional<std::string> letters = letters_of(s.layout, at, 0);
  const std::int64_t stages = letters ? 1 + std::count(letters->begin(), letters->end(), '|') : 1;
  if (stages % s.ranks != 0)
    a.break_rule("layout-stages", kLayout,
                 fmt::format("{} are no multiple of {}", pluralize(stages, "stage"), pluralize(s.ranks, "rank")),
                 "a layout with a multiple of the ranks as its stages");
  s.chunks = static_cast<int>(stages / s.ranks);
  if (letters) check_letters(a, s, shape, *letters);
  note_match(s, kLayout, "plan.layout", s.layout);
}

/// The option that decides how layers are divided, for messages.
std::string dividing_option(const MegatronArguments& a) {
  for (const char* option : {kFirst, kLast, kWithEmbedding, kWithLoss, kEachVirtual, kVirtual})
    if (a.has(option)) return option;
  return "pipeline-model-parallel-size";
}

[[noreturn]] void refuse_division(const MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape,
                                  const char* rule) {
  const std::string chunks = s.chunks > 1 ? " of " + pluralize(s.chunks, "chunk") : "";
  a.break_rule(rule, dividing_option(a),
               fmt::format("{} cannot be divided so on {}{}", pluralize(shape.layers, "layer"),
                           pluralize(s.ranks, "rank"), chunks),
               "--pipeline-model-parallel-layout, or a number of ranks and virtual stages that divides the layers");
}

/// Layers of each stage in the order of the model, as Megatron-LM divides them: evenly, with the embedding and the loss
/// counted as layers, or with other numbers on the first and the last rank. The chunks of a rank have equal shares.
std::vector<int> layers_of_stages(MegatronArguments& a, const TrainingSetup& s, const MegatronShape& shape) {
  const std::int64_t stages = std::int64_t{s.ranks} * s.chunks;
  if (stages > shape.layers + std::int64_t{2}) refuse_division(a, s, shape, "layers");
  std::vector<int> counts(stages, 0);
  const bool counts_ends = a.word("pp-partition-method") == "type:transformer|embedding";  // Megatron-DeepSpeed.
  const bool embedding = a.take(kWithEmbedding) || counts_ends, loss = a.take(kWithLoss) || counts_ends;
  const std::optional<int> first = a.find_number(kFirst), last = a.find_number(kLast);
  if (!first && !last) {
    const int units = shape.layers + embedding + loss;
    if (units % s.ranks != 0) refuse_division(a, s, shape, "layers");
    if (units % stages != 0) refuse_division(a, s, shape, "layers-of-chunks");
    counts.assign(counts.size(), static_cast<int>(units / stages));
    counts.front() -= embedding;
    counts.back() -= loss;
    return counts;
  }
  const char* const rule = "layers-of-ends";
  const int others = s.ranks - (first ? 1 : 0) - (last ? 1 : 0);
  const int rest = shape.layers - first.value_or(0) - last.value_or(0);
  if (others < 0 || rest < 0 || (others == 0 ? rest != 0 : rest == 0 || rest % others != 0))
    refuse_division(a, s, shape, rule);
  const int each = others > 0 ? rest / others : 0;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const int rank = static_cast<int>(stage) % s.ranks;
    const int of_rank = rank == 0 ? first.value_or(each) : rank == s.ranks - 1 ? last.value_or(each) : each;
    if (of_rank % s.chunks != 0) refuse_division(a, s, shape, rule);
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
    if (a.has(kFirst) || a.has(kLast)) static_cast<void>(layers_of_stages(a, s, shape));  // Refuses what is left over.
    return;
  }
  if (!s.layout.empty() || divides_by_parameters(a, s)) return;
  const std::vector<int> counts = layers_of_stages(a, s, shape);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    s.layout += r == 0 ? "E" : "|";
    if (counts[r] > 0) s.layout += counts[r] == 1 ? "t" : fmt::format("t*{}", counts[r]);
  }
  s.layout += std::string(std::min(shape.next_tokens, 1000), 'm') + "L";
  note_match(s, dividing_option(a), "plan.layout", s.layout);
}

/// Virtual stages of each rank, by either option.
void read_chunks(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  if (const std::optional<int> each = a.find_number(kEachVirtual)) {
    const int units = shape.layers + a.has(kWithEmbedding) + a.has(kWithLoss);
    if (units % (std::int64_t{s.ranks} * *each) != 0)
      a.break_rule(
          "layers-of-virtual-stages", kEachVirtual,
          fmt::format("{} do not divide {} on {}", *each, pluralize(shape.layers, "layer"), pluralize(s.ranks, "rank")),
          "a divisor of the layers of a rank");
    s.chunks = units / s.ranks / *each;
    note_match(s, kEachVirtual, "run.schedule.chunks", std::to_string(s.chunks));
  }
  s.chunks = a.number(s, kVirtual, "run.schedule.chunks", s.chunks);
}

/// Options of which at most one is allowed.
void refuse_contradictions(const MegatronArguments& a) {
  const auto exclude = [&](const char* option, const char* other, const char* rule) {
    if (a.has(option) && a.has(other))
      a.break_rule(rule, option, fmt::format("it excludes --{}", other), "leave one of them out");
  };
  for (const char* option : {kEachVirtual, kVirtual}) exclude(kLayout, option, "one-division");
  exclude(kEachVirtual, kVirtual, "one-division");
  for (const char* option : {kFirst, kLast}) {
    exclude(option, kEachVirtual, "ends-with-virtual-stages");
    for (const char* account : {kWithEmbedding, kWithLoss}) exclude(option, account, "ends-and-counted");
  }
  for (const char* option : {kFirst, kLast, kWithEmbedding, kWithLoss}) exclude(kLayout, option, "layout-alone");
}

/// Virtual stages need a pipeline, and a longer one without overlap of messages.
void check_virtual_stages(const MegatronArguments& a, const TrainingSetup& s) {
  const char* const option = a.has(kVirtual) ? kVirtual : a.has(kLayout) ? kLayout : kEachVirtual;
  if (s.chunks > 1 && s.ranks == 1)
    a.break_rule("virtual-ranks", option, "a single pipeline rank has no virtual stages",
                 "--pipeline-model-parallel-size 2, or leave it out");
  if (s.chunks > 1 && s.ranks == 2 && a.has("no-overlap-p2p-communication"))
    a.break_rule("virtual-messages", "no-overlap-p2p-communication",
                 "virtual stages without it need more than two pipeline ranks", "leave it out");
}

}  // namespace

std::string refused_by_megatron(std::string_view rule, std::string_view release) {
  return refused_by(megatron_rules(), find_rule(megatron_rules(), rule), release);
}

void read_megatron_pipeline(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  s.ranks = a.number(s, "pipeline-model-parallel-size", "pipeline ranks", 1);
  refuse_contradictions(a);
  read_chunks(a, s, shape);
  read_layout(a, s, shape);
  check_virtual_stages(a, s);
  write_layout(a, s, shape);
  s.schedule = s.chunks > 1 ? "interleaved" : "1f1b";
  s.chunk_group = a.find_number("microbatch-group-size-per-virtual-pipeline-stage").value_or(s.ranks);
  if (s.chunks > 1 && s.chunk_group != s.ranks)
    note_match(s, "microbatch-group-size-per-virtual-pipeline-stage", "run.schedule.group",
               std::to_string(s.chunk_group));
}

}  // namespace stagecraft
