#include "sim/schedule/check_file.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft::commands {
namespace {

int execute(const Arguments& a) {
  if (a.text("KIND") != "pytorch-csv")
    throw InputError("there is no kind '" + a.text("KIND") + "' to import", "write pytorch-csv");
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  const CheckedFile file = check_file(read_file(a.text("FILE")), a.text("FILE"), options);
  throw_if_bad(file, a.text("FILE"));
  const std::string text = to_csv(file.compute.schedule);
  if (!a.has("out")) return print(text), 0;
  write_file(a.text("out"), text);
  return print("wrote " + a.text("out") + "\n"), 0;
}

}  // namespace

extern const Command import_from{
    .name = "import",
    .summary = "Check a schedule of PyTorch, lowered or not, and write what run.schedule: {csv: FILE} reads",
    .group = "Files of others",
    .example = "stagecraft import pytorch-csv lowered.csv --out order.csv",
    .arguments = {{"KIND", Argument::Kind::Text, "pytorch-csv", {}, true},
                  {"FILE", Argument::Kind::Text, "CSV text, compute_only or compute_comms", {}, true},
                  {"--torch", Argument::Kind::Text, "Version that wrote it: 2.8 or 2.11"},
                  {"--out", Argument::Kind::Text, "File to write; else the terminal"}},
    .run = execute,
};

}  // namespace stagecraft::commands
