// The originals of the reference data: our readers give for each what they give for the restated facts.

#include <doctest/doctest.h>

#include <cstdlib>

#include "sim/schedule_file/check_file.hpp"
#include "tests/reference/planners/inputs.hpp"

using namespace stagecraft;
using test::ParsedJson;

namespace {

std::string original(const std::string& file) {
  return std::string(std::getenv("STAGECRAFT_REFERENCE_DATA")) + "/" + file;
}

}  // namespace

TEST_CASE("originals: schedules with idle slots and after PyTorch's lowering") {
  const ParsedJson data = test::reference_json("schedules.json");
  for (const ParsedJson& entry : data["schedules"]) {
    const std::string name = entry["name"], file = original("schedules/" + name);
    CAPTURE(name);
    const CsvSchedule ours = parse_schedule_csv(test::csv_of(entry), name);
    CHECK(parse_schedule_csv(read_file(file + ".csv"), name).schedule == ours.schedule);
    if (!entry.contains("lowered")) continue;
    std::vector<ScheduleProblem> problems;
    const Plan plan = implied_plan(ours, problems);
    CHECK(read_file(file + "_comms.csv") == to_csv(lower_for_torch(ours.schedule, plan, TorchVersion::V2_11)));
  }
}

TEST_CASE("originals: profiles of PipeDream") {
  const ParsedJson data = test::reference_json("pipedream_profiles.json");
  for (const auto& item : data.items()) {
    if (item.key() == "source") continue;
    CAPTURE(item.key());
    const std::string text = read_file(original("msr/profiles/" + item.key() + ".graph.txt"));
    CHECK(timed_model_yaml(read_pipedream_graph(text, item.key(), 1), "") ==
          timed_model_yaml(test::profile(item.key(), 1), ""));
  }
}

TEST_CASE("originals: Piper's input") {
  const ParsedJson theirs = ParsedJson::parse(read_file(original("msr/piper_bert32a100.json")));
  CHECK((theirs == ParsedJson::parse(test::piper_text())));  // Either is too long to print.
}

TEST_CASE("originals: PipeEdge's inputs") {
  const ParsedJson data = test::reference_json("edgepipe.json");
  const test::PipeEdgeFolder scratch;
  for (const ParsedJson& c : data["cases"]) {
    const std::string name = c["name"], folder = original("edgepipe/cases/" + name);
    CAPTURE(name);
    scratch.write(c, data);
    const pipeedge::Request request{.model = c["model"]};
    const auto ours = pipeedge::read(scratch.files, request);
    const auto theirs =
        pipeedge::read({folder + "/models.yml", folder + "/device_types.yml", folder + "/devices.yml"}, request);
    CHECK(ours.input == theirs.input);
    CHECK(ours.outputs == theirs.outputs);
    CHECK(ours.weights == theirs.weights);
    REQUIRE(ours.types.size() == theirs.types.size());
    for (std::size_t t = 0; t < ours.types.size(); ++t) {
      const pipeedge::HostType &a = ours.types[t], &b = theirs.types[t];
      CHECK(a.name == b.name);
      CHECK(a.bandwidth == b.bandwidth);
      CHECK(a.memory == b.memory);
      CHECK(a.seconds == b.seconds);
      CHECK(a.hosts.size() == b.hosts.size());
    }
  }
}
