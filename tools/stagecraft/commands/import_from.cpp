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

int execute(const Arguments& a) {
  if (a.text("KIND") == "pipeedge") return import_pipeedge(a);
  if (a.list("FILE").size() > 1) throw InputError("one FILE is enough", "only pipeedge reads three");
  if (a.text("KIND") == "simgrid-xml") return deliver(a, import_simgrid(a));
  if (a.text("KIND") == "pipedream-graph" || a.text("KIND") == "piper") return deliver(a, import_model(a));
  if (a.text("KIND") == "onnx") return deliver(a, import_onnx(a));
  if (a.text("KIND") != "pytorch-csv")
    throw InputError("there is no kind '" + a.text("KIND") + "' to import",
                     "write pytorch-csv, onnx, pipedream-graph, piper, pipeedge or simgrid-xml");
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
         {"--samples", Argument::Kind::Count, "Samples in the mini-batch that PipeDream profiled", "1"},
         {"--torch", Argument::Kind::Text, "Version that wrote it: 2.8 or 2.11"},
         {"--model", Argument::Kind::Text, "pipeedge: which of its models"},
         {"--batch", Argument::Kind::Count,
          "pipeedge: samples of a micro-batch, 8 when left out; onnx: samples that the graph is for"},
         {"--set", Argument::Kind::List,
          "onnx: NAME=SIZE of a dimension that the file leaves open; simgrid-xml: FIELD=VALUE, as memory=\"16 "
          "GiB\""},
         {"--unknown", Argument::Kind::Text, "onnx: an operator that is not known is an error, or no work: zero",
          "error"},
         {"--keep-all", Argument::Kind::Flag, "onnx: layers for reshapes and the like too"},
         {"--dtype", Argument::Kind::Text, "pipeedge: type of the numbers", "torch.float32"},
         {"--buffers-in", Argument::Kind::Number, "pipeedge: items that wait in front of a stage", "2"},
         {"--buffers-out", Argument::Kind::Number, "pipeedge: items that wait behind a stage", "2"},
         {"--units", Argument::Kind::Text,
          "pipeedge: MB and Mbps of 2^20, as its scheduler has them: compat; or of 10^6: si", "compat"},
         {"--medium", Argument::Kind::Text, "pipeedge: hosts on one switch, or on one shared medium", "switch"},
         {"--data-host", Argument::Kind::Text, "pipeedge: the host that has the data runs the first stage or none"},
         {"-o,--out", Argument::Kind::Text, "File to write, else the terminal; pipeedge: folder"}},
    .run = execute,
};

}  // namespace stagecraft::commands
