#include "tools/stagecraft/schedule_file.hpp"

#include <fmt/format.h>

#include "sim/core/json.hpp"
#include "sim/weights/policy.hpp"
#include "sim/weights/reads.hpp"
#include "tools/stagecraft/schedule_checks.hpp"

namespace stagecraft {
namespace {

Json problem_json(const ScheduleProblem& p) {
  return JsonObject{{"code", p.code},     {"level", p.level}, {"rank", p.rank},
                    {"column", p.column}, {"op", p.op},       {"message", p.message}};
}

/// The order of the file without a drain at its end, with an update after every `update_every` backwards of a stage.
Schedule with_updates(const CsvSchedule& csv, const Plan& plan, int update_every) {
  Schedule schedule;
  schedule.drain_every = 0;
  std::vector<int> finished(plan.stages.size(), 0);
  for (const auto& row : csv.schedule.devices) {
    auto& ops = schedule.devices.emplace_back();
    std::vector<Op> due;
    for (const Op& op : row) {
      ops.push_back(op);
      const bool ends = op.kind == OpKind::Backward || op.kind == OpKind::WeightGradient;
      if (int& count = finished[op.stage]; ends && ++count % update_every == 0)
        due.push_back({OpKind::Update, false, op.stage, count / update_every - 1});
      if (op.fused) continue;
      ops.insert(ops.end(), due.begin(), due.end());
      due.clear();
    }
  }
  return schedule;
}

}  // namespace

std::vector<ScheduleProblem> check_versions(const CheckedFile& f, const std::string& policy, int update_every) {
  const WeightsDef& def = get_from(weights::all(), "weights policy", policy);
  if (f.compute.micro_batches % update_every != 0)
    throw InputError(
        fmt::format("--update-every: {} micro-batches are not updates of {}", f.compute.micro_batches, update_every));
  Plan plan = f.plan;
  plan.mini_batch = update_every;
  for (Stage& stage : plan.stages)
    if (!stage.micros.empty()) throw InputError("--weights is for pipelines in one direction");
  const Schedule schedule = with_updates(f.compute, plan, update_every);
  const WeightReads reads(schedule, plan, def.paper);
  std::vector<ScheduleProblem> problems;
  std::vector<WeightRead> forward(plan.stages.size() * static_cast<std::size_t>(f.compute.micro_batches));
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    int index = -1;  // Among the ops of the file.
    for (std::size_t i = 0; i < schedule.devices[d].size() && problems.size() < 20; ++i) {
      const Op& op = schedule.devices[d][i];
      if (op.kind == OpKind::Update) continue;
      ++index;
      const WeightRead read = reads.at(DeviceId{static_cast<std::int64_t>(d)}, i);
      WeightRead& first =
          forward[static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(f.compute.micro_batches) +
                  static_cast<std::size_t>(op.micro)];
      if (op.kind == OpKind::Forward) first = read;
      const bool both = read.from == WeightsFrom::Version && first.from == WeightsFrom::Version;
      if (!both || read.version == first.version) continue;
      problems.push_back(
          {"weight-version", 9, static_cast<int>(d), f.compute.columns[d][index], to_text(op),
           fmt::format("it uses version {} of the weights, its forward used version {}", read.version, first.version)});
    }
  }
  return problems;
}

CheckedFile checked_order(const Arguments& a, const std::string& text, const std::string& name,
                          const FileCheckOptions& options) {
  CheckedFile f = check_file(text, name, options);
  if (f.cells.empty()) refuse_idle(a, f.csv, options);
  if (f.good() && a.has("weights"))
    f.problems = check_versions(f, a.text("weights"), a.has("update-every") ? a.count("update-every", 1, 1 << 20) : 1);
  return f;
}

CheckedFile checked_file(const Arguments& a) {
  return checked_order(a, read_file(a.text("file")), a.text("file"), check_options(a));
}

void throw_if_bad(const CheckedFile& f, const std::string& file) {
  throw_if_any(f.cells);
  throw_if_any(f.problems, file);
}

std::string with_findings(const std::string& report, const CheckedFile& f) {
  Json json = Json::parse(report).value();
  JsonArray problems, warnings;
  for (const CellProblem& p : f.cells) problems.push_back(problem_json(p.problem));
  for (const ScheduleProblem& p : f.problems) problems.push_back(problem_json(p));
  for (const ScheduleProblem& p : f.warnings) warnings.push_back(problem_json(p));
  json["problems"] = std::move(problems);
  json["warnings"] = std::move(warnings);
  return json.dump(2);
}

int exit_code(const CheckedFile& f) {
  if (f.good()) return 0;
  return !f.problems.empty() && cannot_be_done(f.problems.front()) ? 3 : 2;
}

}  // namespace stagecraft
