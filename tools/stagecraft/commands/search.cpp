#include <fmt/format.h>

#include "sim/search/choices.hpp"
#include "sim/weights/policy.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

constexpr const char* kSearchReplay = "10";

int execute_search(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"text", "csv", "json"});
  ChoiceOptions options{.backend = a.text("backend")};
  if (a.has("schedules"))
    for (const std::string& word : split(a.text("schedules"), ',')) options.schedules.emplace_back(trim(word));
  if (a.has("weights") && a.text("weights") == "all") {
    for (const WeightsDef* def : weights::catalog())
      if (def->name != "custom") options.weights.emplace_back(def->name);
  } else if (a.has("weights")) {
    for (const std::string& word : split(a.text("weights"), ',')) options.weights.emplace_back(trim(word));
  }
  options.max_simulations = a.count("most", 1, 1000000);
  options.replay = replay_rows(a, options.backend, kSearchReplay);
  const ChoiceTable table = search_choices(load_experiment(a.text("FILE"), a.list("set")), options, show_progress);
  hide_progress();
  for (const std::string& note : table.notes) print_error("note: {}\n", note);
  if (const std::string line = unexchanged_text(table); format != "text" && !line.empty())
    print_error("note: {}\n", line);
  print(format == "csv"    ? choices_csv(table)
        : format == "json" ? choices_json(table) + "\n"
                           : to_text(table, a.flag("all")));
  return table.front.empty() ? 3 : 0;
}

}  // namespace

extern const Command search{
    .name = "search",
    .summary = "Search plans, schedules, micro-batches, recomputation and weights together for the best ways to train",
    .group = "Run",
    .example = "stagecraft search scenarios/examples/quickstart.yaml",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario: its model, cluster and samples in an iteration", {}, true},
                  {"--schedules", Argument::Kind::Text,
                   "Names with commas between. chimera and other bidirectional schedules are tried only if named "
                   "(default: the usual synchronous schedules, then synthesised; with software of Megatron-LM 1f1b and "
                   "interleaved)"},
                  {"--weights", Argument::Kind::Text,
                   "Weights policies with commas between, or all; stale ones are included (default: the policy that "
                   "belongs to each schedule)"},
                  {"--all", Argument::Kind::Flag, "Print the whole Pareto front of time, memory and devices"},
                  {"--most", Argument::Kind::Count, "Most simulations", "2000"},
                  {"-b,--backend", Argument::Kind::Text, "Backend that simulates them", "ideal"},
                  replay_argument(kSearchReplay),
                  {"-s,--set", Argument::Kind::List, "path=value of the scenario; may be repeated"},
                  {"--format", Argument::Kind::Text, "text, csv or json", "text"}},
    .run = execute_search,
};

}  // namespace stagecraft::commands
