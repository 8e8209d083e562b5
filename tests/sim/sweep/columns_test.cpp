// A column with the name of a metric is that metric's, in the files of every table.

#include <doctest/doctest.h>

#include "sim/output/choice_table.hpp"
#include "sim/output/plan_table.hpp"
#include "sim/output/schedule_table.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft::columns_test {

TEST_CASE("a name of a metric has one meaning and unit in the tables of plan, search, compare and sweep") {
  std::size_t of_metrics = 0;
  for (const std::vector<FileColumn>& table :
       {plans_columns(), choices_columns(), schedules_columns(), sweep_columns()})
    for (const FileColumn& column : table) {
      const Metric* m = find_metric(column.name());
      if (!m) continue;
      CAPTURE(column.name());
      CHECK(column.field.text_doc.find(m->meaning) == 0);
      CHECK(column.unit == unit_name(m->unit));
      ++of_metrics;
    }
  CHECK(of_metrics > metrics().size() + 20);  // A sweep has them all, and three tables have several.
}

}  // namespace stagecraft::columns_test
