#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// How often devices fail, and what it takes to go on: `report.failures` of a scenario.
struct FailureModel {
  Seconds mtbf;         ///< Mean time between failures of one device.
  Seconds checkpoint;   ///< Time in which a checkpoint is written and nothing is computed.
  Seconds restart;      ///< Time from a failure to the first operation from the newest checkpoint.
  Seconds repair = {};  ///< Time until what failed is back; 0: a spare node always takes its place.
  int spares = 0;       ///< Nodes that wait to take the place of one that failed, while it is repaired.
};

/// What a training run is to be: `report` of a scenario.
struct TrainingBudget {
  double price = 0;                           ///< Dollars for an hour of a device; 0: not known.
  std::map<std::string, double> prices = {};  ///< Dollars for an hour by device type; other types have `price`.
  double tokens = 0;                          ///< Tokens to train on; 0: not known.
  std::optional<FailureModel> failures = {};
  Where prices_where = {};  ///< Where the prices are written.

  bool empty() const { return price <= 0 && prices.empty() && tokens <= 0 && !failures; }
};

/// Dollars for an hour of these devices, given as their number by type; 0: prices are not known. InputError for a type
/// without a price where others have one.
double dollars_per_hour(const TrainingBudget&, const std::map<std::string, int>& devices);
/// InputError for prices of types that are not among `types`.
void check_prices(const TrainingBudget&, const std::vector<std::string>& types);

/// What a run takes in units of a budget. Zero is not known.
struct Economics {
  double devices = 0;
  double dollars_per_hour = 0;  ///< The price of all devices.
  double dollars_per_billion_tokens = 0;
  Seconds duration;    ///< Time for all tokens, with failures where their rate is given.
  double dollars = 0;  ///< Price of all tokens, likewise.
  double goodput = 1;  ///< Share of the time that is training which no failure undoes.
  Seconds interval;    ///< Computation between two checkpoints, by Daly's estimate of the optimum.
  int spares = 0;      ///< Spare nodes of the budget.
  /// Goodput with 0, 1, ... spare nodes, up to one more than the budget has; empty where no time of repair is given.
  std::vector<double> goodput_of_spares;
};

/// Goodput with exponentially distributed failures every `mtbf` seconds of the whole job, by Daly's model of the
/// expected time: T = M exp(R/M) (exp((t + d)/M) - 1) Ts / t, with checkpoints of d seconds after every t seconds and
/// R seconds to restart (J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
/// Future Generation Computer Systems 22, 2006, equation 20).
double goodput(Seconds mtbf, Seconds checkpoint, Seconds restart, Seconds interval);

/// Share of the time in which enough nodes work. Nodes fail while the job runs, every `mtbf` seconds one of the job's,
/// and each is back after `repair` seconds on average; the job stops while more are in repair than there are spares.
/// With exponential times that is the share of calls that find a free line of spares + 1, Erlang's loss formula B for
/// a = repair / mtbf: 1 - B(spares + 1, a), by B(0) = 1, B(c) = a B(c - 1) / (c + a B(c - 1)). Spares do not fail.
double availability(Seconds mtbf, Seconds repair, int spares);

/// The interval with the most goodput: sqrt(2 d M) (J. W. Young, A first order approximation to the optimum checkpoint
/// interval, Communications of the ACM 17, 1974) with two more terms (Daly 2006, equation 37), and M from d = 2 M on.
Seconds best_checkpoint_interval(Seconds mtbf, Seconds checkpoint);

/// `devices`: their number by type. `tokens_per_second` of all devices together; 0: not known. Prices count failures,
/// too.
Economics economics(const TrainingBudget&, const std::map<std::string, int>& devices, double tokens_per_second);

/// The fields of `report` that a budget is read from.
std::vector<config::Field> budget_fields();
/// Reads a checked `report` map.
TrainingBudget read_budget(const config::Value&);

/// "$512.3", "$12.3 k", "$1.2 M".
std::string dollars_text(double amount);
/// "41.2 days"; below two days in hours, minutes or seconds.
std::string training_time_text(Seconds);

/// Lines of a run's summary, without line breaks: name, number and note of each.
struct EconomicsLine {
  std::string name, number, note;
};
std::vector<EconomicsLine> economics_lines(const Economics&);

Json economics_json(const Economics&);
/// The member `economics` of files with results.
config::Field economics_field();

}  // namespace stagecraft
