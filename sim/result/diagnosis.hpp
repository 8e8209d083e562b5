#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/json.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// A simulated run of the scenario with a change.
struct ChangedRun {
  Seconds period;
  int samples = 1;   ///< Samples of one iteration, which the change may alter.
  double saved = 0;  ///< Time per sample that the change saves, as a share of the time per sample without it.
};

/// A change of the scenario, as options of the command line.
struct Suggestion {
  std::vector<std::string> sets;       ///< "path=value" of each `--set`.
  std::string change;                  ///< "twice as many micro-batches, so a batch of 64 samples".
  std::optional<ChangedRun> run = {};  ///< Nothing until it is simulated.
  std::string flags = {};  ///< The change as options of the framework that the software stack is of; may be empty.
};

/// A suggestion that was tried and cannot run.
struct RefusedSuggestion {
  Suggestion suggestion;
  std::string why;  ///< "does not fit in memory".
};

/// One cause that limits a run.
struct Finding {
  std::string cause;  ///< A name of diagnosis_causes().
  std::string where;  ///< Stage, device or link.
  Seconds lost;       ///< Time of a period that the run would save without the cause; measured: that devices wait.
  double share = 0;   ///< `lost` as a share of the period.
  std::string sentence;
  std::vector<Suggestion> suggestions = {};  ///< The suggestion that saves most time first.
  std::vector<RefusedSuggestion> refused = {};
};

/// What limits a run: the largest loss first.
struct Diagnosis {
  std::vector<Finding> findings;  ///< The last one is `computation`, which is no loss.
  int samples = 0;                ///< Samples of one iteration of the run.
  std::string not_simulated;      ///< Why there is no finding, or why suggestions were not simulated; else empty.
  bool measured = false;          ///< Findings have measured times; suggestions never have.

  const Finding& first() const { return findings.front(); }
};

/// A cause in words that stand alone: "gradient sums".
std::string cause_words(std::string_view cause);

/// The first cause and where it is, for a row of a table: "slow link: core", "bubble". Empty without findings.
std::string cause_text(const Diagnosis&);

/// A word for a shell, in quotes where it needs them.
std::string shell_word(const std::string&);

/// "--set run.micro_batches=16 --set plan.planner=balanced", quoted for a shell where a value needs it.
std::string options_text(const Suggestion&);

/// The first finding, the best change that keeps the batch, and a better one that does not. `what` is diagnosed, and
/// suggestions add to the options of `before`; both are words such as "the first row", and empty for the scenario
/// itself.
std::string to_text(const Diagnosis&, const std::string& what = {}, const std::string& before = {});
/// The diagnosis whose suggestions come after these options.
Diagnosis with_sets_before(Diagnosis, const std::vector<std::string>& sets);
/// Every finding with the suggestions that help: those that keep the batch first. With `details` those too that cost
/// time or cannot run.
std::string what_if_text(const Diagnosis&, Seconds period, bool details);

Json diagnosis_json(const Diagnosis&);
/// The member `diagnosis` of files with results.
config::Field diagnosis_field();

}  // namespace stagecraft
