// Points of a sweep, compared with explicit loops, and refusals with their place.

#include <doctest/doctest.h>

#include <random>
#include <set>

#include <fmt/core.h>

#include "sim/sweep/points.hpp"
#include "tests/sim/sweep/files.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::points_test {
using Labels = std::vector<std::string>;

namespace {

/// The first problem as text: "axes.run.seed at 4:1: ...".
std::string refusal(const std::string& rest) {
  try {
    test::points_of(rest);
  } catch (const InputError& e) {
    const Diagnostic& d = e.problems().front();
    return fmt::format("{}:{} {}: {}", d.where.line, d.where.column, d.path, d.message);
  }
  return "accepted";
}

Labels values_of(const std::string& axis) {
  Labels values;
  for (const Point& p : test::points_of("axes: {run.seed: " + axis + "}\n"))
    values.push_back(p.settings.front().value.text);
  return values;
}

}  // namespace

TEST_CASE("points are all combinations, first axis slowest, `together` fastest, `also` last") {
  CHECK(test::labels(test::points_of(R"(axes:
  run.schedule: [gpipe, {name: interleaved, chunks: 2}]
  run.micro_batches: [4, 8]
together:
  - {plan.stages: 2, plan.micro_batch_size: 1}
  - {plan.stages: 4, plan.micro_batch_size: 2}
exclude:
  - {run.schedule: gpipe, plan.stages: 2}
also:
  - {run.micro_batches: 64}
  - {}
)")) == Labels{"schedule=gpipe,micro_batches=4,stages=4,micro_batch_size=2",
               "schedule=gpipe,micro_batches=8,stages=4,micro_batch_size=2",
               "schedule={name: interleaved, chunks: 2},micro_batches=4,stages=2,micro_batch_size=1",
               "schedule={name: interleaved, chunks: 2},micro_batches=4,stages=4,micro_batch_size=2",
               "schedule={name: interleaved, chunks: 2},micro_batches=8,stages=2,micro_batch_size=1",
               "schedule={name: interleaved, chunks: 2},micro_batches=8,stages=4,micro_batch_size=2",
               "micro_batches=64", "base"});
}

TEST_CASE("random sweeps have the points of explicit loops") {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const Labels paths = {"run.seed", "run.micro_batches", "run.iterations", "plan.stages"};
  for (int round = 0; round < 60; ++round) {
    const int axes = 1 + below(3);
    std::vector<int> sizes;
    std::string rest = "axes:\n";
    for (int a = 0; a < axes; ++a) {
      sizes.push_back(1 + below(4));
      rest += fmt::format("  {}: {{from: 1, to: {}, by: 1}}\n", paths[a], sizes.back());
    }
    const int pairs = below(4);
    if (pairs > 0) rest += "together:\n";
    for (int i = 1; i <= pairs; ++i)
      rest += fmt::format("  - {{plan.stages: {}, plan.micro_batch_size: {}}}\n", i, 10 * i);
    const int first_out = 1 + below(5), last_out = 1 + below(5);
    rest += fmt::format("exclude:\n  - {{run.seed: {}", first_out);
    if (axes > 1) rest += fmt::format(", {}: {}", paths[axes - 1], last_out);
    rest += "}\n";

    Labels expected;
    std::vector<int> at(static_cast<std::size_t>(axes), 1);
    const auto visit = [&](const auto& self, int a) -> void {
      if (a < axes) {
        for (int v = 1; v <= sizes[a]; ++v) at[a] = v, self(self, a + 1);
        return;
      }
      if (at.front() == first_out && (axes == 1 || at.back() == last_out)) return;
      std::string label;
      const Labels names = {"seed", "micro_batches", "iterations"};
      for (int i = 0; i < axes; ++i) label += fmt::format("{}{}={}", i ? "," : "", names[i], at[i]);
      if (pairs == 0) expected.push_back(label);
      for (int i = 1; i <= pairs; ++i)
        expected.push_back(label + fmt::format(",stages={},micro_batch_size={}", i, 10 * i));
    };
    visit(visit, 0);
    if (expected.empty()) {
      CHECK(refusal(rest).ends_with("no point is left"));
      continue;
    }
    const auto points = test::points_of(rest);
    CHECK(test::labels(points) == expected);
    for (std::size_t i = 0; i < points.size(); ++i) CHECK(points[i].number == static_cast<int>(i) + 1);
  }
}

TEST_CASE("ranges become their values, with their unit") {
  CHECK(values_of("{from: 4, to: 64, times: 2}") == Labels{"4", "8", "16", "32", "64"});
  CHECK(values_of("{from: 4, to: 63, times: 2}") == Labels{"4", "8", "16", "32"});
  CHECK(values_of("{from: 1, to: 9, by: 3}") == Labels{"1", "4", "7"});
  CHECK(values_of("{from: 0, to: 0.3, by: 0.1}") == Labels{"0", "0.1", "0.2", "0.3"});
  CHECK(values_of("{from: 25 GB/s, to: 100 GB/s, times: 2}") == Labels{"25 GB/s", "50 GB/s", "100 GB/s"});
  CHECK(values_of("{from: 1 us, to: 2 us, by: 0.5 us}") == Labels{"1 us", "1.5 us", "2 us"});
  CHECK(values_of("{from: 5, to: 5, by: 1}") == Labels{"5"});
  CHECK(values_of("{from: 1, to: 1000000, times: 1000}") == Labels{"1", "1000", "1000000"});
}

TEST_CASE("repeat sets every seed of the cluster that draws something, unless the sweep sets it") {
  const test::Folder folder;
  const auto last = [&](const std::string& rest) {
    test::write_file(folder / "s.yaml", "schema: sweep/1\nrepeat: 3\n" + rest);
    std::vector<Diagnostic> none;
    std::string text;
    const std::vector<Point> points = stagecraft::points_of(load_sweep(folder / "s.yaml"), none);
    for (const config::Member& m : points.back().settings) text += fmt::format("{}={} ", m.key, one_line(m.value));
    return text;
  };
  CHECK(last("base: examples/straggler\n") == "run.seed=3 cluster.jitter.seed=3 ");
  CHECK(last("base: examples/straggler\naxes: {cluster.jitter.seed: [7]}\n") == "cluster.jitter.seed=7 run.seed=3 ");
  CHECK(last("base: examples/straggler\naxes: {cluster.jitter.most: [1 %]}\n") ==
        "cluster.jitter.most=1 % run.seed=3 cluster.jitter.seed=3 ");
  CHECK(last("base: examples/straggler\naxes: {cluster: [two-node-mixed]}\n") == "cluster=two-node-mixed run.seed=3 ");
  CHECK(last("base: examples/quickstart\naxes: {cluster.jitter.most: [1 %]}\n") ==
        "cluster.jitter.most=1 % run.seed=3 cluster.jitter.seed=3 ");
  CHECK(last("base: examples/straggler\nalso: [{cluster.jitter.seed: 7}]\n") == "cluster.jitter.seed=7 run.seed=3 ");
  test::write_file(folder / "own.yaml",
                   "schema: scenario/2\nsoftware: none\nmodel: gpt2-medium\ncluster: {base: two-node-mixed, changes: "
                   "[{devices: [h100-0.gpu0], speed: 70 %}, {share: 50 %, speed: 70 %}]}\n"
                   "plan: {stages: 4}\nrun: {micro_batches: 8}\n");
  CHECK(last("base: own.yaml\n") == "run.seed=3 cluster.changes[1].seed=3 ");
}

TEST_CASE("repeat sets the seed of the training if something is learned, else the seed of the run") {
  CHECK(test::labels(test::points_of("axes: {run.micro_batches: [4, 8]}\nrepeat: 2\n")) ==
        Labels{"micro_batches=4,seed=1", "micro_batches=4,seed=2", "micro_batches=8,seed=1", "micro_batches=8,seed=2"});
  CHECK(test::labels(test::points_of("also:\n  - {run.micro_batches: 4}\nrepeat: 2\n")) ==
        Labels{"micro_batches=4,seed=1", "micro_batches=4,seed=2"});
  CHECK(test::points_of("repeat: 3\n").back().settings.front().key == "run.seed");
  const test::Folder folder;
  test::write_file(folder / "s.yaml", "schema: sweep/1\nbase: examples/teacher\nrepeat: 3\n");
  std::vector<Diagnostic> none;
  CHECK(stagecraft::points_of(load_sweep(folder / "s.yaml"), none).back().settings.front().key == "training.seed");
}

TEST_CASE("an exclude that matches no point is a warning") {
  const test::Folder folder;
  std::vector<Diagnostic> warnings;
  stagecraft::points_of(load_sweep(test::write_sweep(folder,
                                                     "axes: {run.seed: [1, 2]}\nexclude:\n"
                                                     "  - {run.seed: 2}\n  - {run.seed: 3}\n")),
                        warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().path == "exclude[1]");
  CHECK(warnings.front().where.line == 7);
}

TEST_CASE("problems of a sweep are reported with their place") {
  CHECK(refusal("axes: {run.seed: []}\n") == "4:18 axes.run.seed: the axis has no values");
  std::string many = "axes:\n";
  for (int i = 0; i < 1001; ++i) many += fmt::format("  run.x-{}: [1, 2]\n", i);
  CHECK(refusal(many).ends_with("the sweep varies 1001 paths, and at most 1000 are allowed"));
  CHECK(refusal("axes: {run.seed: null}\n") == "4:18 axes.run.seed: an axis needs its values");
  CHECK(refusal("axes: {run.seed: {from: 1, to: 4}}\n") == "4:18 axes.run.seed: a range needs `by` or `times`");
  CHECK(refusal("axes: {run.seed: {from: 1, to: 4, by: 0}}\n") == "4:39 axes.run.seed.by: the range does not get on");
  CHECK(refusal("axes: {run.seed: {from: 1, to: 4, times: 1}}\n") ==
        "4:42 axes.run.seed.times: the range does not get on");
  CHECK(refusal("axes: {run.seed: {from: 5, to: 4, by: 1}}\n") == "4:32 axes.run.seed.to: this is below `from`");
  CHECK(refusal("axes: {run.seed: {from: 5 us, to: 9 ms, by: 1 us}}\n") ==
        "4:35 axes.run.seed.to: its unit is not that of `from`");
  CHECK(refusal("axes: {run.seed: {from: 1, to: 9, by: 1, step: 2}}\n") ==
        "4:42 axes.run.seed.step: a range has no such field");
  CHECK(refusal("axis: {run.seed: [1]}\n") == "4:1 axis: no such field");
  CHECK(refusal("limit: 3\naxes: {run.seed: [1, 2], run.micro_batches: [1, 2]}\n") ==
        "4:8 limit: the sweep has 4 points, and 3 are the most");
  CHECK(refusal("axes: {run.seed: {from: 1, to: 1e6, by: 2}, run.micro_batches: {from: 1, to: 1e5, by: 1}}\n") ==
        "1:1 limit: the sweep has 50000000000 points, and 10000 are the most");
  CHECK(refusal("title: nothing\n") == "1:1 : nothing is varied");
  CHECK(refusal("axes: {run.seed: [1]}\ntogether:\n  - {run.seed: 2}\n") == "6:6 run.seed: this is varied twice");
  CHECK(refusal("axes: {run.seed: [1]}\nrepeat: 2\n") == "5:9 run.seed: this is varied twice");
  CHECK(refusal("axes: {run.schedule.chunks: [1], run.schedule: [interleaved]}\n") ==
        "4:34 run.schedule: this replaces what 'run.schedule.chunks' on line 4 sets");
  CHECK(refusal("together:\n  - {run.seed: 2, plan.stages: 2}\n  - {run.seed: 3}\n") ==
        "6:5 together[1]: 'plan.stages' of the first step is missing here");
  CHECK(refusal("together:\n  - {run.seed: 2}\n  - {run.seed: 3, plan.stages: 2}\n") ==
        "6:19 together[1].plan.stages: the first step does not set this");
  CHECK(refusal("also:\n  - {run: {seed: 2}, run.seed: 3, run: {seed: 4}}\n") ==
        "5:35 also[0].run: 'run' is written twice");
  CHECK(refusal("also:\n  - {run.schedule.name: gpipe, run.schedule: 1f1b}\n") ==
        "5:32 also[0].run.schedule: this replaces what 'run.schedule.name' on line 5 sets");
  CHECK(refusal("axes: {run.seed: [1]}\nexclude:\n  - {run.sed: 1}\n") ==
        "6:6 exclude[0].run.sed: no axis has this path");
  CHECK(refusal("axes: {run.seed: [1]}\nexclude:\n  - {run.seed: 1}\n") == "1:1 exclude: no point is left");
  CHECK(refusal("axes: {run.seed: [1]}\nexclude:\n  - {}\n") == "6:5 exclude: this would leave out every point");
}

TEST_CASE("--only keeps points that have any value of one path, and all paths") {
  const auto points = test::points_of("axes: {run.schedule: [gpipe, 1f1b, zb-h1], run.micro_batches: [4, 8]}\n");
  CHECK(test::labels(only(points, {"run.schedule=1f1b"})) ==
        Labels{"schedule=1f1b,micro_batches=4", "schedule=1f1b,micro_batches=8"});
  CHECK(only(points, {"run.schedule=1f1b", "run.schedule=gpipe"}).size() == 4);
  CHECK(test::labels(only(points, {"run.schedule=1f1b", "run.schedule=gpipe", "run.micro_batches=8.0"})) ==
        Labels{"schedule=gpipe,micro_batches=8", "schedule=1f1b,micro_batches=8"});
  CHECK(only(points, {"run.schedule=1f1b"}).front().number == 3);
  CHECK_THROWS_AS(only(points, {"run.schedule=hanayo"}), InputError);
  CHECK_THROWS_AS(only(points, {"schedule=1f1b"}), InputError);
  CHECK_THROWS_AS(only(points, {"run.schedule"}), InputError);
}

TEST_CASE("shards are disjoint, complete, even, and keep a scenario together") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> hashes;
    for (auto left = random() % 40; left > 0; --left) hashes.push_back(std::to_string(random() % 30));
    const std::set<std::string> expected(hashes.begin(), hashes.end());
    for (int count = 1; count <= 7; ++count) {
      std::set<std::string> seen;
      std::size_t points = 0, fewest = 100, largest = 0;
      for (int index = 1; index <= count; ++index) {
        const auto mine = in_shard(hashes, {index, count});
        std::set<std::string> here;
        for (std::size_t i = 0; i < hashes.size(); ++i)
          if (mine[i]) here.insert(hashes[i]), ++points;
        fewest = std::min(fewest, here.size());
        largest = std::max(largest, here.size());
        for (const std::string& hash : here) CHECK(seen.insert(hash).second);
      }
      CHECK(seen == expected);
      CHECK(points == hashes.size());
      CHECK(largest - fewest <= 1);
    }
  }
  CHECK(parse_shard("2/4").index == 2);
  CHECK(parse_shard("2/4").count == 4);
  for (const char* bad : {"", "2", "0/4", "5/4", "2/", "/4", "2/4/6", "-1/4", "a/b"})
    CHECK_THROWS_AS(parse_shard(bad), InputError);
}

}  // namespace stagecraft::points_test
