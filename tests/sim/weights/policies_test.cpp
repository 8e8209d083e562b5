// The catalog of weights policies, and the field that names them.

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/weights.hpp"

namespace stagecraft::policies_test {
using config::Value;

namespace {

const config::MapSpec& spec() {
  static const config::MapSpec instance{
      .title = "",
      .fields = {config::variant(
          "weights", "policy",
          [] {
            std::vector<config::Variant> list;
            for (const WeightsDef* def : weights::catalog())
              list.push_back({std::string(def->name), std::string(def->summary), def->fields});
            return list;
          },
          &weights_fields())}};
  return instance;
}

WeightsRule rule(const std::string& yaml) {
  const Value tree = test::checked("weights: " + yaml, spec());
  const Value& map = tree.at("weights");
  return rule_of(get_from(weights::catalog(), "weights policy", map.at("policy").text), map);
}

std::string refusal(const std::string& yaml) {
  return test::input_error_of([&] { rule(yaml); });
}

}  // namespace

TEST_CASE("every policy has a description and a source") {
  CHECK(weights::catalog().size() == 14);
  for (const WeightsDef* def : weights::catalog()) {
    CAPTURE(def->name);
    CHECK_FALSE(def->summary.empty());
    CHECK_FALSE(def->source.empty());
    CHECK((def->fields == nullptr) == (def->read == nullptr));
    if (def->as_released) CHECK_FALSE(*def->as_released == def->paper);
  }
}

TEST_CASE("a policy is named by a word, and its paper form is the default") {
  for (const WeightsDef* def : weights::catalog()) {
    CAPTURE(def->name);
    const std::string name(def->name);
    CHECK(rule(name) == def->paper);
    CHECK(rule("{policy: " + name + "}") == def->paper);
    CHECK(rule("{policy: " + name + ", fidelity: paper}") == def->paper);
    CHECK(rule("{policy: " + name + ", fidelity: as_released}") == def->as_released.value_or(def->paper));
  }
}

TEST_CASE("policies as released differ from the paper where the code is known to differ") {
  const WeightsRule pipeoptim = rule("{policy: pipeoptim, fidelity: as_released}");
  CHECK(pipeoptim.direction == Direction::NextMomentum);
  CHECK(pipeoptim.horizon == Horizon::StageDepthPlusOne);
  CHECK(rule("{policy: spectrain, fidelity: as_released}").direction == Direction::NextMomentum);
  for (const char* same : {"flush", "naive", "stash", "2bw", "geometric"})
    CHECK_FALSE(get_from(weights::catalog(), "", same).as_released.has_value());
}

TEST_CASE("the full form can express every named policy") {
  CHECK(rule("custom") == rule("naive"));
  CHECK(rule("{policy: custom, backward_weights: same_as_forward}") == rule("stash"));
  CHECK(rule("{policy: custom, forward_weights: double_buffer, backward_weights: same_as_forward}") == rule("2bw"));
  CHECK(rule("{policy: custom, forward_weights: vertical, backward_weights: same_as_forward}") ==
        rule("vertical-sync"));
  CHECK(rule("{policy: custom, forward_weights: predict, predictor: {horizon: stage_depth}}") == rule("pipeoptim"));
  CHECK(rule("{policy: custom, forward_weights: predict, predictor: {direction: next_momentum, horizon: "
             "stage_depth_plus_one}}") == rule("{policy: pipeoptim, fidelity: as_released}"));
  CHECK(rule("{policy: custom, forward_weights: predict, predictor: {direction: geometric}}") == rule("geometric"));
  CHECK(rule("{policy: custom, forward_weights: predict, backward_weights: predict, predictor: {direction: momentum, "
             "horizon: to_completion}}") == rule("spectrain"));
  CHECK(rule("{policy: custom, forward_weights: predict, backward_weights: same_as_forward, predictor: {direction: "
             "momentum, horizon: stage_depth}}") == rule("spectrain-v2"));
  CHECK(rule("{policy: custom, forward_weights: predict, backward_weights: predict, predictor: {horizon: "
             "per_mini_batch}}") == rule("xpipe"));
  CHECK(rule("{policy: custom, backward_weights: reconstruct, reconstruction: update_average, update: "
             "{shrink_updates: 100}}") == rule("pipemare"));
  CHECK(rule("{policy: custom, backward_weights: reconstruct, reconstruction: gradient_average}") ==
        rule("layerpipe2"));
  CHECK(rule("{policy: custom, update: {spike_compensation: true}}") == rule("spike-compensation"));
  CHECK(rule("{policy: pipemare, shrink_updates: 7}").shrink_updates == 7);
}

TEST_CASE("contradictory fields are refused with what to write instead") {
  const auto says = [](const std::string& yaml, const char* words) {
    const std::string text = refusal(yaml);
    CAPTURE(yaml);
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  says(
      "{policy: custom, forward_weights: double_buffer, backward_weights: predict, predictor: {horizon: "
      "to_completion}}",
      "weights.backward_weights: a forward on double_buffer weights was not predicted");
  says("{policy: custom, forward_weights: vertical, backward_weights: predict}",
       "[write backward_weights: same_as_forward]");
  for (const char* forward : {"double_buffer", "vertical", "predict"})
    says(std::string("{policy: custom, backward_weights: reconstruct, forward_weights: ") + forward + "}",
         "only the weights of a forward on the newest version can be reconstructed");
  says("{policy: custom, predictor: {horizon: exact}}", "weights.predictor: nothing is predicted");
  says("{policy: custom, reconstruction: update_average}", "weights.reconstruction: nothing is reconstructed");
  for (const char* horizon : {"exact", "stage_depth", "stage_depth_plus_one"})
    says(std::string("{policy: custom, forward_weights: predict, backward_weights: predict, predictor: {horizon: ") +
             horizon + "}}",
         "leaves nothing for it to predict");
  says("{policy: custom, forward_weights: predict, backward_weights: predict}", "weights.predictor.horizon: ");
}

TEST_CASE("unknown policies and fields are refused") {
  const auto says = [](const std::string& yaml, const char* words) {
    const std::string text = refusal(yaml);
    CAPTURE(yaml);
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  says("stahs", "weights: 'stahs' is not known [did you mean 'stash'?]");
  says("{policy: pipeoptim, fidelity: released}", "weights.fidelity: 'released' is not known");
  says("{policy: stash, forward_weights: predict}", "'forward_weights' is a field of custom, not of stash");
  says("{policy: custom, forward_weights: stashed}", "weights.forward_weights: 'stashed' is not known");
  says("{policy: custom, update: {shrink_updates: -1}}", "weights.update.shrink_updates");
  says("{policy: pipemare, shrink_updates: some}", "weights.shrink_updates");
  says("{fidelity: paper}", "weights.policy: this field is missing");
}

}  // namespace stagecraft::policies_test
