// Files of published figures, and the results of running them.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>

#include "sim/config/library.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/published/named_figures.hpp"
#include "sim/published/table.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::published_test {
using Verdict = Reproduced::Verdict;

namespace {

const std::string kFolder = test::own_file("stagecraft-published");

/// Two stages that take 2 ms forward and 4 ms backward for each of m micro-batches, and messages that take no time.
constexpr const char* kScenario = R"(schema: scenario/2
model: {builder: uniform, layers: 2, forward: 2 ms, input_gradient: 2 ms, weight_gradient: 2 ms}
cluster:
  generator: uniform
  devices: 2
  type: any
  types: {any: {peak: 1 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1 TB/s}}
  link: {bandwidth: 1 TB/s, latency: 0 s}
plan: {planner: balanced, stages: 2}
run: {schedule: gpipe, micro_batches: 4}
software: none
)";

Published published(const std::string& tables) {
  std::filesystem::create_directories(kFolder);
  test::write_file(kFolder + "/two.yaml", kScenario);
  test::write_file(kFolder + "/published.yaml", "schema: published/1\ntitle: T\nsource: S\ntables:\n" + tables);
  return load_published(kFolder);
}

Reproduction reproduced(const std::string& tables) { return reproduce(published(tables)); }

std::string problem_of(const std::string& tables) {
  try {
    published(tables);
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "none";
}

}  // namespace

TEST_CASE("published: figures are met, missed, shown or not available") {
  // GPipe on p stages with m micro-batches idles (p - 1)/(m + p - 1) of its time: 1/5 and 1/9.
  const Reproduction r = reproduced(R"(
  - name: bubbles
    figure: bubble
    decimals: 3
    scenario: two.yaml
    columns: [{name: four}, {name: eight, set: {run.micro_batches: 8}}]
    rows:
      - {name: right, values: [0.2, 0.1111]}
      - {name: wrong, values: [0.25, ~], missed: {four: -20.0}, why: it is a test}
      - {name: impossible, values: [0.2, 0.2], set: {plan.stages: 3}}
  - name: times
    figure: makespan_s
    scenario: two.yaml
    columns: [{name: four}]
    rows: [{name: shown, values: [0.03]}]
)");
  REQUIRE(r.cells.size() == 6);
  CHECK(r.cells[0].ours == doctest::Approx(1.0 / 5));
  CHECK(r.cells[1].ours == doctest::Approx(1.0 / 9));
  CHECK(r.cells[5].ours == doctest::Approx(5 * 6e-3));
  CHECK(r.count(Verdict::Met) == 2);
  CHECK(r.count(Verdict::Missed) == 1);
  CHECK(r.count(Verdict::Failed) == 2);
  CHECK(r.count(Verdict::Shown) == 1);
  CHECK(r.unexpected() == 2);
  CHECK(r.cells[2].deviation() == doctest::Approx(0.2 / 0.25 - 1));
  const std::string text = to_text(r);
  CHECK(text.find("because it is a test") != std::string::npos);
  CHECK(text.find("2 of 5 met, 1 shown, 2 failed, 2 not as the file says") != std::string::npos);
}

TEST_CASE("published: a figure may be a ratio, or the best of several settings") {
  // Iterations of 5, 9 and 6 steps of 6 ms for 4, 8 and 5 micro-batches.
  const Reproduction r = reproduced(R"(
  - name: ratio
    figure: makespan_s
    tolerance: 1e-9
    scenario: two.yaml
    over: {set: {run.micro_batches: 8}}
    columns: [{name: four}]
    rows: [{name: a, values: [0.5555555555555556]}]
  - name: least
    figure: makespan_s
    tolerance: 1e-9
    scenario: two.yaml
    best_of: [{set: {run.micro_batches: 8}}, {set: {run.micro_batches: 5}}, {set: {plan.stages: 3}}]
    columns: [{name: best}]
    rows: [{name: a, values: [0.036]}]
  - name: most
    figure: throughput_samples_per_s
    scenario: two.yaml
    set: {run.iterations: 1}
    best_of: [{set: {run.micro_batches: 5}}, {set: {run.micro_batches: 8}}]
    columns: [{name: best}]
    rows: [{name: a, values: [148.148]}]
)");
  CHECK(r.count(Verdict::Met) == 2);
  CHECK(r.cells.back().ours == doctest::Approx(8 / 0.054));
}

TEST_CASE("published: columns, rows and figures may have their own units, settings and baselines") {
  // Iterations of m + 1 steps of 6 ms for m micro-batches: 5, 9, 6 and 17 of them for 4, 8, 5 and 16.
  const Reproduction r = reproduced(R"(
  - name: milliseconds
    figure: makespan_s
    tolerance: 1e-9
    scale: 500
    scenario: two.yaml
    columns: [{name: a}, {name: b}]
    rows: [{name: r, values: [30, 54], scale: 2, only: {b: {set: {run.micro_batches: 8}}}}]
  - name: per cent more
    figure: makespan_s
    tolerance: 1e-9
    scale: 100
    offset: -100
    scenario: two.yaml
    over: {set: {run.micro_batches: 8}}
    columns: [{name: a, set: {run.micro_batches: 16}}]
    rows:
      - {name: than the table says, values: [88.88888888888889]}
      - {name: than the row says, values: [240], over: {set: {run.micro_batches: 4}}}
  - name: mean
    figure: makespan_s
    tolerance: 1e-9
    scenario: two.yaml
    all_of: [{set: {run.micro_batches: 8}}, {set: {run.micro_batches: 4}}]
    columns: [{name: a}]
    rows: [{name: r, values: [0.042]}]
  - name: largest
    figure: makespan_s
    tolerance: 1e-9
    scenario: two.yaml
    all_of: [{set: {run.micro_batches: 8}}, {set: {run.micro_batches: 4}}]
    take: largest
    columns: [{name: a}]
    rows: [{name: r, values: [0.054]}]
  - name: least
    figure: makespan_s
    tolerance: 1e-9
    scenario: two.yaml
    all_of: [{set: {run.micro_batches: 8}}, {set: {run.micro_batches: 4}}]
    take: least
    columns: [{name: a}]
    rows: [{name: r, values: [0.03]}]
)");
  CHECK(r.count(Verdict::Met) == 7);
}

TEST_CASE("published: bounds, sides and orders are judged, and calibrated figures are not") {
  // 30 ms with 4 micro-batches, 54 ms with 8.
  const Reproduction r = reproduced(R"(
  - name: at least
    figure: makespan_s
    bound: least
    scenario: two.yaml
    why: of the table
    columns: [{name: a}]
    rows:
      - {name: met, values: [0.03]}
      - {name: missed, values: [0.031], missed: {a: -3.2}}
      - {name: own, values: [0.031], missed: {a: -3.2}, why: of the row}
  - name: at most
    figure: makespan_s
    bound: most
    scenario: two.yaml
    columns: [{name: a}]
    rows: [{name: met, values: [0.031]}, {name: missed, values: [0.029]}]
  - name: side
    figure: makespan_s
    side: 0.035
    scenario: two.yaml
    columns: [{name: a}]
    rows: [{name: met, values: [0.001]}, {name: missed, values: [0.036]}]
  - name: order
    figure: makespan_s
    order: true
    scenario: two.yaml
    columns: [{name: four}, {name: eight, set: {run.micro_batches: 8}}]
    rows: [{name: met, values: [1, 2]}, {name: missed, values: [2, 1]}, {name: equal, values: [1, 1]}]
  - name: calibrated
    figure: makespan_s
    tolerance: 0.01
    scenario: two.yaml
    columns: [{name: a}]
    rows: [{name: shown, values: [1], calibrated: true}]
)");
  const auto verdicts = [&](std::size_t table) {
    std::string text;
    for (const Reproduced& c : r.cells)
      if (c.table == table) text += c.verdict == Verdict::Met ? '+' : c.verdict == Verdict::Missed ? '-' : 'o';
    return text;
  };
  CHECK(verdicts(0) == "+--");
  CHECK(verdicts(1) == "+-");
  CHECK(verdicts(2) == "+-");
  CHECK(verdicts(3) == "++--++");
  CHECK(verdicts(4) == "o");
  CHECK(r.unexpected() == 4);
  const std::string text = to_text(r), page = reproduced_html({&r, 1});
  for (const char* reason : {"because of the table", "because of the row", "calibrated on this row", "at least so much",
                             "at most so much", "on the same side of 0.035", "in the same order"})
    CHECK_MESSAGE(text.find(reason) != std::string::npos, reason);
  for (const char* part : {"missed</span>: of the table.", "own</span>: of the row.", "(calibrated)", "</html>"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
}

TEST_CASE("published: every missed cell must be stated in the file, with its deviation") {
  // Times of 30 and 54 ms; 25, 45 and 60 are missed by +20, +20 and -10 percent.
  const auto unexpected = [](const std::string& row) {
    const Reproduction r = reproduced(R"(
  - name: t
    figure: makespan_s
    tolerance: 0.01
    scale: 1000
    scenario: two.yaml
    columns: [{name: four}, {name: eight, set: {run.micro_batches: 8}}]
    rows: [{name: r, )" + row + "}]\n");
    CHECK(r.unexpected() == static_cast<int>(!unexpected_text(r).empty()));
    return unexpected_text(r);
  };
  const std::string head = "stagecraft-published: t: r, eight: it is ";
  CHECK(unexpected("values: [30, 54]") == "");
  CHECK(unexpected("values: [25, 45], missed: {four: 20.0, eight: 20.0}, why: x") == "");
  CHECK(unexpected("values: [25, 54], missed: {four: 20.0}, why: x") == "");
  // A row with an explanation: a cell that was met, one that is met now, and another published figure.
  CHECK(unexpected("values: [25, 60], missed: {four: 20.0}, why: x") ==
        head + "missed by -10.0 %, and the file does not say so\n");
  CHECK(unexpected("values: [25, 54], missed: {four: 20.0, eight: 20.0}, why: x") ==
        head + "met, and the file says missed by +20.0 %\n");
  CHECK(unexpected("values: [25, 60], missed: {four: 20.0, eight: 20.0}, why: x") ==
        head + "missed by -10.0 %, and the file says by +20.0 %\n");
  CHECK(unexpected("values: [25, 45.1], missed: {four: 20.0, eight: 20.0}, why: x") ==
        head + "missed by +19.7 %, and the file says by +20.0 %\n");
  CHECK(unexpected(
            "values: [25, 45], missed: {four: 20.0, eight: 20.0}, why: x, only: {eight: {set: {plan.stages: 3}}}") ==
        "stagecraft-published: t: r, eight: it failed\n");
  CHECK(unexpected("values: [25, 45], missed: {four: 20.0}, why: x, calibrated: true").find("not judged") !=
        std::string::npos);
}

TEST_CASE("published: an unknown reason is stated as unknown") {
  const std::string table =
      "  - {name: a, figure: makespan_s, tolerance: 0, scenario: two.yaml, columns: [{name: x}], rows: [{name: r, "
      "values: [0.025], missed: {x: 20.0}, why: ";
  CHECK(to_text(reproduced(table + "it is late}]}\n")).find("because it is late") != std::string::npos);
  const std::string text = to_text(reproduced(table + "\"not known: it is late\"}]}\n"));
  CHECK(text.find("not known: it is late") != std::string::npos);
  CHECK(text.find("because") == std::string::npos);
}

TEST_CASE("published: exported tables have reasons for missed figures, and for no others") {
  const Reproduction r = reproduced(R"(
  - name: t
    figure: makespan_s
    tolerance: 0.01
    scale: 1000
    scenario: two.yaml
    why: it is late
    columns: [{name: four}, {name: eight, set: {run.micro_batches: 8}}, {name: bad, set: {plan.stages: 3}}]
    rows: [{name: r, values: [30, 45, 1], missed: {eight: 20.0}}, {name: s, values: [30, ~, ~], calibrated: true}]
)");
  const std::vector<std::string> lines = split(reproduced_csv({&r, 1}), '\n');
  CHECK(lines.at(1).ends_with(",met,\"\""));
  CHECK(lines.at(2).ends_with(",missed,\"it is late\""));
  CHECK(lines.at(3).find(",failed,\"") != std::string::npos);
  CHECK(lines.at(3).find("late") == std::string::npos);
  CHECK(lines.at(4).ends_with(",shown,\"\""));
  const std::string json = reproduced_json({&r, 1});
  CHECK(json.find("it is late") == json.rfind("it is late"));
}

TEST_CASE("published: a wrong file is refused with its reason") {
  const std::string head = "  - {name: a, figure: bubble, scenario: two.yaml, columns: [{name: x}], rows: [";
  CHECK(problem_of(head + "{name: r, values: [1, 2]}]}\n") == "2 values for 1 column");
  CHECK(problem_of(head + "{name: r, values: [fast]}]}\n") == "this is not a number");
  CHECK(problem_of("  - {name: a, figure: bubble, columns: [{name: x}], rows: [{name: r, values: [1]}]}\n") ==
        "neither the row nor the table names a scenario");
  CHECK(problem_of(head + "{name: r, values: [1], only: {y: {set: {run.micro_batches: 2}}}}]}\n") ==
        "there is no column 'y'");
  CHECK(problem_of(head + "{name: r, values: [1], missed: {y: 3.0}, why: z}]}\n") == "there is no column 'y'");
  CHECK(problem_of(head + "{name: r, values: [1], missed: {x: 3.0}}]}\n") ==
        "figures are missed, and neither the row nor the table says why");
  CHECK(problem_of(head + "{name: r, values: [~], missed: {x: 3.0}, why: z}]}\n") == "nothing is published for 'x'");
  CHECK(problem_of(head + "{name: r, values: [1], why: z}]}\n") == "no figure of this row is missed");
  CHECK(problem_of("  - {name: a, figure: bubble, scenario: two.yaml, why: z, columns: [{name: x}], rows: [{name: r, "
                   "values: [1]}]}\n") == "no row is missed that says nothing itself");
  CHECK(problem_of("  - {name: a, figure: bubble, scenario: no.yaml, columns: [], rows: []}\n") ==
        "there is no file 'no.yaml' next to this one");
  CHECK(problem_of("  - {name: a, figure: buble, scenario: two.yaml, columns: [], rows: []}\n").find("buble") !=
        std::string::npos);
}

TEST_CASE("published: a figure is close within its tolerance") {
  CHECK(MatchRule{4, {}}.holds(0.2431, 0.24314));
  CHECK_FALSE(MatchRule{4, {}}.holds(0.2431, 0.24316));
  CHECK(MatchRule{{}, 0.05}.holds(100, 104.9));
  CHECK_FALSE(MatchRule{{}, 0.05}.holds(100, 105.1));
  CHECK_FALSE(MatchRule{{}, 0.05}.holds(100, std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("published: a rule tells identities, directions and predictions apart") {
  CHECK(claim_of({.decimals = 3}) == Claim::Identity);
  CHECK(claim_of({.tolerance = 1e-9}) == Claim::Identity);
  CHECK(claim_of({.side = 1.0}) == Claim::Direction);
  CHECK(claim_of({.bound = MatchRule::Bound::AtLeast}) == Claim::Direction);
  CHECK(claim_of({.tolerance = 0.08, .side = 1.0}) == Claim::Prediction);
}

TEST_CASE("published: every metric has a name and can be computed") {
  for (const std::string& name : figure_names()) CHECK(static_cast<bool>(named_figure(name).value_of));
}

}  // namespace stagecraft::published_test
