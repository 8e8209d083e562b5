#include <doctest/doctest.h>

#include "sim/training/training.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::fields_test {
namespace {

Training read(std::string_view yaml) { return read_training(test::checked(yaml, training_fields())); }

std::string error_of(std::string_view yaml) {
  return test::input_error_of([&] { read(yaml); });
}

bool says(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("training has defaults") {
  const Training t = read("{}");
  CHECK(t.task == "teacher");
  CHECK(t.seed == 1);
  CHECK_FALSE(t.slots);
  CHECK(t.evaluate_every == 0);
  CHECK(t.optimizer.kind == OptimizerKind::Adam);
  CHECK(t.optimizer.learning_rate == 0.001);
  CHECK(t.optimizer.weight_decay == 0);
  CHECK(t.optimizer.beta1 == 0.9);
  CHECK(t.optimizer.beta2 == 0.999);
  CHECK(t.optimizer.epsilon == 1e-8);
}

TEST_CASE("every field of training is read") {
  const Training t = read(
      "{task: glyph, optimizer: {name: momentum, momentum: 0.8, dampening: 0.25, weight_decay: 0.01}, "
      "learning_rate: 0.5, seed: 7, gradient_sum: slots, evaluate_every: 20}");
  CHECK(t.task == "glyph");
  CHECK(t.seed == 7);
  CHECK(t.slots);
  CHECK(t.evaluate_every == 20);
  CHECK(t.optimizer.kind == OptimizerKind::Momentum);
  CHECK(t.optimizer.learning_rate == 0.5);
  CHECK(t.optimizer.momentum == 0.8);
  CHECK(t.optimizer.dampening == 0.25);
  CHECK(t.optimizer.weight_decay == 0.01);

  const OptimizerRule adamw = read("{optimizer: {name: adamw, beta1: 0.8, beta2: 0.99, epsilon: 1e-6}}").optimizer;
  CHECK(adamw.kind == OptimizerKind::AdamW);
  CHECK(adamw.beta1 == 0.8);
  CHECK(adamw.beta2 == 0.99);
  CHECK(adamw.epsilon == 1e-6);
  CHECK(adamw.weight_decay == 0.01);
  const OptimizerRule rmsprop = read("{optimizer: {name: rmsprop, alpha: 0.9}}").optimizer;
  CHECK(rmsprop.alpha == 0.9);
  CHECK(rmsprop.momentum == 0);
}

TEST_CASE("every optimizer has its name and its state") {
  const int tensors[] = {0, 1, 2, 2, 1, 1};
  REQUIRE(optimizers().size() == 6);
  for (std::size_t i = 0; i < optimizers().size(); ++i) {
    const OptimizerDef& def = *optimizers()[i];
    CHECK(def.kind == static_cast<OptimizerKind>(i));
    CHECK(to_text(def.kind) == def.name);
    CHECK_FALSE(def.summary.empty());
    CHECK_FALSE(def.source.empty());
    const OptimizerRule rule = read("{optimizer: " + std::string(def.name) + "}").optimizer;
    CHECK(rule.kind == def.kind);
    CHECK(rule.state_tensors() == tensors[i]);
  }
}

TEST_CASE("problems of training are reported with their place") {
  CHECK(says(error_of("{optimizer: adm}"), "did you mean 'adam'?"));
  CHECK(says(error_of("{optimizer: {name: momentun}}"), "did you mean 'momentum'?"));
  CHECK(says(error_of("{task: techer}"), "did you mean 'teacher'?"));
  CHECK(says(error_of("{optimizer: {name: sgd, beta1: 0.9}}"), "'beta1' is a field of adam, adamw, not of sgd"));
  CHECK(says(error_of("{optimizer: {name: adam, beta1: 1}}"), "optimizer.beta1"));
  CHECK(says(error_of("{optimizer: {name: adam, epsilon: 0}}"), "optimizer.epsilon"));
  CHECK(says(error_of("{optimizer: {name: momentum, momentum: 1.1}}"), "optimizer.momentum"));
  CHECK(says(error_of("{learning_rate: -1}"), "learning_rate"));
  CHECK(says(error_of("{evaluate_every: 0.5}"), "evaluate_every"));
  CHECK(says(error_of("{gradient_sum: slot}"), "did you mean 'slots'?"));
}

}  // namespace stagecraft::fields_test
