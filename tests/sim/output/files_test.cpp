// spans.csv and the Chrome trace are complete: the numbers of the report can be computed from them.

#include "sim/output/files.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/output/trace.hpp"
#include "sim/result/memory.hpp"
#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::files_test {
using ParsedJson = nlohmann::json;

namespace {

struct Run {
  test::RandomCase c;
  Program program;
  Cluster cluster;
  Timeline timeline;
};

/// Random programs of every kind, but no rendezvous without overlap, which may block without end.
std::vector<Run> runs() {
  std::vector<Run> result;
  test::Draw draw{Rng(21, "files")}, draw_ties{Rng(21, "ties")};
  for (int trial = 0; trial < 60; ++trial) {
    test::RandomCase c = test::random_case(draw, 4);
    add_ties(c, draw_ties);
    if (!c.options.overlap) c.options.rendezvous = false;
    Program program = test::program_of(c);
    Cluster cluster = test::star(program.devices, 1e9, 1e-6);
    Timeline timeline = test::run_ideal(program, cluster);
    result.push_back({std::move(c), std::move(program), std::move(cluster), std::move(timeline)});
  }
  return result;
}

std::vector<std::vector<std::string>> table(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(csv, '\n'))
    if (!line.empty()) rows.push_back(split(line, ','));
  return rows;
}

constexpr double kPicosecond = 1e-12;  // the last digit that is written

}  // namespace

TEST_CASE("the report's numbers follow from spans.csv") {
  for (const Run& run : runs()) {
    CAPTURE(to_text(run.c));
    const Report report = measure(run.program, run.timeline, run.cluster);
    const auto rows = table(spans_csv(run.program, run.timeline, report, run.cluster));
    REQUIRE(rows.size() == run.program.size() + 1);
    std::map<std::string, std::size_t> column;
    for (std::size_t c = 0; c < rows[0].size(); ++c) column[rows[0][c]] = c;
    double first = 1e30, end_of_first = 0, last = 0, bytes = 0;
    std::size_t critical = 0;
    std::map<std::string, double> busy;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      const auto cell = [&](const char* name) { return rows[r][column.at(name)]; };
      const double start = std::stod(cell("start_ns")) * 1e-9, end = std::stod(cell("end_ns")) * 1e-9;
      CHECK(cell("id") == std::to_string(r - 1));
      CHECK(cell("instruction") == to_text(run.program, InstructionId{static_cast<std::int64_t>(r) - 1}));
      CHECK(end >= start);
      const bool computes = cell("kind") != "send" && cell("kind") != "receive" && cell("kind") != "all_reduce";
      const bool in_first = cell("iteration") == "0";
      if (computes) first = std::min(first, start);
      if (in_first) end_of_first = std::max(end_of_first, end);
      last = std::max(last, end);
      critical += cell("critical") == "1";
      if (computes && in_first) busy[cell("device")] += end - start;
      if (cell("kind") == "send") bytes += std::stod(cell("bytes"));
    }
    CHECK(std::abs(end_of_first - first - report.makespan.value) <= 2 * kPicosecond);
    CHECK(std::abs(last - first - report.length.value) <= 2 * kPicosecond);
    for (std::size_t d = 0; d < report.devices.size(); ++d)
      CHECK(std::abs(busy[run.cluster.devices[DeviceId{d}].name] - report.devices[DeviceId{d}].busy.value) <=
            1e-9 * (1e-3 + busy[run.cluster.devices[DeviceId{d}].name]));
    CHECK(critical == report.critical_path.size());
    double sent = 0;
    for (const Transfer& t : run.program.transfers) sent += static_cast<double>(run.program.bytes(t));
    CHECK(bytes == sent);
  }
}

TEST_CASE("slices of a track in the trace do not overlap, and all instructions and arrows are there") {
  for (const Run& run : runs()) {
    CAPTURE(to_text(run.c));
    const ParsedJson trace = ParsedJson::parse(chrome_trace(run.program, run.timeline, run.cluster));
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
    std::map<int, int> starts, finishes;
    std::map<int, std::string> process;
    std::vector<int> seen(run.program.size(), 0);
    for (const ParsedJson& e : trace["traceEvents"]) {
      const std::string kind = e["ph"];
      if (kind == "M" && e["name"] == "process_name") process[e["pid"]] = e["args"]["name"];
      if (kind == "s") ++starts[e["id"].get<int>()];
      if (kind == "f") ++finishes[e["id"].get<int>()];
      if (kind != "X") continue;
      const auto n = e["args"]["id"].get<std::size_t>();
      ++seen[n];
      CHECK(e["pid"] == run.program.instructions[InstructionId{n}].device.value);
      CHECK(e["name"] == to_text(run.program, InstructionId{n}));
      CHECK(std::abs(e["ts"].get<double>() - run.timeline.start[InstructionId{n}] * 1e6) <= 1e-6);
      tracks[{e["pid"], e["tid"]}].emplace_back(e["ts"], e["dur"]);
    }
    CHECK(process.size() == static_cast<std::size_t>(run.program.devices));
    CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    CHECK(starts.size() == run.program.transfers.size());
    CHECK(starts == finishes);
    for (const auto& start : starts) CHECK(start.second == 1);
    for (auto& track : tracks) {
      auto& slices = track.second;
      std::stable_sort(slices.begin(), slices.end());
      for (std::size_t i = 1; i < slices.size(); ++i)  // start and length are rounded, to a picosecond each
        CHECK(slices[i - 1].first + slices[i - 1].second <= slices[i].first + 2.1e-6);
    }
  }
}

TEST_CASE("the trace shows changes of the cluster while it runs") {
  const Plan plan = chain_plan(2, 2, 4);
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1)));
  Cluster cluster = test::star(2, 1e30, 0);
  Change slow, often;
  slow.devices = often.devices = {DeviceId{0}};
  slow.rate = often.rate = 0.5;
  slow.from = Seconds{2};
  often.from = Seconds{1}, often.until = Seconds{6}, often.every = Seconds{2}, often.lasts = Seconds{1.5};
  cluster.changes = {slow, often};
  const Timeline timeline = test::run_ideal(program, cluster);
  std::vector<std::vector<double>> shown;
  const ParsedJson trace = ParsedJson::parse(chrome_trace(program, timeline, cluster));
  for (const ParsedJson& e : trace["traceEvents"])
    if (e.value("cat", "") == "change") shown.push_back({e["tid"], e["ts"], e["dur"]});
  const std::vector<std::vector<double>> expected = {
      {0, 2e6, 1e6 * (timeline.last_end().value - 2)}, {1, 1e6, 1.5e6}, {1, 3e6, 1.5e6}, {1, 5e6, 1e6}};
  REQUIRE(shown.size() == expected.size());
  for (std::size_t i = 0; i < shown.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k) CHECK(shown[i][k] == doctest::Approx(expected[i][k]).epsilon(1e-12));
}

TEST_CASE("the trace's memory counter reaches the report's peak and ends at what stays") {
  for (const Run& run : runs()) {
    const Report report = measure(run.program, run.timeline, run.cluster);
    const ParsedJson trace = ParsedJson::parse(chrome_trace(run.program, run.timeline, run.cluster));
    std::map<int, double> peak, last;
    std::map<int, std::map<std::string, double>> now;  // [device][counter]
    std::map<int, double> time;
    const auto take = [&](int device) {
      double total = 0;
      for (const auto& [counter, megabytes] : now[device]) total += megabytes;
      peak[device] = std::max(peak[device], total);
      last[device] = total;
    };
    for (const ParsedJson& e : trace["traceEvents"]) {
      if (e["ph"] != "C" || !e["args"].contains("MB")) continue;
      const int device = e["pid"];
      if (e["ts"] != time[device]) take(device);  // Counters that change at one moment do so together.
      time[device] = e["ts"];
      now[device][e["name"]] = e["args"]["MB"];
    }
    for (int d = 0; d < run.program.devices; ++d) take(d);
    for (int d = 0; d < run.program.devices; ++d) {
      const MemoryPeak& m = report.devices[DeviceId{d}].memory;
      CHECK(std::abs(peak[d] - m.total.value / 1e6) <= 2e-3);  // three parts of three decimals
      CHECK(std::abs(last[d] - m.resident.value / 1e6) <= 2e-3);
    }
  }
}

TEST_CASE("names are escaped in JSON files") {
  const Plan plan = test::dag_plan(2, 1, {{0, 1}}, 8);
  const Program program = test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1)));
  Cluster cluster = test::star(2, 1, 0);
  cluster.devices[DeviceId{0}].name = "a \"quoted\" \\ name\nwith a line";
  const ParsedJson trace = ParsedJson::parse(chrome_trace(program, test::run_ideal(program, cluster), cluster));
  bool matched = false;
  for (const ParsedJson& e : trace["traceEvents"])
    matched = matched || (e["name"] == "process_name" && e["args"]["name"] == cluster.devices[DeviceId{0}].name);
  CHECK(matched);
}

}  // namespace stagecraft::files_test
