// The schedules and weights policies that a search tries.

#include "sim/search/policies.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Strings = std::vector<std::string>;

// Schedules that are often the shortest come first among equal bounds.
const Strings kUsual = {"zb-v-auto",  "zb-v",  "zb-h2",       "interleaved-zb", "zb-h1",
                        "v-half",     "zb-2p", "interleaved", "1f1b-v",         "1f1b",
                        "eager-1f1b", "gpipe", "hanayo",      "v-min",          "looped-bfs"};
const Strings kMegatron = {"1f1b", "interleaved"};  // All that Megatron-LM and what builds on it run.
/// Schedules of torch.distributed.pipelining, which torchtitan runs.
const Strings kTorchtitan = {"zb-v", "interleaved-zb", "interleaved", "dualpipev", "1f1b", "gpipe", "looped-bfs"};
const Strings kUnflushed = {"pipedream", "2bw"};
const Strings kFoundFromCosts = {"zb-1p", "zb-2p", "v-adaptive", "hanayo", "spp-pe"};
/// Their backwards compute both gradients at once.
const Strings kUnsplit = {"1f1b", "gpipe", "eager-1f1b", "interleaved", "1f1b-v", "looped-bfs", "hanayo"};

bool is_in(const Strings& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const ScheduleDef& schedule_named(const std::string& name) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  if (def.name == "csv")
    throw InputError("the schedule 'csv' is an order from a file", "write the name of the file, such as mine.csv");
  const char* why = def.tasks     ? "needs a plan of tasks"
                    : !def.trains ? "does not train"
                    : def.vocabulary != VocabularyPasses::None
                        ? "needs a plan whose ranks divide the vocabulary, which a search does not make yet"
                        : nullptr;
  if (why)
    throw InputError(fmt::format("the schedule '{}' {}, so there is nothing to search for", name, why),
                     "leave --schedules out, or name others");
  return def;
}

SchedulingPolicy policy_of(const ScheduleDef& def, const std::string& weights) {
  const int effort = def.name == "synthesised" ? 2 : is_in(kFoundFromCosts, def.name) ? 1 : 0;
  return {&def, weights, effort, !is_in(kUnsplit, def.name)};
}

/// The policy of a name, or of a file with an order.
SchedulingPolicy policy_named(const std::string& word) {
  if (!is_order_file(word)) return policy_of(schedule_named(word), {});
  SchedulingPolicy policy = policy_of(get_from(schedules::catalog(), "schedule", "csv"), {});
  policy.order = std::make_shared<const OwnOrder>(own_order(word));
  policy.shape = shape_of(*policy.order);
  return policy;
}

SchedulingPolicy policy_of(const OwnSchedule& schedule) {
  SchedulingPolicy policy = policy_of(*schedule.spec.def, {});
  policy.own_schedule = std::make_shared<const OwnSchedule>(schedule);
  return policy;
}

}  // namespace

bool is_megatron(const SoftwareStack& software) {
  return software.name.starts_with("megatron") || software.name == "bloom" || software.name.starts_with("nemo");
}

std::vector<SchedulingPolicy> scheduling_policies(const Strings& schedules, const Strings& weights,
                                                  const SoftwareStack& software, const WeightsSpec& configured,
                                                  const std::vector<OwnSchedule>& own_schedules) {
  const bool are_named = !schedules.empty() || !own_schedules.empty();
  Strings names = are_named                                 ? schedules
                  : is_megatron(software)                   ? kMegatron
                  : software.name.starts_with("torchtitan") ? kTorchtitan
                                                            : kUsual;
  const bool may_be_stale = !weights.empty() || (!configured.automatic && !configured.policy->needs_flush);
  if (!are_named && may_be_stale) names.insert(names.end(), kUnflushed.begin(), kUnflushed.end());
  const bool is_framework = software.prices && software.name != "plain";  // None runs an order that was searched for.
  if (!are_named && !is_framework) names.emplace_back("synthesised");
  std::vector<SchedulingPolicy> asked, policies;
  for (const std::string& name : names) asked.push_back(policy_named(name));
  for (const OwnSchedule& schedule : own_schedules) asked.push_back(policy_of(schedule));
  for (SchedulingPolicy& policy : asked) {
    const auto add = [&](const std::string& word) {
      policy.weights = word;
      policies.push_back(policy);
    };
    if (weights.empty()) add(configured.automatic ? "auto" : configured.name());
    for (const std::string& word : weights)
      if (get_from(weights::catalog(), "weights policy", word).needs_flush == policy.schedule->flushes) add(word);
  }
  if (policies.empty())
    throw InputError("none of these schedules goes with any of these weights",
                     "flush is for schedules with a flush such as 1f1b, the others for pipedream and 2bw");
  return policies;
}

}  // namespace stagecraft
