// The table of pipeline ranks (busy, bubble, memory by class), for the summary of a run and the member `ranks` of
// results.json, and the table of the memory that a real run measured.

#include "sim/output/rank_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/result/pipeline_ranks.hpp"

namespace stagecraft {
namespace {

/// Rounding must not print -0.0 %.
std::string share_text(double share) { return fmt::format("{:.1f} %", std::abs(share) < 5e-4 ? 0.0 : 100 * share); }

/// "0, 4", and of many "0, 2, 4 ...".
std::string stages_text(const std::vector<StageId>& stages) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> words;
  for (const StageId s : stages) words.push_back(std::to_string(s.value));
  if (words.size() <= kMost) return join(words);
  words.resize(kMost - 1);
  return join(words) + " ...";
}

JsonArray stages_json(const std::vector<StageId>& stages) {
  JsonArray list;
  for (const StageId s : stages) list.push_back(s.value);
  return list;
}

std::string stages_csv(const std::vector<StageId>& stages) {
  std::vector<std::string> words;
  for (const StageId s : stages) words.push_back(std::to_string(s.value));
  return join(words, " ");
}

/// What people see of the rows.
struct ShownColumns {
  bool every_column = false;
  bool stages = false, device = false, reserve = false, capacity = false, host = false;

  ShownColumns(const std::vector<PipelineRank>& rows, bool every) : every_column(every) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const PipelineRank& r = rows[i];
      const bool shares_rank = i > 0 && rows[i - 1].rank == r.rank;
      stages |= r.stages.size() != 1 || r.stages.front().value != r.rank.value;
      device |= r.devices == 1 || shares_rank || every_column;
      reserve |= r.memory.reserved.value > 0 && every_column;
      capacity |= r.memory.capacity.value > 0;
      host |= r.memory.host.value > 0;
    }
  }
};

/// Who a row stands for.
TableColumns<PipelineRank> place_columns(const Cluster& cluster, const ShownColumns& shown) {
  using namespace config;
  const TableColumn words{.align = TextAlign::Left, .widens = true, .drop_order = 7};
  TableColumn rank = words, stages = words, device = words;
  rank.key = word_column("rank", "Place in the pipeline, counted from 0, with replicas and the devices of each.");
  rank.heading = "rank", rank.drop_order = 0;
  stages.key = word_column("stages", "Stages that it runs, with a space between.");
  stages.heading = shown.stages ? "stages" : "", stages.files = InFiles::Csv;
  device.key = word_column("first_device", "Name of the first of its devices.");
  device.heading = shown.device ? "first device" : "";
  return {
      {rank, [](const PipelineRank& r) { return label(r); }},
      {stages, [](const PipelineRank& r) { return TableCell(stages_csv(r.stages), stages_text(r.stages)); }},
      {{.key = nested_column(list("stages", integer("stage", 0, 1e9)), "Stages that it runs."), .files = InFiles::Json},
       [](const PipelineRank& r) { return TableCell(Json(stages_json(r.stages))); }},
      {device, [&](const PipelineRank& r) { return cluster.devices[r.first].name; }},
      {{.key = word_column("type", "Name of the type of its devices.")},
       [&](const PipelineRank& r) { return cluster.type_of(r.first).name; }},
      {{.key = whole_column("devices", "Number of its devices, in all replicas.")}, &PipelineRank::devices},
      {{.key = whole_column("replicas", "Number of its replicas.")},
       [](const PipelineRank& r) { return r.replicas(); }},
      {{.key = whole_column("tensor", "Devices of a tensor group.")}, &PipelineRank::tensor},
      {{.key = whole_column("context", "Devices of a context group.")}, &PipelineRank::context},
  };
}

/// A main class of time: seconds of a period in files, a share of it in text.
TableColumnOf<PipelineRank> time_column(const MainTimeClass& c, Seconds period, bool is_shown) {
  TableColumn column{.key = number_column(std::string(c.key), "s", std::string(c.contents))};
  if (is_shown)
    column.heading = c.name, column.width = 7, column.widens = true, column.drop_order = c.name == "bubble" ? 2 : 6;
  return {column, [&c, period](const PipelineRank& r) {
            const Seconds time = c.seconds(r.time);
            return TableCell(time.value, share_text(period.value > 0 ? time / period : 0));
          }};
}

TableColumns<PipelineRank> time_columns(const Report& report, bool every_column) {
  TableColumns<PipelineRank> columns{
      {{.key = number_column("utilisation", "", "Share of the run in which a device is busy."),
        .heading = "busy",
        .width = 7,
        .drop_order = 2},
       [](const PipelineRank& r) { return TableCell(r.busy, share_text(r.busy)); }}};
  // Computation and updates are what "busy" is made of.
  for (const MainTimeClass& c : main_time_classes())
    columns.push_back(
        time_column(c, report.period, c.name == "bubble" || (every_column && c.name.starts_with("exposed"))));
  return columns;
}

TableColumnOf<PipelineRank> size_column(const char* name, const char* heading, const char* doc,
                                        std::function<Bytes(const PipelineRank&)> size, int drop_order = 0) {
  return {{.key = number_column(name, "bytes", doc), .heading = heading, .width = 9, .drop_order = drop_order},
          [size](const PipelineRank& r) { return size(r); }};
}

Bytes free_memory(const PipelineRank& r) { return r.memory.capacity - r.memory.total; }

/// Memory at the peak, by class.
TableColumns<PipelineRank> memory_columns(const ShownColumns& shown) {
  TableColumns<PipelineRank> columns{
      size_column(
          "weights_bytes", "weights", "Weights, with all of their versions.",
          [](const PipelineRank& r) { return r.resident.weights; }, 5),
      size_column(
          "gradients_bytes", "gradients", "Gradients.", [](const PipelineRank& r) { return r.resident.gradients; }, 5),
      size_column(
          "optimizer_bytes", "optimizer", "State of the optimizer.",
          [](const PipelineRank& r) { return r.resident.optimizer; }, 5),
      size_column(
          "activations_bytes", "activations", "Activations kept for backward, and what a backward recomputes.",
          [](const PipelineRank& r) { return r.memory.stash; }, 3),
      size_column("messages_bytes", "messages", "Messages that are received and not consumed, or not sent yet.",
                  &PipelineRank::messages, 5),
      size_column("peak_memory_bytes", "sum", "Sum of these at the peak, which is that of the fullest of its devices.",
                  [](const PipelineRank& r) { return r.memory.total; }),
      size_column(
          "memory_reserved_bytes", shown.reserve ? "reserved" : "", "Memory that the program cannot use.",
          [](const PipelineRank& r) { return r.memory.reserved; }, 4)};
  TableColumnOf<PipelineRank> free =
      size_column("memory_free_bytes", shown.capacity ? "free" : "",
                  "Memory that is left; negative: that is missing. Unknown: null.", free_memory, 1);
  free.column.key = or_null(*free.column.key);
  free.cell = [](const PipelineRank& r) {
    if (r.memory.capacity.value <= 0) return TableCell(Json(), "-");
    const Bytes left = free_memory(r);
    return TableCell(left.value, left.value < 0 ? "-" + to_text(Bytes{-left.value}) : to_text(left));
  };
  columns.push_back(std::move(free));
  columns.push_back(size_column(
      "host_memory_bytes", shown.host ? "host memory" : "",
      "The most that a device has in the memory of its host at one time, with `plan.offload`; not in the sum.",
      [](const PipelineRank& r) { return r.memory.host; }, 3));
  columns.push_back({{.key = whole_column("peak_activations", "Most micro-batches in flight."),
                      .heading = shown.every_column ? "in flight" : "",
                      .width = 9,
                      .drop_order = 6},
                     [](const PipelineRank& r) { return r.memory.activations; }});
  return columns;
}

}  // namespace

Table rank_table(const Report& report, const Cluster& cluster, bool every_column) {
  const ShownColumns shown(report.ranks, every_column);
  return make_table<PipelineRank>(
      joined_columns<PipelineRank>(
          {place_columns(cluster, shown), time_columns(report, every_column), memory_columns(shown)}),
      report.ranks);
}

std::string ranks_text(const Report& report, const Cluster& cluster, const TextLayout& layout, bool details) {
  constexpr std::size_t kMostRows = 16;
  if (report.ranks.empty()) return {};
  Table table = rank_table(report, cluster, details || !layout.columns.empty());
  if (!details && table.rows.size() > kMostRows) {
    table.more = fmt::format("... and {} more (--details)", table.rows.size() - kMostRows);
    table.rows.resize(kMostRows);
  }
  return to_text(table, layout);
}

std::vector<FileColumn> rank_columns() { return csv_columns(rank_table({}, {})); }

config::Field ranks_field() {
  using namespace config;
  static const MapSpec row = json_row(rank_table({}, {}), "A pipeline rank: its replicas that do the same.");
  return list("ranks", map("rank", row))
      .optional()
      .doc("Pipeline ranks, with equal replicas in one entry. Times are the mean of its devices.");
}

std::string measured_memory_table(const Learnt& learnt, const Cluster& cluster, const TextLayout& layout) {
  std::vector<DeviceId> used;
  for (const DeviceId d : learnt.memory.ids())
    if (cluster.devices.contains(d) && learnt.memory[d].total.value > 0) used.push_back(d);
  using Row = DeviceId;
  const auto part = [&](Bytes MeasuredMemory::*bytes) {
    return [&, bytes](const Row& d) { return learnt.memory[d].*bytes; };
  };
  TableColumns<Row> columns{{{.heading = "measured", .width = 12, .align = TextAlign::Left},
                             [&](const Row& d) { return cluster.devices[d].name; }},
                            {{.heading = "memory", .width = 12}, part(&MeasuredMemory::total)},
                            {{.heading = "weights", .width = 22},
                             [&](const Row& d) {
                               return fmt::format("{} in {}", to_text(learnt.memory[d].weights),
                                                  learnt.memory[d].weight_buffers);
                             }},
                            {{.heading = "gradients", .width = 12, .drop_order = 2}, part(&MeasuredMemory::gradients)},
                            {{.heading = "optimizer", .width = 12, .drop_order = 1}, part(&MeasuredMemory::optimizer)},
                            {{.heading = "activations", .width = 12}, part(&MeasuredMemory::activations)}};
  if (std::any_of(used.begin(), used.end(), [&](DeviceId d) { return learnt.memory[d].host.value > 0; }))
    columns.push_back({{.heading = "host memory", .width = 12}, part(&MeasuredMemory::host)});
  return to_text(make_table<Row>(columns, used), layout);
}

}  // namespace stagecraft
