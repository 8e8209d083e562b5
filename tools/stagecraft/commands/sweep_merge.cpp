// `stagecraft sweep-merge`: adds the SQLite files of shards to one file and prints its table; exit code 3 while points
// failed or are missing.

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/sweep/store.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

int execute_sweep_merge(const Arguments& a) {
  const std::string format = a.text("format");
  check_format(format, {"text", "csv", "json"});
  for (const std::string& file : a.list("RESULTS")) check_results(file);
  Store store(a.text("into"));
  for (const std::string& file : a.list("RESULTS")) store.merge(file);
  const SweepTable table = store.table();
  print(format == "csv" ? sweep_csv(table) : format == "json" ? sweep_json(table) + "\n" : to_text(table));
  flush();
  print_error("{} in {}: {} failed, {} not run\n", pluralize(std::ssize(table.rows), "point"), a.text("into"),
              table.failed(), table.missing());
  return table.failed() + table.missing() > 0 ? 3 : 0;
}

}  // namespace

extern const Command sweep_merge{
    .name = "sweep-merge",
    .summary = "Merge the results of a sweep's shards into one file",
    .group = "Plan",
    .example = "stagecraft sweep-merge a.db b.db --into all.db",
    .arguments = {{"RESULTS", Argument::Kind::List, "Files that sweep --out wrote, of one sweep", {}, true},
                  {"--into", Argument::Kind::Text, "File for all results; it may exist", {}, true},
                  {"--format", Argument::Kind::Text, "text, csv or json", "text"}},
    .run = execute_sweep_merge,
};

}  // namespace stagecraft::commands
