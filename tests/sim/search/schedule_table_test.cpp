// Schedules compared on one scenario, against closed forms of the papers.

#include "sim/search/schedule_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/output/drawings.hpp"
#include "sim/output/timeline_picture.hpp"
#include "sim/result/metrics.hpp"
#include "sim/schedule/builder.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::schedule_table_test {
namespace {

using Strings = std::vector<std::string>;
constexpr double kMebibyte = 1 << 20;

/// 16 layers on 4 devices with 8 micro-batches. F = I = W = 1 s, 1 MiB of activations and no parameters in a stage of
/// four layers; 1 KiB from layer to layer, which takes no time.
std::string scenario(const std::string& run = "{schedule: 1f1b, micro_batches: 8}", const std::string& more = "",
                     const std::string& memory = "1 GiB", int layers = 16) {
  const std::string file = test::own_file(
      "schedule_table_test.yaml",
      fmt::format("schema: scenario/2\n"
                  "software: none\n"
                  "title: by hand\n"
                  "model: {{builder: uniform, layers: {}, forward: 250 ms, input_gradient: 250 ms, "
                  "weight_gradient: 250 ms, stash: 256 KiB, output: 1 KiB}}\n"
                  "cluster: {{generator: uniform, devices: 8, type: any, link: {{bandwidth: 100000 TB/s}},\n"
                  "  types: {{any: {{peak: 1 TFLOP/s, memory: {}, memory_bandwidth: 1 TB/s}}}}}}\n"
                  "plan: {{planner: balanced, stages: 4}}\n"
                  "run: {}\n{}",
                  layers, memory, run, more));
  return file;
}

ScheduleTable compare(const std::string& file, const std::string& schedules, const Strings& sets = {}) {
  return compare_schedules(load_experiment(file, sets), {.schedules = schedules, .keep = true});
}

const ScheduleRow& row(const ScheduleTable& table, const std::string& name) {
  const auto at =
      std::find_if(table.rows.begin(), table.rows.end(), [&](const ScheduleRow& r) { return r.schedule == name; });
  REQUIRE(at != table.rows.end());
  return *at;
}

Strings names(const ScheduleTable& table) {
  Strings result;
  for (const ScheduleRow& r : table.rows) result.push_back(r.schedule);
  return result;
}

ScheduleRow row_of(const std::string& name, double period, double memory, int staleness = 0) {
  ScheduleRow r;
  r.schedule = name;
  r.makespan = Seconds{period + 1};
  r.period = Seconds{period};
  r.memory = Bytes{memory};
  r.staleness = staleness;
  return r;
}

ScheduleRow refused(const std::string& name) {
  ScheduleRow r;
  r.schedule = name;
  r.why_not = "no";
  return r;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("makespan, period, memory and messages of schedules follow the formulas of the papers") {
  struct Expected {
    const char* name;
    int stages;
    double makespan, period;  ///< Seconds; 0: no formula.
    double memory;            ///< MiB.
    int activations;
    double traffic;  ///< KiB.
  };
  // p = 4, m = 8. With a flush (m + p - 1)(F + I + W) (GPipe, 1F1B); m(F + I + W) + (p - 1)(F + I - W) (ZB-H1), of
  // chunks m(F + I + W) + (p - 1)(F + I + W) / v (interleaved); none of the bubble is left between iterations of ZB-H2,
  // ZB-V and 2BW. Activations: m, p, p, 2p - 1, 2p of half the size, p, p(1 + (p - 1) / (p v)) v. Messages: two for
  // each micro-batch and each pair of neighbors on different devices.
  const Expected kExpected[] = {
      {"gpipe", 4, 33, 33, 8, 8, 48}, {"1f1b", 4, 33, 33, 4, 4, 48}, {"zb-h1", 4, 27, 27, 4, 4, 48},
      {"zb-h2", 4, 0, 24, 7, 7, 48},  {"zb-v", 8, 0, 24, 4, 8, 96},  {"interleaved", 8, 28.5, 28.5, 5.5, 11, 112},
      {"2bw", 4, 33, 24, 4, 4, 48},
  };
  const ScheduleTable table = compare(scenario(), "gpipe,1f1b,zb-h1,zb-h2,zb-v,interleaved,2bw");
  CHECK(table.devices == 4);
  CHECK(table.iterations == 5);
  for (const Expected& e : kExpected) {
    CAPTURE(e.name);
    const ScheduleRow& r = row(table, e.name);
    CHECK_MESSAGE(r.ran(), r.why_not);
    CHECK(r.stages == e.stages);
    if (e.makespan > 0) CHECK(r.makespan.value == doctest::Approx(e.makespan).epsilon(1e-9));
    CHECK(r.period.value == doctest::Approx(e.period).epsilon(1e-9));
    CHECK(r.steady_bubble == doctest::Approx(1 - 24 / e.period).epsilon(1e-9));
    CHECK((r.memory.value - row(table, "gpipe").memory.value) / kMebibyte ==
          doctest::Approx(e.memory - 8).epsilon(0.01));
    CHECK(r.activations == e.activations);
    CHECK(r.traffic.value == e.traffic * 1024);
    CHECK(r.staleness == (r.schedule == "2bw" ? 1 : 0));
    std::set<DeviceId> used;
    for (const Instruction& i : r.drawing->program.instructions) used.insert(i.device);
    CHECK(used.size() == 4);
  }
}

TEST_CASE("the numbers of a row are the metrics of the run that have their names") {
  // Messages cross several links, and the table simulates other numbers of iterations than the scenario.
  const Strings sets{"run.schedule=zb-h1"};
  const ScheduleTable table = compare("examples/quickstart", "zb-h1", sets);
  const nlohmann::json json = nlohmann::json::parse(schedules_json(table))["schedules"][0];
  std::size_t compared = 0;
  for (const int iterations : {table.iterations, 2 * table.iterations}) {
    Strings longer = sets;
    longer.push_back(fmt::format("run.iterations={}", iterations));
    const CompiledExperiment c = compile(load_experiment("examples/quickstart", longer));
    const Outcome outcome = run(c, "ideal");
    const bool is_same = iterations == table.iterations;
    for (const Metric& m : metrics()) {
      if (!json.contains(m.name) || (!is_same && std::string_view(m.name) != "traffic_bytes")) continue;
      CAPTURE(m.name);
      CHECK(json[m.name].get<double>() == doctest::Approx(m.value_of(view_of(c, outcome))).epsilon(1e-12));
      ++compared;
    }
  }
  CHECK(compared == 9);  // Eight columns, and the traffic again.
}

TEST_CASE("a note names the rows whose schedules do not go with the weights of the scenario") {
  const auto notes = [](const Strings& sets) {
    std::string text;
    for (const std::string& note : compare(scenario(), "1f1b,gpipe,2bw,pipedream", sets).notes) text += note + "\n";
    return text;
  };
  CHECK(notes({"weights=auto"}).find("weights policy") == std::string::npos);
  const std::string flushed = notes({"weights=flush"});
  CHECK(flushed.find("the weights policy 'flush' of the scenario does not go with 2bw: compared with '2bw'\n") !=
        std::string::npos);
  CHECK(flushed.find("does not go with pipedream: compared with 'stash'\n") != std::string::npos);
  CHECK(flushed.find("gpipe") == std::string::npos);
  const std::string predicted = notes({"run.schedule=2bw", "weights=spectrain"});
  CHECK(predicted.find("'spectrain' of the scenario does not go with 1f1b, gpipe: compared with 'flush'\n") !=
        std::string::npos);
}

TEST_CASE("every schedule of the catalog is a row, also one that cannot run") {
  const ScheduleTable table = compare(scenario(), "all");
  std::size_t train = 0, ran = 0;
  for (const ScheduleDef* def : schedules::catalog()) train += def->trains && def->name != "csv";
  CHECK(table.rows.size() == train + 3);  // The search also tries the loop, V and bidirectional placements.
  for (const ScheduleRow& r : table.rows) {
    CHECK(r.why_not.find('\n') == std::string::npos);
    ran += r.ran();
    if (r.ran()) CHECK(r.drawing->program.devices <= 4);
  }
  CHECK(ran >= 24);
  // 8 micro-batches of 3 s; the bubbles of tests/sim/result/families_test.cpp.
  CHECK(row(table, "chimera").stages == 4);
  CHECK(row(table, "dualpipe").makespan.value == doctest::Approx(24 + 2).epsilon(1e-9));
  CHECK(row(table, "gems").activations == 2);
}

TEST_CASE("a bidirectional scenario has the stages of its model, and other schedules the same devices") {
  const ScheduleTable table =
      compare(scenario("{schedule: chimera, micro_batches: 8}"), "1f1b,chimera,zb-v,interleaved");
  CHECK(row(table, "1f1b").stages == 4);
  CHECK(row(table, "chimera").stages == 4);
  CHECK(row(table, "zb-v").stages == 8);
  CHECK(row(table, "interleaved").stages == 8);
}

TEST_CASE("a schedule that does not fit, or has too few layers, has its reason in one line") {
  const std::string file = scenario("{schedule: 1f1b, micro_batches: 8}", "", "6 MiB", 6);
  ScheduleTable table = compare(file, "zb-v,gpipe,1f1b", {"model.stash=1 MiB"});
  // Two layers in the largest of four stages: gpipe keeps 8 times 2 MiB, 1f1b at most 4 times 2.
  CHECK(row(table, "zb-v").why_not == "8 stages need 8 layers, but the model has 6");
  CHECK(row(table, "gpipe").why_not.find("gpu") == 0);
  CHECK(row(table, "gpipe").why_not.find(", but has 6 MiB (") != std::string::npos);
  CHECK(row(table, "gpipe").why_not.ends_with(" too much)"));
  table = compare(file, "zb-v,gpipe,1f1b", {"model.stash=1 MiB", "cluster.types.any.memory=9 MiB"});
  CHECK(row(table, "1f1b").ran());
  sort_rows(table, SortKey::Period);
  CHECK(names(table) == Strings{"1f1b", "gpipe", "zb-v"});
}

TEST_CASE("the scenario's own schedule may not fit either") {
  const std::string file = scenario("{schedule: gpipe, micro_batches: 8}", "", "6 MiB");
  const ScheduleTable table = compare(file, "gpipe,1f1b");
  CHECK_FALSE(row(table, "gpipe").ran());
  CHECK(row(table, "1f1b").ran());
}

TEST_CASE("the scenario's schedule keeps its options, and others use the same devices") {
  const std::string file = scenario("{schedule: {name: interleaved, chunks: 4}, micro_batches: 8}");
  const ScheduleTable table = compare(file, "interleaved,looped-bfs,hanayo,zb-v,1f1b", {"plan.stages=16"});
  CHECK(table.devices == 4);
  CHECK(row(table, "interleaved").stages == 16);
  CHECK(row(table, "looped-bfs").stages == 16);
  CHECK(row(table, "hanayo").stages == 16);
  CHECK(row(table, "zb-v").stages == 8);
  CHECK(row(table, "1f1b").stages == 4);
  CHECK(row(table, "1f1b").makespan.value == doctest::Approx(33).epsilon(1e-9));
  // One chunk would make gpipe of it, and there would be devices enough.
  CHECK(row(compare(scenario(), "looped-bfs"), "looped-bfs").stages == 8);
}

TEST_CASE("explicit stages stay as they are") {
  const ScheduleTable table =
      compare(scenario(), "1f1b,zb-h1,zb-v",
              {"plan={planner: explicit, stages: {a: {layers: [l0..l7], device: gpu5}, b: {layers: [l8..l15], device: "
               "gpu1}}}"});
  CHECK(row(table, "zb-h1").stages == 2);
  CHECK(row(table, "1f1b").makespan.value == doctest::Approx((8 + 1) * 6).epsilon(1e-9));
  CHECK(row(table, "zb-v").why_not.find("has 2 stages on each device, but the plan has 2 stages on 2") !=
        std::string::npos);
}

TEST_CASE("streams: 1F1B blocks if an activation and a gradient have to wait for each other") {
  // Rank 0 sends F1 before it receives B0; rank 1 sends B0 before it receives F1. Each waits for the other unless
  // activations and gradients have separate streams. All forwards before all backwards never cross.
  const ScheduleTable table = compare(scenario(), "gpipe,1f1b,looped-bfs,2bw");
  CHECK(row(table, "1f1b").safe == Strings{"direction"});
  CHECK(row(table, "2bw").safe == Strings{"direction"});
  CHECK(row(table, "gpipe").safe == Strings{"single", "pair", "direction"});
  CHECK(row(table, "looped-bfs").safe != row(table, "gpipe").safe);
  const ScheduleTable replicas = compare(scenario(), "gpipe,1f1b", {"plan.replicas=2", "plan.micro_batch_size=2"});
  CHECK(replicas.devices == 8);
  CHECK(row(replicas, "1f1b").safe == row(table, "1f1b").safe);
  CHECK(row(replicas, "gpipe").safe == row(table, "gpipe").safe);
  // One micro-batch at a time never crosses.
  CHECK(row(compare(scenario("{schedule: 1f1b, micro_batches: 1}"), "1f1b"), "1f1b").safe->size() == 3);
}

TEST_CASE("the staleness of weights is the depth of the pipeline less one, seen after enough iterations") {
  const ScheduleTable table = compare(scenario("{schedule: pipedream, micro_batches: 1}"), "pipedream,1f1b");
  CHECK(table.iterations == 8);
  CHECK(row(table, "pipedream").staleness == 3);
  CHECK(row(table, "1f1b").staleness == 0);
  const ScheduleTable deep =
      compare(scenario("{schedule: pipedream, micro_batches: 1}"), "pipedream", {"plan.stages=8"});
  CHECK(row(deep, "pipedream").staleness == 7);
}

TEST_CASE("a named policy is used where it goes with the schedule, else the schedule's own policy") {
  const auto with = [](const std::string& weights) {
    return compare(scenario("{schedule: 1f1b, micro_batches: 8}", weights), "1f1b,2bw,pipedream",
                   {"model.parameters=1000000"});
  };
  const ScheduleTable named = with("weights: flush\n"), unnamed = with("");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_MESSAGE(named.rows[i].ran(), named.rows[i].why_not);
    CHECK(named.rows[i].memory == unnamed.rows[i].memory);
    CHECK(named.rows[i].staleness == unnamed.rows[i].staleness);
  }
  const std::string predicted = scenario("{schedule: pipedream, micro_batches: 1}", "weights: spectrain\n");
  const ScheduleTable other = compare(predicted, "1f1b,pipedream");
  CHECK(row(other, "1f1b").ran());
  const auto predicts = [&](const char* name) {
    const auto& list = row(other, name).drawing->program.instructions;
    return std::any_of(list.begin(), list.end(),
                       [](const Instruction& i) { return i.kind == InstructionKind::Predict; });
  };
  CHECK(predicts("pipedream"));
  CHECK_FALSE(predicts("1f1b"));
}

TEST_CASE("order, front and answers treat times that differ in the last digits as equal") {
  ScheduleTable table;
  table.rows = {row_of("slow", 9, 5),     row_of("b", 3, 7),     row_of("a", 3 * (1 + 1e-15), 7),
                row_of("stale", 2, 9, 2), row_of("small", 8, 1), row_of("full", 3, 8),
                row_of("late", 9, 1)};
  table.rows.insert(table.rows.begin(), refused("z"));
  table.rows.insert(table.rows.begin(), refused("y"));
  sort_rows(table, SortKey::Period);
  CHECK(names(table) == Strings{"stale", "a", "b", "full", "small", "late", "slow", "y", "z"});
  CHECK(pareto_front(table) == std::vector<bool>{true, true, true, false, true, false, false, false, false});
  CHECK(best_of(table).synchronous->schedule == "a");
  CHECK(best_of(table).fastest->schedule == "stale");
  CHECK(best_of(table).smallest->schedule == "small");
  sort_rows(table, SortKey::Memory);
  CHECK(names(table) == Strings{"small", "late", "slow", "a", "b", "full", "stale", "y", "z"});
  table.rows[2].traffic = Bytes{1};
  sort_rows(table, SortKey::Traffic);
  CHECK(names(table) == Strings{"stale", "a", "b", "full", "small", "late", "slow", "y", "z"});
  table.rows[0].makespan = Seconds{100};
  sort_rows(table, SortKey::Time);
  CHECK(names(table) == Strings{"a", "b", "full", "small", "late", "slow", "stale", "y", "z"});
  CHECK_THROWS_AS(parse_sort_key("speed"), InputError);

  ScheduleTable none;
  none.rows = {refused("z")};
  CHECK(best_of(none).fastest == nullptr);
  CHECK(to_text(none).find("Nothing ran.") != std::string::npos);
}

TEST_CASE("strips have one time scale, for any shortest op") {
  const ScheduleTable table = compare(scenario(), "1f1b,zb-h1,zb-v");
  // Alone ZB-V, whose ops take half as long, would be drawn with more columns a second.
  const std::string text = gantt_strips(strips_of(table), table.cluster, 100);
  Strings rows;
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with("  gpu0 |")) rows.push_back(line.substr(8, line.size() - 9));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].size() == 99);
  CHECK(rows[1].size() == 81);
  CHECK(rows[2].size() == doctest::Approx(3 * row(table, "zb-v").makespan.value).epsilon(0.01));
  CHECK(text.find("zb-h1: period 27 s, memory ") != std::string::npos);

  const Picture picture = strips_picture(strips_of(table), table.cluster, table.title, kScreenPicture);
  const std::string svg = to_svg(picture);
  for (const char* once : {">forward<", ">backward<", ">weight gradient<", ">1f1b: ", ">zb-h1: ", ">zb-v: ", "<svg"})
    CHECK(count(svg, once) == 1);
  // The gray rows are as long as the iterations: four rows of 33 s, the longest, and four of 27 s.
  std::vector<double> widths;
  for (const PictureItem& item : picture.items)
    if (const Box* box = std::get_if<Box>(&item); box && box->fill == "#eef1f4") widths.push_back(box->width);
  const double longest = *std::max_element(widths.begin(), widths.end());
  const auto are = [&](double width) {
    return std::count_if(widths.begin(), widths.end(), [&](double w) { return std::abs(w - width) < 1e-9 * longest; });
  };
  CHECK(are(longest) == 4);
  CHECK(are(longest * 27 / 33) == 4);
}

TEST_CASE("csv and json carry every number and every reason") {
  ScheduleTable table = compare(scenario("{schedule: 1f1b, micro_batches: 8}", "", "6 MiB"), "1f1b,gpipe");
  table.rows[1].why_not = "a \"quoted\" reason";
  const auto json = nlohmann::json::parse(schedules_json(table));
  CHECK(json.at("schema") == "schedules/1");
  CHECK(json.at("fastest") == "1f1b");
  CHECK(json.at("schedules").at(0).at("period_s").get<double>() == table.rows[0].period.value);
  CHECK(json.at("schedules").at(0).at("peak_memory_bytes").get<double>() == table.rows[0].memory.value);
  CHECK(json.at("schedules").at(0).at("safe_streams") == nlohmann::json::array({"direction"}));
  CHECK(json.at("schedules").at(1) ==
        nlohmann::json{{"name", "gpipe"}, {"ran", false}, {"reason", "a \"quoted\" reason"}});
  const Strings lines = split(schedules_csv(table), '\n');
  REQUIRE(lines.size() == 4);
  for (int i = 0; i < 2; ++i) CHECK(std::count(lines[i].begin(), lines[i].end(), ',') == 15);
  CHECK(lines[2] == "gpipe,,,,,,,,,,,,,,,\"a \"\"quoted\"\" reason\"");
}

TEST_CASE("A comparison that is stopped has the rows that were complete, and names the others") {
  const auto stopped_after = [](int looks) {
    const StopScope scope([&] { return --looks < 0; });
    return compare(scenario(), "gpipe,1f1b,zb-h1");
  };
  CHECK_THROWS_AS(stopped_after(0), Stopped);
  CHECK(stopped_after(1 << 30).not_compared.empty());
  int looks = 0;  // Each row looks several times, so some number of looks ends between the first row and the last.
  Strings rest;
  for (; rest.empty(); ++looks) try {
      const ScheduleTable table = stopped_after(looks);
      rest = table.not_compared;
      CHECK(table.rows.size() + rest.size() == 3);
      CHECK(table.rows.front().ran());
      CHECK(to_text(table).find("not compared: " + join(rest)) != std::string::npos);
      CHECK(schedules_json(table).find("\"not_compared\"") != std::string::npos);
    } catch (const Stopped&) {
    }
  CHECK(rest.back() == "zb-h1");
}

TEST_CASE("impossible comparisons are refused") {
  const auto says = [](const std::string& schedules, const Strings& sets, const char* words) {
    const std::string text = test::input_error_of([&] { compare(scenario(), schedules, sets); });
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  says("1f1b,zb-w", {}, "'zb-w' is not a known schedule [did you mean 'zb-v'?]");
  says("", {}, "'' is not a known schedule");
  says("inference", {}, "'inference' does not train");
  says("csv", {}, "the scenario names none");
  says("all", {"plan.stages=0"}, "plan.stages");
  CHECK_THROWS_AS(compare(scenario(), "all", {"plan.stages=9"}), Infeasible);  // The scenario itself has no place.
  CHECK(test::input_error_of([&] {
          compare_schedules(load_experiment(scenario(), {}), {.backend = "cpu"});
        }).find("'cpu' measures times") != std::string::npos);
}

}  // namespace stagecraft::schedule_table_test
