#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "sim/config/fields.hpp"
#include "sim/search/evaluation.hpp"

namespace stagecraft {

/// The trials of a search in a file, so that a search that was stopped resumes: it takes the same decisions again, in
/// the same order, without simulating again. Without a file nothing is saved.
///
/// The file is replaced as a whole, every two seconds and at the end. After its header the first line has a hash of the
/// question; each other line is a trial, as JSON.
class SavedTrials {
 public:
  /// Reads the file if it exists. InputError if it belongs to another question.
  SavedTrials(std::string file, std::string question);

  /// The trial of the combination with these settings. Several threads may ask while none adds.
  std::optional<Trial> find(const std::string& settings) const;
  void add(const std::string& settings, const Trial&);
  void save(bool now);
  std::size_t loaded() const { return loaded_; }

 private:
  void read();

  std::string file_, question_;
  std::map<std::string, Trial> trials_;
  std::size_t loaded_ = 0, saved_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The fields of the first line of the file, and of every other line.
const config::MapSpec& saved_search_fields();
const config::MapSpec& saved_trial_fields();

}  // namespace stagecraft
