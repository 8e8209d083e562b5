// Pipeline parallelism in Megatron-LM's arguments.

#include <numeric>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/imports/megatron_arguments.hpp"

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

void read_layout(MegatronArguments& a, TrainingSetup& s) {
  s.layout = a.word("pipeline-model-parallel-layout");
  if (s.layout.empty()) return;
  note_match(s, "pipeline-model-parallel-layout", "plan.layout", s.layout);
  std::size_t at = 0;
  const std::int64_t stages = stages_of(s.layout, at, 0) + 1;
  if (s.chunks == 1 && stages % s.ranks == 0) s.chunks = static_cast<int>(stages / s.ranks);
}

/// Layers of each stage in the order of the model as --decoder-first-pipeline-num-layers,
/// --decoder-last-pipeline-num-layers and the two options that count embedding and loss as layers divide them; empty
/// where they do not divide. The chunks of a rank have equal shares.
std::vector<int> uneven_layers(MegatronArguments& a, const TrainingSetup& s, int layers) {
  const std::int64_t stages = std::int64_t{s.ranks} * s.chunks;
  if (stages > 1'000'000) return {};
  std::vector<int> counts(static_cast<std::size_t>(stages), 0);
  const bool embedding = a.take("account-for-embedding-in-pipeline-split"),
             loss = a.take("account-for-loss-in-pipeline-split");
  if (embedding || loss) {
    const int units = layers + embedding + loss;
    if (units % stages != 0) return {};
    counts.assign(counts.size(), static_cast<int>(units / stages));
    counts.front() -= embedding;
    counts.back() -= loss;
    return counts;
  }
  const std::optional<int> first = a.find_number("decoder-first-pipeline-num-layers"),
                           last = a.find_number("decoder-last-pipeline-num-layers");
  const int others = s.ranks - (first ? 1 : 0) - (last ? 1 : 0);
  const int rest = layers - first.value_or(0) - last.value_or(0);
  if (others < 0 || rest < 0 || (others == 0 ? rest != 0 : rest % others != 0)) return {};
  const int each = others > 0 ? rest / others : 0;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const int rank = static_cast<int>(stage) % s.ranks;
    const int of_rank = rank == 0 ? first.value_or(each) : rank == s.ranks - 1 ? last.value_or(each) : each;
    if (of_rank % s.chunks != 0) return {};
    counts[stage] = of_rank / s.chunks;
  }
  return counts;
}

/// An uneven division becomes a layout.
void read_uneven_layers(MegatronArguments& a, TrainingSetup& s, int layers) {
  constexpr const char* kOptions[] = {"decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers",
                                      "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"};
  std::string given;
  for (const char* option : kOptions)
    if (a.has(option)) given = option;
  if (given.empty()) return;
  if (s.ranks < 2) {
    for (const char* option : kOptions) a.take(option);
    return;
  }
  if (!s.layout.empty()) {
    for (const char* option : kOptions)
      if (a.take(option)) s.unmodeled.push_back(a.written(option) + " with a layout");
    return;
  }
  const std::vector<int> counts = uneven_layers(a, s, layers);
  if (counts.empty()) {
    const std::string chunks = s.chunks > 1 ? " of " + pluralize(s.chunks, "chunk") : "";
    a.refuse(
        given,
        fmt::format("{} cannot be divided so on {}{}", pluralize(layers, "layer"), pluralize(s.ranks, "rank"), chunks),
        "correct the file");
  }
  for (std::size_t r = 0; r < counts.size(); ++r) {
    s.layout += r == 0 ? "E" : "|";
    if (counts[r] > 0) s.layout += counts[r] == 1 ? "t" : fmt::format("t*{}", counts[r]);
  }
  s.layout += "L";
  note_match(s, given, "plan.layout", s.layout);
}

}  // namespace

void read_megatron_pipeline(MegatronArguments& a, TrainingSetup& s, const MegatronShape& shape) {
  s.ranks = a.number(s, "pipeline-model-parallel-size", "pipeline ranks", 1);
  if (const std::optional<int> each = a.find_number("num-layers-per-virtual-pipeline-stage")) {
    if (shape.layers % (std::int64_t{s.ranks} * *each) != 0)
      a.refuse(
          "num-layers-per-virtual-pipeline-stage",
          fmt::format("{} do not divide {} on {}", *each, pluralize(shape.layers, "layer"), pluralize(s.ranks, "rank")),
          "correct the file");
    s.chunks = shape.layers / s.ranks / *each;
    note_match(s, "num-layers-per-virtual-pipeline-stage", "run.schedule.chunks", std::to_string(s.chunks));
  }
  s.chunks = a.number(s, "num-virtual-stages-per-pipeline-rank", "run.schedule.chunks", s.chunks);
  read_layout(a, s);
  read_uneven_layers(a, s, shape.layers);
  s.schedule = s.chunks > 1 ? "interleaved" : "1f1b";
}

}  // namespace stagecraft
