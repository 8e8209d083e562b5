#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/schedule/check_file.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/import_model.hpp"
#include "tools/stagecraft/import_onnx.hpp"
#include "tools/stagecraft/import_pipeedge.hpp"
#include "tools/stagecraft/schedule_file.hpp"
#include "tools/stagecraft/simgrid_files.hpp"

namespace stagecraft::commands {
namespace {

int deliver(const Arguments& a, const std::string& text) {
  if (!a.has("out")) return print(text), 0;
  write_file(a.text("out"), text);
  return print("wrote " + a.text("out") + "\n"), 0;
}

/// What only some kinds know. None has a fallback, so that it shows when one was given.
struct Option {
  const char* name;
  std::vector<std::string> kinds;
};

void check_kind(const Arguments& a) {
  static const Option options[] = {
      {"samples", {"pipedream-graph"}}, {"torch", {"pytorch-csv"}}, {"batch", {"onnx", "pipeedge"}},
      {"set", {"onnx", "simgrid-xml"}}, {"unknown", {"onnx"}},      {"keep-all", {"onnx"}},
      {"model", {"pipeedge"}},          {"dtype", {"pipeedge"}},    {"buffers-in", {"pipeedge"}},
      {"buffers-out", {"pipeedge"}},    {"units", {"pipeedge"}},    {"medium", {"pipeedge"}},
      {"data-host", {"pipeedge"}}};
  const std::string kind = a.text("KIND");
  const std::string known[] = {"pytorch-csv", "onnx", "pipedream-graph", "piper", "pipeedge", "simgrid-xml"};
  if (std::find(std::begin(known), std::end(known), kind) == std::end(known))
    throw InputError("there is no kind '" + kind + "' to import",
                     "write pytorch-csv, onnx, pipedream-graph, piper, pipeedge or simgrid-xml");
  for (const Option& o : options)
    if (a.has(o.name) && std::find(o.kinds.begin(), o.kinds.end(), kind) == o.kinds.end())
      throw InputError(fmt::format("--{} is for {}, not for {}", o.name, join(o.kinds, " and "), kind), "leave it out");
}

int execute(const Arguments& a) {
  check_kind(a);
  if (a.text("KIND") == "pipeedge") return import_pipeedge(a);
  if (a.list("FILE").size() > 1) throw InputError("one FILE is enough", "only pipeedge reads three");
  check_folder_of(a, "out");
  if (a.text("KIND") == "simgrid-xml") return deliver(a, import_simgrid(a));
  if (a.text("KIND") == "pipedream-graph" || a.text("KIND") == "piper") return deliver(a, import_model(a));
  if (a.text("KIND") == "onnx") return deliver(a, import_onnx(a));
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  const CheckedFile file = check_file(read_file(a.text("FILE")), a.text("FILE"), options);
  throw_if_bad(file, a.text("FILE"));
  return deliver(a, to_csv(file.compute.schedule));
}

}  // namespace

extern const Command import_from{
    .name = "import",
    .summary = "Read schedules of PyTorch, models of ONNX, PipeDream and Piper, files of PipeEdge and SimGrid",
    .group = "Files of others",
    .example = "stagecraft import onnx bert.onnx --set sequence=512 --out bert.yaml",
    .arguments =
        {{"KIND", Argument::Kind::Text, "pytorch-csv, onnx, pipedream-graph, piper, pipeedge or simgrid-xml", {}, true},
         {"FILE",
          Argument::Kind::List,
          "CSV text, compute_only or compute_comms; ONNX model; graph.txt; JSON; models.yml device_types.yml "
          "devices.yml",
          {},
          true},
         {"--samples", Argument::Kind::Count,
          "pipedream-graph: samples in the mini-batch that was profiled, 1 when left out"},
         {"--torch", Argument::Kind::Text, "pytorch-csv: version that wrote it, 2.8 or 2.11"},
         {"--model", Argument::Kind::Text, "pipeedge: which of its models"},
         {"--batch", Argument::Kind::Count,
          "pipeedge: samples of a micro-batch, 8 when left out; onnx: samples that the graph is for"},
         {"--set", Argument::Kind::List,
          "onnx: NAME=SIZE of a dimension that the file leaves open; simgrid-xml: FIELD=VALUE, as memory=\"16 "
          "GiB\""},
         {"--unknown", Argument::Kind::Text,
          "onnx: an operator that is not known is an error, as when left out, or no work: zero"},
         {"--keep-all", Argument::Kind::Flag, "onnx: layers for reshapes and the like too"},
         {"--dtype", Argument::Kind::Text, "pipeedge: type of the numbers, torch.float32 when left out"},
         {"--buffers-in", Argument::Kind::Number, "pipeedge: items that wait in front of a stage, 2 when left out"},
         {"--buffers-out", Argument::Kind::Number, "pipeedge: items that wait behind a stage, 2 when left out"},
         {"--units", Argument::Kind::Text,
          "pipeedge: MB and Mbps of 2^20, as its scheduler has them and when left out: compat; or of 10^6: si"},
         {"--medium", Argument::Kind::Text, "pipeedge: hosts on one switch, as when left out, or on one shared medium"},
         {"--data-host", Argument::Kind::Text, "pipeedge: the host that has the data runs the first stage or none"},
         {"-o,--out", Argument::Kind::Text, "File to write, else the terminal; pipeedge: folder"}},
    .run = execute,
};

}  // namespace stagecraft::commands
