// A vocabulary that all ranks of a pipeline divide really runs: losses and weights against training without a pipeline.

#include "tests/backends/real/vocabulary_case.hpp"

namespace stagecraft::vocabulary_test {

TEST_CASE("all orders of a vocabulary on all ranks learn what one device learns, also where the words do not divide") {
  const Trained expected = train(kSgd);
  for (const char* schedule : {"vocab-1", "vocab-2", "interlaced"})
    for (const int stages : {1, 2, 3, 6}) {
      CAPTURE(schedule);
      CAPTURE(stages);
      check_equal(train(with(divided(schedule, stages), kSgd)), expected, 1e-12);
    }
  for (const char* schedule : {"vocab-1, order: zb-v", "vocab-2, order: v-half", "vocab-2, order: 1f1b-v"}) {
    CAPTURE(schedule);
    check_equal(train(with(divided(schedule, 6), kSgd)), expected, 1e-12);
  }
}

TEST_CASE("one rank with all words computes with two barriers what a loss at the end computes, to the last bit") {
  check_equal(train(divided("vocab-1", 1)), train({}), 0);
}

TEST_CASE("threads and one thread give the same bits") {
  for (const char* schedule : {"vocab-1", "vocab-2"}) {
    CAPTURE(schedule);
    check_equal(train(divided(schedule, 3)), train(divided(schedule, 3), true), 0);
  }
}

TEST_CASE("gradients of tied weights are added in one order, whenever the gradients of embeddings come") {
  for (const char* schedule : {"vocab-1", "vocab-2"})
    for (const char* sum : {"order", "slots"}) {
      CAPTURE(schedule);
      CAPTURE(sum);
      const std::vector<std::string> sets = with(divided(schedule, 3), {"model.tied=true", "run.micro_batches=12",
                                                                        fmt::format("training.gradient_sum={}", sum)});
      const Trained expected = train(sets, true);
      for (int run = 0; run < 6; ++run) check_equal(train(sets), expected, 0);
    }
}

TEST_CASE("positions, tied weights, replicas, divided states, recomputation and packs") {
  const std::vector<std::vector<std::string>> models{
      {"model.positions=learned", "model.norm=layer", "model.gated=false", "model.bias=true"},
      {"model.tied=true"},
      {"training.gradient_sum=slots"}};
  for (const std::vector<std::string>& model : models)
    for (const char* schedule : {"vocab-1", "vocab-2"}) {
      CAPTURE(model.front());
      CAPTURE(schedule);
      const std::vector<std::string> sets = with(kSgd, model);
      check_equal(train(with(divided(schedule, 3), sets)), train(sets), 1e-12);
    }
  const std::vector<std::string> twice = with(kSgd, {"plan.micro_batch_size=4"});
  for (const char* more : {", replicas: 2", ", replicas: 2, shard: optimizer"}) {
    CAPTURE(more);
    check_equal(train(with(divided("vocab-2", 3, more), kSgd)), train(twice), 1e-12);
  }
  check_equal(train(with(divided("vocab-1", 3, ", recompute: full"), kSgd)), train(kSgd), 1e-12);
  const std::vector<std::string> packs{
      "run={schedule: 1f1b, iterations: 2, loads: [[7, 3], [10], [2, 2, 1], [4], [9, 1]]}", "plan.micro_batch_size=1",
      "training.evaluate_every=0"};
  for (const char* schedule : {"vocab-1", "vocab-2"}) {
    CAPTURE(schedule);
    std::vector<std::string> sets = with(kSgd, packs);
    const Trained expected = train(sets);
    sets = with(sets, {fmt::format("run.schedule={}", schedule),
                       "plan={planner: balanced, stages: 2, vocabulary: all, micro_batch_size: 1}"});
    check_equal(train(sets), expected, 1e-12);
  }
}

}  // namespace stagecraft::vocabulary_test
