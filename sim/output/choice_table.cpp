// The answer of `search` as text, CSV and JSON with the fields of both. choice_comparison.cpp compares its rows.

#include "sim/output/choice_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/result_columns.hpp"
#include "sim/output/run_row.hpp"
#include "sim/output/text.hpp"

namespace stagecraft {
namespace {

/// The schedule, with the weights policy where weights are stale.
std::string order_text(const Choice& c) {
  return c.weights == "flush" ? c.schedule : fmt::format("{}, {}", c.schedule, c.weights);
}

/// Most rows of a front differ little from one before.
std::vector<Choice> thinned(const std::vector<Choice>& front) {
  std::vector<std::size_t> order(front.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return front[a].period < front[b].period; });
  std::vector<Choice> unshared, shown;
  for (const std::size_t i : order) unshared.push_back(front[i]);
  const std::vector<bool> now = stand_out(front), before = stand_out(unshared);
  for (std::size_t i = 0; i < front.size(); ++i)
    if (now[i] || before[std::find(order.begin(), order.end(), i) - order.begin()]) shown.push_back(front[i]);
  return shown;
}

/// The amount of each row before its period, where that is no time. `every_objective`: the columns of all of them.
void add_amount_columns(TableColumns<Choice>& columns, const ObjectiveUnit& unit, bool every_objective) {
  if (unit.is_time() && !every_objective) return;
  TableColumns<Choice> added;
  for (FileColumn& c : objective_columns()) {
    if (!every_objective && c.name() != unit.column()) continue;
    const Metric& m = metrics()[metric(c.name())];
    const auto value = [&unit](const Choice& row) { return unit.in_unit(row.amount); };
    added.push_back(figure_column<Choice>(
        m, value, {.key = std::move(c), .heading = unit.objective == Objective::Cost ? "cost" : "energy", .width = 9}));
  }
  columns.insert(columns.begin(), added.begin(), added.end());
}

BudgetColumns budget_columns_of(const ChoiceTable& t, bool every_column = false) {
  return {.has_price = every_column || t.unit.objective == Objective::Cost, .every_column = every_column};
}

/// What a row takes.
TableColumns<Choice> amount_columns(const ChoiceTable& t) {
  using Row = Choice;
  return {
      period_column<Row>(t.interval),
      figure_column<Row>("makespan_s", &Row::makespan),
      figure_column<Row>("throughput_samples_per_s", &Row::throughput, {.width = 10, .drop_order = 5}),
      memory_column<Row>(),
      figure_column<Row>("devices", &Row::devices, {.width = 7}),
  };
}

/// How a row trains.
TableColumns<Choice> training_columns() {
  using Row = Choice;
  return {
      {{.key = result_column("planner"),
        .heading = "planner",
        .width = 7,
        .align = TextAlign::Left,
        .widens = true,
        .drop_order = 3},
       &Row::planner},
      {{.heading = "plan", .width = 4, .align = TextAlign::Left, .widens = true}, &Row::plan_words},
      {{.key = result_column("stages")}, &Row::stages},
      {{.key = result_column("replicas")}, &Row::replicas},
      {{.key = result_column("group")}, &Row::group},
      {{.key = result_column("placement"),
        .heading = "placement",
        .width = 9,
        .align = TextAlign::Left,
        .drop_order = 4},
       &Row::placement},
      {{.key = result_column("schedule"), .heading = "schedule", .width = 8, .align = TextAlign::Left, .widens = true},
       [](const Row& c) { return TableCell(c.schedule, order_text(c)); }},
      {{.key = result_column("weights")}, &Row::weights},
      {{.key = result_column("micro_batches")}, &Row::micro_batches},
      {{.key = result_column("micro_batch_size")}, &Row::micro_batch_size},
      {{.key = result_column("recompute"),
        .heading = "recompute",
        .width = 9,
        .align = TextAlign::Left,
        .drop_order = 3},
       &Row::recompute},
  };
}

/// Why a row is not better.
TableColumns<Choice> reason_columns(const ChoiceTable& t) {
  using Row = Choice;
  const bool has_remarks =
      std::any_of(t.front.begin(), t.front.end(), [&](const Choice& c) { return !remark_of(c, t).empty(); });
  return {
      {{.key = result_column("limited_by"),
        .heading = "limited by",
        .align = TextAlign::Left,
        .drop_order = 6,
        .files = InFiles::Json},
       [](const Row& c) { return TableCell(Json(c.limit), c.limit.empty() ? "-" : c.limit); }},
      {{.key = result_column("remark"), .heading = has_remarks ? "remark" : "", .align = TextAlign::Left},
       [&](const Row& c) { return remark_of(c, t); }},
      {{.key = result_column("behind"), .files = InFiles::Json},
       [&](const Row& c) {
         return c.id == t.front.front().id ? std::string() : behind_text(c, t.front.front(), t.unit);
       }},
      {{.key = result_column("set"), .files = InFiles::Json}, [](const Row& c) { return Json(c.sets); }},
      {{.key = result_column("plan")}, &Row::plan_words},
  };
}

Table printed(const ChoiceTable& t, const std::vector<Choice>& rows, bool all_columns = false) {
  TableColumns<Choice> columns = joined_columns<Choice>({amount_columns(t), training_columns(), reason_columns(t)});
  add_replay_columns(columns, t.replay, "makespan_s");
  add_budget_columns(columns, t.front, budget_columns_of(t, all_columns));
  add_amount_columns(columns, t.unit, all_columns);
  return make_table<Choice>(columns, rows);
}

std::string about_replay(const ChoiceTable& t) {
  if (t.replay.rows == 0) return {};
  const Choice& c = t.front[t.replay.was_first];
  return replay_text(
      t.replay, 0,
      fmt::format("{} on {}, {} by {}", order_text(c), pluralize(c.devices, "device"), c.plan_words, c.planner),
      c.period, c.replayed);
}

/// Where no row is worth its time for the sake of its memory: the shortest one that needs less memory.
std::string about_less_memory(const ChoiceTable& t) {
  const Choice& first = t.front.front();
  const Choice* knee = knee_of(t);
  if (first.is_tight || !knee || knee->id != first.id) return {};
  const auto next = std::find_if(t.front.begin(), t.front.end(), [&](const Choice& c) {
    return !c.is_tight && may_be_knee(first.amount, c.memory, first);
  });
  if (next == t.front.end()) return {};
  return fmt::format("within 2 % of the first, no plan that was tried needs 5 % less memory; {} with {} does\n",
                     t.unit.text(next->amount), to_text(next->memory));
}

/// What the remarks mean that are on one of the rows.
std::string about_remarks(const ChoiceTable& t, const std::vector<Choice>& shown) {
  std::string text;
  const Choice& first = t.front.front();
  if (first.is_tight)
    text += fmt::format("no plan that was tried leaves {:g} % of each device's memory free; the first uses {:.1f} %\n",
                        100 * t.margin, 100 * first.filled);
  else if (std::any_of(shown.begin(), shown.end(), [](const Choice& c) { return c.is_tight; }))
    text += fmt::format("tight: less than {:g} % of a device's memory is free (--margin)\n", 100 * t.margin);
  if (std::any_of(shown.begin(), shown.end(), [](const Choice& c) {
        return c.is_tight && c.plan_words.find("offload selective") != std::string::npos;
      }))
    text +=
        "offload selective moves no more to host memory than fits, so it leaves no margin; a share does, such as "
        "plan.offload.activations=50%\n";
  if (std::any_of(shown.begin(), shown.end(), [&](const Choice& c) { return is_tie(c, t); }))
    text +=
        fmt::format("tie: differs from the first by less than the interval of simulated times, {} %; measure both\n",
                    two_digits(100 * t.interval->half_width));
  return text;
}

/// Periods of the scenario as it is written and of the first row: with contention where both have such a result.
struct OwnAndFirst {
  Seconds configured, first;
  bool contended = false;
};

OwnAndFirst own_and_first(const ChoiceTable& t) {
  const Choice& best = t.front.front();
  if (t.own_replayed && t.own_replayed->ran() && best.ran_contended())
    return {t.own_replayed->period, best.replayed->period, true};
  return {t.configured_period, best.period};
}

/// Where the interval of a simulated time is wider than how far two of them are apart.
std::string unsure_text(const ChoiceTable& t, Seconds longer, Seconds shorter) {
  constexpr double kShown = 1.0005;  // Times that are closer are printed as 0.0 % apart.
  if (!t.interval || longer < kShown * shorter || longer > (1 + t.interval->half_width) * shorter) return {};
  return fmt::format(", which is less than the interval of simulated times, {} %; measure both",
                     two_digits(100 * t.interval->half_width));
}

std::string about_own(const ChoiceTable& t) {
  const std::string as_it_is = ", so --out writes the scenario as it is";
  if (!t.unit.is_time()) {
    const double first = t.front.front().amount;
    return fmt::format("as the scenario has it  {}; the first is {:.1f} % {}\n", t.unit.text(t.configured_amount),
                       std::abs(100 * (1 - first / t.configured_amount)),
                       first <= t.configured_amount ? "less" : "more" + as_it_is);
  }
  const auto [configured, first, again] = own_and_first(t);
  const std::string tight = t.configured_is_tight && !t.front.front().is_tight ? " and leaves the margin free" : "";
  const std::string shared = !again || to_text(configured) == to_text(t.configured_period)
                                 ? ""
                                 : fmt::format(", {} on {}", to_text(configured), t.replay.backend);
  return fmt::format("as the scenario has it  {}{}; the first is {:.1f} % {}\n", to_text(t.configured_period), shared,
                     std::abs(100 * (1 - first / configured)),
                     first <= configured ? "shorter" + unsure_text(t, configured, first)
                     : tight.empty()     ? "longer" + as_it_is
                                         : "longer" + tight);
}

std::string refused_text(const ChoiceTable& t) {
  std::string text;
  for (const auto& [schedule, why] : t.refused) text += fmt::format("{} runs none of these plans: {}\n", schedule, why);
  return text;
}

}  // namespace

std::string unexchanged_text(const ChoiceTable& t) { return unexchanged_text_of(t.front); }

namespace {

std::string nothing_found(const ChoiceTable& t) {
  const std::string why = t.stopped.empty() ? "" : fmt::format(" ({})", t.stopped);
  if (t.plans == 0 && t.cut_short) return fmt::format("No plan was tried{}\n", why);
  std::string text =
      !t.stopped.empty() ? fmt::format("No plan that fits was found before the search ended ({}): {} of {}", t.stopped,
                                       pluralize(t.simulated, "simulation"), pluralize(t.plans, "plan"))
      : t.simulated == 0 ? fmt::format("No plan fits: none of {} could be simulated", pluralize(t.plans, "plan"))
                         : fmt::format("{}: {} of {}, and {} of those simulations exceed the memory of a device",
                                       t.cut_short ? "No plan that was tried fits" : "No plan fits",
                                       pluralize(t.simulated, "simulation"), pluralize(t.plans, "plan"), t.unfit);
  text += t.cut_short || !t.stopped.empty() ? "; others were not tried\n" : "\n";
  if (t.too_large > 0)
    text += fmt::format(
        "weights, gradients, optimizer and one micro-batch of {} exceed it; the smallest needs at least {} on a "
        "device\n",
        pluralize(t.too_large, "plan"), to_text(t.least_memory));
  return text;
}

}  // namespace

std::optional<double> optimality_gap(const ChoiceTable& t) {
  if (t.bound <= 0 || t.front.empty()) return {};
  return std::max(0.0, t.front.front().amount / t.bound - 1);
}

std::string proved_text(const ChoiceTable& t) {
  const std::string why = !t.stopped.empty() ? fmt::format(" ({})", t.stopped)
                          : t.patience > 0 ? fmt::format(" (none of the last {} was better; --all goes on)", t.patience)
                                           : "";
  const std::string name = objective_names()[static_cast<std::size_t>(t.unit.objective)];
  std::string better = t.unit.is_time() ? "a shorter period" : "a lower " + name;
  if (t.has_shorter_tight) better += fmt::format(" with {:g} % of memory free", 100 * t.margin);
  if (t.untried > 0)
    return fmt::format("{} that could have {} {} not simulated{}", pluralize(t.untried, "other"), better,
                       t.untried == 1 ? "was" : "were", why);
  if (t.cut_short)
    return fmt::format("no other in this search has {}; {}smaller ones, or on fewer devices, were not all simulated{}",
                       better, t.unit.is_time() ? "" : "shorter and ", why.empty() ? " (--all)" : why);
  if (t.has_shorter_tight)
    return fmt::format("no other in this search has {}, and none is smaller or on fewer devices", better);
  return fmt::format("no other in this search is {}shorter, smaller or on fewer devices",
                     t.unit.is_time() ? "" : "lower in " + name + ", ");
}

namespace {

/// Options to paste into a shell, which a backslash continues on the next line.
std::string options_text(const std::vector<std::string>& sets, std::size_t width) {
  constexpr std::size_t kLongestArgument = (128 << 10) - 1;  // MAX_ARG_STRLEN of Linux, which counts the end.
  if (std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.size() > kLongestArgument; }))
    return "the options of the first are longer than a command takes; --out FILE writes them as a scenario\n";
  std::string text = "the first, as options  ";
  std::size_t used = text.size();
  for (const std::string& set : sets) {
    const std::string option = fmt::format(" --set '{}'", set);
    const std::size_t added = display_width(option);
    if (width > 0 && used + added + 2 > width) {
      text += " \\\n   ";
      used = 3;
    }
    text += option;
    used += added;
  }
  return text + "\n";
}

}  // namespace

bool own_is_best(const ChoiceTable& t) {
  if (!t.front.empty() && t.configured_is_tight && !t.front.front().is_tight) return false;
  if (!t.unit.is_time())
    return t.configured_amount > 0 && !t.front.empty() && t.configured_amount < t.front.front().amount;
  if (t.configured_period.value <= 0 || t.front.empty()) return false;
  const OwnAndFirst periods = own_and_first(t);
  return periods.configured < periods.first;
}

Table rows_of(const ChoiceTable& t) { return printed(t, t.front); }

std::vector<Choice> printed_rows(const ChoiceTable& t, bool whole_front) {
  if (whole_front) return t.front;
  std::vector<Choice> shown = thinned(t.front);
  if (const Choice* knee = knee_of(t)) {
    const auto place = std::find_if(shown.begin(), shown.end(), [&](const Choice& c) {
      return c.is_tight > knee->is_tight || (c.is_tight == knee->is_tight && c.amount >= knee->amount);
    });
    if (place == shown.end() || place->id != knee->id) shown.insert(place, *knee);
  }
  return shown;
}

namespace {

/// What is known about the rest, as one sentence.
std::string proof_sentence(const ChoiceTable& t) {
  std::string text =
      fmt::format("{} of {}: {}", pluralize(t.simulated, "simulation"), pluralize(t.plans, "plan"), proved_text(t));
  if (const std::optional<double> gap = optimality_gap(t))
    text += fmt::format("; the first is at most {} % above {}, the lower bound of {}", two_digits(100 * *gap),
                        t.unit.text(t.bound), t.has_shorter_tight ? "plans that may leave it free" : "these plans");
  return text + "\n";
}

/// The first of what was not tried, and how much more there is.
std::string untried_sentence(const ChoiceTable& t) {
  constexpr std::string_view kHead = "not tried: ";
  constexpr std::size_t kMost = 2;
  for (const std::string& line : t.reasons) {
    if (!line.starts_with(kHead)) continue;
    const std::vector<std::string> phrases = split(line.substr(kHead.size()), ';');
    std::string text(kHead);
    for (std::size_t i = 0; i < std::min(kMost, phrases.size()); ++i)
      text += (i > 0 ? "; " : "") + std::string(trim(phrases[i]));
    return text + (phrases.size() > kMost ? fmt::format("; and {} more (--details)\n", phrases.size() - kMost) : "\n");
  }
  return {};
}

/// What explains the columns and the rows.
std::string explanations(const ChoiceTable& t, const std::vector<Choice>& shown) {
  std::string text = fmt::format("without enough memory: {} of {}\n", t.unfit, pluralize(t.simulated, "simulation"));
  text += budget_text({t.front.begin(), t.front.end()}, budget_columns_of(t)) + t.reserve + interval_line(t.interval);
  if (std::any_of(shown.begin(), shown.end(), [](const Choice& c) { return c.weights != "flush"; }))
    text += "with stale weights it takes more updates to learn as much: stagecraft convergence\n";
  text += about_replay(t);
  for (const std::string& line : t.reasons) text += line + "\n";
  return text;
}

}  // namespace

std::string to_text(const ChoiceTable& t, bool whole_front, bool details, const TextLayout& layout) {
  std::string head =
      fmt::format("{}\n{} on {}: {} in an iteration\n\n", t.title, t.model, t.cluster, pluralize(t.samples, "sample"));
  if (t.front.empty()) return wrap_lines(head + nothing_found(t) + refused_text(t), layout.width);
  const std::vector<Choice> shown = printed_rows(t, whole_front);
  Table table = printed(t, shown);
  if (shown.size() < t.front.size())
    table.more = fmt::format("... and {} more, with somewhat less memory (--all)", t.front.size() - shown.size());
  std::string text = "\n" + proof_sentence(t) + (details ? "" : untried_sentence(t));
  if (!t.unit.is_time())
    text += fmt::format("{}: {}\n", t.unit.objective == Objective::Cost ? "cost" : "energy", t.unit.unit());
  if (const std::string line = unexchanged_text_of(shown); !line.empty()) text += line + "\n";
  text += about_less_memory(t) + about_remarks(t, shown) + refused_text(t);
  if (details) text += explanations(t, shown);
  if (t.configured_period.value > 0) text += about_own(t);
  text += published_text(t);
  text = wrap_lines(head, layout.width) + to_text(table, layout) + wrap_lines(text, layout.width) +
         options_text(t.front.front().sets, std::max(layout.width, 0));
  if (details) text += wrap_lines(to_text(t.diagnosis, "the first", "these options"), layout.width);
  return text;
}

std::string choices_csv(const ChoiceTable& t) { return to_csv(printed(t, t.front)); }

Json choices_value(const ChoiceTable& t) {
  JsonObject refused;
  for (const auto& [schedule, why] : t.refused) refused.push_back({schedule, why});
  Json json = JsonObject{{"schema", "choices/1"},
                         {"title", t.title},
                         {"model", t.model},
                         {"cluster", t.cluster},
                         {"samples", t.samples},
                         {"plans", t.plans},
                         {"simulated", t.simulated},
                         {"unfit", t.unfit},
                         {"too_large", t.too_large},
                         {"dropped_by_bound", t.dropped_by_bound},
                         {"untried", t.untried},
                         {"untried_smaller", t.untried_smaller},
                         {"margin", t.margin},
                         {"cut_short", t.cut_short},
                         {"stopped", t.stopped},
                         {"proved", proved_text(t)},
                         {"reasons", t.reasons},
                         {"own_period_s", t.configured_period.value > 0 ? Json(t.configured_period.value) : Json()},
                         {"bound_s", t.unit.is_time() ? Json(t.bound) : Json()},
                         {"gap", optimality_gap(t) ? Json(*optimality_gap(t)) : Json()},
                         {"objective", objective_json(t.unit, t.bound, t.configured_amount)},
                         {"refused", std::move(refused)},
                         {"choices", to_json(printed(t, t.front))},
                         {"published", published_json(t)}};
  if (t.interval) json["interval"] = interval_json(*t.interval);
  if (t.replay.asked()) {
    json["replay"] = replay_json(t.replay);
    json["own_replayed"] = replayed_json(t.own_replayed);
  }
  if (!t.diagnosis.findings.empty())
    json["diagnosis"] = diagnosis_json(with_sets_before(t.diagnosis, t.front.front().sets));
  return json;
}

std::string choices_json(const ChoiceTable& t) { return choices_value(t).dump(2); }

namespace {

/// A table without rows, with all columns that it may have.
Table empty_choice_table() {
  ChoiceTable table;
  table.replay.backend = kReplayBackend;
  return printed(table, {}, true);
}

config::Field own_replayed_field() {
  config::Field field = replayed_column().field;
  field.name = "own_replayed";
  field.doc("The scenario as it is written, with network contention; null without such a result.");
  return field;
}

}  // namespace

std::vector<FileColumn> choices_columns() { return csv_columns(empty_choice_table()); }

const config::MapSpec& choices_fields() {
  using namespace config;
  static const MapSpec row = json_row(empty_choice_table(), "A way to train.");
  static const MapSpec spec{
      .title = "What `stagecraft search --format json` prints: the Pareto front of period, memory and devices.",
      .fields = {
          choice("schema", {"choices/1"}).doc("Version of this format."),
          text("title").doc("Title of the scenario."),
          text("model").doc("Name of the model."),
          text("cluster").doc("Name of the cluster."),
          integer("samples", 0, kInfinity).doc("Samples of an iteration."),
          integer("plans", 0, kInfinity).doc("Plans that were considered."),
          integer("simulated", 0, kInfinity).doc("Simulations."),
          integer("unfit", 0, kInfinity).doc("Simulations that exceed the memory of a device."),
          integer("too_large", 0, kInfinity).doc("Plans that keep more for one micro-batch than a device has."),
          integer("dropped_by_bound", 0, kInfinity)
              .doc("Plans and choices that were skipped, because a lower bound shows that another is no worse."),
          integer("untried", 0, kInfinity)
              .doc("Choices that could have a shorter period than the first and were not simulated."),
          integer("untried_smaller", 0, kInfinity)
              .doc("Others that could need less memory or fewer devices and were not simulated."),
          real("margin", 0, 1).doc("Share of a device's memory that the first row leaves free, if any row does."),
          boolean("cut_short").doc("Whether choices that could be better were not simulated."),
          text("stopped").doc("Why the search ended early; empty: it did not."),
          text("proved").doc("What is known about choices that were not simulated."),
          list("reasons", text("sentence")).doc("Why the first is the first, and what was not tried."),
          real("own_period_s", 0, kInfinity)
              .nullable()
              .doc("Period of the scenario as it is written, in seconds; null where it cannot run."),
          real("bound_s", 0, kInfinity)
              .nullable()
              .doc("No order of work makes any of the plans that may leave the margin of memory free shorter, in "
                   "seconds; null "
                   "with another objective."),
          real("gap", 0, kInfinity)
              .nullable()
              .doc("How far the first is above the bound of the objective at most, as a share of the bound; null "
                   "without a bound."),
          objective_field(),
          table("refused", text("reason")).doc("Schedules that run none of the plans, and why."),
          list("choices", map("choice", row))
              .positional()
              .doc("The front, shortest period first, or with another objective the smallest."),
          published_field(),
          interval_field(),
          replay_field(),
          own_replayed_field(),
          diagnosis_field()}};
  return spec;
}

}  // namespace stagecraft
