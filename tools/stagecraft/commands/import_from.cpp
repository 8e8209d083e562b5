#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/schedule_file/check_file.hpp"
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

[[noreturn]] void refuse(const std::string& option, const std::string& kinds, const std::string& kind) {
  throw InputError(fmt::format("--{} is for {}, not for {}", option, kinds, kind), "leave it out");
}

/// No option of some kinds has a fallback, so that it shows when one was given.
void check_kind(const Arguments& a, const std::vector<Argument>& arguments) {
  const std::string kind = a.text("KIND");
  const std::string known[] = {"pytorch-csv", "onnx", "pipedream-graph", "piper", "pipeedge", "simgrid-xml"};
  if (std::find(std::begin(known), std::end(known), kind) == std::end(known))
    throw InputError("there is no kind '" + kind + "' to import",
                     "write pytorch-csv, onnx, pipedream-graph, piper, pipeedge or simgrid-xml");
  if (a.has("set") && kind != "onnx" && kind != "simgrid-xml") refuse("set", "onnx and simgrid-xml", kind);
  if (a.has("batch") && kind != "onnx" && kind != "pipeedge") refuse("batch", "onnx and pipeedge", kind);
  for (const Argument& option : arguments)
    if (const std::string name = option.flags.substr(2); !option.only.empty() && option.only != kind && a.has(name))
      refuse(name, option.only, kind);
}

Argument only(std::string kind, std::string flags, Argument::Kind type, std::string doc) {
  return {std::move(flags), type, std::move(doc), {}, false, std::move(kind)};
}

int execute(const Arguments& a) {
  check_kind(a, find_in(commands::all(), "import")->arguments);
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
         {"--set", Argument::Kind::List,
          "onnx: NAME=SIZE of a dimension that the file leaves open; simgrid-xml: FIELD=VALUE, as memory=\"16 GiB\""},
         {"--batch", Argument::Kind::Count,
          "onnx: samples that the graph is for; pipeedge: samples of a micro-batch, 8 when left out"},
         {"-o,--out", Argument::Kind::Text, "File to write, else the terminal; pipeedge: folder"},
         only("pytorch-csv", "--torch", Argument::Kind::Text, "Version that wrote it, 2.8 or 2.11"),
         only("pipedream-graph", "--samples", Argument::Kind::Count,
              "Samples in the mini-batch that was profiled, 1 when left out"),
         only("onnx", "--unknown", Argument::Kind::Text,
              "An operator that is not known is an error, as when left out, or no work: zero"),
         only("onnx", "--keep-all", Argument::Kind::Flag, "Layers for reshapes and the like too"),
         only("pipeedge", "--model", Argument::Kind::Text, "Which of its models"),
         only("pipeedge", "--dtype", Argument::Kind::Text, "Type of the numbers, torch.float32 when left out"),
         only("pipeedge", "--buffers-in", Argument::Kind::Number,
              "Items that wait in front of a stage, 2 when left out"),
         only("pipeedge", "--buffers-out", Argument::Kind::Number, "Items that wait behind a stage, 2 when left out"),
         only("pipeedge", "--units", Argument::Kind::Text,
              "MB and Mbps of 2^20, as its scheduler has them and when left out: compat; or of 10^6: si"),
         only("pipeedge", "--medium", Argument::Kind::Text,
              "Hosts on one switch, as when left out, or on one shared medium"),
         only("pipeedge", "--data-host", Argument::Kind::Text,
              "The host that has the data runs the first stage or none")},
    .run = execute,
};

}  // namespace stagecraft::commands
