// The fields of results.json, for its JSON Schema and for the check of each results.json that `compare`, `report` and
// pictures read.

#include "sim/output/json_files.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/result/diagnosis.hpp"
#include "sim/result/economics.hpp"
#include "sim/result/expected_failures.hpp"
#include "sim/result/interval.hpp"
#include "sim/result/metrics.hpp"
#include "sim/result/time_classes.hpp"

namespace stagecraft {
namespace {

using config::Field;
using config::MapSpec;

/// A number that may be null, because the run did not measure it.
Field number(std::string name) { return config::real(std::move(name), -kInfinity, kInfinity).nullable(); }
/// A number of seconds, bytes or joules.
Field amount(std::string name) { return config::real(std::move(name), 0, kInfinity).nullable(); }
Field count(std::string name) { return config::integer(std::move(name), 0, 1e15); }

const MapSpec& setup_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "What ran, in the words of the scenario.",
      .fields = {text("scenario_file").doc("The file that was read."), text("model").doc("Name of the model."),
                 text("cluster").doc("Name of the cluster."), text("schedule").doc("Schedule of the operations."),
                 text("planner").doc("Planner that divided the model."),
                 text("plan").optional().doc("The plan as training frameworks count it, and its samples."),
                 count("stages").doc("Pipeline stages; replicas of a stage count once."),
                 count("devices").doc("Devices that have a stage."),
                 count("micro_batches").doc("Micro-batches of an iteration."), text("weights").doc("Weights policy.")}};
  return spec;
}

const MapSpec& critical_path_fields() {
  using namespace config;
  static const MapSpec spec{.title = "The chain of instructions that determines the length of the run.",
                            .fields = {count("instructions").doc("Instructions on the path."),
                                       amount("compute_s").doc("Seconds of computation on it."),
                                       amount("transfer_s").doc("Seconds of communication on it."),
                                       amount("wait_s").doc("Seconds on it in which nothing of the program runs.")}};
  return spec;
}

const MapSpec& idle_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Idle time of a device by its cause.",
      .fields = {amount("start_up_s").doc("Waiting for input while the pipeline fills."),
                 amount("input_s").doc("Waiting for a computation on another device, between fill and drain."),
                 amount("transfer_s").doc("Waiting for a message on the wire."),
                 amount("collective_s").optional().doc("Waiting for a collective of the device on the wire."),
                 amount("host_memory_s").optional().doc("Waiting for activations that come back from host memory."),
                 amount("receiver_s").doc("Waiting for a receiver to take its message."),
                 amount("drain_s").doc("Waiting while the pipeline empties."),
                 amount("other_s").doc("Waiting for nothing that the program describes.")}};
  return spec;
}

const MapSpec& device_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A device of the cluster.",
      .fields = {text("name").doc("Name of the device."), text("type").doc("Name of its device type."),
                 boolean("used").doc("Whether it has a stage."),
                 amount("busy_s").doc("Seconds of the first iteration in ops and in collectives of these ops."),
                 amount("exposed_communication_s")
                     .doc("Seconds of a period in which it waits for its collectives and messages on the wire."),
                 number("utilisation").doc("Share of the whole run in ops and in collectives of these ops."),
                 main_classes_field(), map("idle", idle_fields()).doc("Idle time of the whole run by cause."),
                 amount("energy_J").doc("Energy of the run in joules."),
                 amount("peak_memory_bytes").doc("Most memory at one time."),
                 amount("memory_capacity_bytes").doc("Memory of the device; 0 where it is not known."),
                 text("peak_memory_at").doc("The instruction at which the peak is reached; may be empty."),
                 amount("resident_bytes").doc("Weights, gradients and optimizer state at the peak."),
                 amount("stash_bytes").doc("Activations kept for backward at the peak."),
                 amount("received_bytes").doc("Received messages that are not consumed yet, at the peak."),
                 amount("outgoing_bytes").doc("Messages that are not sent yet, at the peak."),
                 count("peak_activations").doc("Most micro-batches in flight."),
                 amount("memory_reserved_bytes").optional().doc("Memory that the program cannot use.")}};
  return spec;
}

const MapSpec& link_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A link of the cluster, in one direction where it has two.",
      .fields = {
          text("name").doc("Name of the link."), amount("traffic_bytes").doc("Bytes that crossed it."),
          number("utilisation").doc("Share of what it could carry during the run."),
          boolean("forward").optional().doc("From the first end of the link to the second."),
          text("percent_over_time").optional().doc("Percent of the bandwidth in equal parts of the run, rounded up.")}};
  return spec;
}

const MapSpec& change_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A change of the cluster over time.",
      .fields = {list("devices", text("device")).doc("Devices that change."),
                 list("links", text("link")).doc("Links that change."), amount("from_s").doc("Begin."),
                 amount("until_s").optional().doc("End; absent: the end of the run."),
                 amount("every_s").optional().doc("Time between two repetitions."),
                 amount("lasts_s").optional().doc("Length of a repetition.")}};
  return spec;
}

const MapSpec& sleeps_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Sleeps in place of computations.",
      .fields = {count("count").doc("How many there were."),
                 amount("late_median_s").doc("Time from when a sleep was due to end until it ended: the median."),
                 amount("late_worst_s").doc("The longest.")}};
  return spec;
}

const MapSpec& enqueued_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Host time that the GPU backend needs to enqueue an iteration.",
      .fields = {
          amount("by_calls_s").doc("Call by call."), amount("by_graph_s").doc("As a CUDA graph."),
          count("graphs_made").doc("CUDA graphs that were captured."),
          count("graph_launches").doc("Launches of a graph."),
          count("graph_launches_recorded")
              .doc("Launches before which the iteration was recorded and compared with the graph."),
          text("no_graph").optional().doc("Why no graph was captured."),
          number("calls").optional().doc("Driver calls that put work into streams, for each iteration."),
          count("streams").optional().doc("Streams of the run."),
          list("timed_products", text("product"))
              .doc("Matrix products whose algorithm was chosen by timing, and the choice: others take the first of "
                   "the library, as all do in exact precision."),
          list("attention", text("shape"))
              .optional()
              .doc("What computes each attention in mixed precision: cuDNN, or kernels of Stagecraft because cuDNN "
                   "cannot."),
          text("warning").optional().doc("Why measured times may be longer than the work itself takes.")}};
  return spec;
}

const MapSpec& evaluation_fields() {
  using namespace config;
  static const MapSpec spec{.title = "A loss on samples that are not trained on.",
                            .fields = {count("updates").doc("Updates before it."), number("loss").doc("The loss.")}};
  return spec;
}

const MapSpec& measured_memory_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Memory that a device of a real run allocated.",
      .fields = {text("name").doc("Name of the device."), amount("total_bytes").doc("Peak of all."),
                 amount("weights_bytes").doc("Weights, all versions."),
                 count("weight_buffers").doc("Buffers that hold a version of the weights."),
                 amount("gradients_bytes").doc("Gradients."), amount("optimizer_bytes").doc("Optimizer state."),
                 amount("activations_bytes").doc("Activations."),
                 amount("host_bytes").optional().doc("Activations in the memory of its host, apart from the sum.")}};
  return spec;
}

const MapSpec& learnt_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "The result of training.",
      .fields = {list("losses", number("loss")).doc("Loss of each iteration."),
                 text("weights_sha256").doc("SHA-256 of the final weights; equal for bit-identical runs."),
                 list("evaluations", map("evaluation", evaluation_fields())).doc("Losses on other samples."),
                 list("memory", map("device", measured_memory_fields())).positional().doc("Measured memory.")}};
  return spec;
}

const MapSpec& rates_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "What one device does at the period.",
      .fields = {
          count("devices").doc("Devices that take part, groups counted whole."),
          amount("tokens_per_s_per_device").doc("Tokens per second of each device."),
          amount("model_flops_per_device")
              .doc("Operations of the model per second of each device, without "
                   "recomputation."),
          number("mfu").doc("Their share of the peak in the number format of the run; 0 where it is not known."),
          number("hfu").optional().doc("The same share with recomputation; 0 where it is not known."),
          amount("tokens_per_s").optional().doc("Tokens per second of all devices together."),
          amount("energy_per_token_J").optional().doc("Energy of all devices for a token; 0 where it is not known.")}};
  return spec;
}

/// Adds the metrics that stand at the top of results.json. Files of earlier versions lack those that are new.
MapSpec with_metrics(MapSpec spec) {
  constexpr std::string_view kAlways[] = {"makespan_s",
                                          "period_s",
                                          "length_s",
                                          "fits",
                                          "drains",
                                          "bubble",
                                          "steady_bubble",
                                          "energy_J",
                                          "iterations",
                                          "instructions",
                                          "throughput_samples_per_s"};
  for (const Metric& m : metrics()) {
    if (*m.path) continue;
    spec.fields.push_back(metric_field(m));
    if (std::find(std::begin(kAlways), std::end(kAlways), m.name) == std::end(kAlways)) spec.fields.back().optional();
  }
  return spec;
}

}  // namespace

const config::MapSpec& provenance_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Where the numbers come from.",
      .fields = {text("backend").doc("What ran the program: ideal, fluid, simgrid, cpu or cuda."),
                 text("backend_version").doc("Version of the backend's library, such as SimGrid; may be empty."),
                 choice("clock", {"simulated", "host", "device"}).doc("The clock that timed the instructions."),
                 text("stagecraft").doc("Version of Stagecraft."),
                 text("scenario_sha256").doc("SHA-256 of the resolved scenario."),
                 real("seed", 0, kInfinity).doc("Seed of the random numbers."),
                 text("machine").doc("The machine that ran it; empty for simulated runs.")}};
  return spec;
}

const config::MapSpec& search_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "How a schedule was found that was searched for.",
      .fields = {choice("objective", {"period", "makespan"}).doc("What the search minimizes."),
                 amount("found_s").doc("Length of the best schedule found."),
                 amount("lower_bound_s").doc("No schedule is shorter."), text("lower_bound_reason").doc("Why."),
                 text("from").doc("The schedule that the search began with.")}};
  return spec;
}

const MapSpec& results_fields() {
  using namespace config;
  static const MapSpec spec = with_metrics(
      {.title = "results.json: the numbers of one run. A number that was not measured is null.",
       .fields = {
           choice("schema", {"results/1"}).doc("Version of this format."),
           text("title").doc("Title of the scenario."),
           map("provenance", provenance_fields()).doc("Where the numbers come from."),
           map("setup", setup_fields()).nullable().doc("What ran."),
           count("drain_every")
               .optional()
               .doc("Iterations between two drains of the pipeline; 0: none before the end. Earlier versions lack it."),
           number("fill").optional().doc(
               "Share of the first iteration in which the pipeline fills, mean over the devices that have a stage."),
           number("drain").optional().doc("The same in which it drains."),
           map("critical_path", critical_path_fields()).doc("Critical path of the run."),
           list("devices", map("device", device_fields())).positional().doc("Devices of the cluster."),
           ranks_field(),
           list("links", map("link", link_fields())).positional().doc("Links that are used."),
           text("links_note").optional().doc("What their traffic leaves out."),
           list("changes", text("change")).optional().doc("Changes of the cluster over time, as text."),
           list("change_times", map("change", change_fields())).optional().doc("The same as times."),
           amount("jitter_most").optional().doc("Largest random deviation of an instruction, as a share of its time."),
           map("search", search_fields()).optional().doc("How the schedule was found."),
           map("rates", rates_fields()).optional().doc("Rates of the model, where its amounts are known."),
           count("devices_per_group").optional().doc("Devices that each listed device with a stage stands for."),
           interval_field(),
           diagnosis_field(),
           text("diagnosis_note").optional().doc("Why there is no diagnosis, or why its changes are not simulated."),
           expected_failures_field(),
           economics_field(),
           classes_field(),
           passes_field(),
           text("not_timed").optional().doc("What the backend did not time."),
           map("enqueued", enqueued_fields()).optional().doc("Host time of the GPU backend."),
           map("sleeps", sleeps_fields()).optional().doc("Sleeps of a run with run.compute: emulated."),
           map("learnt", learnt_fields()).optional().doc("The result of training."),
       }});
  return spec;
}

namespace {

constexpr std::size_t kCheckedTogether = 2000;

/// Results of many devices have more values than a file may hold: their long lists are checked piece by piece.
void check_results(const Json& results, const std::string& text, const std::string& file, config::Problems& problems) {
  const auto is_long = [](const JsonMember& m) {
    return m.value.is_array() && m.value.items().size() > kCheckedTogether;
  };
  const auto& members = results.members();
  if (members.size() > kCheckedTogether || std::none_of(members.begin(), members.end(), is_long))
    return static_cast<void>(check(config::parse_json(text, file, problems), results_fields(), {}, problems));
  Json frame = JsonObject();
  std::map<std::string, const Json::Array*> lists;
  std::size_t longest = 0;
  for (const JsonMember& member : members)
    if (is_long(member)) {
      lists[member.key] = &member.value.items();
      longest = std::max(longest, member.value.items().size());
    } else {
      frame[member.key] = member.value;
    }
  for (std::size_t begin = 0; begin < longest; begin += kCheckedTogether) {
    for (const auto& [key, items] : lists) {
      const std::size_t end = std::min(begin + kCheckedTogether, items->size());
      JsonArray part;
      for (std::size_t n = begin; n < end; ++n) part.push_back((*items)[n]);
      frame[key] = std::move(part);
    }
    check(config::parse_json(frame.dump(), file, problems), results_fields(), {}, problems);
  }
}

}  // namespace

Json read_results(const std::string& text, const std::string& file) {
  const std::string help = "give the folder that stagecraft run --out wrote";
  std::optional<Json> json = Json::parse(text);
  const Json* schema = json ? json->find("schema") : nullptr;
  if (!schema || *schema != "results/1")
    throw InputError({{{file, 0, 0}, {}, "these are not the results of a run", help, "not-results"}});
  config::Problems problems;
  check_results(*json, text, file, problems);
  problems.throw_if_any();
  return *std::move(json);
}

}  // namespace stagecraft
