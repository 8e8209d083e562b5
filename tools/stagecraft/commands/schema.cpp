// `stagecraft schema`: prints the schema of a file that file_schemas.cpp lists, or the list.

#include <algorithm>

#include <fmt/core.h>

#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/file_schemas.hpp"

namespace stagecraft::commands {
namespace {

std::string list_text(bool read) {
  std::size_t width = 0;
  for (const FileSchema& f : file_schemas()) width = std::max(width, f.name.size());
  std::string text;
  for (const FileSchema& f : file_schemas())
    if (f.read == read) text += fmt::format("  {:<{}}  {}\n", f.name, width, f.about);
  return text;
}

int execute_schema(const Arguments& a) {
  if (a.has("KIND"))
    print(file_schema(a.text("KIND")).text());
  else
    print("YAML files that stagecraft reads (JSON Schema):\n" + list_text(true) +
          "\nFiles and output that it writes (JSON Schema; for CSV and SQLite the columns as JSON Table Schema):\n" +
          list_text(false));
  return 0;
}

}  // namespace

extern const Command schema{
    .name = "schema",
    .summary = "Print the JSON Schema of a file, or the columns of a CSV file with units and meaning",
    .group = "Files",
    .example = "stagecraft schema scenario > scenario.schema.json\n  stagecraft schema spans.csv",
    .arguments = {{"KIND", Argument::Kind::Text,
                   "scenario, results.json, spans.csv, ...; without one, the list of all"}},
    .run = execute_schema,
};

}  // namespace stagecraft::commands
