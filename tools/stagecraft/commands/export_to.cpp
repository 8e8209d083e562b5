#include <algorithm>

#include <fmt/format.h>

#include "sim/run/run.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/check_file.hpp"
#include "sim/schedule/comms.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/export_chakra.hpp"
#include "tools/stagecraft/named_schedule.hpp"
#include "tools/stagecraft/schedule_file.hpp"
#include "tools/stagecraft/simgrid_files.hpp"

namespace stagecraft::commands {
namespace {

/// One iteration and where it runs.
struct Order {
  Plan plan;
  Schedule schedule;
};

/// The first iteration without updates, on ranks 0, 1, ... in the order of the devices that run something.
Order one_iteration(Plan plan, Schedule schedule) {
  std::vector<DeviceId> rank(schedule.devices.size());
  std::int64_t ranks = 0;
  Schedule one;
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    auto& ops = schedule.devices[d];
    std::erase_if(ops,
                  [&](const Op& op) { return op.kind == OpKind::Update || op.micro >= plan.micro_batches(op.stage); });
    if (ops.empty()) continue;
    rank[d] = DeviceId{ranks++};
    one.devices.push_back(std::move(ops));
  }
  for (Stage& stage : plan.stages)
    for (DeviceId& device : stage.devices) device = rank[static_cast<std::size_t>(device)];
  return {std::move(plan), std::move(one)};
}

/// Orders that are made from costs find those of `stagecraft schedule` without --f and --b.
Order from_catalogue(const Arguments& a) {
  const NamedSchedule named =
      named_schedule(a, a.text("schedule"), 1, "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8");
  StageCost cost;
  cost.forward = cost.input_gradient = cost.weight_gradient = Seconds{1};
  cost.backward = Seconds{2};
  const StageCosts costs = uniform_costs(named.plan, cost);
  return one_iteration(named.plan, build_schedule(*named.def, named.input(costs, 1)));
}

/// Of either kind; messages are put in anew.
Order from_file(const std::string& file) {
  const CheckedFile f = check_file(read_file(file), file, {});
  throw_if_bad(f, file);
  return {f.plan, f.compute.schedule};
}

Order from_scenario(const Arguments& a) {
  Prepared p = prepare(load_scenario(a.text("FILE"), a.list("set")));
  return one_iteration(std::move(p.plan), std::move(p.schedule));
}

int execute(const Arguments& a) {
  if (a.text("KIND") == "chakra") return export_chakra(a);
  check_folder_of(a, "out");
  if (a.text("KIND") == "simgrid-xml") return export_simgrid(a);
  if (a.text("KIND") != "pytorch-csv")
    throw InputError("there is no kind '" + a.text("KIND") + "' to export", "write pytorch-csv, chakra or simgrid-xml");
  if (a.has("FILE") == a.has("schedule"))
    throw InputError("give a scenario, a file X.csv, or --schedule NAME",
                     "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8");
  const TorchVersion version = torch_version(a.text("torch"));
  const Order order = !a.has("FILE")                     ? from_catalogue(a)
                      : a.text("FILE").ends_with(".csv") ? from_file(a.text("FILE"))
                                                         : from_scenario(a);
  const std::string name = a.has("FILE") ? a.text("FILE") : a.text("schedule");
  const int slices = a.count("slices", 1, 1 << 20);
  throw_if_any(validate(order.schedule, order.plan, {}), name);
  throw_if_any(why_not_torch(actions_of(order.schedule), order.plan, slices, version), name);
  const std::string text =
      a.flag("comms") ? to_csv(lower_for_torch(order.schedule, order.plan, version)) : to_csv(order.schedule);
  if (!a.has("out")) return print(text), 0;
  write_file(a.text("out"), text);
  return print("wrote " + a.text("out") + "\n"), 0;
}

}  // namespace

extern const Command export_to{
    .name = "export",
    .summary = "Write a schedule for PyTorch, traces for ASTRA-sim, or a platform for SimGrid",
    .group = "Files of others",
    .example = "stagecraft export pytorch-csv --schedule 1f1b -p 4 -m 8 --comms --out 1f1b.csv",
    .arguments = {{"KIND",
                   Argument::Kind::Text,
                   "pytorch-csv; chakra: a scenario's program as traces, --out FOLDER; simgrid-xml: its cluster",
                   {},
                   true},
                  {"FILE", Argument::Kind::Text, "Scenario, or a schedule X.csv; simgrid-xml: scenario or cluster"},
                  {"-s,--set", Argument::Kind::List,
                   "path=value of the scenario, or an option of the schedule; may be repeated"},
                  {"--schedule", Argument::Kind::Text, "Name of a schedule instead"},
                  {"-p,--ranks", Argument::Kind::Count, "Its devices"},
                  {"-m,--microbatches", Argument::Kind::Count, "Micro-batches in one iteration"},
                  {"-v,--chunks", Argument::Kind::Count, "Stages on each device, where the schedule allows it"},
                  {"--slices", Argument::Kind::Count, "Slices of a micro-batch along the sequence", "1"},
                  {"--torch", Argument::Kind::Text, "Version that reads it: 2.8 or 2.11", "2.11"},
                  {"--comms", Argument::Kind::Flag, "Lowered, as compute_comms; else compute_only"},
                  {"--out", Argument::Kind::Text, "File to write; else the terminal"}},
    .run = execute,
};

}  // namespace stagecraft::commands
