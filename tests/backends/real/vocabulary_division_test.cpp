// A vocabulary on all ranks with divided gradients and weights, tensor and context groups, and mixed precision.

#include "tests/backends/real/vocabulary_case.hpp"

namespace stagecraft::vocabulary_test {
namespace {

/// Rows and heads that groups divide.
std::vector<std::string> in_groups(const std::vector<std::string>& more = {}) {
  return with(with(kSgd, {"model.sequence=12", "model.heads=4", "run.micro_batches=4", "run.iterations=2"}), more);
}

/// Arrays of weights without padding, in which each layout has other numbers.
const std::vector<std::string> kMixed{"model.precision=mixed", "model.hidden=16"};

}  // namespace

TEST_CASE("divided gradients and weights of a vocabulary learn what one device learns") {
  const std::vector<std::vector<std::string>> models{
      kSgd, with(kSgd, {"model.tied=true"}), with(kSgd, {"training.gradient_sum=slots", "model.positions=learned"})};
  for (const std::vector<std::string>& model : models) {
    const Trained expected = train(with(model, {"plan.micro_batch_size=4"}));
    for (const char* shard : {"gradients", "weights", "{state: weights, reshard: true}"})
      for (const char* schedule : {"vocab-1", "vocab-2"}) {
        CAPTURE(model.back());
        CAPTURE(shard);
        CAPTURE(schedule);
        check_equal(train(with(divided(schedule, 3, fmt::format(", replicas: 2, shard: {}", shard)), model)), expected,
                    1e-12);
      }
  }
  const Trained expected = train(with(kSgd, {"plan.micro_batch_size=4"}));
  for (const char* schedule : {"interlaced", "vocab-1, order: zb-v", "vocab-2, order: v-half"}) {
    CAPTURE(schedule);
    const int stages = std::string(schedule) == "interlaced" ? 3 : 6;
    check_equal(train(with(divided(schedule, stages, ", replicas: 2, shard: weights"), kSgd)), expected, 1e-12);
  }
  check_equal(train(with(divided("vocab-2", 3, ", replicas: 2, shard: gradients, recompute: full"), kSgd)), expected,
              1e-12);
}

TEST_CASE("tensor and context groups divide the words of a rank once more, and its rows") {
  const std::vector<std::vector<std::string>> models{
      in_groups(), in_groups({"model.tied=true"}),
      in_groups({"model.positions=learned", "model.norm=layer", "model.gated=false", "model.bias=true"})};
  for (const std::vector<std::string>& model : models) {
    const Trained expected = train(model);
    for (const char* group :
         {"{tensor: 2}", "{tensor: 2, sequence: true}", "{context: 2, context_type: p2p}",
          "{context: 2, context_type: all_gather}", "{tensor: 4}", "{tensor: 2, context: 2, context_type: a2a}",
          "{tensor: 2, sequence: true, context: 2, context_type: p2p}"})
      for (const char* schedule : {"vocab-1", "vocab-2"}) {
        CAPTURE(model.back());
        CAPTURE(group);
        CAPTURE(schedule);
        check_equal(train(with(divided(schedule, 2, fmt::format(", group: {}", group)), model)), expected, 1e-12);
      }
  }
  const Trained expected = train(in_groups());
  for (const char* schedule : {"interlaced", "vocab-1, order: zb-v", "vocab-2, order: v-half"}) {
    CAPTURE(schedule);
    const int stages = std::string(schedule) == "interlaced" ? 3 : 6;
    check_equal(train(with(divided(schedule, stages, ", group: {tensor: 2, sequence: true}"), in_groups())), expected,
                1e-12);
  }
}

TEST_CASE("groups of a divided vocabulary go with replicas, divided states and recomputation") {
  const Trained expected = train(in_groups({"plan.micro_batch_size=4"}));
  for (const char* schedule : {"vocab-1", "vocab-2"})
    for (const char* more :
         {"replicas: 2, group: {tensor: 2, sequence: true}, shard: optimizer",
          "replicas: 2, group: {tensor: 2}, shard: gradients, recompute: full",
          "replicas: 2, group: {context: 2, context_type: p2p}, shard: weights",
          "replicas: 2, group: {tensor: 2, sequence: true}, shard: {state: weights, reshard: true}"}) {
      CAPTURE(schedule);
      CAPTURE(more);
      check_equal(train(with(divided(schedule, 2, fmt::format(", {}", more)), in_groups())), expected, 1e-12);
    }
  const Trained alone = train(in_groups());
  for (const char* shard : {"optimizer", "gradients", "weights"}) {
    CAPTURE(shard);
    const std::string plan = fmt::format(", group: {{context: 2, context_type: all_gather}}, shard: {}", shard);
    check_equal(train(with(divided("vocab-2", 2, plan), in_groups())), alone, 1e-12);
  }
}

TEST_CASE("experts and a divided vocabulary go together") {
  const std::vector<std::string> experts =
      in_groups({"model.experts={count: 4, active: 2, width: 6}", "plan.micro_batch_size=4"});
  check_equal(train(with(divided("vocab-2", 2, ", replicas: 2, group: {tensor: 2, sequence: true, expert: 4}"),
                         in_groups({"model.experts={count: 4, active: 2, width: 6}"}))),
              train(experts), 1e-12);
}

TEST_CASE("evaluations join the words of all ranks and the devices of their groups") {
  const std::vector<std::string> sets = in_groups({"training.task=charlm", "plan.micro_batch_size=4"});
  const Trained expected = train(sets);
  REQUIRE(expected.evaluations.size() == 3);
  CHECK(expected.evaluations.back() < expected.evaluations.front());
  for (const char* plan : {"stages: 4, replicas: 2", "stages: 4, replicas: 2, shard: weights",
                           "stages: 2, replicas: 2, group: {tensor: 2, sequence: true}, shard: optimizer"}) {
    CAPTURE(plan);
    check_equal(train(with(sets, {"run.schedule=vocab-2", fmt::format("plan={{planner: balanced, {}, vocabulary: all, "
                                                                      "micro_batch_size: 2}}",
                                                                      plan)})),
                expected, 1e-12);
  }
}

TEST_CASE("in mixed precision one rank with all words computes with two barriers what a loss at the end computes") {
  check_equal(train(with(divided("vocab-1", 1), kMixed)), train(kMixed), 0);
}

TEST_CASE("in mixed precision threads, schedules, replicas and divided states change no bit") {
  for (const char* schedule : {"vocab-1", "vocab-2"}) {
    CAPTURE(schedule);
    check_equal(train(with(divided(schedule, 3), kMixed)), train(with(divided(schedule, 3), kMixed), true), 0);
    const auto twice = [&](const char* shard) {
      return train(with(divided(schedule, 3, fmt::format(", replicas: 2, shard: {}", shard)), kMixed));
    };
    check_equal(twice("optimizer"), twice("none"), 0);
    check_equal(twice("{state: weights, reshard: true}"), twice("gradients"), 0);
    check_equal(twice("weights"), twice("gradients"), 0);
  }
  check_equal(train(with(divided("interlaced", 3), kMixed)), train(with(divided("vocab-1", 3), kMixed)), 0);
}

// Two barriers round the gradient of the input of the scores once, as one device does; with one barrier exponentials
// are rounded before they are summed, and in groups partial sums of products are. So runs are at most about twice as
// far from 32 bits as one device is; see mixed_groups_test.
TEST_CASE("losses of a divided vocabulary in mixed precision are about as near to 32 bits as losses of one device") {
  struct DividedRun {
    const char *schedule, *plan;
  };
  double of_ranks = 0, of_one = 0;
  for (const DividedRun& run :
       {DividedRun{"vocab-1", ""}, DividedRun{"vocab-2", ""},
        DividedRun{"vocab-1", ", group: {tensor: 2, sequence: true}"}, DividedRun{"vocab-2", ", group: {tensor: 2}"},
        DividedRun{"vocab-2", ", group: {tensor: 2, sequence: true, context: 2, context_type: p2p}"}})
    for (int seed = 1; seed <= 4; ++seed) {
      const std::vector<std::string> sets =
          in_groups({"training.optimizer=adam", "training.learning_rate=0.01", "training.evaluate_every=0",
                     fmt::format("training.seed={}", seed)});
      const std::vector<std::string> mixed = with(sets, kMixed);
      const std::vector<double> expected = train(with(sets, {"model.precision=fp32"})).losses;
      const std::vector<double> one = train(mixed).losses,
                                ranks = train(with(divided(run.schedule, 2, run.plan), mixed)).losses;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        of_ranks += std::abs(ranks[i] - expected[i]) / expected[i];
        of_one += std::abs(one[i] - expected[i]) / expected[i];
      }
    }
  CAPTURE(of_ranks);
  CAPTURE(of_one);
  CHECK(of_one > 0);
  CHECK(of_ranks <= 2 * of_one);
}

}  // namespace stagecraft::vocabulary_test
