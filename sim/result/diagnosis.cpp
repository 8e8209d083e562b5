// What limits a run, as text and in files; sim/diagnosis finds it.

#include "sim/result/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// A shell takes these characters as they are; everything else stands in single quotes.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

bool keeps_batch(const Suggestion& s, const Diagnosis& d) { return !s.run || s.run->samples == d.samples; }

/// "saves 23.1 % of the period: 58.2 ms", and with another batch "saves 23.1 % of the time per sample: 58.2 ms for 64
/// samples". A simulation of a measured run gives a share alone.
std::string saving_text(const Suggestion& s, const Diagnosis& d) {
  const ChangedRun& run = *s.run;
  const std::string share = fmt::format("{} {} of the {}", run.saved >= 0 ? "saves" : "costs",
                                        percent(std::abs(run.saved)), keeps_batch(s, d) ? "period" : "time per sample");
  if (d.measured) return share + " of a simulation; not measured";
  const std::string batch = keeps_batch(s, d) ? "" : " for " + pluralize(run.samples, "sample");
  return fmt::format("{}: {}{}, simulated", share, to_text(run.period), batch);
}

/// Flags of a framework that are longer, such as a layout of all layers, come after what they save, on their own line.
constexpr std::size_t kLongFlags = 120;

/// The change with its options and what it saves on the next line; a change of the batch says so first.
std::string suggestion_text(const Suggestion& s, const Diagnosis& d, const std::string& before = {}) {
  const std::string text = fmt::format("{}{}: {}{}", keeps_batch(s, d) ? "" : "with another batch: ", s.change,
                                       before.empty() ? "" : before + " and ", options_text(s));
  const std::string saving = s.run ? saving_text(s, d) : "not simulated";
  if (s.flags.size() > kLongFlags) return fmt::format("{}\n    {}\n    {}", text, saving, s.flags);
  return fmt::format("{}\n    {}{}{}", text, s.flags, s.flags.empty() ? "" : s.run ? " " : ": ", saving);
}

}  // namespace

std::string cause_words(std::string_view cause) {
  constexpr std::pair<std::string_view, const char*> kWords[] = {{"memory", "recomputation forced by memory"},
                                                                 {"recomputation", "needless recomputation"},
                                                                 {"host-memory", "waits for host memory"},
                                                                 {"group-collectives", "collectives inside groups"},
                                                                 {"launches", "kernel launches"},
                                                                 {"placement", "messages between nodes"}};
  for (const auto& [name, words] : kWords)
    if (name == cause) return words;
  std::string words(cause);
  std::replace(words.begin(), words.end(), '-', ' ');
  return words;
}

std::string cause_text(const Diagnosis& d) {
  if (d.findings.empty()) return {};
  std::string text = d.first().cause;
  std::replace(text.begin(), text.end(), '-', ' ');
  // A bubble is where the schedule is, which another column shows.
  return d.first().where.empty() || d.first().cause == "bubble" ? text : text + ": " + d.first().where;
}

std::string shell_word(const std::string& word) {
  if (std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string options_text(const Suggestion& s) {
  std::string text;
  for (const std::string& set : s.sets) text += fmt::format("{}--set {}", text.empty() ? "" : " ", shell_word(set));
  return text;
}

namespace {

/// Below this share a change is not worth a line.
constexpr double kSmallSaving = 0.01;

bool is_shown(const Suggestion& s) { return !s.run || s.run->saved >= kSmallSaving; }

/// "  3 changes simulated, and none saves 1 % of the time; 2 cannot run: does not fit in memory": of those that are not
/// shown.
std::string useless_text(const Finding& f) {
  const auto hidden =
      std::count_if(f.suggestions.begin(), f.suggestions.end(), [](const Suggestion& s) { return !is_shown(s); });
  std::string text;
  if (hidden > 0)
    text = fmt::format("{}{} simulated, and none saves 1 % of the time",
                       hidden < std::ssize(f.suggestions) ? "others: " : "", pluralize(hidden, "change"));
  std::vector<std::string> reasons;
  for (const RefusedSuggestion& r : f.refused)
    if (std::find(reasons.begin(), reasons.end(), r.why) == reasons.end()) reasons.push_back(r.why);
  if (!f.refused.empty())
    text += fmt::format("{}{} cannot run: {}", text.empty() ? "" : "; ", pluralize(std::ssize(f.refused), "change"),
                        join(reasons, "; "));
  return text.empty() ? text : "  " + text + "\n";
}

/// What helps: the changes that keep the batch before those that do not, each kind with the best first.
std::vector<const Suggestion*> helpful_suggestions(const Finding& f, const Diagnosis& d) {
  std::vector<const Suggestion*> list;
  for (const Suggestion& s : f.suggestions)
    if (is_shown(s)) list.push_back(&s);
  std::stable_partition(list.begin(), list.end(), [&](const Suggestion* s) { return keeps_batch(*s, d); });
  return list;
}

bool is_simulated(const Finding& f) {
  return std::any_of(f.suggestions.begin(), f.suggestions.end(), [](const Suggestion& s) { return s.run.has_value(); });
}

/// "  also: gradient sums 34.4 %, slow link 19.0 % of the period (--what-if)": what costs much next to the first.
/// Nothing where changes of every cause were simulated, because they are printed below.
std::string other_causes_text(const Diagnosis& d) {
  constexpr double kLarge = 0.1;
  std::vector<std::string> causes;
  for (std::size_t k = 1; k < d.findings.size(); ++k) {
    const Finding& f = d.findings[k];
    if (is_simulated(f)) return {};
    if (f.lost.value > 0 && f.share >= kLarge)
      causes.push_back(fmt::format("{} {}", cause_words(f.cause), percent(f.share)));
  }
  return causes.empty() ? "" : fmt::format("  also: {} of the period (--what-if)\n", join(causes));
}

}  // namespace

std::string to_text(const Diagnosis& d, const std::string& what, const std::string& before) {
  const std::string head = what.empty() ? "limit: " : fmt::format("limit of {}: ", what);
  if (d.findings.empty()) return d.not_simulated.empty() ? "" : head + d.not_simulated + "\n";
  std::string text = head + d.first().sentence + "\n";
  const std::vector<const Suggestion*> helpful = helpful_suggestions(d.first(), d);
  if (helpful.empty()) {
    text += useless_text(d.first());
  } else {
    const Suggestion& best = *helpful.front();
    text += "  try " + suggestion_text(best, d, before) + "\n";
    const auto other = std::find_if(helpful.begin(), helpful.end(), [&](const Suggestion* s) {
      return !keeps_batch(*s, d) && best.run && s->run->saved > best.run->saved;
    });
    if (keeps_batch(best, d) && other != helpful.end()) text += "  or " + suggestion_text(**other, d, before) + "\n";
  }
  if (what.empty()) text += other_causes_text(d);
  if (!d.not_simulated.empty()) text += "  " + d.not_simulated + "\n";
  return text;
}

Diagnosis with_sets_before(Diagnosis d, const std::vector<std::string>& sets) {
  for (Finding& f : d.findings)
    for (Suggestion& s : f.suggestions) s.sets.insert(s.sets.begin(), sets.begin(), sets.end());
  return d;
}

std::string what_if_text(const Diagnosis& d, Seconds period, bool details) {
  std::string text = fmt::format("now: {} for {}\n", to_text(period), pluralize(d.samples, "sample"));
  for (const Finding& f : d.findings) {
    text += fmt::format("{}{}: {}\n", cause_words(f.cause),
                        f.lost.value > 0 ? fmt::format(" (costs {} of the period)", percent(f.share)) : "", f.sentence);
    for (const Suggestion* s : helpful_suggestions(f, d)) text += "  " + suggestion_text(*s, d) + "\n";
    if (!details) {
      text += useless_text(f);
      continue;
    }
    for (const Suggestion& s : f.suggestions)
      if (!is_shown(s)) text += "  " + suggestion_text(s, d) + "\n";
    for (const auto& [s, why] : f.refused)
      text += fmt::format("  {}: {}\n    cannot run: {}\n", s.change, options_text(s), why);
  }
  return text;
}

namespace {

Json suggestion_json(const Suggestion& s) {
  Json json = JsonObject{{"change", s.change}, {"sets", s.sets}};
  if (!s.flags.empty()) json["flags"] = s.flags;
  if (s.run) {
    json["period_s"] = s.run->period.value;
    json["samples"] = s.run->samples;
    json["saved"] = s.run->saved;
  }
  return json;
}

}  // namespace

Json diagnosis_json(const Diagnosis& d) {
  Json list = JsonArray();
  for (const Finding& f : d.findings) {
    Json json = JsonObject{
        {"cause", f.cause}, {"where", f.where}, {"lost_s", f.lost.value}, {"share", f.share}, {"sentence", f.sentence}};
    json["suggestions"] = JsonArray();
    for (const Suggestion& s : f.suggestions) json["suggestions"].push_back(suggestion_json(s));
    list.push_back(std::move(json));
  }
  return list;
}

config::Field diagnosis_field() {
  using namespace config;
  static const MapSpec suggestion{
      .title = "A change of the scenario that may help.",
      .fields = {
          text("change").doc("The change in words."), list("sets", text("set")).doc("path=value of each option --set."),
          text("flags").optional().doc("The change as options of the training framework; absent: it has none for it."),
          real("period_s", 0, kInfinity).optional().doc("Simulated period with the change; absent: not simulated."),
          integer("samples", 1, kInfinity).optional().doc("Samples of an iteration with the change."),
          real("saved", -kInfinity, 1)
              .optional()
              .doc("Simulated share of the time per sample that the change saves; negative: it costs time.")}};
  static const MapSpec finding{
      .title = "A cause that limits the run.",
      .fields = {
          text("cause").doc("Name of the cause, such as bubble or slow-link."),
          text("where").doc("Stage, device or link; may be empty."),
          real("lost_s", 0, kInfinity)
              .doc("Seconds of a period that the run would save without the cause; in a measured run those in which "
                   "devices wait on average."),
          real("share", 0, 1).doc("The same as a share of the period."), text("sentence").doc("The cause in words."),
          list("suggestions", map("suggestion", suggestion)).doc("Changes that may help, the best first.")}};
  return list("diagnosis", map("finding", finding)).optional().doc("What limits the run, the largest loss first.");
}

}  // namespace stagecraft
