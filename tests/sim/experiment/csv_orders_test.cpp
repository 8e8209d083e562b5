// Orders from rows of PyTorch's CSV, which count the pipeline ranks of a plan.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/schedule/layout.hpp"
#include "sim/schedule_file/csv.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::csv_orders_test {
namespace {

/// The quickstart has four stages on devices 0, 1, 8 and 9.
CompiledExperiment quickstart(const std::string& rows, const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets{"run.schedule={name: csv, rows: [" + rows + "]}", "run.micro_batches=2"};
  sets.insert(sets.end(), more.begin(), more.end());
  return compile(load_experiment("examples/quickstart", sets));
}

constexpr const char* kRows = R"("0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "2F0,2F1,2B0,2B1", "3F0,3B0,3F1,3B1")";

std::string message_of(const std::string& rows) {
  try {
    quickstart(rows);
  } catch (const Infeasible& e) {
    return full_message(e.problem());
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "runs";
}

}  // namespace

TEST_CASE("rows of an order count the ranks that have stages") {
  const CompiledExperiment c = quickstart(kRows);
  CHECK(to_csv(first_iteration(c.schedule, on_ranks(c.plan))) ==
        "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B0,2B1\n3F0,3B0,3F1,3B1\n");
  CHECK(c.schedule.row(DeviceId{8}).front().stage == StageId{2});
  // A file with a row for each device of the cluster says the same.
  const CompiledExperiment devices = quickstart(
      R"("0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "", "", "", "", "", "", "2F0,2F1,2B0,2B1", "3F0,3B0,3F1,3B1")");
  CHECK(execute(devices, "ideal").end.back() == execute(c, "ideal").end.back());
}

TEST_CASE("replicas that divide samples are one rank, and have one row") {
  const CompiledExperiment c = quickstart(R"("0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1")",
                                          {"plan.stages=2", "plan.replicas=2", "plan.micro_batch_size=2"});
  CHECK(c.schedule.row(c.plan.stage(StageId{1}).leaders.back()).size() > 4);
  CHECK(to_csv(first_iteration(c.schedule, on_ranks(c.plan))) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST_CASE("problems of an order name the row") {
  CHECK(message_of(R"("0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "3F0,3B0,3F1,3B1", "2F0,2F1,2B0,2B1")") ==
        "stage 3 does not run on rank 2");
  CHECK(message_of(R"("0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "2F1,2B1,2F0,2B0", "3F0,3B0,3F1,3B1")").find("rank 8") ==
        std::string::npos);
  CHECK(message_of(R"("0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "2F1,2B1,2F0,2B0", "3F0,3B0,3F1,3B1")").find("(rank 2)") !=
        std::string::npos);
}

}  // namespace stagecraft::csv_orders_test
