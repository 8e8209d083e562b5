// Choices made without contention are replayed with it: by hand, and compared with separate runs.

#include "sim/search/replay.hpp"

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/search/choices.hpp"
#include "sim/search/plan_table.hpp"
#include "sim/search/schedule_table.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::replay_test {
namespace {

using Strings = std::vector<std::string>;

/// Two parallel pipelines, from the two devices of one switch to the two of another: both use the uplink at the same
/// times. A layer takes 0.5 s forward and 0.5 s backward, its output c = 0.2 s alone on the uplink, 0.4 s with another.
std::string two_pipelines(const std::string& uplink = "5 GB/s", const std::string& memory = "1 TiB") {
  const std::string file = test::own_file("replay_test.yaml");
  std::string cards;
  for (const char* name : {"a0", "a1", "b0", "b1"})
    cards += fmt::format("{{name: {}-card, between: [{}, {}], bandwidth: 1000000 TB/s}}, ", name, name, name[0]);
  test::write_file(file,
                   fmt::format("schema: scenario/2\n"
                               "software: none\n"
                               "title: by hand\n"
                               "model: {{builder: uniform, layers: 4, forward: 500 ms, input_gradient: 250 ms, "
                               "weight_gradient: 250 ms, stash: 1 KiB, output: 1 GB}}\n"
                               "cluster:\n"
                               "  generator: explicit\n"
                               "  types: {{any: {{peak: 1 TFLOP/s, memory: {}, memory_bandwidth: 1 TB/s}}}}\n"
                               "  devices: [{{name: a0, type: any}}, {{name: a1, type: any}}, {{name: b0, type: any}}, "
                               "{{name: b1, type: any}}]\n"
                               "  switches: [a, b]\n"
                               "  links: [{}{{name: uplink, between: [a, b], bandwidth: {}}}]\n"
                               "plan: {{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 1, "
                               "devices: [a0, a1, b0, b1]}}\n"
                               "run: {{schedule: 1f1b, micro_batches: 2}}\n",
                               memory, cards, uplink));
  return file;
}

ScheduleTable schedule_table(const std::string& file, const std::string& names, int replay,
                             SortKey by = SortKey::Period, const std::string& backend = "ideal") {
  ScheduleTable table = compare_schedules(load_experiment(file, {}),
                                          {.schedules = names, .backend = backend, .replay = replay, .by = by});
  sort_rows(table, by);
  return table;
}

Strings names(const ScheduleTable& table) {
  Strings result;
  for (const ScheduleRow& r : table.rows) result.push_back(r.schedule);
  return result;
}

/// Period on fluid of the scenario with these settings.
Seconds period_on_fluid(const std::string& file, Strings sets) {
  sets.emplace_back("run.iterations=5");
  const Experiment scenario = load_experiment(file, sets);
  return run(compile(scenario), "fluid").report.period;
}

Choice choice(const std::string& name, double period, double memory, int devices) {
  Choice c;
  c.sets = {name};
  c.id = name.front();
  c.period = {period}, c.memory = {memory}, c.devices = devices;
  return c;
}

}  // namespace

// With messages of c seconds, stages of 1 s there and 1 s back, and two micro-batches, 1F1B takes 6 + 2 c: nothing
// waits but the last backward, for a message there and one back. Two half stages on a device make a bubble that is 1 s
// smaller and a chain of six messages: 5 + 6 c. Both hold for c up to 0.5. Alone c is 0.2; the two pipelines do the
// same at the same time, so with sharing it is 0.4.
TEST_CASE("two pipelines on one uplink: interleaved is shorter on ideal, 1f1b on fluid") {
  const std::string file = two_pipelines();
  const ScheduleTable before = schedule_table(file, "1f1b,interleaved", 0);
  CHECK(names(before) == Strings{"interleaved", "1f1b"});
  CHECK(before.rows[0].period.value == doctest::Approx(5 + 6 * 0.2).epsilon(1e-9));
  CHECK(before.rows[1].period.value == doctest::Approx(6 + 2 * 0.2).epsilon(1e-9));
  CHECK_FALSE(before.rows[0].replayed);
  CHECK(to_text(before).find("fluid") == std::string::npos);

  const ScheduleTable after = schedule_table(file, "1f1b,interleaved", kAllRows);
  CHECK(names(after) == Strings{"1f1b", "interleaved"});
  CHECK(after.rows[0].period == before.rows[1].period);
  CHECK(after.rows[0].replayed->period.value == doctest::Approx(6 + 2 * 0.4).epsilon(1e-9));
  CHECK(after.rows[0].replayed->makespan.value == doctest::Approx(6 + 2 * 0.4).epsilon(1e-9));
  CHECK(after.rows[1].replayed->period.value == doctest::Approx(5 + 6 * 0.4).epsilon(1e-9));
  CHECK(after.replay.changed);
  CHECK(after.replay.was_first == 1);
  const std::string text = to_text(after);
  CHECK(text.find("as on fluid; on ideal the first was interleaved: 6.2 s there, 7.4 s on fluid") != std::string::npos);
  CHECK(text.find("1f1b, a period of 6.8 s on fluid") != std::string::npos);
}

TEST_CASE("a wide uplink leaves the order and the times as they were") {
  const ScheduleTable table = schedule_table(two_pipelines("1000000 TB/s"), "1f1b,interleaved,gpipe", kAllRows);
  for (const ScheduleRow& r : table.rows) CHECK(r.replayed->period.value == doctest::Approx(r.period.value));
  CHECK_FALSE(table.replay.changed);
  CHECK(to_text(table).find("order  ") == std::string::npos);
}

TEST_CASE("only the first rows are replayed, and a row that may be shorter is named") {
  const ScheduleTable table = schedule_table(two_pipelines(), "gpipe,1f1b,interleaved", 1);
  CHECK(names(table).front() == "interleaved");
  CHECK(table.replay.rows == 1);
  CHECK(table.rows[0].replayed);
  CHECK_FALSE(table.rows[1].replayed);
  CHECK_FALSE(table.rows[2].replayed);
  CHECK(to_text(table).find("another may be shorter, it takes 6.4 s on ideal") != std::string::npos);
}

TEST_CASE("another sort key keeps its order, and the answer uses the replayed times") {
  const ScheduleTable table = schedule_table(two_pipelines(), "1f1b,interleaved", kAllRows, SortKey::Memory);
  CHECK(table.rows[0].memory <= table.rows[1].memory);
  CHECK_FALSE(table.replay.changed);
  CHECK(best_of(table).fastest->schedule == "1f1b");
  CHECK(schedule_table(two_pipelines(), "1f1b,interleaved", kAllRows, SortKey::Time).rows[0].schedule == "1f1b");
}

TEST_CASE("replayed times equal the times of a table that is made on fluid") {
  const std::string file = two_pipelines();
  const std::string listed = "1f1b,gpipe,interleaved,zb-h1,zb-v,eager-1f1b";
  const ScheduleTable again = schedule_table(file, listed, kAllRows),
                      fluid = schedule_table(file, listed, 0, SortKey::Period, "fluid");
  CHECK(names(again) == names(fluid));
  for (std::size_t i = 0; i < fluid.rows.size(); ++i) CHECK(again.rows[i].replayed->period == fluid.rows[i].period);
}

TEST_CASE("planners: replayed times equal the times of a table that is made on fluid") {
  const std::string file = two_pipelines();
  const auto table = [&](int replay, const std::string& backend) {
    return compare_plans(load_experiment(file, {}), {.planners = "all", .backend = backend, .replay = replay});
  };
  const PlanTable again = table(kAllRows, "ideal"), fluid = table(0, "fluid"), one = table(1, "ideal");
  REQUIRE(again.rows.size() == fluid.rows.size());
  int ran = 0;
  for (std::size_t i = 0; i < fluid.rows.size() && fluid.rows[i].ran(); ++i, ++ran) {
    CHECK(again.rows[i].planner == fluid.rows[i].planner);
    CHECK(again.rows[i].replayed->period == fluid.rows[i].period);
  }
  CHECK(ran >= 3);
  CHECK(again.replay.rows == ran);
  CHECK(one.replay.rows == 1);
  CHECK(one.rows[0].replayed);
  CHECK_FALSE(one.rows[1].replayed);
}

TEST_CASE("search: rows are ranked by their runs with contention") {
  const std::string file = two_pipelines();
  const auto search = [&](bool contended) {
    return search_choices(load_experiment(file, {}),
                          {.schedules = {"1f1b", "interleaved", "zb-v"}, .contended = contended},
                          [](const SearchProgress&) {});
  };
  const ChoiceTable none = search(false), complete = search(true);
  for (const Choice& c : none.front) CHECK_FALSE(c.replayed);
  CHECK_FALSE(none.own_replayed);
  CHECK(complete.configured_period.value == doctest::Approx(6 + 2 * 0.2));
  CHECK(complete.own_replayed->period.value == doctest::Approx(6 + 2 * 0.4));
  CHECK(complete.front.size() >= 2);
  Seconds previous = complete.front.front().replayed->period;
  for (const Choice& c : complete.front) {
    REQUIRE(c.replayed);
    CHECK(c.replayed->period == period_on_fluid(file, c.sets));
    CHECK_FALSE(shorter(c.replayed->period, previous));
    previous = c.replayed->period;
  }
  CHECK_FALSE(complete.replay.other);
  CHECK(choices_json(complete) == choices_json(search(true)));
}

TEST_CASE("a choice that another covers on ideal is kept if it is better on fluid") {
  Choice a = choice("a", 10, 100, 4), c = choice("c", 11, 100, 4);
  CHECK(covers(a, c));
  CHECK(covers_when_known(a, c));  // Without contention c takes at least 11 s.
  a.replayed = ContendedResult{{}, {16}};
  CHECK_FALSE(covers_when_known(a, c));
  c.replayed = ContendedResult{{}, {12}};
  CHECK(covers_when_known(c, a));
}

TEST_CASE("the shortest times so far include the shortest of all") {
  const std::vector<double> times = {5, 3, 8, 3, 1, 9, 2, 5, 1};
  for (int limit = 0; limit <= 10; ++limit) {
    Shortest shortest(limit);
    std::vector<double> taken, sorted = times;
    for (const double t : times)
      if (shortest.takes({t})) taken.push_back(t);
    std::sort(sorted.begin(), sorted.end());
    sorted.resize(std::min<std::size_t>(sorted.size(), static_cast<std::size_t>(limit)));
    std::sort(taken.begin(), taken.end());
    CHECK(std::includes(taken.begin(), taken.end(), sorted.begin(), sorted.end()));
    if (limit == 0) CHECK(taken.empty());
  }
}

}  // namespace stagecraft::replay_test
