// `stagecraft calibrate`: fits numbers of a device type to a CSV of measured runs and writes a device file, or fits the
// time of a collective to output of nccl-tests and writes its curve.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/collective_curve.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/published/calibration.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

/// The collective that --collective names, where the output does not.
std::optional<CollectiveKind> asked_collective(const Arguments& a) {
  if (!a.has("collective")) return {};
  std::vector<std::string> names;
  for (const CollectiveKind kind : kCollectiveKinds) {
    names.emplace_back(name(kind));
    if (names.back() == a.text("collective")) return kind;
  }
  throw InputError("--collective: '" + a.text("collective") + "' is not known", suggest(a.text("collective"), names));
}

/// The constants of one collective, from what a program of nccl-tests prints.
int fit_collective(const Arguments& a, const std::string& file, const std::string& text) {
  CollectiveCurve curve = read_nccl_tests(text, file, asked_collective(a));
  if (a.has("device")) curve.device = a.text("device");
  const CurveFit constants = with_file_context(file, [&] { return fit(curve); });
  double worst = 0;
  for (const CollectiveCurve::Point& p : curve.points)
    worst = std::max(worst, std::abs(constants.time_of(p.bytes) / p.time - 1));
  print(fmt::format("{} of {} on {}, {}: {} + S / {} + {:.4g} ns sqrt(S / byte), at most {:.1f} % off\n",
                    name(curve.kind), pluralize(curve.ranks, "device"), pluralize(curve.nodes, "node"),
                    pluralize(std::ssize(curve.points), "size"), to_text(constants.alpha), to_text(constants.rate),
                    constants.root * 1e9, 100 * worst));
  if (!a.has("out")) return 0;
  write_output_of(a, "out", to_yaml(std::span(&curve, 1), "Measured collectives", file), CommentStyle::Hash);
  return print("wrote " + a.text("out") + "\n"), 0;
}

/// The words of --fit, in the order of FreeNumber.
const std::vector<std::string> kFitWords{"share", "launch", "card", "attention", "fsdp_overlap"};

std::vector<FreeNumber> free_numbers(const std::string& words) {
  const std::vector<std::string>& names = kFitWords;
  std::vector<FreeNumber> numbers;
  for (const std::string& word : split(words, ',')) {
    const auto at = std::find(names.begin(), names.end(), std::string(trim(word)));
    if (at == names.end())
      throw InputError("'" + word + "' cannot be fitted", "--fit " + join(names, ",") + ", or one of them");
    numbers.push_back(static_cast<FreeNumber>(at - names.begin()));
  }
  return numbers;
}

/// A line for each number that was fitted, and the errors of all together.
std::string fit_text(const Fit& fit, const Accelerator& before) {
  const Accelerator after = fit.applied(before);
  std::string text = fmt::format("{:<16}{:>10}{:>10}{:>10}\n", "number", "given", "fitted", "spread");
  const auto line = [&](const std::string& label, const std::string& given, const std::string& fitted, double spread) {
    text += fmt::format("{:<16}{:>10}{:>10}{:>8.1f} %\n", label, given, fitted, 100 * spread);
  };
  for (const Fit::Number& n : fit.numbers) {
    for (const NumberFormat format : n.formats)
      line(fmt::format("share {}", name(format)), fmt::format("{:.4g}", before.formats[format].share),
           fmt::format("{:.4g}", after.formats[format].share), n.spread);
    if (n.kind == FreeNumber::Launch) line("launch", to_text(before.launch), to_text(after.launch), n.spread);
    if (n.kind == FreeNumber::Attention) line("attention", "1 x", fmt::format("{:.3g} x", n.factor), n.spread);
    if (n.kind == FreeNumber::FsdpOverlap)
      line("fsdp_overlap", fmt::format("{:.3g}", 1 - fit.shown),
           fmt::format("{:.3g}", 1 - std::min(1.0, n.factor * fit.shown)), n.spread);
    if (n.kind == FreeNumber::Card) line("rate of cards", "1 x", fmt::format("{:.3g} x", n.factor), n.spread);
  }
  return text + fmt::format("{}, mean error {:.1f} % before, {:.1f} % after, {:.1f} % of each run without it\n",
                            pluralize(fit.runs, "run"), 100 * fit.error_before, 100 * fit.error_after,
                            100 * fit.error_left_out);
}

/// A line for the share of each number format.
std::string shares_text(const std::vector<Fit>& fits, const Accelerator& before) {
  std::string text = fmt::format("{:<8}{:>6}{:>10}{:>10}{:>10}{:>14}{:>13}{:>15}\n", "format", "runs", "share",
                                 "fitted", "spread", "error before", "error after", "when left out");
  for (const Fit& f : fits) {
    const Fit::Number& share = f.numbers.front();
    const double given = before.formats[share.formats.front()].share;
    text += fmt::format("{:<8}{:>6}{:>10.4g}{:>10.4g}{:>8.1f} %{:>12.1f} %{:>11.1f} %{:>13.1f} %\n",
                        name(share.formats.front()), f.runs, given, share.factor * given, 100 * share.spread,
                        100 * f.error_before, 100 * f.error_after, 100 * f.error_left_out);
  }
  return text;
}

/// Says which term the errors of a fit depend on; whether a fit should not be used.
bool warn_of(const std::vector<Fit>& fits) {
  bool is_doubtful = false;
  for (const Fit& fit : fits) {
    is_doubtful |= fit.is_doubtful();
    for (const CorrelatedTerm& term : fit.correlated)
      print_error("warning: the errors that are left {} with the part of {} (correlation {:+.2f}): --fit {}\n",
                  term.correlation < 0 ? "become more negative" : "grow", term.name, term.correlation,
                  kFitWords[static_cast<std::size_t>(term.kind)]);
    if (fit.has_contradictions())
      print_error("warning: runs with equal rows took times that are {:.0f} % apart, so that no fit is right for all\n",
                  100 * fit.disagreement);
    if (fit.has_impossible_share())
      print_error(
          "warning: a share of {:.2g} is more of the peak than products reach: check the seconds, the number format "
          "and "
          "the model of these runs\n",
          fit.largest_share);
    if (fit.error_left_out >= fit.error_before)
      print_error(
          "warning: a fit to some of these runs does not make the others better ({:.1f} % without it, {:.1f} % with "
          "it)\n",
          100 * fit.error_before, 100 * fit.error_left_out);
  }
  return is_doubtful;
}

int execute_calibrate(const Arguments& a) {
  const std::string file = a.text("FILE");
  const std::string text = read_file(file);
  if (!file.ends_with(".csv")) return fit_collective(a, file, text);
  if (!a.has("device")) throw InputError("whose runs are these?", "--device h100-sxm; stagecraft list devices");
  Accelerator device = accelerator_named(a.text("device"));
  if (a.flag("simulate")) print_error("note: runs are simulated, so --simulate changes nothing\n");
  const std::vector<FreeNumber> numbers = a.has("fit") ? free_numbers(a.text("fit")) : std::vector<FreeNumber>{};
  const std::vector<Fit> fits = with_file_context(file, [&]() -> std::vector<Fit> {
    const PredictionSet runs = read_runs_csv(file, device.name);
    if (numbers.empty()) return fit_shares(runs, device);
    if (std::find(numbers.begin(), numbers.end(), FreeNumber::Launch) != numbers.end())
      device = with_launch_of(runs, device);
    return {fit_together(runs, device, numbers)};
  });
  print(a.has("fit") ? fit_text(fits.front(), device) : shares_text(fits, device));
  const bool is_doubtful = warn_of(fits);
  if (!a.has("out")) return 0;
  if (is_doubtful && !a.flag("doubtful"))
    throw InputError("the fit may make other runs worse, so no file is written",
                     "do what the warning says, or write it all the same with --doubtful");
  write_output_of(a, "out", calibrated_device_file(device, fits, file), CommentStyle::None);
  return print("wrote " + a.text("out") + "\n"), 0;
}

}  // namespace

extern const Command calibrate{
    .name = "calibrate",
    .summary =
        "Fit the share of the peak that a device type reaches to measured iterations, or the time of a collective to "
        "output of nccl-tests",
    .group = "Measure",
    .example = "stagecraft calibrate runs.csv --device h100-sxm --out mine/topologies/devices/h100-sxm.yaml",
    .arguments =
        {{"FILE",
          Argument::Kind::Text,
          "X.csv: a run on each line, columns as in the files of scenarios/predictions (stagecraft schema "
          "predictions); other files: output of nccl-tests, "
          "whose constants are printed, and whose curve --out writes",
          {},
          true},
         {"--device", Argument::Kind::Text, "Device type of the runs, as stagecraft list devices shows it"},
         {"--collective", Argument::Kind::Text,
          "With output of nccl-tests that does not name its program: all_reduce, reduce_scatter, all_gather, "
          "all_to_all or broadcast"},
         {"--fit", Argument::Kind::Text,
          "Numbers to fit together, of share,launch,card,attention,fsdp_overlap; without it, the share of each format "
          "alone"},
         {"--doubtful", Argument::Kind::Flag,
          "Write the device file although a warning says that the fit may make other runs worse"},
         {"--simulate", Argument::Kind::Flag, "No effect; every run is simulated"},
         {"--out", Argument::Kind::Text,
          "Device file to write; scenarios read it from FOLDER/topologies/devices with STAGECRAFT_PATH=FOLDER. Of "
          "nccl-tests: curve for cluster.collectives"},
         force_argument(),
         quiet_argument()},
    .run = execute_calibrate,
};

}  // namespace stagecraft::commands
