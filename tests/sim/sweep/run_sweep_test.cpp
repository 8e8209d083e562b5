// Whole sweeps: every row equals the run of its scenario, and no scenario runs twice.

#include <doctest/doctest.h>

#include <set>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/core/sha256.hpp"
#include "sim/experiment/run.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/database.hpp"
#include "sim/sweep/run_sweep.hpp"
#include "sim/sweep/store.hpp"
#include "tests/sim/sweep/files.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::run_sweep_test {
namespace {

const std::string kAxes = "axes:\n  run.schedule: [gpipe, 1f1b]\n  run.micro_batches: [2, 4]\n";

SweepEnd run(const test::Folder& folder, const std::string& rest, SweepOptions options = {}) {
  options.file = test::write_sweep(folder, rest);
  if (options.out.empty()) options.out = folder / "results.db";
  return run_sweep(plan_sweep(options), options, [](const SweepProgress&) {});
}

std::string refusal(const std::string& rest) {
  const test::Folder folder;
  return test::input_error_of([&] { plan_sweep({.file = test::write_sweep(folder, rest)}); });
}

}  // namespace

TEST_CASE("every row equals the run of its scenario, with any number of processes") {
  const test::Folder folder;
  const SweepEnd end = run(folder, kAxes, {.file = {}, .jobs = 1});
  const SweepEnd many = run(folder, kAxes, {.file = {}, .jobs = 3, .out = folder / "many.db"});
  CHECK(sweep_csv(end.table) == sweep_csv(many.table));
  CHECK(sweep_json(end.table) == sweep_json(many.table));
  REQUIRE(end.table.rows.size() == 4);
  const Database file(folder / "results.db", Database::Open::Read);
  SQLite::Statement rows(file.sql(),
                         "SELECT point.hash, scenario.text FROM point JOIN scenario USING (hash) ORDER BY number");
  int i = 0;
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int micro_batches : {2, 4}) {
      const Experiment scenario = load_experiment(
          "examples/quickstart",
          {fmt::format("run.schedule={}", schedule), fmt::format("run.micro_batches={}", micro_batches)});
      const Outcome o = stagecraft::run(compile(scenario), "ideal");
      const SweepRow& row = end.table.rows[i++];
      CHECK(row.status == "ok");
      CHECK(row.figures[metric("makespan_s")] == o.report.makespan.value);
      CHECK(row.figures[metric("period_s")] == o.report.period.value);
      CHECK(row.figures[metric("samples")] == 2 * micro_batches);
      REQUIRE(rows.executeStep());
      CHECK(rows.getColumn(0).getString() == scenario.scenario_hash);
      CHECK(sha256(rows.getColumn(1).getString()) == scenario.scenario_hash);
    }
  }
}

TEST_CASE("repetitions draw different jitter; without jitter they are reported as equal") {
  const test::Folder folder;
  SweepOptions options{.file = folder / "s.yaml", .out = folder / "s.db"};
  test::write_file(options.file, "schema: sweep/1\nbase: examples/straggler\nbackend: ideal\nrepeat: 3\n");
  const SweepPlan plan = plan_sweep(options);
  CHECK(plan.warnings.empty());
  std::set<double> makespans;
  for (const SweepRow& row : run_sweep(plan, options, [](const SweepProgress&) {}).table.rows)
    makespans.insert(row.figures[metric("makespan_s")]);
  CHECK(makespans.size() == 3);
  test::write_file(options.file, "schema: sweep/1\nbase: examples/quickstart\nbackend: ideal\nrepeat: 3\n");
  REQUIRE(plan_sweep(options).warnings.size() == 1);
  CHECK(plan_sweep(options).warnings[0].message ==
        "'ideal' draws no random numbers without jitter: every repetition gives the same");
}

TEST_CASE("read-only results are read if nothing has to run, else another file is needed") {
  const test::Folder folder;
  CHECK(run(folder, kAxes, {.file = {}, .only = {"run.schedule=gpipe"}}).progress.done == 2);
  SweepOptions options{.file = folder / "sweep.yaml", .only = {"run.schedule=gpipe"}, .out = folder / "results.db"};
  const SweepPlan part = plan_sweep(options), whole = plan_sweep({.file = options.file, .out = options.out});
  const SweepPlan elsewhere = plan_sweep({.file = options.file, .out = folder / "another.db"});
  const auto refused = [&](const SweepPlan& plan) {
    return test::input_error_of([&] { run_sweep(plan, options, [](const SweepProgress&) {}); });
  };
  const test::NothingWritable frozen(folder, "results.db");
  const SweepEnd end = run_sweep(part, options, [](const SweepProgress&) {});
  CHECK(end.progress.there == 2);
  CHECK(end.progress.total == 2);
  CHECK(end.table.rows.size() == 2);
  CHECK(end.table.failed() + end.table.missing() == 0);
  for (const SweepPlan* plan : {&whole, &elsewhere}) {
    CHECK(refused(*plan).find("' cannot be written, and not all results are there [name another file: stagecraft "
                              "sweep ") != std::string::npos);
  }
}

TEST_CASE("a sweep runs on simgrid by default, and on fluid if a point has links with one queue") {
  const test::Folder folder;
  const auto backend_of = [&](const std::string& axes) {
    test::write_file(folder / "queues.yaml", "schema: sweep/1\nbase: boxes/star\naxes:\n" + axes);
    return plan_sweep({.file = folder / "queues.yaml"}).backend;
  };
  CHECK(backend_of("  run.micro_batches: [2, 4]\n") == "simgrid");
  CHECK(backend_of("  cluster.links.slow.queue: [fair, fifo]\n") == "fluid");
  CHECK(backend_of("  cluster.links.slow.queue: [fair, fifo]\nbackend: ideal\n") == "ideal");
}

TEST_CASE("simgrid runs in workers as it does alone") {
  if (find_in(backends::catalog(), "simgrid")->why_not() != "") return;
  const test::Folder folder;
  const SweepEnd end = run(folder, kAxes, {.file = {}, .backend = "simgrid", .jobs = 2});
  CHECK(end.table.failed() == 0);
  const Experiment scenario = load_experiment("examples/quickstart", {"run.schedule=1f1b", "run.micro_batches=4"});
  CHECK(end.table.rows[3].figures[0] == stagecraft::run(compile(scenario), "simgrid").report.makespan.value);
}

TEST_CASE("a sweep resumes: only new points are run") {
  const test::Folder folder;
  CHECK(run(folder, kAxes, {.file = {}, .only = {"run.schedule=gpipe"}}).progress.done == 2);
  const SweepEnd second = run(folder, kAxes);
  CHECK(second.progress.there == 2);
  CHECK(second.progress.done == 2);
  CHECK(run(folder, kAxes).progress.done == 0);
  const SweepEnd longer = run(folder, "axes:\n  run.micro_batches: [2, 3, 4]\n  run.schedule: [gpipe, 1f1b]\n");
  CHECK(longer.progress.there == 4);
  CHECK(longer.progress.done == 2);
  CHECK(longer.table.failed() + longer.table.missing() == 0);
}

TEST_CASE("shards run every scenario once, and merge into the whole sweep") {
  const test::Folder folder;
  const SweepEnd whole = run(folder, kAxes);
  Store merged(folder / "all.db");
  int done = 0;
  for (int i = 1; i <= 3; ++i) {
    const std::string out = folder / ("part" + std::to_string(i));
    done += run(folder, kAxes, {.file = {}, .shard = {i, 3}, .out = out}).progress.done;
    merged.merge(out);
  }
  CHECK(done == 4);
  CHECK(sweep_csv(merged.table()) == sweep_csv(whole.table));
}

TEST_CASE("two points with one scenario are run once, and reported as equal") {
  const test::Folder folder;
  SweepOptions options{.file = {}, .out = folder / "a.db"};
  options.file = test::write_sweep(folder, "axes: {run.micro_batches: [2, 2]}\nalso:\n  - {run.micro_batches: 2}\n");
  const SweepPlan same = plan_sweep(options);
  REQUIRE(same.warnings.size() == 2);
  CHECK(same.warnings.back().message == "point 3 (micro_batches=2) is the same scenario as point 1 (micro_batches=2)");
  const SweepEnd end = run_sweep(same, options, [](const SweepProgress&) {});
  CHECK(end.progress.done == 3);
  CHECK(end.table.rows.size() == 3);
  CHECK(end.table.missing() == 0);
  const Database file(options.out, Database::Open::Read);
  CHECK(file.number("SELECT count(*) FROM result") == 1);
}

TEST_CASE("an impossible point is a row with its reason, and the others run") {
  const test::Folder folder;
  const SweepEnd end = run(folder,
                           "axes:\n  run.schedule: [gpipe, pipedream, interleaved]\n  weights: [flush, stash]\n"
                           "also:\n  - {run.micro_batches: 64, run.schedule: gpipe}\n  - {run.schedule: 1f1b}\n");
  std::string statuses;
  for (const SweepRow& row : end.table.rows) statuses += row.status + ' ';
  CHECK(statuses == "ok ok input ok ok ok infeasible ok ");
  CHECK(end.table.rows[2].code == "weights");
  CHECK(end.table.rows[6].code == "memory");
  CHECK(end.progress.failed == 2);
  CHECK(failures_text(end.table).find("1  input (weights): point 3\n") != std::string::npos);
}

TEST_CASE("a setting that is wrong in every point is an error of the file") {
  CHECK(refusal("axes: {run.micro_batch: [4, 8]}\n") ==
        "4: run.micro_batch: no such field [did you mean 'micro_batches'?]\n");
  CHECK(refusal("axes: {rnu.micro_batches: [4, 8]}\n") == "4: rnu: no such field [did you mean 'run'?]\n");
  CHECK(refusal("axes:\n  run.schedule: [gpipe, 1f1d]\n  run.micro_batches: [4, none]\n") ==
        "5: run.schedule: '1f1d' is not known [did you mean '1f1b'?]\n"
        "6: run.micro_batches: 'none' is not a number [write a whole number from 1 to 1048576]\n");
  CHECK(refusal("axes: {run.seed: [1]}\nalso:\n  - {plan.stags: 3}\n") ==
        "6: plan.stags: no such field [did you mean 'stages'?]\n");
  // As a combination only, it is a row.
  CHECK(refusal("axes:\n  run.schedule: [1f1b, {name: interleaved, chunks: 2}]\n  plan.stages: [4, 8]\n") == "nothing");
}

}  // namespace stagecraft::run_sweep_test
