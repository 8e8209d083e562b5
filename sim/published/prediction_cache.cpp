// Keeps simulated runs in a file of the user, so that the next process of the same build need not simulate them again.

#include "sim/published/prediction_cache.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/output.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"

namespace stagecraft {
namespace {

/// Pointers to the numbers of a run, in the order of the columns.
template <class Run>
auto numbers_of(Run& run) {
  std::vector<decltype(&run.parameters)> numbers{&run.time.value, &run.memory.value, &run.idle.value, &run.work.value,
                                                 &run.parameters};
  for (const TimeClass& c : time_class_list()) numbers.push_back(&(run.spent.*c.part).value);
  return numbers;
}

/// The run in the cells after the hash; nothing where they are not what add() and save() write.
std::optional<SimulatedRun> read_cells(const std::vector<std::string>& cells) {
  SimulatedRun run;
  const auto numbers = numbers_of(run);
  if (cells.size() != numbers.size() + 1) return {};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string& cell = cells[i + 1];
    const auto [end, error] = from_chars(cell.data(), cell.data() + cell.size(), *numbers[i]);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(*numbers[i])) return {};
  }
  return run;
}

}  // namespace

PredictionCache::PredictionCache(std::string file, const std::string& build)
    : file_(std::move(file)), heading_("# Simulated runs of stagecraft " + build) {
  if (build.find(", build ") == std::string::npos) file_.clear();  // The linker has not told builds apart.
  try {
    if (!std::filesystem::is_regular_file(file_) || !is_ours(file_)) return;
    // An input, which read_file() notes, could not be replaced.
    std::ifstream stream(file_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::vector<std::string> lines = split(text, '\n');
    if (lines.size() < 2 || lines[1] != heading_) return;  // The first line is that of write_output().
    lines.erase(lines.begin(), lines.begin() + 2);
    for (const std::string& line : lines) {
      const std::vector<std::string> cells = split(line, ',');
      if (const auto run = read_cells(cells)) runs_.emplace(cells.front(), *run);
    }
  } catch (const InputError&) {  // It cannot be read.
  } catch (const BackendError&) {
  } catch (const std::filesystem::filesystem_error&) {
  }
}

PredictionCache PredictionCache::of_user() {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  const std::string home = variable("HOME");
  std::string folder = variable("XDG_CACHE_HOME");
  if (!folder.starts_with('/')) folder = home.empty() ? "" : home + "/.cache";
  if (folder.empty()) return {};
  return {folder + "/stagecraft/predictions.csv", build_name()};
}

const SimulatedRun* PredictionCache::find(const std::string& hash) const {
  const auto at = runs_.find(hash);
  return at == runs_.end() ? nullptr : &at->second;
}

void PredictionCache::add(const std::string& hash, const SimulatedRun& run) {
  runs_[hash] = run;
  is_changed_ = true;
}

void PredictionCache::save() {
  if (file_.empty() || !is_changed_) return;
  std::string text = heading_ + "\n";
  for (const auto& [hash, run] : runs_) {
    text += hash;
    for (const double* number : numbers_of(run)) text += "," + shortest(*number);
    text += "\n";
  }
  try {
    make_output_folder(std::filesystem::path(file_).parent_path().string());
    write_output(file_, text, Overwrite::Anything, CommentStyle::Hash);
    is_changed_ = false;
  } catch (const InputError&) {
  } catch (const BackendError&) {
  }
}

}  // namespace stagecraft
