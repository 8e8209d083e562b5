// Keeps the runs of a session of `serve` and draws them in any form that is asked for, and asks the client's functions
// for the order of a schedule.

#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/drawings.hpp"
#include "sim/output/files.hpp"
#include "sim/output/html.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/output/text.hpp"
#include "sim/output/timeline_picture.hpp"
#include "sim/output/trace.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tools/stagecraft/run_folder.hpp"
#include "tools/stagecraft/serve/session.hpp"
#include "tools/stagecraft/serve/shared_arrays.hpp"

namespace stagecraft::serve {
namespace {

constexpr int kGanttWidth = 100;
constexpr std::size_t kMostDrawn = 20000;

std::string kept_text(const std::string& what, const ServedRun& run) {
  if (!run.compiled) throw InputError(fmt::format("an order without a scenario has no {}", what));
  const KeptRun page_run = kept_run(run.title.empty() ? "run" : run.title, *run.compiled, run.outcome);
  if (what == "scenario") return page_run.scenario;
  return html_page(std::vector{page_run}, page_run.name);
}

void check_picture_size(const ServedRun& run) {
  if (run.program().size() > kMostDrawn)
    throw Infeasible("size", fmt::format("a picture of {} instructions is not legible; up to {} are",
                                         run.program().size(), kMostDrawn));
}

std::string svg_of(const ServedRun& run) {
  check_picture_size(run);
  return to_svg(timeline_picture(run.program(), run.outcome.timeline, run.cluster(), run.title, kScreenPicture));
}

/// A PDF file of the first iteration as hexadecimal digits, because JSON has text alone.
std::string pdf_of(const ServedRun& run) {
  check_picture_size(run);
  const PdfFile pdf =
      to_pdf(timeline_picture(run.program(), run.outcome.timeline, run.cluster(), run.title, kPagePicture, 0));
  std::string text;
  for (const char byte : pdf.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string draw(const std::string& what, const ServedRun& run, int width) {
  const Timeline& timeline = run.outcome.timeline;
  if (what == "grid") return to_grid(run.schedule());
  if (what == "scenario") return kept_text(what, run);
  if (what == "summary") {
    const Report& report = run.outcome.report;
    const bool measured = timeline.clock != Clock::Simulated;
    return answer_text(run.program(), report, run.cluster(), measured) +
           details_text(run.program(), report, run.cluster(), measured) + "\n" +
           ranks_text(report, run.cluster(), {}, /*details=*/true);
  }
  if (!timeline.instruction_times) throw InputError("instructions were not timed (run.gpu.timing: off)");
  if (what == "gantt") return gantt(run.program(), timeline, run.cluster(), 0, width);
  if (what == "svg") return svg_of(run);
  if (what == "pdf") return pdf_of(run);
  if (what == "html") return kept_text(what, run);
  if (what == "trace")
    return chrome_trace(run.program(), timeline, run.cluster(),
                        {.plan = run.compiled ? &run.compiled->plan : nullptr, .report = &run.outcome.report});
  if (what == "spans.csv") return spans_csv(run.program(), timeline, run.outcome.report, run.cluster());
  if (what == "memory.csv") return memory_csv(run.program(), timeline, run.outcome.report, run.cluster());
  throw InputError("there is no drawing '" + what + "'");
}

JsonObject costs_of(const StageCost& cost) {
  return {{"forward", cost.forward.value},
          {"backward", cost.backward.value},
          {"input_gradient", cost.input_gradient.value},
          {"weight_gradient", cost.weight_gradient.value},
          {"recompute", cost.recompute.value},
          {"update", cost.update.value}};
}

Json question_of(const ScheduleInput& in, const std::vector<std::vector<StageId>>& stages) {
  JsonArray rank_stages, stage_costs, micro_batches;
  for (const std::vector<StageId>& row : stages) {
    JsonArray list;
    for (const StageId s : row) list.push_back(s.value);
    rank_stages.push_back(std::move(list));
  }
  for (const StageId s : in.plan.stages.ids()) {
    stage_costs.push_back(costs_of(in.costs.at(s, 0)));
    micro_batches.push_back(in.plan.micro_batches(s));
  }
  return JsonObject{{"call", "order"},
                    {"stages", std::move(rank_stages)},
                    {"micro_batches", std::move(micro_batches)},
                    {"costs", std::move(stage_costs)}};
}

/// Ops of a rank: kind, stage, micro-batch and line of each, one after the other.
std::vector<OpOfLine> row_of(const Json& flat) {
  const Json::Array& numbers = list_items(flat, "rows");
  if (numbers.size() % 4 != 0) throw InputError("a row of ops has four numbers for each");
  std::vector<OpOfLine> row;
  for (std::size_t i = 0; i < numbers.size(); i += 4) {
    const auto number = [&](std::size_t k) {
      return whole_number(numbers[i + k], "rows", -kLargestWhole, kLargestWhole);
    };
    const int kind = whole_number(numbers[i], "rows", 0, static_cast<int>(OpKind::Recompute));
    row.push_back({{static_cast<OpKind>(kind), false, StageId{number(1)}, number(2)}, number(3)});
  }
  return row;
}

}  // namespace

std::unique_ptr<FunctionOrder> read_order(Session& session, const Parameters& p) {
  const Json* given = p.find("order");
  if (given == nullptr) return nullptr;
  const Parameters asked(*given, "order");
  auto order = std::make_unique<FunctionOrder>();
  order->name = asked.text("name", "function");
  order->where = {asked.text("file"), asked.whole("line", 0), 1};
  const std::string word = asked.text("placement", "any");
  const std::optional<Placement> placement = word == "any" ? Placement::Any : parse_placement(word);
  if (!placement) throw InputError("there is no placement '" + word + "'", "any, linear, loop, v or wave");
  define(*order, *placement, asked.whole("chunks", 1, 1, kMostChunks));
  order->rows = [&session, name = order->name](const ScheduleInput& in,
                                               const std::vector<std::vector<StageId>>& stages) {
    Json question = question_of(in, stages);
    question["name"] = name;
    const std::lock_guard lock(session.asking);
    session.connection.send(question);
    const std::optional<Json> answer = session.connection.receive();
    const Json* rows = answer ? answer->find("rows") : nullptr;
    if (rows == nullptr) throw FunctionFailed();
    std::vector<std::vector<OpOfLine>> result;
    for (const Json& row : list_items(*rows, "rows")) result.push_back(row_of(row));
    return result;
  };
  return order;
}

namespace {

OwnOrder order_on(const FunctionOrder& order, const PlannedExperiment& planned) {
  const Schedule one = order_on_ranks(order, {.plan = planned.plan, .costs = planned.costs});
  return {order.name, to_csv(one), order.where.file};
}

}  // namespace

std::vector<OwnSchedule> read_own_schedules(Session& session, const Parameters& p) {
  std::vector<OwnSchedule> schedules;
  for (const Json& given : p.items("functions")) {
    const Json wrapped = JsonObject{{"order", given}};
    const std::shared_ptr<const FunctionOrder> order = read_order(session, Parameters(wrapped, "functions"));
    if (find_in(schedules::catalog(), order->name))
      throw InputError(fmt::format("a schedule of yours has the name of the built-in schedule '{}'", order->name),
                       "give it another name");
    schedules.push_back(
        {spec_of(*order), [order](const PlannedExperiment& planned) { return order_on(*order, planned); }});
  }
  return schedules;
}

OwnOrder order_for(const OwnSchedule& schedule, const Experiment& scenario) {
  return schedule.order_on(plan_experiment(with_order(scenario, schedule.spec, weights_spec("auto"))));
}

Json keep_run(Session& session, std::unique_ptr<ServedRun> run, Json results, bool memory) {
  JsonArray devices, stages, resident;
  for (const Device& device : run->cluster().devices) devices.push_back(device.name);
  for (std::size_t s = 0; s < run->program().micro_batches.size(); ++s)
    stages.push_back(run->compiled ? run->compiled->plan.stages[StageId{s}].name : std::to_string(s));
  for (const ResidentMemory& m : run->program().memory) resident.push_back(m.total().value);
  SharedArrays arrays = share_arrays(run->program(), run->outcome.timeline, memory);
  session.shared = std::move(arrays.file);
  JsonArray kinds;
  for (std::size_t kind = 0; kind < kInstructionKindCount; ++kind)
    kinds.push_back(std::string(label(static_cast<InstructionKind>(kind)).key));
  Json result = JsonObject{
      {"run", session.next_run},
      {"title", run->title},
      {"results", std::move(results)},
      {"arrays", std::move(arrays.layout)},
      {"devices", std::move(devices)},
      {"stages", std::move(stages)},
      {"kinds", std::move(kinds)},
      {"micro_batches", std::vector<int>(run->program().micro_batches.begin(), run->program().micro_batches.end())},
      {"iterations", run->program().iterations},
      {"resident_bytes", std::move(resident)}};
  session.runs.emplace(session.next_run++, std::move(run));
  return result;
}

Json answer_draw(Session& session, const Parameters& p) {
  const auto run = session.runs.find(p.whole("run", 0));
  if (run == session.runs.end())
    throw InputError("the run is no longer there, because the process that made it was stopped", "run it again");
  return JsonObject{{"text", draw(p.text("what"), *run->second, p.whole("width", kGanttWidth, 1, 10000))}};
}

}  // namespace stagecraft::serve
