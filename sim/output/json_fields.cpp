// The fields of trace.json, validation.json and the JSON of `schedule`, from which `stagecraft schema` makes their JSON
// Schemas; trace.cpp and json_files.cpp write these files.

#include <utility>

#include <fmt/core.h>

#include "sim/output/json_files.hpp"
#include "sim/output/network_validation.hpp"

namespace stagecraft {
namespace {

using config::Field;
using config::MapSpec;
using config::Variant;

Field number(std::string name) { return config::real(std::move(name), -kInfinity, kInfinity); }
Field count(std::string name) { return config::integer(std::move(name), 0, kInfinity); }
Field process() { return count("pid").doc("Number of the device; the number after the last: changes of the cluster."); }
Field track() { return count("tid").doc("Track of the device."); }
Field start() { return number("ts").doc("Time in microseconds from the start of the run."); }

const MapSpec& metadata_fields() {
  using namespace config;
  static const MapSpec args{.title = "The value that belongs to `name`.",
                            .fields = {text("name").optional().doc("Name of the device or of the track."),
                                       count("sort_index").optional().doc("Position of the track on its device.")}};
  static const MapSpec spec{
      .title = "A name of a process or track.",
      .fields = {choice("name", {"process_name", "thread_name", "thread_sort_index"}).doc("What this event sets."),
                 process(), track().optional(), map("args", args).doc("Its value.")}};
  return spec;
}

const MapSpec& slice_fields() {
  using namespace config;
  static const MapSpec args{
      .title = "What the instruction is.",
      .fields = {count("id").doc("Number of the instruction, as `id` in spans.csv."),
                 count("iteration").doc("Iteration, counted from 0."),
                 number("version").doc("Version of the weights, as in spans.csv."),
                 count("stage").doc("Stage, as in spans.csv."),
                 count("micro_batch").optional().doc("Micro-batch; not of updates and their collectives."),
                 text("layers").optional().doc("Layers of the stage, such as 0-5; of computation."),
                 count("bytes").optional().doc("Size of a message or collective."),
                 text("class").optional().doc("Class of time of a message or collective: pipeline, tensor, data ...")}};
  static const MapSpec spec{
      .title = "An instruction, or a change of the cluster.",
      .fields = {text("name").doc("The instruction, such as 0F3; or the change in words."),
                 choice("cat", {"compute", "communication", "change"}).doc("Kind of slice."), process(), track(),
                 start(), number("dur").doc("Duration in microseconds."),
                 text("cname").optional().doc("Color name of Chrome's viewer; only of computation."),
                 map("args", args).optional().doc("What the instruction is; only of instructions.")}};
  return spec;
}

/// The start or end of an arrow.
MapSpec arrow_fields(std::string title, bool end) {
  using namespace config;
  MapSpec spec{std::move(title),
               {choice("name", {"message"}).doc("Always the same."), choice("cat", {"message"}).doc("Always the same."),
                count("id").doc("Number of the message."), process(), track(), start()}};
  if (end) spec.fields.push_back(choice("bp", {"e"}).doc("The arrow ends at the slice that encloses it."));
  return spec;
}

const MapSpec& counter_fields() {
  using namespace config;
  static const MapSpec args{.title = "The number.",
                            .fields = {number("MB").optional().doc("Megabytes (1e6 bytes) of a device."),
                                       number("use").optional().doc("Use of a link in percent.")}};
  static const MapSpec spec{
      .title = "Memory of a device, or use of a link, from this time on.",
      .fields = {text("name").doc("model (weights, gradients and optimizer state), activations (stashes), messages "
                                  "(received and not consumed, or not sent yet), or link % and the name of the link."),
                 process(), start(), map("args", args).doc("The numbers.")}};
  return spec;
}

std::vector<Variant> event_kinds() {
  static const MapSpec from = arrow_fields("The send of a message.", false),
                       to = arrow_fields("The receive of a message.", true);
  return {{"M", "A name of a process or track.", &metadata_fields()},
          {"X", "An instruction, or a change of the cluster.", &slice_fields()},
          {"s", "The send of a message.", &from},
          {"f", "The receive of a message.", &to},
          {"C", "Memory of a device, or use of a link, from this time on.", &counter_fields()}};
}

const MapSpec& pair_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A simulated and a measured value of one quantity.",
      .fields = {text("name").doc("What is compared."), number("simulated").doc("Median of the simulation."),
                 number("measured").doc("Median of the readings."),
                 number("spread").doc("Half the interquartile range of the readings."),
                 number("error").doc("(simulated - measured) / measured."),
                 count("readings").doc("Number of readings.")}};
  return spec;
}

Field pairs(std::string name) { return config::list(std::move(name), config::map("pair", pair_fields())).positional(); }

const MapSpec& found_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "How a schedule was found that was searched for.",
      .fields = {choice("objective", {"period", "makespan"}).doc("What the search minimizes."),
                 number("found").doc("Length of the best schedule found, in the unit of the given times."),
                 number("lower_bound").doc("No schedule is shorter."), text("lower_bound_reason").doc("Why."),
                 text("from").doc("The schedule that the search began with.")}};
  return spec;
}

const MapSpec& problem_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A finding about an order of operations.",
      .fields = {text("file").doc("The file of the order, or the name of the schedule."),
                 text("code").doc("Name of the rule."), number("level").doc("Level of the check."),
                 number("rank").doc("Rank; -1: none."), number("column").doc("Column; -1: none."),
                 text("op").doc("The operation; may be empty."), text("message").doc("The finding.")}};
  return spec;
}

const MapSpec& model_error_fields() {
  using namespace config;
  static const MapSpec spec{.title = "Relative errors over the iterations.",
                            .fields = {number("median").doc("Their median."), number("worst").doc("The largest.")}};
  return spec;
}

const MapSpec& core_waits_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "How long the computations of an iteration could have run and had no core.",
      .fields = {number("waited").doc("Sum over all devices."),
                 number("simulated").doc("Such waits in the simulation, where that shares cores among threads."),
                 number("computing").doc("Sum of the times of all computations."),
                 number("marked").doc("Time of the computations that waited for more than 1 % of it, on the device "
                                      "with most.")}};
  return spec;
}

}  // namespace

const MapSpec& trace_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "trace.json: a run in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.",
      .fields = {choice("displayTimeUnit", {"ns"}).doc("Unit that viewers show; the times are in microseconds."),
                 list("traceEvents", variant("event", "ph", event_kinds)).positional().doc("The events.")}};
  return spec;
}

namespace {

const MapSpec& quantile_fields() {
  static const MapSpec spec = [] {
    MapSpec fields{.title = "Quantiles.", .fields = {}};
    for (const int percent : kPercents)
      fields.fields.push_back(
          number(fmt::format("p{}", percent)).optional().doc(fmt::format("{} % are below.", percent)));
    return fields;
  }();
  return spec;
}

const MapSpec& rate_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A transfer of the check of the links.",
      .fields = {text("what").doc("Which ends and links."),
                 number("nominal_bytes_per_s").doc("The rate that max-min sharing of the links gives it."),
                 number("measured_bytes_per_s").doc("The rate that it had.")}};
  return spec;
}

const MapSpec& network_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A network that was built for a run.",
      .fields = {
          text("kind").doc("namespaces: network namespaces of one machine."),
          text("kernel").doc("Release of the kernel."), text("queues").doc("What shares the links."),
          text("congestion_control").doc("How TCP chooses its rates, such as cubic; empty: the choice of the system."),
          number("scale").doc("Rates were divided, and times multiplied by it."),
          list("rates", map("rate", rate_fields())).positional().doc("The check of the links before the run."),
          pairs("each_iteration_s").doc("Seconds of each iteration, from the first."),
          pairs("links_busy_s").doc("Seconds of an iteration in which messages are on a link."),
          map("messages_simulated_over_measured", quantile_fields()).doc("Times of messages and collectives."),
          map("sleeps_late_s", quantile_fields()).doc("How late sleeps ended that stand for computation."),
          real("between_instructions_s", 0, kInfinity)
              .optional()
              .doc("Time between instructions of the longest chain of a measured iteration; older files have none.")}};
  return spec;
}

}  // namespace

const MapSpec& validation_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "validation.json of `stagecraft validate --out`: a simulation next to a real run.",
      .fields = {choice("schema", {"validation/1"}).doc("Version of this format."),
                 text("title").doc("Title of the scenario."),
                 map("simulated", provenance_fields()).doc("Where the simulated numbers come from."),
                 map("measured", provenance_fields()).doc("Where the measured numbers come from."),
                 number("tolerance").doc("Largest relative error of the iteration that counts as agreement."),
                 boolean("within_tolerance").doc("Whether the iteration is within it."),
                 boolean("sure").doc("Whether the spread of the readings and the notes leave no doubt about that."),
                 list("notes", text("note")).doc("What the forecast does not know, and what changed during the run."),
                 map("iteration_s", pair_fields()).doc("Seconds from the end of an iteration to the end of the next."),
                 list("iterations_measured_s", number("seconds")).doc("Every measured iteration, in seconds."),
                 pairs("instructions_s").doc("Seconds of one instruction of each kind."),
                 pairs("by_stage_s").doc("Seconds of one instruction by stage and kind; largest error first."),
                 pairs("device_busy_s").doc("Seconds of computation of each device in an iteration."),
                 pairs("peak_memory_bytes").doc("Peak memory of each device in bytes."),
                 list("iterations_replayed_s", number("seconds"))
                     .optional()
                     .doc("Each measured iteration, simulated with the operation times measured in it, in seconds."),
                 map("model_error", model_error_fields())
                     .optional()
                     .doc("Relative errors of these: of order, overlap and messages."),
                 number("cost_error")
                     .optional()
                     .doc("Relative error of the iteration that comes from the costs of operations."),
                 list("core_waits_s", map("iteration", core_waits_fields()))
                     .positional()
                     .optional()
                     .doc("What the threads of each measured iteration waited for a core, in seconds."),
                 map("network", network_fields()).optional().doc("The network that --network built for the run.")}};
  return spec;
}

const MapSpec& order_fields() {
  using namespace config;
  static const MapSpec spec{
      .title =
          "What `stagecraft schedule --format json` prints. Times are in the unit of --f and the other options. An "
          "order with problems has `problems` and `warnings` alone.",
      .fields = {
          text("schedule").optional().doc("Name of the schedule or of the file."),
          count("ranks").optional().doc("Devices."), count("stages").optional().doc("Stages."),
          count("micro_batches").optional().doc("Micro-batches of an iteration."),
          number("makespan").optional().doc("Length of the first iteration."),
          number("period").optional().doc("Time of one more iteration, back to back."),
          number("bubble").optional().doc(
              "Share of a period in which a rank waits for other stages, mean over the ranks."),
          number("bubble_time").optional().doc("Idle time of the busiest rank in the first iteration."),
          number("bubble_ratio_busiest").optional().doc("Idle share of the busiest rank in the first iteration."),
          list("busy", number("time")).optional().doc("Time of computation of each rank in the first iteration."),
          list("peak_activations", number("stashes"))
              .optional()
              .doc("Peak of each rank, in stashes of one stage and micro-batch."),
          map("search", found_fields()).optional().doc("How the schedule was found."),
          list("problems", map("problem", problem_fields())).positional().doc("Why the order is refused."),
          list("warnings", map("warning", problem_fields())).positional().doc("What may not be meant.")}};
  return spec;
}

}  // namespace stagecraft
