#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/config/columns.hpp"
#include "sim/output/table.hpp"
#include "sim/result/interval.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {

/// The columns of tables of many runs (schedules, plans, choices), by name. A name means the same in all of them, and
/// the name of a metric is the column of that metric.
FileColumn result_column(std::string_view name);

/// The cell of a metric in a table of runs.
TableCell figure_cell(const Metric&, double value);
inline double base_units(double value) { return value; }
inline double base_units(Seconds value) { return value.value; }
inline double base_units(Bytes value) { return value.value; }

/// The column of a metric in a table of runs, whatever its rows are: the metric gives the text and, where the layout
/// has none, the heading; `value` gives its value in a row. Without a width in the layout people do not see it.
template <class Row, class Value>
TableColumnOf<Row> figure_column(const Metric& m, Value value, TableColumn layout) {
  if (layout.width > 0 && layout.heading.empty()) layout.heading = column_heading(m);
  return {std::move(layout), [&m, value](const Row& r) { return figure_cell(m, base_units(std::invoke(value, r))); }};
}

/// figure_column() with result_column() in files.
template <class Row, class Value>
TableColumnOf<Row> figure_column(std::string_view name, Value value, TableColumn layout = {}) {
  layout.key = result_column(name);
  return figure_column<Row>(metrics()[metric(name)], value, std::move(layout));
}

/// The column of the peak memory of the fullest device.
template <class Row>
TableColumnOf<Row> memory_column() {
  return figure_column<Row>("peak_memory_bytes", &Row::memory, {.width = 9});
}

/// The column of the period, with the interval of simulated times.
template <class Row>
TableColumnOf<Row> period_column(const std::optional<PredictionInterval>& interval) {
  TableColumnOf<Row> column = figure_column<Row>("period_s", &Row::period, {.width = 9, .widens = true});
  column.cell = [interval](const Row& r) { return TableCell(r.period.value, to_text(r.period, interval)); };
  return column;
}

}  // namespace stagecraft
