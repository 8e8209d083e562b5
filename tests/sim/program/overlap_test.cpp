// Lowering with communication that overlaps computation, in full for two stages and two micro-batches.

#include <doctest/doctest.h>

#include <set>

#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::overlap_test {
namespace {

Program two_stages(bool rendezvous, StreamModel streams, bool fifo) {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  LoweringOptions options;
  options.rendezvous = rendezvous;
  options.streams = streams;
  options.fifo_sends = fifo;
  return test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2)), options);
}

/// "later after earlier" of every wait.
std::set<std::string> edges(const Program& program) {
  std::set<std::string> result;
  for (const InstructionId id : program.instructions.ids()) {
    for (const InstructionId wait : program.waits_for(id))
      result.insert(to_text(program, id) + " after " + to_text(program, wait));
  }
  return result;
}

const char* const kData =
    "0F0\n"
    "0>1:0F0 after 0F0\n"
    "1<0:0F0\n"
    "1F0 after 1<0:0F0\n"
    "0F1 after 0F0\n"
    "0>1:0F1 after 0F1\n"
    "1<0:0F1\n"
    "1B0 after 1F0\n"
    "1>0:1B0 after 1B0\n"
    "0<1:1B0\n"
    "0B0 after 0F1, 0<1:1B0\n"
    "1F1 after 1B0, 1<0:0F1\n"
    "1B1 after 1F1\n"
    "1>0:1B1 after 1B1\n"
    "0<1:1B1\n"
    "0B1 after 0B0, 0<1:1B1\n"
    "1U0 after 1B1\n"
    "0U0 after 0B1\n";

}  // namespace

TEST_CASE("without any order of messages there is only data and the order of work") {
  for (const bool rendezvous : {true, false}) {
    const Program program = two_stages(rendezvous, StreamModel::None, false);
    CHECK(test::listing(program) == kData);
    CHECK(program.rendezvous == rendezvous);
  }
}

TEST_CASE("each stream model adds its own waits and no other") {
  const std::set<std::string> data = edges(two_stages(true, StreamModel::None, false));
  const std::set<std::string> fifo{"0>1:0F1 after 0>1:0F0", "1>0:1B1 after 1>0:1B0"};
  const std::set<std::string> direction{"0>1:0F1 after 0>1:0F0", "1<0:0F1 after 1<0:0F0", "1>0:1B1 after 1>0:1B0",
                                        "0<1:1B1 after 0<1:1B0"};
  std::set<std::string> one = direction;  // and sends with receives in one line
  one.insert({"0<1:1B0 after 0>1:0F1", "1>0:1B0 after 1<0:0F1"});
  const struct {
    StreamModel model;
    bool fifo;
    std::set<std::string> more;
  } cases[] = {{StreamModel::None, true, fifo},
               {StreamModel::Direction, false, direction},
               {StreamModel::Direction, true, direction},
               {StreamModel::Pair, false, one},
               {StreamModel::Pair, true, one},
               {StreamModel::Single, false, one},
               {StreamModel::Single, true, one}};
  for (const auto& c : cases)
    for (const bool rendezvous : {true, false}) {
      std::set<std::string> expected = data;
      expected.insert(c.more.begin(), c.more.end());
      CHECK(edges(two_stages(rendezvous, c.model, c.fifo)) == expected);
    }
}

TEST_CASE("streams are printed with their direction and peer") {
  const std::string compute =
      "device 0 compute        | 0F0 0F1 0B0 0B1 0U0\n"
      "device 1 compute        | 1F0 1B0 1F1 1B1 1U0\n";
  CHECK(to_text(two_stages(true, StreamModel::Direction, true)) == compute +
                                                                       "device 0 send 1         | 0>1:0F0 0>1:0F1\n"
                                                                       "device 1 receive 0      | 1<0:0F0 1<0:0F1\n"
                                                                       "device 1 send 0         | 1>0:1B0 1>0:1B1\n"
                                                                       "device 0 receive 1      | 0<1:1B0 0<1:1B1\n");
  CHECK(to_text(two_stages(true, StreamModel::Pair, true)) ==
        compute +
            "device 0 communication 1| 0>1:0F0 0>1:0F1 0<1:1B0 0<1:1B1\n"
            "device 1 communication 0| 1<0:0F0 1<0:0F1 1>0:1B0 1>0:1B1\n");
  CHECK(to_text(two_stages(true, StreamModel::Single, true)) ==
        compute +
            "device 0 communication  | 0>1:0F0 0>1:0F1 0<1:1B0 0<1:1B1\n"
            "device 1 communication  | 1<0:0F0 1<0:0F1 1>0:1B0 1>0:1B1\n");
  CHECK(to_text(two_stages(true, StreamModel::None, true)) ==
        compute + "in no stream            | 0>1:0F0 1<0:0F0 0>1:0F1 1<0:0F1 1>0:1B0 0<1:1B0 1>0:1B1 0<1:1B1\n");
}

TEST_CASE("a stream model has one stream in all, one per peer, or one per peer and direction") {
  const Plan plan = test::dag_plan(4, 1, {{0, 3}, {1, 3}, {2, 3}}, 8);
  const struct {
    StreamModel model;
    std::size_t streams;  // Without compute streams.
  } cases[] = {{StreamModel::Single, 4}, {StreamModel::Pair, 6}, {StreamModel::Direction, 12}, {StreamModel::None, 0}};
  for (const auto& c : cases) {
    LoweringOptions options;
    options.streams = c.model;
    const Program program = test::program_of("graph", plan, uniform_costs(plan, test::times(1, 1)), options);
    CHECK(program.streams.size() == 4 + c.streams);
    CHECK(program.routes.size() == 6);
  }
}

TEST_CASE("sends of a device follow each other whoever receives them, when sent one at a time") {
  const Plan plan = test::dag_plan(3, 1, {{0, 1}, {0, 2}}, 8);
  for (const bool fifo : {true, false}) {
    LoweringOptions options;
    options.fifo_sends = fifo;
    const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 1)), options);
    CHECK(edges(program).count("0>2:0F0 after 0>1:0F0") == (fifo ? 1 : 0));
  }
}

TEST_CASE("ops that run as one receive before the first and send after the last") {
  Plan plan = test::dag_plan(4, 2, {{0, 1}, {2, 3}}, 8);
  const int rank_of[] = {0, 1, 1, 0};
  for (std::size_t s = 0; s < 4; ++s) plan.stages[StageId{s}].place_on({DeviceId{rank_of[s]}});
  plan.stages[StageId{0}].micros = plan.stages[StageId{1}].micros = {0},
  plan.stages[StageId{2}].micros = plan.stages[StageId{3}].micros = {1};
  LoweringOptions options;
  options.streams = StreamModel::None;
  const Schedule schedule = complete(test::schedule_from({"0F0 3F1+ 0B0 3B1", "2F1 1F0 1B0 2B1"}), plan, 1);
  const Program program = test::lowered(schedule, plan, uniform_costs(plan, test::times(1, 1)), options);
  const std::set<std::string> edge_set = edges(program);
  CHECK(edge_set.count("3F1 after 0<1:1B0") == 1);  // 3F1 is first of two, and 0B0 needs 1B0
  CHECK(edge_set.count("3F1 after 0<1:2F1") == 1);
  CHECK(edge_set.count("0B0 after 3F1") == 1);
}

TEST_CASE("stages on one device pass data without a message") {
  const Plan plan = chain_plan(4, 2, 2);
  const Program program = test::program_of("inference", plan, uniform_costs(plan, test::times(1, 0)));
  CHECK(program.transfers.size() == 6);  // 0>1, 1>0, 0>1, twice; none inside a device
  const Plan alone = chain_plan(3, 1, 2);
  CHECK(test::program_of("inference", alone, uniform_costs(alone, test::times(1, 0))).transfers.empty());
}

TEST_CASE("a program has the counts, sizes and numbers of its plan") {
  const Plan plan = test::dag_plan(2, 3, {{0, 1}}, 10);
  LoweringOptions options;
  options.iterations = 2;
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1)), options);
  CHECK(program.devices == 2);
  CHECK(program.iterations == 2);
  CHECK(program.mini_batch == 3);
  CHECK(program.micro_batches == IdVector<StageId, int>{3, 3});
  CHECK(program.size() == 2 * (2 * (3 + 3 + 1) + 3 * 2 * 2));
  for (const Transfer& t : program.transfers) CHECK(program.bytes(t) == 10);
  CHECK(program.iteration_of(program.at(test::find(program, "0F2"))) == 0);
  CHECK(program.iteration_of(program.at(test::find(program, "1>0:1B3"))) == 1);
  CHECK(program.iteration_of(program.at(test::find(program, "1U1"))) == 1);
}

}  // namespace stagecraft::overlap_test
