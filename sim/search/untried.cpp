// What a search leaves out, in phrases for its notes, derived from what it lists.

#include "sim/search/untried.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Phrases = std::vector<std::string>;
constexpr std::size_t kMostNamed = 8;  // More values of one kind are counted.

/// "1, 2 and 4".
std::string listed(const Phrases& words) {
  if (words.size() < 2) return join(words);
  return join(Phrases(words.begin(), words.end() - 1)) + " and " + words.back();
}

/// "tensor degrees other than 1, 2 and 4"; with more values "all but 12 numbers of devices".
std::string others_text(const std::string& what, const std::set<int>& tried) {
  if (tried.size() > kMostNamed) return fmt::format("all but {} {}", tried.size(), what);
  Phrases words;
  for (const int value : tried) words.push_back(std::to_string(value));
  return fmt::format("{} other than {}", what, listed(words));
}

class UntriedPlans {
 public:
  UntriedPlans(const PlannedExperiment& configured, const PlanVariants& variants)
      : configured_(configured),
        variants_(variants.list),
        phrases_(variants.left_out.begin(), variants.left_out.end()) {
    for (const Layer& layer : configured.model().layers)
      for (const Operation& op : layer.operations) has_experts_ |= op.kind == OperationKind::GroupedLinear;
  }

  Phrases take() {
    if (variants_.empty()) return std::move(phrases_);
    add_planners();
    add_numbers_of_devices();
    if (configured_.experiment.software().prices) add_degrees();
    add_recomputations();
    add_fixed_fields();
    return std::move(phrases_);
  }

 private:
  bool any(const std::function<bool(const PlanVariant&)>& has) const {
    return std::any_of(variants_.begin(), variants_.end(), has);
  }

  std::set<int> values(const std::function<int(const PlanVariant&)>& value) const {
    std::set<int> different;
    for (const PlanVariant& v : variants_) different.insert(value(v));
    return different;
  }

  /// The exhaustive `brute` finds what `pipedream` finds.
  void add_planners() {
    std::set<std::string_view> tried;
    for (const PlanVariant& v : variants_) tried.insert(v.plan.planner->name);
    if (tried.contains("pipedream")) tried.insert("brute");
    Phrases others;
    for (const PlannerDef* def : planners::catalog())
      if (!tried.contains(def->name)) others.emplace_back(def->name);
    if (others.empty()) return;
    if (tried.size() == 1)
      phrases_.push_back(fmt::format("stages that the planner {} does not make", *tried.begin()));
    else
      phrases_.push_back(fmt::format("the planner{} {}", others.size() == 1 ? "" : "s", listed(others)));
  }

  void add_numbers_of_devices() {
    const std::set<int> tried = values([](const PlanVariant& v) { return v.devices; });
    const auto devices = static_cast<int>(configured_.cluster().devices.size());
    const auto layers = static_cast<int>(configured_.model().layers.size());
    const auto has_plan = [&](int n) {
      for (int ranks = 1; ranks <= std::min(n, layers); ++ranks)
        if (n % ranks == 0 && (configured_.experiment.software().prices || n / ranks <= configured_.plan.mini_batch))
          return true;
      return false;
    };
    for (int n = 1; n <= devices; ++n)
      if (!tried.contains(n) && has_plan(n)) return phrases_.push_back(others_text("numbers of devices", tried));
  }

  /// Whether the model can be divided so, and as many devices as that takes are there.
  bool can_divide(const Degrees& degrees) const {
    const auto devices = static_cast<int>(configured_.cluster().devices.size());
    if (degrees.devices() > devices) return false;
    PlanSpec spec = variants_.front().plan;
    spec.group = degrees;
    spec.replicas = degrees.replicas;
    spec.sharding = StateSharding::None;
    Plan plan;
    Stage& stage = plan.stages.emplace_back();
    stage.shape = spec.shape(1);
    std::vector<DeviceId> first;
    for (int d = 0; d < degrees.devices(); ++d) first.emplace_back(d);
    stage.place_on(std::move(first));
    const Experiment& e = configured_.experiment;
    try {
      check_group({*e.model, *e.cluster, *e.costs, spec, e.run.micro_batches}, plan);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  void add_degree(const std::string& what, int Degrees::*degree, const std::function<Degrees(int)>& alone) {
    const std::set<int> tried = values([&](const PlanVariant& v) { return v.plan.group.*degree; });
    const auto devices = static_cast<int>(configured_.cluster().devices.size());
    for (int n = 2; n <= devices; ++n)
      if (devices % n == 0 && !tried.contains(n) && can_divide(alone(n)))
        return phrases_.push_back(others_text(what, tried));
  }

  void add_degrees() {
    add_degree("tensor degrees", &Degrees::tensor, [](int n) {
      Degrees d;
      d.tensor = n, d.sequence = true;
      return d;
    });
    add_degree("context degrees", &Degrees::context, [](int n) {
      Degrees d;
      d.context = n;
      return d;
    });
    if (!has_experts_) return;
    add_degree("expert degrees", &Degrees::expert, [](int n) {
      Degrees d;
      d.replicas = d.expert = n;
      return d;
    });
    const auto has_tensor = [](const PlanVariant& v) { return v.plan.group.tensor > 1; };
    if (any(has_tensor) && !any([&](const PlanVariant& v) { return has_tensor(v) && v.plan.group.expert == 1; }))
      phrases_.emplace_back("tensor groups without expert parallelism");
  }

  void add_recomputations() {
    std::set<Recomputation> tried;
    for (const PlanVariant& v : variants_) tried.insert(v.plan.recompute.value_or(Recomputation::None));
    const std::vector<Recomputation> useful = recomputations(configured_.model());
    Phrases others;
    for (const Recomputation kind : {Recomputation::None, Recomputation::Selective, Recomputation::Full,
                                     Recomputation::Layers, Recomputation::Half, Recomputation::Outputs}) {
      const bool is_possible = kind == Recomputation::Outputs     ? configured_.experiment.software().prices
                               : kind == Recomputation::Selective ? useful.size() > 2
                                                                  : true;
      if (is_possible && !tried.contains(kind)) others.emplace_back(to_text(kind));
    }
    if (!others.empty()) phrases_.push_back("recompute: " + listed(others));
    if (configured_.experiment.plan.recompute_layers > 0)
      phrases_.emplace_back("recomputation of some layers of a stage");
  }

  /// Fields that are the scenario's in every plan, and make a difference in some.
  void add_fixed_fields() {
    const auto holders = [](const PlanVariant& v) { return v.plan.replicas * v.plan.group.context; };
    const auto divides = [](const PlanVariant& v) { return v.plan.sharding != StateSharding::None; };
    const bool varies_dispatcher =
        any([](const PlanVariant& v) { return v.plan.dispatcher == ExpertDispatch::PerNode; }) &&
        any([](const PlanVariant& v) {
          return v.plan.dispatcher != ExpertDispatch::PerNode && v.plan.group.expert > 1;
        });
    const std::pair<const char*, std::function<bool(const PlanVariant&)>> fields[] = {
        {"plan.share", [](const PlanVariant& v) { return v.plan.replicas > 1; }},
        {"plan.sequential", [&](const PlanVariant&) { return has_branches(); }},
        {"plan.group.sequence", [&](const PlanVariant& v) { return v.plan.group.tensor > 1 && !has_experts_; }},
        {"plan.group.context_type", [](const PlanVariant& v) { return v.plan.group.context > 1; }},
        {"plan.group.expert_tensor", [&](const PlanVariant& v) { return has_experts_ && v.devices > 1; }},
        {"plan.group.dispatcher", [&](const PlanVariant& v) { return v.plan.group.expert > 1 && !varies_dispatcher; }},
        {"plan.group.order",
         [](const PlanVariant& v) { return v.plan.group.group() > 1 && v.plan.group.replicas > 1; }},
        {"plan.shard.within", [&](const PlanVariant& v) { return divides(v) && holders(v) > 2; }},
        {"plan.shard.reshard", [](const PlanVariant& v) { return v.plan.sharding == StateSharding::Weights; }},
        {"run.gradient_buckets", [](const PlanVariant& v) { return v.plan.replicas > 1; }}};
    Phrases names;
    for (const auto& [name, matters] : fields)
      if (any(matters)) names.emplace_back(name);
    if (!names.empty()) phrases_.push_back("other values of " + listed(names));
  }

  bool has_branches() const {
    std::set<LayerId> read;
    for (const LayerId l : configured_.model().layers.ids())
      for (const LayerId input : configured_.model().layers[l].inputs)
        if (input.value + 1 != l.value || !read.insert(input).second) return true;
    return false;
  }

  const PlannedExperiment& configured_;
  const std::vector<PlanVariant>& variants_;
  Phrases phrases_;
  bool has_experts_ = false;
};

bool has_options(const ScheduleDef& def) {
  return def.fields && std::any_of(def.fields->fields.begin(), def.fields->fields.end(), [](const config::Field& f) {
           return f.name != "name" && f.name != "placement" && f.name != "chunks";
         });
}

}  // namespace

std::vector<std::string> untried_plans(const PlannedExperiment& configured, const PlanVariants& variants) {
  return UntriedPlans(configured, variants).take();
}

std::vector<std::string> untried_orders(const std::vector<SchedulingPolicy>& policies,
                                        const std::vector<std::string>& without_weights, const std::string& weights) {
  std::set<std::string_view> tried, weight_names;
  for (const SchedulingPolicy& p : policies) {
    tried.insert(p.schedule->name);
    weight_names.insert(p.weights == "auto" ? p.schedule->weights : p.weights);
  }
  Phrases phrases, others;
  if (without_weights.size() == 1)
    phrases.push_back(
        fmt::format("the schedule {}, which does not go with the scenario's weights {} (--set weights=auto)",
                    without_weights.front(), weights));
  else if (!without_weights.empty())
    phrases.push_back(
        fmt::format("{} schedules, such as {}, that do not go with the scenario's weights {} (--set weights=auto)",
                    without_weights.size(), without_weights.front(), weights));
  tried.insert(without_weights.begin(), without_weights.end());
  if (!tried.contains("synthesised")) phrases.emplace_back("orders of work that are searched for (synthesised)");
  for (const ScheduleDef* def : schedules::catalog())
    if (def->trains && !def->tasks && def->vocabulary == VocabularyPasses::None && def->name != "csv" &&
        def->name != "synthesised" && !tried.contains(def->name))
      others.emplace_back(def->name);
  if (others.size() > kMostNamed)
    phrases.push_back(fmt::format("{} other schedules (--schedules)", others.size()));
  else if (!others.empty())
    phrases.push_back(fmt::format("the schedule{} {}", others.size() == 1 ? "" : "s", listed(others)));
  if (std::any_of(policies.begin(), policies.end(), [](const auto& p) { return has_options(*p.schedule); }))
    phrases.emplace_back("other options of schedules");
  const auto is_stale = [](const SchedulingPolicy& p) { return !p.schedule->flushes; };
  const auto is_untried = [&](const WeightsDef* def) {
    return def->name != "custom" && !def->needs_flush && !weight_names.contains(def->name);
  };
  const Catalog<WeightsDef> all_weights = weights::catalog();
  if (std::any_of(policies.begin(), policies.end(), is_stale) &&
      std::any_of(all_weights.begin(), all_weights.end(), is_untried))
    phrases.emplace_back("other weights policies (--weights)");
  return phrases;
}

}  // namespace stagecraft
