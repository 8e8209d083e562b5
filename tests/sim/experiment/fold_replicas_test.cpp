// One set of equal replicas runs as all of them do: every metric of random scenarios, folded and unfolded.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <array>
#include <cmath>

#include "sim/core/json.hpp"
#include "sim/core/random.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/kept_run.hpp"
#include "sim/result/metrics.hpp"
#include "tests/support/files.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::fold_replicas_test {
namespace {

const std::string kFile = test::own_file("fold_replicas_test.yaml");

int one_of(Rng& random, std::initializer_list<int> values) {
  return values.begin()[random.integer(0, static_cast<int>(values.size()) - 1)];
}

/// Nodes of GPUs; devices around a switch, of one type or two; sites far from each other; a medium that all share.
std::string random_cluster(Rng& random, int devices) {
  const int kind = random.integer(0, 4);
  const auto type = [](const char* preset) { return fmt::format("{{preset: {}, memory: 800 GiB}}", preset); };
  const std::string types = fmt::format("types: {{a: {}, b: {}}}", type("h100-sxm"), type("a100-80"));
  if (kind == 0)
    return fmt::format("{{base: superpod-h100-256, override: {{nodes: {}, gpus: {}, type: {}}}}}", (devices + 3) / 4,
                       std::min(4, devices), type("h100-sxm"));
  if (kind == 1) {
    std::string names;
    for (int d = 0; d < devices; ++d) names += fmt::format("{}d{}", d > 0 ? ", " : "", d);
    std::string list;
    for (int d = 0; d < devices; ++d) list += fmt::format("{}{{name: d{}, type: a}}", d > 0 ? ", " : "", d);
    return fmt::format(
        "{{generator: explicit, {}, devices: [{}], links: [{{name: air, among: [{}], bandwidth: 100 "
        "Gbit/s, latency: 5 us, duplex: half}}]}}",
        types, list, names);
  }
  const int second = kind == 2 ? 0 : kind == 3 ? devices / 2 : 1;
  std::string groups = fmt::format("{{name: a, type: a, count: {}, link: wire}}", devices - second);
  if (second > 0)
    groups += fmt::format(", {{name: b, type: {}, count: {}, link: {}}}", kind == 3 ? "b" : "a", second,
                          kind == 3 ? "wire" : "slow");
  return fmt::format(
      "{{generator: star, {}, groups: [{}], links: {{wire: {{bandwidth: {} Gbit/s, latency: 5 us}}, "
      "slow: {{bandwidth: 1 Gbit/s, latency: 1 ms}}}}}}",
      types, groups, one_of(random, {10, 100}));
}

std::string random_scenario(Rng& random) {
  const int stages = one_of(random, {1, 2, 4}), replicas = one_of(random, {2, 3, 4, 8}),
            tensor = one_of(random, {1, 1, 2});
  const std::array schedules = {"gpipe", "1f1b", "zb-h1", "interleaved", "chimera", "2bw", "dualpipev"};
  std::string schedule = schedules[random.integer(0, 6)];
  if (stages == 1) schedule = "1f1b";
  const int copies = schedule == "interleaved" || schedule == "dualpipev" ? 2 : 1;
  const bool priced = random.integer(0, 2) > 0;
  return fmt::format(
      "schema: scenario/2\nmodel: {{builder: transformer, layers: 16, hidden: 1024, heads: 16, sequence: 512, "
      "vocabulary: 8000, tied: {}}}\ncluster: {}\nsoftware: {}\nplan: {{planner: balanced, stages: {}, "
      "replicas: {}, micro_batch_size: {}, recompute: {}{}}}\nrun: {{schedule: {}, micro_batches: {}, "
      "iterations: {}{}}}\n",
      random.integer(0, 1) == 1, random_cluster(random, stages * replicas * tensor),
      priced ? "megatron-no-overlap" : "none", stages * copies, replicas, one_of(random, {1, 2}),
      random.integer(0, 1) == 1 ? "full" : "none", priced && tensor > 1 ? ", group: {tensor: 2}, shard: optimizer" : "",
      schedule, 2 * stages * one_of(random, {1, 2}), schedule == "2bw" ? 8 : one_of(random, {2, 3}),
      random.integer(0, 3) == 0 ? ", gradient_buckets: 20 MiB" : "");
}

bool is_same(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y));
}

/// The first place where two documents differ in more than rounding; empty: nowhere.
std::string difference(const Json& x, const Json& y, const std::string& place) {
  if (x.is_number() && y.is_number())
    return is_same(x.number(), y.number()) ? "" : fmt::format("{} {:.17g} {:.17g}", place, x.number(), y.number());
  if (x.is_object() && y.is_object() && x.members().size() == y.members().size()) {
    for (const JsonMember& member : x.members()) {
      const Json* other = y.find(member.key);
      if (!other) return place + "." + member.key;
      if (std::string text = difference(member.value, *other, place + "." + member.key); !text.empty()) return text;
    }
    return {};
  }
  if (x.is_array() && y.is_array() && x.items().size() == y.items().size()) {
    for (std::size_t i = 0; i < x.items().size(); ++i)
      if (std::string text = difference(x.items()[i], y.items()[i], fmt::format("{}[{}]", place, i)); !text.empty())
        return text;
    return {};
  }
  return x == y ? "" : fmt::format("{} {} {}", place, x.dump(), y.dump());
}

/// What differs between results.json of the run of all replicas and of one set of them; empty: nothing.
std::string difference_of_results(const CompiledExperiment& whole, const CompiledExperiment& one_set,
                                  const char* backend) {
  const Outcome a = run(whole, backend), b = run(one_set, backend);
  return difference(Json::parse(results_of(whole, a)).value(), Json::parse(results_of(one_set, b)).value(), "");
}

/// What differs between two runs of one experiment, of which one is folded; empty: nothing.
std::string difference(const CompiledExperiment& whole, const CompiledExperiment& folded, const char* backend) {
  const Outcome a = run(whole, backend), b = run(folded, backend);
  for (const Metric& m : metrics()) {
    const std::string_view name = m.name;
    // Without contention a sum may have the time of its ring in place of its messages.
    const bool is_of_links = name == "busiest_link_utilisation" || name == "traffic_bytes";
    if (is_of_links && std::string_view(backend) == "ideal") continue;
    const double x = m.value_of(view_of(whole, a)), y = m.value_of(view_of(folded, b));
    if (!is_same(x, y)) return fmt::format("{} {:.17g} {:.17g}", name, x, y);
  }
  return {};
}

/// Nothing where the scenario is refused.
std::optional<CompiledExperiment> compiled(const std::string& scenario) {
  test::write_file(kFile, scenario);
  try {
    return compile(load_experiment(kFile, {}));
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return {};
}

}  // namespace

TEST_CASE("a run of one set of equal replicas has the results of every device, link and rank") {
  Rng random(2, "folded runs");
  int ideal = 0, fluid = 0;
  for (int trial = 0; trial < test::trials(300); ++trial) {
    const std::string scenario = random_scenario(random);
    CAPTURE(scenario);
    const std::optional<CompiledExperiment> whole = compiled(scenario);
    if (!whole) continue;
    for (const char* backend : {"ideal", "fluid"}) {
      const CompiledExperiment one_set = compile_for_report(*whole, backend);
      if (one_set.program.counterparts.empty()) continue;
      ++(backend == std::string_view("ideal") ? ideal : fluid);
      CHECK(one_set.program.size() * one_set.program.copies == whole->program.size());
      CHECK_EQ(difference_of_results(*whole, one_set, backend), "");
    }
  }
  MESSAGE(ideal, " folded on ideal, ", fluid, " on fluid");
  CHECK(ideal > test::trials(300) / 5);
  CHECK(fluid > test::trials(300) / 20);
}

TEST_CASE("folded replicas have every metric of the run of all replicas") {
  Rng random(1, "folded replicas");
  int ideal = 0, fluid = 0, refused = 0;
  for (int trial = 0; trial < test::trials(300); ++trial) {
    const std::string scenario = random_scenario(random);
    CAPTURE(scenario);
    const std::optional<CompiledExperiment> whole = compiled(scenario);
    refused += !whole;
    if (!whole) continue;
    const PlannedExperiment& planned = *whole;
    const LinkCollectives idle(planned.experiment.cluster);
    if (const auto folded = fold_replicas(planned, &idle)) {
      ++ideal;
      CHECK_EQ(difference(*whole, compile(*folded), "ideal"), "");
    }
    if (const auto folded = fold_replicas(planned, nullptr)) {
      ++fluid;
      CHECK_EQ(difference(*whole, compile(*folded), "fluid"), "");
    }
  }
  MESSAGE(ideal, " folded on ideal, ", fluid, " on fluid, ", refused, " refused");
  CHECK(ideal > test::trials(300) / 5);
  CHECK(fluid > test::trials(300) / 20);
  CHECK(refused < test::trials(300) / 2);
}

TEST_CASE("an order that is searched for is the same for one set of replicas and for all") {
  test::write_file(kFile,
                   "schema: scenario/2\nmodel: gpt2-medium\ncluster: two-node-mixed\nsoftware: none\nplan: {planner: "
                   "balanced, stages: 8, replicas: 4, placement: v, micro_batch_size: 1}\nrun: {schedule: {name: "
                   "synthesised, placement: v, chunks: 2}, micro_batches: 4}\n");
  const PlannedExperiment planned = plan_experiment(load_experiment(kFile, {}));
  const LinkCollectives idle(planned.experiment.cluster);
  const CompiledExperiment whole = compile(planned), one = compile_folded(planned, &idle);
  REQUIRE(one.plan.copies == 4);
  for (const Stage& stage : whole.plan.stages)
    CHECK(whole.schedule.row(stage.leaders.back()) == one.schedule.row(stage.leaders.front()));
  CHECK_EQ(difference(whole, one, "ideal"), "");
}

TEST_CASE("what replicas do not have alike is not folded") {
  const auto scenario_on = [](const char* cluster) {
    return fmt::format(
        "schema: scenario/2\nmodel: {{builder: transformer, layers: 8, hidden: 512, heads: 8, sequence: 512, "
        "vocabulary: 8000}}\ncluster: {}\nsoftware: plain\nplan: {{planner: balanced, stages: 2, replicas: 2, "
        "micro_batch_size: 1}}\nrun: {{schedule: 1f1b, micro_batches: 4}}\n",
        cluster);
  };
  const auto sets_of = [](const std::vector<std::string>& sets, const char* backend) {
    const PlannedExperiment p = plan_experiment(load_experiment(kFile, sets));
    return compile_for_report(p, backend).program.copies;
  };
  // Stages 0 and 1 are on devices 0 1 and 2 3.
  const char* const star =
      "{generator: star, types: {a: {preset: h100-sxm}, b: {preset: a100-80}}, groups: [{name: d, type: a, count: 4, "
      "link: wire}], "
      "links: {wire: {bandwidth: 10 Gbit/s, latency: 5 us}}}";
  test::write_file(kFile, scenario_on(star));
  CHECK(sets_of({}, "ideal") == 2);
  CHECK(sets_of({}, "fluid") == 2);
  CHECK(sets_of({}, "simgrid") == 1);  // The reference.
  for (const char* set :
       {"plan.replicas=1", "run.collectives=flows", "run.detail=devices", "run.detail=replicas", "software=none",
        "cluster.jitter={most: 1 %}", "cluster.changes=[{devices: [d1], speed: 50 %}]",
        "cluster.changes=[{links: [d1.link], bandwidth: 50 %}]",
        "run={schedule: 1f1b, loads: [[[512], [256]], [[512], [512]]]}"}) {
    CAPTURE(set);
    CHECK(sets_of({set}, "ideal") == 1);
    CHECK(sets_of({set}, "fluid") == 1);
  }
  // Both replicas send over one radio channel: they meet where links are shared.
  test::write_file(
      kFile, scenario_on("{generator: explicit, types: {a: {preset: h100-sxm}}, devices: [{name: w, type: a}, {name: "
                         "x, type: a}, {name: y, type: a}, {name: z, type: a}], links: [{name: air, among: "
                         "[w, x, y, z], bandwidth: 10 Gbit/s, latency: 5 us, duplex: half}]}"));
  CHECK(sets_of({}, "ideal") == 2);
  CHECK(sets_of({}, "fluid") == 1);
  // A device of another type, and a slow link, on the second replica alone.
  test::write_file(
      kFile,
      scenario_on("{generator: star, types: {a: {preset: h100-sxm}, b: {preset: a100-80}}, groups: [{name: d, type: a, "
                  "count: 3, link: wire}, {name: e, type: b, count: 1, link: wire}], links: {wire: "
                  "{bandwidth: 10 Gbit/s, latency: 5 us}}}"));
  CHECK(sets_of({}, "ideal") == 1);
  test::write_file(
      kFile, scenario_on("{generator: star, types: {a: {preset: h100-sxm}}, groups: [{name: d, type: a, count: 3, "
                         "link: wire}, {name: e, type: a, count: 1, link: slow}], links: {wire: "
                         "{bandwidth: 10 Gbit/s, latency: 5 us}, slow: {bandwidth: 1 Gbit/s, latency: 5 "
                         "us}}}"));
  CHECK(sets_of({}, "ideal") == 1);
  CHECK(sets_of({}, "fluid") == 1);
  // Queues have windows, even of links without a latency, where they limit no rate.
  test::write_file(
      kFile,
      scenario_on("{generator: star, types: {a: {preset: h100-sxm}}, groups: [{name: d, type: a, count: 3, "
                  "link: wire}, {name: e, type: a, count: 1, link: other}], links: {wire: {bandwidth: 10 Gbit/s, "
                  "window: 64 KiB, queue: fifo}, other: {bandwidth: 10 Gbit/s, window: 64 KiB, queue: fifo}}}"));
  CHECK(sets_of({}, "fluid") == 2);
  CHECK(sets_of({"cluster.links.other.window=128 KiB"}, "fluid") == 1);
}

}  // namespace stagecraft::fold_replicas_test
