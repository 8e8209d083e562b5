// Checks the stages of a plan (micro-batch sizes, devices, replicas, copies of stages, edges, cycles) and reports
// everything that is wrong at once; planners call it at their end.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_names.hpp"

namespace stagecraft {
namespace {

class Findings {
 public:
  void add(std::string code, std::string path, std::string message, std::string help = {}) {
    list_.push_back({{}, std::move(path), std::move(message), std::move(help), std::move(code)});
  }
  /// Equal findings of several stages are one.
  void add_of(const Stage& stage, std::string code, std::string message, std::string help = {}) {
    const auto [same, fresh] = of_stages_.try_emplace({code, message, help}, StageNames{list_.size(), {}});
    if (fresh) add(std::move(code), {}, std::move(message), std::move(help));
    same->second.names.push_back(stage.name);
  }
  void throw_if_any() {
    for (const auto& [finding, stages] : of_stages_) list_[stages.index].path = stages_text(stages.names);
    if (!list_.empty()) throw InputError(list_);
  }

 private:
  struct StageNames {
    std::size_t index;  ///< The place of the finding in the list.
    std::vector<std::string> names;
  };

  std::vector<Diagnostic> list_;
  std::map<std::array<std::string, 3>, StageNames> of_stages_;  ///< By code, message and help.
};

bool nested(int a, int b) { return a % b == 0 || b % a == 0; }

void check_turns(const Plan& plan, StageId id, Findings& findings) {
  const Stage& stage = plan.stages[id];
  const int micro_batches = plan.micro_batches_run(id);
  if (stage.twin.valid())
    findings.add_of(stage, "replicas",
                    "its replicas take micro-batches in turn, but it has a copy in the other direction",
                    "write share: samples");
  else if (micro_batches % stage.turns() != 0)
    findings.add_of(stage, "replicas",
                    fmt::format("its {} replicas cannot take equal numbers of {}", stage.turns(),
                                pluralize(micro_batches, "micro-batch", "es")),
                    fmt::format("set run.micro_batches to a multiple of {}, or write share: samples", stage.turns()));
}

bool check_numbers(const Plan& plan, StageId id, Findings& findings) {
  const Stage& stage = plan.stages[id];
  const int size = stage.micro_batch_size;
  if (size < 1 || stage.group < 1) {
    findings.add_of(stage, "micro-batch-size",
                    fmt::format("micro-batches of {} in groups of {}", pluralize(size, "sample"), stage.group),
                    "both are at least 1");
    return false;
  }
  if (plan.mini_batch < 1 || plan.mini_batch % size != 0)
    findings.add_of(
        stage, "micro-batch-size",
        fmt::format("its micro-batch of {} samples does not divide the mini-batch of {}", size, plan.mini_batch),
        "choose sizes that divide one another");
  return true;
}

void check_devices(const Stage& stage, Findings& findings) {
  const int replicas = static_cast<int>(stage.leaders.size());
  if (replicas == 0) findings.add_of(stage, "devices", "it has no device");
  if (stage.share == Share::Samples && stage.micro_batch_size < replicas)
    findings.add_of(stage, "replicas",
                    fmt::format("its micro-batch of {} cannot be divided among {} replicas",
                                pluralize(stage.micro_batch_size, "sample"), replicas),
                    fmt::format("a micro-batch size of at least {}, fewer devices, or share: micro_batches", replicas));
  std::vector<DeviceId> sorted = stage.leaders;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    findings.add_of(stage, "device-twice", fmt::format("device {} is named twice", twice->value));
  if (!sorted.empty() && !sorted.front().valid())
    findings.add_of(stage, "devices", "it names a device that does not exist");
}

std::vector<LayerId> sorted_layers(const Stage& stage) {
  std::vector<LayerId> layers = stage.shape.layers;
  std::sort(layers.begin(), layers.end());
  return layers;
}

/// Two stages with copies of the same weights: the same work, on micro-batches that together are all.
void check_twin(const Plan& plan, StageId id, Findings& findings) {
  const Stage& stage = plan.stages[id];
  const auto bad = [&](std::string message) { findings.add_of(stage, "twin", std::move(message)); };
  if (!plan.stages.contains(stage.twin) || stage.twin == id) return bad("its other copy is no other stage");
  const Stage& other = plan.stage(stage.twin);
  if (other.twin != id) return bad(fmt::format("its other copy '{}' does not name it in turn", other.name));
  if (sorted_layers(stage) != sorted_layers(other) || stage.micro_batch_size != other.micro_batch_size)
    return bad(fmt::format("its other copy '{}' has other layers or micro-batches of another size", other.name));
  std::vector<int> both, expected(plan.micro_batches(id));
  std::iota(expected.begin(), expected.end(), 0);
  std::merge(stage.micros.begin(), stage.micros.end(), other.micros.begin(), other.micros.end(),
             std::back_inserter(both));
  if (stage.micros.empty() || other.micros.empty() || both != expected)
    bad(fmt::format("it and its other copy '{}' do not divide the micro-batches between them", other.name));
}

// Samples of one tensor are sliced by the smaller side, so the larger must be a whole number of slices.
void check_edge(const Plan& plan, const StageEdge& edge, Findings& findings) {
  const Stage& from = plan.stage(edge.from);
  const Stage& to = plan.stage(edge.to);
  const std::string path = fmt::format("stages '{}' and '{}'", from.name, to.name);
  if (!nested(from.micro_batch_size, to.micro_batch_size))
    findings.add(
        "nested", path,
        fmt::format("their micro-batches of {} and {} samples do not nest", from.micro_batch_size, to.micro_batch_size),
        "one has to divide the other");
  const int group_from = from.group * from.micro_batch_size, group_to = to.group * to.micro_batch_size;
  if (!nested(group_from, group_to))
    findings.add("nested", path, fmt::format("their groups of {} and {} samples do not nest", group_from, group_to),
                 "one has to divide the other");
}

}  // namespace

void check_plan(const Plan& plan) {
  Findings findings;
  if (plan.stages.empty()) findings.add("stages", {}, "the plan has no stages");
  bool usable = true;
  for (const StageId s : plan.stages.ids()) {
    usable &= check_numbers(plan, s, findings);
    check_devices(plan.stages[s], findings);
  }
  for (const StageId s : plan.stages.ids()) {
    if (!usable) break;
    if (plan.stage(s).twin.valid()) check_twin(plan, s, findings);
    if (plan.stage(s).turns() > 1) check_turns(plan, s, findings);
  }
  for (const StageEdge& edge : plan.edges) {
    STAGECRAFT_CHECK(plan.stages.contains(edge.from));
    STAGECRAFT_CHECK(plan.stages.contains(edge.to));
    if (usable) check_edge(plan, edge, findings);
  }
  const std::vector<int> cycle = shortest_cycle(plan.graph());
  if (!cycle.empty()) {
    std::string names;
    for (int s : cycle) names += "'" + plan.stages[StageId{s}].name + "' -> ";
    names += "'" + plan.stages[StageId{cycle.front()}].name + "'";
    findings.add("cycle", {}, "the stages wait for each other in a circle: " + names,
                 "every stage must be a convex part of the model");
  }
  findings.throw_if_any();
}

}  // namespace stagecraft
