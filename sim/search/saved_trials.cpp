// The trials of a search in a file, so that an interrupted search resumes.

#include "sim/search/saved_trials.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/output.hpp"
#include "sim/search/trial_json.hpp"

namespace stagecraft {
namespace {

constexpr const char* kSchema = "search-state/1";
constexpr std::chrono::seconds kBetweenSaves{2};

}  // namespace

const config::MapSpec& saved_search_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "The first line of the state of a search.",
      .fields = {choice("schema", {kSchema}).doc("Version of this format."),
                 text("question")
                     .doc("Hash of the scenario, the options and the version; another search does not "
                          "resume from this file.")}};
  return spec;
}

const config::MapSpec& saved_trial_fields() {
  using namespace config;
  static const MapSpec contended{
      .title = "The result with network contention.",
      .fields = {real("period_s", 0, kInfinity).doc("Time of one more iteration, in seconds."),
                 real("makespan_s", 0, kInfinity).doc("Time of the first iteration, in seconds."),
                 text("why_not").doc("Why it cannot run; empty if it ran."),
                 real("energy_J", 0, kInfinity).doc("Energy of one more iteration, in joules.")}};
  static const MapSpec spec{
      .title = "A plan with an order of work that was simulated: every other line of the state of a search.",
      .fields = {
          text("settings").doc("The plan and the order of work, as a key."),
          integer("result", 0, 9).doc("What became of it, as a number of this version."),
          text("why").doc("Why it has no result; empty if it has one."),
          real("period_s", 0, kInfinity).doc("Time of one more iteration, in seconds."),
          real("makespan_s", 0, kInfinity).doc("Time of the first iteration, in seconds."),
          real("throughput", 0, kInfinity).doc("Samples per second at the period."),
          real("memory", 0, kInfinity).doc("Peak memory of the fullest device, in bytes."),
          real("filled", 0, kInfinity).doc("Largest share of its memory, without a reserve, that a device uses."),
          real("work_s", 0, kInfinity).doc("Work of the busiest device in a period, in seconds."),
          real("energy_J", 0, kInfinity).doc("Energy of one more iteration, in joules."),
          real("unexchanged", 0, kInfinity).doc("Gradients of tied weights whose exchange is not simulated, in bytes."),
          text("overlap").doc(
              "The setting of software.overlap that the framework runs it with; empty: the scenario's."),
          text("weights").doc("Weights policy."), text("plan").doc("The plan in words, with what goes to host memory."),
          map("contended", contended).optional().doc("The result with network contention, where it is known.")}};
  return spec;
}

SavedTrials::SavedTrials(std::string file, std::string question)
    : file_(std::move(file)), question_(std::move(question)) {
  if (file_.empty()) return;
  check_output(file_, Overwrite::Ours);
  if (std::filesystem::exists(file_)) read();
}

void SavedTrials::read() {
  std::ifstream in(file_);
  std::string line, question;
  try {
    while (std::getline(in, line)) {
      if (line.empty() || line.front() == '#') continue;
      const std::optional<Json> json = Json::parse(line);
      if (!json) throw JsonError("a line is not JSON");
      if (question.empty() && json->at("schema").text() == kSchema)
        question = json->at("question").text();
      else
        trials_[json->at("settings").text()] = trial_from(*json);
    }
  } catch (const JsonError& e) {
    throw InputError(fmt::format("--resume: '{}' is not the state of a search: {}", file_, e.what()),
                     "name another file, or delete this one");
  }
  if (question != question_)
    throw InputError(fmt::format("--resume: '{}' has the state of another search: the scenario, the options or the "
                                 "version of Stagecraft differ",
                                 file_),
                     "name another file, or delete this one");
  loaded_ = saved_ = trials_.size();
}

std::optional<Trial> SavedTrials::find(const std::string& settings) const {
  const auto at = trials_.find(settings);
  if (at == trials_.end()) return {};
  return at->second;
}

void SavedTrials::add(const std::string& settings, const Trial& trial) {
  if (!file_.empty()) trials_[settings] = trial;
}

void SavedTrials::save(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (file_.empty() || (!now && (time - last_ < kBetweenSaves || saved_ == trials_.size()))) return;
  std::string text = Json(JsonObject{{"schema", kSchema}, {"question", question_}}).dump() + "\n";
  for (const auto& [settings, trial] : trials_) text += json_of(settings, trial).dump() + "\n";
  write_output(file_, text, Overwrite::Ours, CommentStyle::Hash);
  saved_ = trials_.size();
  last_ = time;
}

}  // namespace stagecraft
