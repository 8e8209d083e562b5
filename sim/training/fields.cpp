// The fields of the `training:` map of a scenario, and their values.

#include "sim/training/task.hpp"
#include "sim/training/training.hpp"

namespace stagecraft {
namespace {

using namespace config;

std::vector<Variant> optimizer_variants() {
  std::vector<Variant> list;
  for (const OptimizerDef* o : optimizers()) list.push_back({std::string(o->name), std::string(o->summary), o->fields});
  return list;
}

OptimizerRule read_optimizer(const Value& checked, double learning_rate) {
  constexpr std::pair<const char*, double OptimizerRule::*> constants[] = {
      {"weight_decay", &OptimizerRule::weight_decay},
      {"momentum", &OptimizerRule::momentum},
      {"dampening", &OptimizerRule::dampening},
      {"beta1", &OptimizerRule::beta1},
      {"beta2", &OptimizerRule::beta2},
      {"epsilon", &OptimizerRule::epsilon},
      {"alpha", &OptimizerRule::alpha}};
  OptimizerRule rule;
  rule.kind = get_from(optimizers(), "optimizer", checked.at("name").text).kind;
  rule.learning_rate = learning_rate;
  rule.momentum = 0;
  for (const auto& [name, constant] : constants)
    if (const Value* written = checked.find(name)) rule.*constant = as_real(*written);
  return rule;
}

}  // namespace

const MapSpec& training_fields() {
  static const MapSpec spec{
      .title = "What is learnt, and how; read by backends that really train.",
      .fields = {choice("task", [] { return names_of(tasks::catalog()); })
                     .fallback("teacher")
                     .doc("The task: data to learn from."),
                 variant("optimizer", "name", optimizer_variants).fallback("adam").doc("Update rule."),
                 real("learning_rate", 0, 1e6).fallback("0.001").doc("Step size."),
                 integer("seed", 0, 9e15).fallback("1").doc("Seed of the initial weights and of the data."),
                 choice("gradient_sum", std::vector<std::string>{"order", "slots"})
                     .fallback("order")
                     .doc("Order in which gradients of micro-batches are summed: the order of the schedule, or the "
                          "order of the micro-batches. The second gives the same bits for every schedule and needs the "
                          "memory of one gradient for each micro-batch."),
                 integer("evaluate_every", 0, 1e9)
                     .fallback("0")
                     .doc("Updates between two evaluations of the loss; 0: no evaluation.")},
  };
  return spec;
}

Training read_training(const Value& checked) {
  Training training;
  training.task = checked.at("task").text;
  training.optimizer = read_optimizer(checked.at("optimizer"), as_real(checked.at("learning_rate")));
  training.seed = static_cast<std::uint64_t>(as_real(checked.at("seed")));
  training.slots = checked.at("gradient_sum").text == "slots";
  training.evaluate_every = as_int(checked.at("evaluate_every"));
  return training;
}

}  // namespace stagecraft
