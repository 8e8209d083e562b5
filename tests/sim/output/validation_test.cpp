#include <doctest/doctest.h>
#include <fmt/core.h>

#include "sim/output/json_files.hpp"
#include "sim/output/network_validation.hpp"
#include "sim/output/validation.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::validation_test {
namespace {

struct Case {
  Cluster cluster = test::star(2, 1e9, 1e-3);
  Program program = test::program_of("1f1b", chain_plan(2, 2, 3),
                                     uniform_costs(chain_plan(2, 2, 3), test::times(1, 2, 0.5)), test::pure_delays(5));
  Timeline simulated = test::run_ideal(program, cluster);
  Report report = measure(program, simulated, cluster);
};

}  // namespace

TEST_CASE("a simulation compared with itself has no error") {
  const Case c;
  const Validation v = compare(c.program, c.simulated, c.report, c.simulated, c.cluster);
  CHECK(v.iteration.error() == 0);
  CHECK(v.iteration.count == 4);
  for (const auto* list : {&v.kinds, &v.ops, &v.devices})
    for (const Pair& p : *list) {
      CAPTURE(p.name);
      CHECK(p.error() == 0);
      CHECK(p.measured > 0);
    }
  CHECK(to_text(v, 0.05).find("yes, within 5 %") != std::string::npos);
}

TEST_CASE("the op with the largest error comes first, and messages end where the op they release starts") {
  const Case c;
  Timeline measured = c.simulated;
  for (const InstructionId n : c.program.instructions.ids()) {
    measured.start[n] *= 2;
    measured.end[n] *= 2;
  }
  const Validation v = compare(c.program, c.simulated, c.report, measured, c.cluster);
  CHECK(v.iteration.error() == doctest::Approx(-0.5));
  REQUIRE_FALSE(v.ops.empty());
  CHECK(v.ops.front().name.ends_with(" B"));  // Three micro-batches of two seconds each.
  CHECK(v.kinds.back().name == "message");
  CHECK(v.kinds.back().simulated == doctest::Approx(2e-3));  // Two cables of a millisecond each.
  CHECK(v.kinds.back().measured == doctest::Approx(4e-3));
  CHECK(to_text(v, 0.05).find("no, not within 5 %") != std::string::npos);
}

TEST_CASE("a verdict that noise of the machine could reverse is not sure") {
  struct Noise {
    double simulated, spread;  // Seconds; the measured time is 1 s.
    bool within, sure;
  };
  for (const Noise& n : {Noise{1.02, 0.01, true, true},     // 1.02 / 0.99 and 1.02 / 1.01 are within 5 %.
                         Noise{1.02, 0.04, true, false},    // 1.02 / 0.96 = 1.0625
                         Noise{0.97, 0.03, true, false},    // 0.97 / 1.03 = 0.942
                         Noise{1.06, 0.02, false, false},   // 1.06 / 1.02 = 1.039
                         Noise{0.01, 0.5, false, true}}) {  // It is far from every reading.
    CAPTURE(n.simulated);
    Validation v;
    v.iteration = {"iteration", n.simulated, 1, n.spread, 20};
    CHECK(within(v, 0.05) == n.within);
    CHECK(is_sure(v, 0.05) == n.sure);
    const std::string text = to_text(v, 0.05);
    CHECK((text.find("not sure") == std::string::npos) == n.sure);
    CHECK(text.find(fmt::format("readings spread by +-{:.1f} %", 100 * n.spread)) != std::string::npos);
  }
}

TEST_CASE("no verdict is sure while there are doubts, and the file has what the terminal has") {
  Validation v;
  v.iteration = {"iteration", 1.02, 1, 0.01, 20};
  REQUIRE(is_sure(v, 0.05));
  v.notes = {"eight threads share two cores"};
  CHECK(is_sure(v, 0.05));
  v.doubts = {"the load of this machine changed"};
  CHECK(!is_sure(v, 0.05));
  const std::string text = to_text(v, 0.05);
  for (const char* line : {"note: eight threads share two cores\n", "  not sure: the load of this machine changed\n",
                           "yes, within 5 %, but that is not sure: the simulated"})
    CHECK(text.find(line) != std::string::npos);
  const std::string json = validation_json("a title", v, {}, {}, 0.05);
  CHECK(json.find("\"sure\": false") != std::string::npos);
  CHECK(json.find("\"eight threads share two cores\",\n    \"the load of this machine changed\"") != std::string::npos);
}

TEST_CASE("a small error from large ones in opposite directions names them, where they matter") {
  Validation v;
  v.iteration = {"iteration", 1.02, 1, 0.01, 20};
  v.devices = {{"a", 1, 1, 0, 20}, {"b", 1, 1, 0, 20}};
  v.totals = {{"forward", 0.6, 0.4, 0, 80}, {"backward", 0.6, 0.9, 0, 80}, {"update", 0.002, 0.001, 0, 20}};
  v.messages = {"messages", 0.0001, 0.3, 0, 40};
  const auto text = [&] { return verdict_text(v, 0.05); };
  CHECK(text().find("  errors cancel each other out: forward +50.0 %, backward -33.3 %, messages -100.0 %\n") !=
        std::string::npos);
  v.totals[0].simulated = 0.42;  // +5 %
  CHECK(text().find("cancel") == std::string::npos);
  v.totals[0].simulated = 0.6;
  v.totals[1].simulated = 0.89;
  v.messages.measured = 0.01;  // Messages are -99 % off, which is 0.5 % of the time of two devices.
  CHECK(text().find("cancel") == std::string::npos);
  v.messages.measured = 0.3;
  v.iteration.simulated = 1.2;  // The iteration is as wrong as they are, so nothing is hidden.
  CHECK(text().find("cancel") == std::string::npos);
}

TEST_CASE("the verdict ends with the error of the model and that of the costs, and the file has both") {
  Validation v;
  v.iteration = {"iteration", 1.2, 1, 0.01, 3};
  v.iterations = {0.9, 1, 2};
  CHECK(to_text(v, 0.05).find("order, overlap and messages") == std::string::npos);
  CHECK(validation_json("a title", v, {}, {}, 0.05).find("model_error") == std::string::npos);
  v.replayed = {0.9, 0.99, 1.97};  // 0, -1 and -1.5 %
  v.totals = {{"forward", 0.5, 0.45, 0, 80}, {"backward", 0.7, 0.5, 0, 80}};
  CHECK(model_error(v).median == doctest::Approx(-0.01));
  CHECK(model_error(v).worst == doctest::Approx(-0.015));
  CHECK(cost_error(v) == doctest::Approx(1.2 / 0.99 - 1));
  const std::string last =
      "  order, overlap and messages: within 1.5 % on every iteration; costs: +21.2 %, because backward took 29 % less "
      "time in the run than in the simulation\n";
  CHECK(to_text(v, 0.05).ends_with(last));
  CHECK(to_text(v, 0.05).find("an iteration is -1.0 % off in the median, -1.5 % at worst") != std::string::npos);
  v.replayed[2] = 1.8;
  CHECK(to_text(v, 0.05).find("messages: -1.0 % in the median iteration, -10.0 % in the worst; costs") !=
        std::string::npos);
  v.iteration.simulated = 0.8;  // Now the costs are too low, and no kind is.
  CHECK(to_text(v, 0.05).ends_with("costs: -19.2 %\n"));
  const std::string json = validation_json("a title", v, {}, {}, 0.05);
  for (const char* key : {"\"iterations_replayed_s\"", "\"model_error\"", "\"cost_error\""})
    CHECK(json.find(key) != std::string::npos);
}

TEST_CASE("a collective lasts from when its last member may start, on all links that it crosses") {
  test::ProgramBuilder builder(3);
  for (int d = 0; d < 3; ++d) builder.compute(d, 1);
  const std::vector<InstructionId> members = builder.all_reduce({0, 1}, 100);
  const Program program = builder.build();
  const Cluster cluster = test::star(3, 100, 0);
  const Timeline simulated = test::run_ideal(program, cluster);
  Timeline measured = simulated;
  measured.start[members[1]] += 3, measured.end[members[0]] += 5, measured.end[members[1]] += 5;
  const NetworkValidation v =
      compare_networks(program, simulated, measure(program, simulated, cluster), measured, cluster);
  // Two phases of half the array each way take a second in all, and two more in the run.
  REQUIRE(v.messages.size() == 1);
  CHECK(v.messages.front() == doctest::Approx(1.0 / 3));
  REQUIRE(v.links.size() == 2);
  for (const Pair& link : v.links) {
    CHECK(link.simulated == doctest::Approx(1));
    CHECK(link.measured == doctest::Approx(3));
  }
}

TEST_CASE("time between the instructions of a measured iteration is counted along its longest chain") {
  const Plan plan = chain_plan(1, 2, 3);
  const Program program =
      test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2, 0.5)), test::pure_delays(3));
  const Cluster cluster = test::star(1, 1e9, 0);
  const Timeline simulated = test::run_ideal(program, cluster);
  const Report report = measure(program, simulated, cluster);
  CHECK(compare_networks(program, simulated, report, simulated, cluster).gaps.seconds == doctest::Approx(0));
  const Plan two = chain_plan(2, 2, 3);  // Messages start when both ends may: the later end decides.
  const Program joined = test::program_of("1f1b", two, uniform_costs(two, test::times(1, 2, 0.5)), {.iterations = 3});
  const Cluster pair = test::star(2, 1e9, 1e-3);
  const Timeline both = test::run_ideal(joined, pair);
  const PathGaps none = compare_networks(joined, both, measure(joined, both, pair), both, pair).gaps;
  CHECK(none.starts > 4);
  CHECK(none.seconds == doctest::Approx(0));
  Timeline measured = simulated;  // One instruction after the other, each a quarter of a second late.
  double now = 0;
  for (const InstructionId i : program.instructions.ids()) {
    measured.start[i] = now + 0.25;
    now = measured.end[i] = measured.start[i] + simulated.end[i] - simulated.start[i];
  }
  const NetworkValidation v = compare_networks(program, simulated, report, measured, cluster);
  const double count = static_cast<double>(program.size()) / program.iterations;
  CHECK(v.gaps.starts == doctest::Approx(count));
  CHECK(v.gaps.seconds == doctest::Approx(0.25 * count));
  CHECK(to_text(v, 0.05).find("a measured iteration lost") != std::string::npos);
}

}  // namespace stagecraft::validation_test
