// `stagecraft export`: writes a scenario, a schedule or a cluster in the formats of other programs, with notes on what
// they cannot say; sim/interchange, sim/schedule_file and simgrid_files.cpp have the formats.

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/chakra.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule_file/check_file.hpp"
#include "sim/schedule_file/comms.hpp"
#include "tools/stagecraft/asked_order.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/foreign_files.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft {
namespace {

/// Only a scenario can limit the messages that devices hold.
void note_buffers(const PlannedExperiment& p, std::string_view reader) {
  if (lowering_of(p).buffers.is_limited())
    print_error("note: not written: run.buffers; {} has no limit for the messages that devices hold\n", reader);
}

/// Writes the program of a scenario to the folder --out: rank.N.et for each device and, if replicas reduce gradients,
/// groups.json, as ASTRA-sim reads them. Prints the differences to stderr. Returns the exit code.
int export_chakra(const Arguments& a) {
  const char* const example = "stagecraft export chakra scenarios/examples/quickstart.yaml --out traces";
  if (!a.has("FILE") || a.text("FILE").ends_with(".csv"))
    throw InputError("export chakra needs a scenario file", example);
  if (!a.has("out")) throw InputError("chakra needs a folder to write to", example);
  const CompiledExperiment c = compile_or_advise(load_experiment(a.text("FILE"), a.list("set")));
  Activity activity("writing traces");
  const ChakraTraces chakra = chakra_traces(c.program);
  const std::string folder = a.text("out");
  make_folder(a, {});
  std::vector<ListedFile> files;
  std::string devices;
  for (std::size_t r = 0; r < chakra.traces.size(); ++r) {
    files.push_back({fmt::format("rank.{}.et", r), chakra.traces[r]});
    devices += fmt::format("{} {}\n", r, c.cluster().devices[chakra.devices[r]].name);
  }
  files.push_back({"devices.txt", devices});
  if (!chakra.groups.empty()) files.push_back({"groups.json", chakra.groups});
  write_listed(folder, files, overwrite_of(a));
  for (const std::string& note : chakra.notes) print_error("note: {}\n", note);
  note_buffers(c, "ASTRA-sim");
  print_error("note: links are not part of traces; give ASTRA-sim a network of {}\n",
              pluralize(std::ssize(chakra.traces), "rank"));
  print(fmt::format("wrote {} of {} to {}\nASTRA-sim reads them with --workload-configuration={}/rank{}\n",
                    pluralize(std::ssize(chakra.traces), "trace"),
                    pluralize(std::ssize(c.program.instructions), "instruction"), folder, folder,
                    chakra.groups.empty() ? "" : fmt::format(" --comm-group-configuration={}/groups.json", folder)));
  return 0;
}

}  // namespace

}  // namespace stagecraft

namespace stagecraft::commands {
namespace {

/// One iteration and where it runs.
struct Order {
  Plan plan;
  Schedule schedule;
  int slices;  ///< Slices of a sequence if micro-batches are slices; else 1.
};

/// Refuses schedules that do not flush or do not train, because one step of PyTorch cannot express them.
void require_training_step(const ScheduleDef& def) {
  if (!def.flushes)
    throw InputError(
        fmt::format("the schedule '{}' goes on through the updates without a flush, but PyTorch drains the "
                    "pipeline before each update",
                    def.name),
        "take a schedule that flushes, such as 1f1b");
  if (!def.trains)
    throw InputError(fmt::format("the schedule '{}' does not train, but a step of PyTorch has backwards", def.name),
                     "take a schedule that trains, such as gpipe");
}

/// The first iteration without updates, on the pipeline ranks that run something.
Order one_iteration(const Plan& plan, const Schedule& schedule, int slices) {
  RankedPlan ranked = on_ranks(plan);
  Schedule one = first_iteration(schedule, ranked);
  return {std::move(ranked.plan), std::move(one), slices};
}

/// The costs are the defaults of --f and --b of `stagecraft schedule`, for schedules that are made from costs.
Order from_catalogue(const Arguments& a) {
  require_training_step(get_from(schedules::catalog(), "schedule", a.text("schedule")));
  const NamedSchedule named =
      named_schedule(a, a.text("schedule"), 1, "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8");
  StageCost cost;
  cost.forward = cost.input_gradient = cost.weight_gradient = Seconds{1};
  cost.backward = Seconds{2};
  const StageCosts costs = uniform_costs(named.plan, cost);
  return one_iteration(named.plan, build_schedule(*named.def, named.input(costs, 1)), named.slices());
}

/// Reads an order with or without messages. Messages of the file are dropped; the export adds its own.
Order order_from_file(const Arguments& a) {
  const std::string file = a.text("FILE");
  const int slices = a.has("slices") ? a.count("slices", 1, 1 << 20) : 1;
  const CheckedFile f = check_file(read_file(file), file, {.slices = slices});
  throw_if_bad(f, file);
  return {f.plan, f.compute.schedule, slices};
}

/// What an order of work does not say of a plan.
void note_not_written(const Plan& plan, bool plan_offloads) {
  bool has_copies = false, recomputes = false;
  for (const Stage& stage : plan.stages) {
    has_copies = has_copies || stage.all_devices().size() > 1;
    recomputes = recomputes || stage.shape.recomputation != Recomputation::None;
  }
  if (has_copies) print_error("note: not written: the replicas and groups of a rank, which all run its row\n");
  if (plan_offloads) print_error("note: not written: plan.offload, which no order of PyTorch has\n");
  if (recomputes) print_error("note: not written: plan.recompute, which is part of the model's code\n");
}

Order from_scenario(const Arguments& a) {
  const Experiment experiment = load_experiment(a.text("FILE"), a.list("set"));
  require_training_step(*experiment.schedule.def);
  const config::Value* slices = experiment.schedule.options->find("slices");
  const CompiledExperiment c = compile_or_advise(experiment);
  note_not_written(c.plan, c.experiment.plan.offload.has_value());
  note_buffers(c, "PyTorch");
  return one_iteration(c.plan, c.schedule, slices ? config::as_int(*slices) : 1);
}

/// An option that the other arguments leave without effect is an error.
void refuse_unused(const Arguments& a) {
  const bool torch = a.text("KIND") == "pytorch-csv", csv = torch && a.text("FILE").ends_with(".csv");
  const auto only = [&](bool fits, std::initializer_list<const char*> names, const char* what) {
    for (const char* name : names)
      if (!fits && a.has(name))
        throw InputError(fmt::format("--{} is for {}", name, what), fmt::format("leave --{} out", name));
  };
  only(torch, {"schedule", "torch", "comms"}, "pytorch-csv");
  only(a.has("schedule"), {"ranks", "microbatches", "chunks"}, "--schedule NAME; a file says it itself");
  only(!csv, {"set"}, "a scenario or --schedule NAME, not for a schedule X.csv");
  only(csv, {"slices"}, "a schedule X.csv, which does not say it itself");
}

using FrameworkText = FrameworkConfiguration (*)(const PlannedExperiment&);

/// Frameworks and the releases that can be written for; the first of a framework is the default.
constexpr struct {
  const char *kind, *release;
  FrameworkText write;
} kFrameworks[] = {{"megatron", "0.20", megatron_arguments},
                   {"bridge", "0.7", bridge_overrides},
                   {"torchtitan", "0.2.2", torchtitan_config},
                   {"torchtitan", "2026-08-21", torchtitan_function},
                   {"deepspeed", "0.19.6", deepspeed_config}};

/// The function that writes what a release of a framework reads; null for other kinds.
FrameworkText framework_text(const std::string& kind, const std::string& release) {
  std::vector<std::string> releases;
  for (const auto& framework : kFrameworks) {
    if (framework.kind != kind) continue;
    if (release.empty() || release == framework.release || kind == "megatron") return framework.write;
    releases.emplace_back(framework.release);
  }
  if (!releases.empty())
    throw InputError(fmt::format("--release: {} {} is not known here", kind, release),
                     "write " + join(releases, " or "));
  if (!release.empty())
    throw InputError("--release is for megatron, bridge, torchtitan and deepspeed", "leave --release out");
  return nullptr;
}

int export_framework(const Arguments& a, FrameworkText write) {
  if (!a.has("FILE") || a.text("FILE").ends_with(".csv"))
    throw InputError("options of a framework are made of a scenario", "stagecraft export megatron scenario.yaml");
  std::vector<std::string> sets = a.list("set");
  if (a.text("KIND") == "megatron" && a.has("release")) sets.push_back("software.release=" + a.text("release"));
  const CompiledExperiment c = compile_or_advise(load_experiment(a.text("FILE"), sets));
  const auto [text, notes] = write(c);
  for (const std::string& note : notes) print_error("note: {}\n", note);
  note_buffers(c, a.text("KIND"));
  if (c.experiment.run.packs)
    print_error(
        "note: not written: the lengths of the sequences and how they are packed; each pack counts as one sequence of "
        "the model's length\n");
  print_error(
      "note: not written, because no scenario says them: data, tokenizer, optimizer and learning rate, and "
      "constants of the model such as the base of rotations\n");
  if (!a.has("out")) return print(text), 0;
  write_output_of(a, "out", text, CommentStyle::None);
  return print("wrote " + a.text("out") + "\n"), 0;
}

int execute_export_to(const Arguments& a) {
  const std::string kind = a.text("KIND");
  const FrameworkText framework = framework_text(kind, a.text("release"));
  if (!framework && kind != "pytorch-csv" && kind != "chakra" && kind != "simgrid-xml")
    throw InputError("there is no kind '" + kind + "' to export",
                     "write megatron, bridge, torchtitan, deepspeed, pytorch-csv, chakra or simgrid-xml");
  refuse_unused(a);
  if (framework) return export_framework(a, framework);
  if (kind == "chakra") return export_chakra(a);
  if (kind == "simgrid-xml") return export_simgrid(a);
  if (a.has("FILE") == a.has("schedule"))
    throw InputError("give a scenario, a file X.csv, or --schedule NAME",
                     "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8");
  const TorchVersion version = a.has("torch") ? torch_version(a.text("torch")) : TorchVersion::V2_11;
  const Order order = !a.has("FILE")                     ? from_catalogue(a)
                      : a.text("FILE").ends_with(".csv") ? order_from_file(a)
                                                         : from_scenario(a);
  const std::string name = a.has("FILE") ? a.text("FILE") : a.text("schedule");
  throw_if_any(validate(order.schedule, order.plan, {}), name);
  throw_if_any(why_not_torch(actions_of(order.schedule), order.plan, order.slices, version), name);
  const std::string text =
      a.flag("comms") ? to_csv(lower_for_torch(order.schedule, order.plan, version)) : to_csv(order.schedule);
  if (!a.has("out")) return print(text), 0;
  write_output_of(a, "out", text, CommentStyle::None);
  return print("wrote " + a.text("out") + "\n"), 0;
}

}  // namespace

extern const Command export_to{
    .name = "export",
    .summary =
        "Export a plan to Megatron-LM, Megatron-Bridge, torchtitan or DeepSpeed, a schedule to PyTorch, traces to "
        "ASTRA-sim, or a "
        "platform to SimGrid",
    .group = "Files",
    .example = "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8 --comms --out 1f1b.csv",
    .arguments = {{"KIND",
                   Argument::Kind::Text,
                   "megatron, bridge, torchtitan, deepspeed: options that run a scenario; pytorch-csv; chakra: a "
                   "scenario's "
                   "program as traces, --out FOLDER; simgrid-xml: its cluster",
                   {},
                   true},
                  {"FILE", Argument::Kind::Text, "Scenario, or a schedule X.csv; simgrid-xml: scenario or cluster"},
                  {"-s,--set", Argument::Kind::List,
                   "path=value of the scenario, or an option of the schedule; may be repeated"},
                  {"--schedule", Argument::Kind::Text, "Name of a schedule instead of FILE; it must train and flush"},
                  {"-p,--ranks", Argument::Kind::Count, "With --schedule: devices"},
                  {"-m,--microbatches", Argument::Kind::Count, "Micro-batches in one iteration"},
                  {"-v,--chunks", Argument::Kind::Count, "With --schedule: stages on each device"},
                  {"--slices", Argument::Kind::Count,
                   "For a schedule X.csv: slices of a sequence, which PyTorch does not support (default: 1)"},
                  {"--release", Argument::Kind::Text,
                   "Release that reads it. megatron: 0.11 to 0.20 (default: 0.20); torchtitan: 0.2.2, or 2026-08-21 "
                   "for a Python file (default: 0.2.2)"},
                  {"--torch", Argument::Kind::Text, "Version that reads it: 2.8 or 2.11 (default: 2.11)"},
                  {"--comms", Argument::Kind::Flag, "Write messages too, as compute_comms (default: compute_only)"},
                  {"--out", Argument::Kind::Text, "File to write (default: print it)"},
                  force_argument()},
    .run = execute_export_to,
};

}  // namespace stagecraft::commands
