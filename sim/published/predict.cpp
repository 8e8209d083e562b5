// Predicts many measured runs for `reproduce predictions`: takes the simulations that the cache has, and runs the
// others on up to 16 cores.

#include <algorithm>

#include "sim/config/library.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/file.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"
#include "sim/published/simulated_predictions.hpp"

namespace stagecraft {
namespace {

constexpr int kMostThreads = 16;  // Each simulation has a program in memory.

std::string device_file(const std::string& device) {
  const std::string file = find_file(FileKind::Device, device, "");
  if (!file.empty()) return file;
  std::vector<std::string> names;
  for (const NamedFile& f : named_files(FileKind::Device)) names.push_back(f.name);
  throw InputError("there is no device type '" + device + "'", suggest(device, names));
}

/// The text of the file of a device type, and of its relatives.
std::string figures_of(const std::string& device) {
  const std::string file = device_file(device), relative = load_accelerator(file).like;
  return read_file(file) + (relative.empty() ? "" : figures_of(relative));
}

/// Runs of one hash: the first is simulated for all of them.
struct EqualRuns {
  std::vector<MeasuredRun*> runs;
  std::string why_not = {};  ///< Empty where they are predicted.
};

using RunsByHash = std::map<std::string, EqualRuns>;

void simulate_runs(RunsByHash& equal, const AcceleratorsByName& devices, PredictionCache& cache, Activity& activity) {
  std::vector<RunsByHash::value_type*> missing;
  for (auto& one : equal)
    if (!cache.find(one.first)) missing.push_back(&one);
  std::vector<std::optional<SimulatedRun>> results(missing.size());
  run_tasks(static_cast<int>(missing.size()), std::min(kMostThreads, usable_cores().count()), [&](int i) {
    EqualRuns& same = missing[i]->second;
    const MeasuredRun& m = *same.runs.front();
    results[i] = simulate(m, devices.find(m.device)->second, same.why_not);
    activity.count_one();
  });
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (results[i]) cache.add(missing[i]->first, *results[i]);
  if (!missing.empty()) cache.save();
}

}  // namespace

AcceleratorsByName accelerators_of(std::span<const PredictionSet> sets) {
  AcceleratorsByName devices;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs)
      if (!devices.contains(m.device)) devices.emplace(m.device, load_accelerator(device_file(m.device)));
  return devices;
}

void predict(std::span<PredictionSet> sets, PredictionCache& cache) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::map<std::string, std::string> figures;
  for (const auto& [name, device] : devices) figures[name] = figures_of(name);
  Activity activity("simulating measured runs");
  std::int64_t total = 0, done = 0;
  for (const PredictionSet& set : sets) total += std::ssize(set.runs);
  for (PredictionSet& set : sets) {
    activity.count(done, "runs", total);
    RunsByHash equal;
    for (MeasuredRun& m : set.runs) equal[sha256(figures[m.device] + config::to_yaml(m.row, false))].runs.push_back(&m);
    simulate_runs(equal, devices, cache, activity);
    done += std::ssize(set.runs);
    for (const auto& [hash, same] : equal)
      for (MeasuredRun* m : same.runs)
        if (const SimulatedRun* predicted = cache.find(hash))
          m->predicted = *predicted;
        else
          ++set.not_predicted[same.why_not];
    std::erase_if(set.runs, [](const MeasuredRun& m) { return m.predicted.time.value <= 0; });
  }
}

}  // namespace stagecraft
