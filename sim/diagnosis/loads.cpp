// Rules: micro-batches with sequences of different lengths, in the pipeline and between replicas, and experts that get
// unequal numbers of rows.

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"

namespace stagecraft::diagnosis {
namespace {

/// Time of a forward and a backward of the costliest micro-batch over the mean of those with packs, on the first
/// replica of the first stage that has work.
double largest_over_mean(const DiagnosisInput& in) {
  const StageCosts& costs = in.compiled.costs;
  const auto time = [&](StageId s, int load) {
    const StageCost& c = costs.at(s, 0, load);
    return (c.forward + c.backward).value;
  };
  double largest = 1;
  const LoadTable& loads = in.plan().loads;
  for (const StageId s : in.plan().stages.ids()) {
    const double mean = time(s, LoadTable::kMean) / loads.share_with_packs(0);
    for (int load = 0; mean > 0 && load < std::ssize(loads.classes); ++load)
      largest = std::max(largest, time(s, load) / mean);
  }
  return largest;
}

/// Other choices of `data`, which `run.loads` has not. The order of slices is fixed, but ranks may share their
/// attention.
void suggest_other_packs(const DiagnosisInput& in, Finding& f) {
  if (in.plan().loads.slices > 1) {
    f.suggestions.push_back({{"run.schedule.exchange=true"}, "ranks share the attention of slices"});
    return;
  }
  const config::Value* data = in.experiment().source->find("data");
  if (!data) return;
  const bool has_hill = data->at("order").text == "hill", shares = in.plan().stages.front().replicas() > 1;
  if (!has_hill)
    f.suggestions.push_back({{"data.order=hill"}, "small micro-batches first and last, large ones between"});
  if (shares && data->at("replicas").text != "flops")
    f.suggestions.push_back({{"data.replicas=flops", "data.order=hill"}, "packs dealt to replicas by their FLOPs"});
  if (shares && data->at("counts").text != "free")
    f.suggestions.push_back({{"data.counts=free", "data.replicas=flops", "data.order=hill"},
                             "packs dealt to replicas by their FLOPs, not equally many to each"});
  if (data->at("pack").text != "balanced")
    f.suggestions.push_back({{"data.pack=balanced", "data.order=hill"}, "packs with equal FLOPs"});
}

}  // namespace

std::optional<Finding> unequal_loads(const DiagnosisInput& in) {
  if (in.plan().loads.classes.size() < 2) return {};
  const Seconds equal = in.idealized.without(Cost::UnequalLoads | Cost::UnequalReplicas);
  const Seconds in_pipeline = in.period - in.idealized.without(Cost::UnequalLoads);
  Finding f = finding(in, "unequal-loads", in.experiment().schedule.name(), in.period - equal);
  f.sentence = fmt::format("Micro-batches differ, the largest takes {:.2f} x the mean, which costs {} of the period",
                           largest_over_mean(in), percent(f.share));
  if (in.plan().stages.front().replicas() > 1)
    f.sentence += fmt::format(": {} in the pipeline, and {} because replicas have unlike work",
                              percent(in_pipeline / in.period), percent((in.period - equal - in_pipeline) / in.period));
  f.sentence += ".";
  suggest_other_packs(in, f);
  return f;
}

/// Experts of one device that get more rows than the mean: all devices of a group wait for that one.
std::optional<Finding> expert_imbalance(const DiagnosisInput& in) {
  constexpr const char* kPath = "model.experts.imbalance";
  const config::Value* field = config::get_path(*in.experiment().source, kPath);
  if (!field || in.plan().stages.front().shape.degrees.expert < 2) return {};
  const double imbalance = config::as_real(*field);
  if (imbalance <= 1) return {};
  Suggestion even{{fmt::format("{}=1", kPath)}, "an even load, as a loss term or a bias that balances it gives"};
  in.changed.simulate(even);
  // Rows of experts are at most all of the work, so this much is at most what they cost.
  const Seconds lost = even.run ? in.period - even.run->period : Seconds{};
  Finding f = finding(in, "expert-imbalance", kPath, lost);
  f.sentence = fmt::format(
      "The busiest device of an expert group gets {:.3g} times the rows of the mean, and the "
      "others wait for it: {} of the period.",
      imbalance, percent(f.share));
  f.suggestions.push_back(std::move(even));
  return f;
}

}  // namespace stagecraft::diagnosis
