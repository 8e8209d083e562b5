// A sweep over schedules keeps the devices: the number of stages follows the schedule, as in `compare`.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/result/metrics.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/search/schedule_table.hpp"
#include "sim/sweep/points.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/table.hpp"
#include "tests/sim/sweep/files.hpp"

namespace stagecraft::following_stages_test {
namespace {

using Strings = std::vector<std::string>;

Sweep sweep_of(const test::Folder& folder, const std::string& rest, const Strings& sets = {}) {
  return load_sweep(test::write_sweep(folder, rest), sets);
}

/// "zb-v 8" for each point: its schedule, and the stages that it sets.
Strings stages_of(const std::string& rest, const Strings& sets = {}) {
  const test::Folder folder;
  std::vector<Diagnostic> warnings;
  Strings list;
  for (const Point& p : points_of(sweep_of(folder, rest, sets), warnings)) {
    std::string text;
    for (const config::Member& m : p.settings)
      if (m.key == "run.schedule" || m.key == "plan.stages")
        text += (text.empty() ? "" : " ") + (m.value.is_map() ? m.value.at("name").text : m.value.text);
    list.push_back(text);
  }
  return list;
}

}  // namespace

TEST_CASE("every schedule of a sweep has the stages that `compare` gives it, on the devices of the scenario") {
  const test::Folder folder;
  std::vector<Diagnostic> warnings;
  Strings names;
  for (const ScheduleDef* def : schedules::catalog())
    if (def->trains && def->name != "csv" && def->name != "synthesised") names.emplace_back(def->name);
  const Sweep sweep = sweep_of(folder, "axes: {run.schedule: [" + join(names) + "]}\n");
  const ScheduleTable compared =
      compare_schedules(load_experiment("scenarios/examples/quickstart.yaml", {}), {.schedules = join(names, ",")});
  int ran = 0, wider = 0;
  for (const Point& point : points_of(sweep, warnings)) {
    const std::string name = point.settings.front().value.text;
    CAPTURE(name);
    const auto row = std::find_if(compared.rows.begin(), compared.rows.end(),
                                  [&](const ScheduleRow& r) { return r.schedule == name; });
    REQUIRE(row != compared.rows.end());
    const ResolvedPoint resolved = resolve_point(sweep, point);
    if (!resolved.scenario || !row->why_not.empty()) continue;
    const PlannedExperiment planned = plan_experiment(read_experiment(*resolved.scenario));
    CHECK(planned.plan.different_stages() == row->stages);
    std::set<DeviceId> devices;
    for (const Stage& stage : planned.plan.stages)
      devices.insert(stage.all_devices().begin(), stage.all_devices().end());
    CHECK(devices.size() == 4);
    ++ran, wider += row->stages > 4;
  }
  CHECK(ran > 20);
  CHECK(wider > 8);
}

TEST_CASE("stages that a sweep sets itself do not follow, and options of a schedule count") {
  CHECK(stages_of("axes: {run.schedule: [1f1b, zb-v, {name: interleaved, chunks: 3}]}\n") ==
        Strings{"1f1b", "zb-v 8", "interleaved 12"});
  CHECK(stages_of("axes: {run.schedule: [1f1b, zb-v], plan.stages: [4]}\n") == Strings{"1f1b 4", "zb-v 4"});
  CHECK(stages_of("also: [{run.schedule: zb-v, plan: {planner: balanced, stages: 4, micro_batch_size: 2}}]\n") ==
        Strings{"zb-v"});
  CHECK(stages_of("axes: {run.schedule: [1f1b, zb-v]}\n", {"plan.stages=2"}) == Strings{"1f1b 2", "zb-v 4"});
  CHECK(stages_of("axes: {run.micro_batches: [4, 8]}\n", {"run.schedule=zb-v"}) == Strings{"zb-v", "zb-v"});
  CHECK(stages_of("axes: {run.schedule: [1f1b, zb-v]}\n", {"plan.placement=linear"}) == Strings{"1f1b", "zb-v"});
}

TEST_CASE("a schedule with fewer stages on a device takes the scenario's stages back") {
  const test::Folder folder;
  test::write_file(
      folder / "base.yaml",
      "schema: scenario/2\nmodel: gpt2-medium\ncluster: two-node-mixed\nplan: {planner: balanced, stages: 16, "
      "replicas: 2, micro_batch_size: 1}\nrun: {schedule: interleaved, micro_batches: 16}\nsoftware: none\n");
  test::write_file(
      folder / "s.yaml",
      "schema: sweep/1\nbase: base.yaml\nbackend: ideal\naxes: {run.schedule: [interleaved, 1f1b, zb-v]}\n");
  std::vector<Diagnostic> warnings;
  Strings labels;
  for (const Point& p : points_of(load_sweep(folder / "s.yaml"), warnings)) labels.push_back(p.label);
  CHECK(labels == Strings{"schedule=interleaved", "schedule=1f1b,stages=8", "schedule=zb-v"});
}

TEST_CASE("rows on another number of devices than most are marked in a table") {
  SweepTable table;
  for (const double devices : {4.0, 4.0, 2.0}) {
    SweepRow& row = table.rows.emplace_back();
    row.number = static_cast<int>(table.rows.size());
    row.settings = fmt::format(R"({{"run.seed": {}}})", row.number);
    row.status = "ok";
    row.figures.assign(metrics().size(), 1);
    row.figures[metric("devices")] = devices;
  }
  const std::string text = to_text(table, TextLayout{.width = 1000});
  CHECK(text.find(", on 2 devices, not 4") != std::string::npos);
  table.rows.pop_back();
  CHECK(to_text(table, TextLayout{.width = 1000}).find(", on ") == std::string::npos);
}

TEST_CASE("a run whose schedule leaves listed devices idle says which option uses all") {
  const std::string file = "scenarios/examples/quickstart.yaml";
  const Strings zb_v{"run.schedule=zb-v", "model.tied=false"};
  CHECK(remarks(load_experiment(file, zb_v)) ==
        Strings{"2 of 4 devices have nothing to do: zb-v puts 2 stages on a device; --set plan.stages=8 uses all"});
  Strings wide = zb_v;
  wide.emplace_back("plan.stages=8");
  CHECK(remarks(load_experiment(file, wide)).empty());
  CHECK(remarks(load_experiment(file, {"plan.stages=2", "model.tied=false"})).empty());  // A choice of the user.
}

}  // namespace stagecraft::following_stages_test
