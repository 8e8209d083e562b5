#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/output/picture.hpp"
#include "sim/output/run_row.hpp"
#include "sim/result/diagnosis.hpp"
#include "sim/result/interval.hpp"
#include "sim/result/objective.hpp"

namespace stagecraft {

struct Schedule;

/// One simulated way to train.
struct Choice : RunRow {
  int replicas = 1, micro_batch_size = 1, micro_batches = 1;
  std::string placement, weights;
  std::string recompute = "none";
  std::string group;         ///< "TP 8, ZeRO-1": how each replica and its states are divided; empty: not at all.
  int group_devices = 1;     ///< Devices of one replica.
  double filled = 0;         ///< Largest share of its memory, without a reserve, that a device uses.
  bool is_tight = false;     ///< It leaves less memory free than the margin of the search.
  std::string limit;         ///< cause_text() of its diagnosis; empty if it has none.
  std::string device_types;  ///< "a100-80 and h100-sxm".
  Seconds work;              ///< Work of the busiest device in a period.
  Joules energy;             ///< Energy of an iteration; zero where powers are not known.
  /// What the search minimizes, of an iteration: seconds, dollars or joules; with contention where that is known.
  double amount = 0;
  std::shared_ptr<const Schedule> order;  ///< The order that was searched for, which takes long; null: it was not.
  int id = 0;           ///< Index among the combinations that were tried; below zero: a published recipe.
  std::string overlap;  ///< A setting of `software.overlap` that the scenario does not have; empty: none.
};

/// A published configuration of the same model and chip, simulated as the choices are.
struct PublishedChoice {
  std::string name, source;
  int devices = 0;         ///< GPUs of the published run.
  std::string why_not;     ///< Why there is no simulation; empty where there is one.
  bool is_offered = true;  ///< It is a plan that the search could offer; false: it divides states that are not tried.
  Choice choice;
};

/// Whether a is not worse than b in amount, period, memory and devices, and leaves the margin of memory free where b
/// does. Times that agree to nine digits are equal.
bool covers(const Choice& a, const Choice& b);

/// covers() with the periods with contention where they are known.
bool covers_when_known(Choice a, Choice b);

struct ChoiceTable {
  std::string title, model, cluster;
  std::string reserve;  ///< reserve_line() of the cluster.
  Bytes capacity;       ///< Memory of each device without its reserve; zero where it is not known or devices differ.
  double margin = 0;    ///< Share of the memory that the first row leaves free on each device, if any row does.
  int samples = 0;
  int iterations = 1;                       ///< Iterations of each simulation.
  int plans = 0, simulated = 0, unfit = 0;  ///< Plans, their simulations, and simulations that exceeded memory.
  int too_large = 0;                        ///< Plans that keep more for one micro-batch than a device has.
  Bytes least_memory;                       ///< What the smallest of the `too_large` plans needs at least on a device.
  bool cut_short = false;                   ///< Some choices that could be better were not simulated.
  Seconds configured_period;                ///< Period of the scenario as it is written; 0 where it cannot run.
  bool configured_is_tight = false;         ///< The scenario as it is written leaves less memory free than the margin.
  std::optional<ContendedResult> own_replayed;  ///< Makespan and period of the scenario as written, with contention.
  ObjectiveUnit unit;                           ///< What the search minimizes.
  /// No order of work makes the amount of any of the plans smaller that may leave the margin free; 0: not known.
  double bound = 0;
  double configured_amount = 0;  ///< The amount of the scenario as it is written; 0 where it cannot run.
  bool has_shorter_tight =
      false;                 ///< A choice that leaves less free than the margin is, or could be, better than the first.
  int untried = 0;           ///< Choices that could have a shorter period than the first and were not simulated.
  int patience = 0;          ///< Simulations without a better one after which the search ended; 0: it did not.
  int untried_smaller = 0;   ///< Others that could need less memory or fewer devices and were not simulated.
  int dropped_by_bound = 0;  ///< Plans and choices that were skipped: by a lower bound another is no worse.
  std::string stopped;       ///< Why the search ended early: "the time is over", "interrupted"; empty: it did not.
  std::vector<std::string> reasons;                          ///< Why the first is the first, and what was not tried.
  std::vector<std::pair<std::string, std::string>> refused;  ///< Schedules that run none of the plans, and why.
  std::vector<std::string> notes;                            ///< Remarks on the scenario as it is written.
  Replay replay;
  std::optional<PredictionInterval> interval;  ///< The interval of simulated times.
  /// The Pareto front, smallest amount first: no choice is covered by another. Tight choices are after all others.
  /// Choices that were simulated with contention are compared and sorted by that result.
  std::vector<Choice> front;
  std::vector<PublishedChoice> published;
  Diagnosis diagnosis;  ///< What limits the first row; the caller of search_choices() adds it.
};

/// How far the first row may be above the lower bound of all plans, as a share of the bound; nothing without a bound.
std::optional<double> optimality_gap(const ChoiceTable&);
/// What is known about choices that were not simulated.
std::string proved_text(const ChoiceTable&);
/// Why a row is behind the first, and what it needs less: "7.2 % longer: 0.5 ms more waiting; needs 1 GiB less
/// memory".
std::string behind_text(const Choice&, const Choice& first, const ObjectiveUnit& = {});

/// Says for each row of a front whether it has a much shorter period, much less memory, or fewer devices, than all rows
/// before it.
std::vector<bool> stand_out(const std::vector<Choice>& front);

/// Whether a choice of this amount and memory would be worth its time for the sake of its memory: within 2 % of the
/// first row's amount, with 5 % less memory.
bool may_be_knee(double amount, Bytes memory, const Choice& first);
/// The row with the most free memory among those within 2 % of the first row's amount; the first row itself where none
/// needs 5 % less, and nothing without rows.
const Choice* knee_of(const ChoiceTable&);
/// Whether a row's period differs from the first one's by less than a measured time may from a predicted one.
bool is_tie(const Choice&, const ChoiceTable&);
/// What sets a row apart: "least memory within 2 %", "tie", "tight".
std::string remark_of(const Choice&, const ChoiceTable&);

/// Whether the scenario as it is written is better than the first row, as after a search that was stopped.
bool own_is_best(const ChoiceTable&);

/// The whole front, or only the rows that stand out in its order or in the order of the periods without contention.
/// The rows that to_text() prints.
std::vector<Choice> printed_rows(const ChoiceTable&, bool whole_front);
/// The rows, what is proved, what was not tried, and the options of the first row. `details` adds what explains them.
std::string to_text(const ChoiceTable&, bool whole_front, bool details, const TextLayout& = {});
/// The table of the front alone.
Table rows_of(const ChoiceTable&);
/// The line below the table about rows without the exchange of tied weights' gradients; empty where there are none.
std::string unexchanged_text(const ChoiceTable&);
/// The front as a picture: period and memory, one series for each number of devices.
Picture front_picture(const ChoiceTable&, const std::string& title, const PictureSize&);
std::string choices_csv(const ChoiceTable&);
Json choices_value(const ChoiceTable&);        ///< Schema choices/1; SI units.
std::string choices_json(const ChoiceTable&);  ///< choices_value() as text.

/// What choices_csv() and choices_json() write.
std::vector<FileColumn> choices_columns();
const config::MapSpec& choices_fields();

/// A line for each published configuration of the answer, with how much shorter the first row is; empty without any.
std::string published_text(const ChoiceTable&);
Json published_json(const ChoiceTable&);
/// The field of choices/1 that published_json() writes.
config::Field published_field();

/// One self-contained page: the answer, the Pareto front as a picture, each row with the reason why it is behind the
/// first, and what was proved and what was not tried. `command` runs the scenario, without the options of a row:
/// "stagecraft run FILE --set ...". `version` is Stagecraft's.
std::string choices_html(const ChoiceTable&, const std::string& command, const std::string& version);

}  // namespace stagecraft
