// Checks a file of any kind by its `schema:` line, a scenario up to its program, and describes it in one line; `check`
// and the request `check` of `serve` share it.

#include "tools/stagecraft/check_input.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/collective_curve.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/profiles.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/run.hpp"
#include "sim/published/predictions.hpp"
#include "sim/published/published.hpp"
#include "sim/sweep/run_sweep.hpp"
#include "tools/stagecraft/sweep_points.hpp"

namespace stagecraft {
namespace {

/// "70.55 billion"
std::string count_text(double count) {
  if (count >= 1e9) return fmt::format("{:.4g} billion", count / 1e9);
  return count >= 1e6 ? fmt::format("{:.4g} million", count / 1e6) : fmt::format("{:.0f}", count);
}

/// One line about a file that makes no notes; nothing for files of other kinds.
std::optional<std::string> check_plain_file(const std::string& kind, const std::string& file) {
  if (kind == "device") {
    const Accelerator device = load_accelerator(file);
    if (!device.has_kernels())
      return fmt::format("device {}: {}, no figures of kernels", device.name, to_text(device.type.peak));
    return fmt::format("device {}: {} in {}, {}", device.name, to_text(device.formats[device.wide_format()].peak),
                       name(device.wide_format()), device.calibrated ? "calibrated" : "shares of " + device.like);
  }
  if (kind == "collectives")
    return fmt::format("collectives: {}", pluralize(std::ssize(load_collective_curves(file)), "curve"));
  if (kind == "predictions")
    return fmt::format("predictions: {}", pluralize(std::ssize(load_predictions(file).runs), "run"));
  if (kind == "model") {
    const ModelGraph model = build_model(load_model_file(file));
    return fmt::format("model {}: {}, {} parameters, {} forward for one sample", model.name,
                       pluralize(std::ssize(model.layers), "layer"), count_text(model.parameters()),
                       to_text(model.forward()));
  }
  if (kind == "profile") {
    const Profile profile = read_profile(load_profile_file(file));
    return fmt::format("profile of {}: {}, measured on {}", profile.device,
                       pluralize(std::ssize(profile.layers), "layer"), profile.machine);
  }
  if (kind == "published") {
    const Published published = load_published(file);
    std::size_t values = 0;
    for (const PublishedTable& t : published.tables) values += t.rows.size() * t.columns.size();
    return fmt::format("published: {} in {}", pluralize(static_cast<std::int64_t>(values), "figure"),
                       pluralize(std::ssize(published.tables), "table"));
  }
  return std::nullopt;
}

CheckedInput check_cluster(const std::string& file) {
  const Cluster cluster = build_cluster(load_cluster_file(file));
  return {fmt::format("cluster {}: {} of {}, {}", cluster.name, pluralize(std::ssize(cluster.devices), "device"),
                      pluralize(std::ssize(cluster.types), "type"), pluralize(std::ssize(cluster.links), "link")),
          suspicious_units(cluster),
          {}};
}

CheckedInput check_sweep(const std::string& file) {
  const SweepPlan plan = plan_sweep({.file = file});
  return {fmt::format("sweep: {} of {}, backend {}; {}", pluralize(std::ssize(plan.points), "point"),
                      plan.sweep.base_file, plan.backend, check_points(plan)),
          {},
          plan.warnings};
}

CheckedInput check_scenario(const std::string& file, const std::vector<std::string>& sets) {
  const CompiledExperiment p = compile_or_advise(load_experiment(file, sets));
  const std::vector<DeviceId> devices = devices_of(p.plan);
  return {fmt::format("scenario: {} on {}, {}, schedule {}, weights {}", pluralize(p.plan.different_stages(), "stage"),
                      pluralize(std::ssize(devices), "device"),
                      pluralize(std::ssize(p.program.instructions), "instruction"), p.experiment.schedule.name(),
                      p.experiment.weights.name()),
          remarks(p),
          {}};
}

}  // namespace

CheckedInput check_input(const std::string& given, const std::vector<std::string>& sets) {
  const std::string file = scenario_file(given);
  std::error_code error;
  if (std::filesystem::is_fifo(file, error))
    throw InputError(fmt::format("'{}' is a pipe, which can be read once, and a check reads twice", file),
                     "write it to a file, or give it to stagecraft resolve");
  config::Problems problems;
  const config::Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  const config::Value* line = root.is_map() ? root.find("schema") : nullptr;
  const std::string kind = line ? line->text.substr(0, line->text.find('/')) : "scenario";
  if (kind == "cluster") return check_cluster(file);
  if (kind == "sweep") return check_sweep(file);
  if (const auto summary = check_plain_file(kind, file)) return {*summary, {}, {}};
  return check_scenario(file, sets);
}

void InputProblems::add(const InputError& error) {
  problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  exit_code = 2;
}

void InputProblems::add(const Infeasible& error, const std::string& file) {
  problems.push_back(error.problem());
  if (problems.back().where.line == 0) problems.back().where = {file, 0, 0};
  if (exit_code == 0) exit_code = 3;  // A wrong input counts more, whichever comes first.
}

}  // namespace stagecraft
