// What the diagnosis and the text about memory offer is what the framework of the software stack takes.

#include <doctest/doctest.h>

#include <regex>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/diagnosis/diagnose.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/interchange/frameworks.hpp"

namespace stagecraft::followed_advice_test {
namespace {

using Sets = std::vector<std::string>;
using Exporter = FrameworkConfiguration (*)(const PlannedExperiment&);

const std::string kFile = "examples/llama-3-8b-4x8";

struct StackOfFramework {
  std::string name;
  Exporter write;
};

std::vector<StackOfFramework> stacks_with_exporter() {
  std::vector<StackOfFramework> stacks;
  for (const SoftwareStack& stack : software_stacks()) {
    const std::string name(stack.name);
    if (name.starts_with("megatron") || name.starts_with("nemo") || name == "bloom")
      stacks.push_back({name, megatron_arguments});
    if (name.starts_with("torchtitan")) stacks.push_back({name, torchtitan_config});
    if (name == "megatron-deepspeed" || name == "bloom") stacks.push_back({name, deepspeed_config});
  }
  return stacks;
}

/// What the exporter refuses; empty where it writes the scenario with these options.
std::string refusal(Exporter write, Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  try {
    write(plan_experiment(load_experiment(kFile, sets)));
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return {};
}

/// The options of each change that a help text offers: "--set a=1 --set b=2 (gpu needs 1 GiB of 2 GiB)".
std::vector<Sets> offered_in(const std::string& help) {
  std::vector<Sets> offers;
  const std::regex change(R"(((--set ('[^']*'|[^ ]+) )+)\()"), option(R"(--set ('[^']*'|[^ ]+))");
  for (std::sregex_iterator it(help.begin(), help.end(), change), end; it != end; ++it) {
    const std::string options = (*it)[1];
    Sets& sets = offers.emplace_back();
    for (std::sregex_iterator o(options.begin(), options.end(), option); o != end; ++o) {
      std::string set = (*o)[1];
      if (set.front() == '\'') set = set.substr(1, set.size() - 2);
      sets.push_back(set);
    }
  }
  return offers;
}

std::string memory_help(const Sets& sets) {
  try {
    compile_or_advise(load_experiment(kFile, sets));
  } catch (const Infeasible& e) {
    return e.problem().help;
  }
  return {};
}

std::vector<Sets> suggestions(const Sets& sets, WhatIf what_if) {
  const Experiment e = load_experiment(kFile, sets);
  CompiledExperiment c = compile(e);
  const Diagnosis d = diagnose(c, run(c, "ideal"), "ideal", scenario_reader(kFile, sets, e), what_if);
  std::vector<Sets> offers;
  for (const Finding& f : d.findings)
    for (const Suggestion& s : f.suggestions) offers.push_back(s.sets);
  return offers;
}

const std::string kCluster = "cluster={base: superpod-h100-256, override: {nodes: 4}}";

/// Plans that need more memory than there is, so that the text offers recomputation, states and schedules.
std::vector<Sets> too_large(const std::string& software) {
  const auto with = [&](const std::string& plan, const std::string& run) {
    return Sets{"software=" + software, kCluster, "model={base: llama-3-70b, override: {sequence: 4096}}",
                "plan={planner: balanced, " + plan + "}", "run={" + run + "}"};
  };
  return {with("stages: 4, replicas: 1, micro_batch_size: 8, group: {tensor: 8, sequence: true}",
               "schedule: 1f1b, global_batch: 64"),
          with("stages: 2, replicas: 4, micro_batch_size: 1, group: {tensor: 4, sequence: true}",
               "schedule: 1f1b, global_batch: 64"),
          with("stages: 8, replicas: 4, micro_batch_size: 2", "schedule: 1f1b, global_batch: 64"),
          with("stages: 32, replicas: 1, micro_batch_size: 4", "schedule: 1f1b, global_batch: 64")};
}

/// Runs that lose time to a bubble, to recomputation, to sums of gradients and to groups.
std::vector<Sets> slow(const std::string& software) {
  const auto with = [&](const std::string& plan, const std::string& run) {
    return Sets{"software=" + software, kCluster, "plan={planner: balanced, " + plan + "}", "run={" + run + "}"};
  };
  return {with("stages: 8, replicas: 4, micro_batch_size: 2, recompute: layers", "schedule: 1f1b, global_batch: 64"),
          with("stages: 4, replicas: 1, micro_batch_size: 2, group: {tensor: 8, sequence: true}",
               "schedule: 1f1b, global_batch: 16"),
          with("stages: 1, replicas: 32, micro_batch_size: 1, shard: weights, recompute: layers",
               "schedule: 1f1b, global_batch: 64")};
}

}  // namespace

TEST_CASE("each change that makes a plan fit can be exported to the framework of the software stack") {
  int exported = 0;
  for (const StackOfFramework& stack : stacks_with_exporter())
    for (const Sets& sets : too_large(stack.name)) {
      if (!refusal(stack.write, sets, {}).empty()) continue;
      const std::string help = memory_help(sets);
      CAPTURE(stack.name);
      CAPTURE(help);
      CHECK(help.find("recompute: full") == std::string::npos);
      for (const Sets& change : offered_in(help)) {
        CAPTURE(join(change, " "));
        CHECK(refusal(stack.write, sets, change) == "");
        ++exported;
      }
    }
  CHECK(exported >= 30);
}

TEST_CASE("each change that a diagnosis suggests can be exported to the framework of the software stack") {
  int exported = 0;
  for (const StackOfFramework& stack : stacks_with_exporter())
    for (const Sets& sets : slow(stack.name)) {
      if (!refusal(stack.write, sets, {}).empty()) continue;
      CAPTURE(stack.name);
      for (const Sets& change : suggestions(sets, WhatIf::None)) {
        CAPTURE(join(change, " "));
        CHECK(refusal(stack.write, sets, change) == "");
        ++exported;
      }
    }
  CHECK(exported >= 50);
}

TEST_CASE("a stack without an exporter is offered what no framework takes") {
  const std::string help = memory_help(too_large("plain").front());
  CHECK(help.find("recompute: full") != std::string::npos);
  CHECK(help.find("--set plan.recompute=full") != std::string::npos);
}

}  // namespace stagecraft::followed_advice_test
