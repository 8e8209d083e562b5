// A run that was written to files is drawn as the run itself.

#include "sim/output/timeline_strip.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/output/files.hpp"
#include "sim/output/json_files.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::timeline_strip_test {
namespace {

struct Simulated {
  Program program;
  Cluster cluster;
  Timeline timeline;
};

Simulated simulated(Program program) {
  Cluster cluster = test::star(program.devices, 1e9, 1e-6);
  Timeline timeline = test::run_ideal(program, cluster);
  return {std::move(program), std::move(cluster), std::move(timeline)};
}

KeptRun kept_run(const Simulated& s) {
  const Report report = measure(s.program, s.timeline, s.cluster);
  return {"a run",
          results_json("a title", s.program, s.timeline, report, s.cluster),
          spans_csv(s.program, s.timeline, report, s.cluster),
          {},
          "schema: scenario/2\n"};
}

/// Spans in an order that does not depend on where they come from.
std::vector<TimelineSpan> sorted(std::vector<TimelineSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
    return std::tie(a.is_message, a.text, a.start) < std::tie(b.is_message, b.text, b.start);
  });
  return spans;
}

}  // namespace

TEST_CASE("the files of a run have the ops, messages and rows of its timeline") {
  test::Draw draw{Rng(7, "strips")};
  int messages = 0;
  for (int trial = 0; trial < 40; ++trial) {
    test::RandomCase c = test::random_case(draw, 4);
    if (!c.options.overlap) c.options.rendezvous = false;
    const Simulated s = simulated(test::program_of(c));
    const TimelineStrip direct = timeline_strip(s.program, s.timeline, s.cluster, "title", 0),
                        read = timeline_strip(kept_run(s), "title");
    CAPTURE(to_text(c));
    CHECK(read.length == doctest::Approx(direct.length));
    REQUIRE(read.rows.size() == direct.rows.size());
    for (std::size_t r = 0; r < read.rows.size(); ++r) {
      CHECK(read.rows[r].device == direct.rows[r].device);
      CHECK(read.rows[r].count == direct.rows[r].count);
      const auto a = sorted(direct.rows[r].spans), b = sorted(read.rows[r].spans);
      REQUIRE(a.size() == b.size());
      for (std::size_t n = 0; n < a.size(); ++n) {
        CHECK(a[n].text == b[n].text);
        CHECK(a[n].kind == b[n].kind);
        CHECK(a[n].micro_batch == b[n].micro_batch);
        CHECK(a[n].start == doctest::Approx(b[n].start));
        CHECK(a[n].end == doctest::Approx(b[n].end));
        messages += a[n].is_message;
      }
    }
  }
  CHECK(messages > 100);
}

TEST_CASE("devices with the same ops at the same times share a row") {
  const Plan plan = test::dag_plan(1, 1, {}, 8);
  Simulated s = simulated(test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2))));
  TimelineStrip alone = timeline_strip(s.program, s.timeline, s.cluster, {}, 0);
  REQUIRE(alone.rows.size() == 1);
  CHECK(alone.rows[0].count == 1);
  KeptRun run = kept_run(s);  // A second device with the rows of the first.
  const std::string first = s.cluster.devices[DeviceId{0}].name;
  std::string more = run.spans.substr(run.spans.find('\n') + 1);
  for (std::size_t at = 0; (at = more.find("," + first + ",", at)) != more.npos; at += 6)
    more.replace(at + 1, first.size(), "another");
  run.spans += more;
  Json results = *Json::parse(run.results);
  std::vector<Json> devices = results.at("devices").items();
  devices.push_back(devices.front());
  devices.back()["name"] = "another";
  results["devices"] = Json(devices);
  run.results = results.dump();
  const TimelineStrip both = timeline_strip(run, {});
  REQUIRE(both.rows.size() == 1);
  CHECK(both.rows[0].device == first);
  CHECK(both.rows[0].count == 2);
}

TEST_CASE("files that do not belong together are refused") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 4);
  const Simulated s = simulated(test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2))));
  KeptRun run = kept_run(s);
  run.spans.replace(run.spans.find(s.cluster.devices[DeviceId{1}].name), 1, "?");
  CHECK_THROWS_AS(timeline_strip(run, {}), InputError);
}

}  // namespace stagecraft::timeline_strip_test
