#include "sim/schedule/check_file.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/import_model.hpp"
#include "tools/stagecraft/import_pipeedge.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft::commands {
namespace {

int deliver(const Arguments& a, const std::string& text) {
  if (!a.has("out")) return print(text), 0;
  write_file(a.text("out"), text);
  return print("wrote " + a.text("out") + "\n"), 0;
}

int execute(const Arguments& a) {
  if (a.text("KIND") == "pipeedge") return import_pipeedge(a);
  if (a.list("FILE").size() > 1) throw InputError("one FILE is enough", "only pipeedge reads three");
  if (a.text("KIND") == "pipedream-graph" || a.text("KIND") == "piper") return deliver(a, import_model(a));
  if (a.text("KIND") != "pytorch-csv")
    throw InputError("there is no kind '" + a.text("KIND") + "' to import",
                     "write pytorch-csv, pipedream-graph, piper or pipeedge");
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  const CheckedFile file = check_file(read_file(a.text("FILE")), a.text("FILE"), options);
  throw_if_bad(file, a.text("FILE"));
  return deliver(a, to_csv(file.compute.schedule));
}

}  // namespace

extern const Command import_from{
    .name = "import",
    .summary = "Check a schedule of PyTorch, lowered or not, and write what run.schedule: {csv: FILE} reads",
    .group = "Files of others",
    .example = "stagecraft import pytorch-csv lowered.csv --out order.csv",
    .arguments = {{"KIND", Argument::Kind::Text, "pytorch-csv, pipedream-graph, piper or pipeedge", {}, true},
                  {"FILE",
                   Argument::Kind::List,
                   "CSV text, compute_only or compute_comms; graph.txt; JSON; models.yml device_types.yml devices.yml",
                   {},
                   true},
                  {"--samples", Argument::Kind::Count, "Samples in the mini-batch that PipeDream profiled", "1"},
                  {"--torch", Argument::Kind::Text, "Version that wrote it: 2.8 or 2.11"},
                  {"--model", Argument::Kind::Text, "pipeedge: which of its models"},
                  {"--batch", Argument::Kind::Count, "pipeedge: samples of a micro-batch", "8"},
                  {"--dtype", Argument::Kind::Text, "pipeedge: type of the numbers", "torch.float32"},
                  {"--buffers-in", Argument::Kind::Number, "pipeedge: items that wait in front of a stage", "2"},
                  {"--buffers-out", Argument::Kind::Number, "pipeedge: items that wait behind a stage", "2"},
                  {"--units", Argument::Kind::Text,
                   "pipeedge: MB and Mbps of 2^20, as its scheduler has them: compat; or of 10^6: si", "compat"},
                  {"--medium", Argument::Kind::Text, "pipeedge: hosts on one switch, or on one shared medium",
                   "switch"},
                  {"--data-host", Argument::Kind::Text,
                   "pipeedge: the host that has the data runs the first stage or none"},
                  {"--out", Argument::Kind::Text, "File to write, else the terminal; pipeedge: folder"}},
    .run = execute,
};

}  // namespace stagecraft::commands
