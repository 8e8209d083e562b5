// The page has exactly the data of the files of a run, and no name can become markup.

#include "sim/output/html.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/core/sha256.hpp"
#include "sim/output/files.hpp"
#include "sim/output/html_data.hpp"
#include "sim/output/json_files.hpp"
#include "sim/result/memory.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/page_data.hpp"
#include "tests/support/random_cases.hpp"

namespace stagecraft::html_test {
using ParsedJson = nlohmann::json;

namespace {

struct Run {
  std::string what;
  Program program;
  Cluster cluster;
  Timeline timeline;
  Report report;

  KeptRun kept_run(const std::string& name = "a run") const {
    return {name, results_json("a title", program, timeline, report, cluster),
            spans_csv(program, timeline, report, cluster), memory_csv(program, timeline, report, cluster),
            "schema: scenario/2\n"};
  }
};

Run run_of(std::string what, Program program, Cluster cluster) {
  Timeline timeline = test::run_ideal(program, cluster);
  Report report = measure(program, timeline, cluster);
  return {std::move(what), std::move(program), std::move(cluster), std::move(timeline), std::move(report)};
}

Run small_run() {
  Plan plan = test::dag_plan(2, 1, {{0, 1}}, 8);
  plan.stages[StageId{1}].place_on({DeviceId{2}});  // so that one does nothing
  Program program = test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1)));
  return run_of("small", std::move(program), test::star(3, 1, 0));
}

/// Random programs of every kind, also with unordered messages, but no rendezvous without overlap, which may block
/// without end.
std::vector<Run> runs() {
  std::vector<Run> result;
  test::Draw draw{Rng(22, "html")}, draw_ties{Rng(22, "ties")};
  for (int trial = 0; trial < 60; ++trial) {
    test::RandomCase c = test::random_case(draw, 4);
    add_ties(c, draw_ties);
    if (!c.options.overlap) c.options.rendezvous = false;
    Program program = test::program_of(c);
    Cluster cluster = test::star(program.devices, 1e9, 1e-6);
    result.push_back(run_of(to_text(c), std::move(program), std::move(cluster)));
  }
  return result;
}

/// The text between two markers; the first must occur once.
std::string between(const std::string& page, const std::string& open, const std::string& close) {
  const auto from = page.find(open);
  REQUIRE(from != page.npos);
  REQUIRE(page.find(open, from + 1) == page.npos);
  return page.substr(from + open.size(), page.find(close, from + open.size()) - from - open.size());
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Device, instruction, kind, stage, iteration, version, bytes, critical, start and end in picoseconds.
using Row =
    std::tuple<std::string, std::string, std::string, int, int, int, std::uint64_t, bool, std::int64_t, std::int64_t>;

std::int64_t picoseconds(double seconds) { return std::llround(std::stod(fmt::format("{:.3f}", seconds * 1e9)) * 1e3); }

std::multiset<Row> rows_of(const Run& run) {
  const char* const kinds[] = {"forward",   "backward", "input_gradient", "weight_gradient",
                               "recompute", "update",   "scores",         "scores_gradient",
                               "predict",   "send",     "receive",        "all_reduce"};
  const auto& path = run.report.critical_path;
  const std::set<InstructionId> critical(path.begin(), path.end());
  std::multiset<Row> rows;
  for (const InstructionId id : run.program.instructions.ids()) {
    const Instruction& i = run.program.at(id);
    const std::uint64_t bytes = i.kind == InstructionKind::Collective
                                    ? run.program.shape(run.program.collective(i)).bytes
                                : i.is_compute() ? 0
                                                 : run.program.shape(i).bytes;
    rows.emplace(run.cluster.devices[i.device].name, to_text(run.program, id), kinds[static_cast<std::size_t>(i.kind)],
                 static_cast<int>(i.stage.value), run.program.iteration_of(i), run.program.version_of(i), bytes,
                 critical.count(id) > 0, picoseconds(run.timeline.start[id]), picoseconds(run.timeline.end[id]));
  }
  return rows;
}

/// Rows from the data of the page. Checks that each lane has only its kind of span, in order of time.
std::multiset<Row> rows_of(const ParsedJson& run) {
  std::multiset<Row> rows;
  const ParsedJson& spans = run["spans"];
  const auto critical = run["critical"].get<std::set<std::size_t>>();
  std::size_t n = 0;
  for (const ParsedJson& lane : run["lanes"]) {
    std::int64_t time = 0;
    for (int left = lane["spans"]; left > 0; --left, ++n) {
      const std::int64_t gap = spans["gap"].at(n), length = spans["length"].at(n);
      CHECK(gap >= 0);
      CHECK(length >= 0);
      const ParsedJson& op = run["ops"].at(spans["op"].at(n).get<std::size_t>());
      const std::string kind = op["kind"];
      const bool message = kind == "send" || kind == "receive" || kind == "all_reduce";
      CHECK(lane["kind"] == (message ? kind : "compute"));
      rows.emplace(run["devices"].at(lane["device"].get<std::size_t>()),
                   op["text"].get<std::string>() + std::to_string(spans["micro"].at(n).get<int>()) +
                       op["after"].get<std::string>(),
                   kind, op["stage"], spans["iteration"].at(n), spans["version"].at(n), op["bytes"],
                   critical.count(n) > 0, time + gap, time + gap + length);
      time += gap + length;
    }
  }
  for (const char* column : {"gap", "length", "op", "micro", "iteration", "version"}) CHECK(spans[column].size() == n);
  return rows;
}

std::string problem_with(const KeptRun& run) {
  try {
    html_page(std::vector{run}, "t");
  } catch (const InputError& e) {
    REQUIRE(e.problems().size() == 1);
    const Diagnostic& d = e.problems().front();
    CHECK(!d.help.empty());
    return fmt::format("{}:{}: {}", d.where.file, d.where.line, d.message);
  }
  return "nothing";
}

/// The results of a run with the field `instructions` set to this number.
std::string results_with(const KeptRun& run, std::size_t instructions) {
  ParsedJson results = ParsedJson::parse(run.results);
  results["instructions"] = instructions;
  return results.dump();
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), with);
}

}  // namespace

TEST_CASE("a large run draws one replica of each pipeline rank and the first spans; its numbers are of all") {
  Plan plan = test::dag_plan(2, 40, {{0, 1}}, 8);
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{1}});
  plan.stages[StageId{1}].place_on({DeviceId{2}, DeviceId{3}});
  Run run =
      run_of("replicas", test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 1))), test::star(4, 1, 0));
  for (const int rank : {0, 1})
    run.report.ranks.push_back(
        {.rank = RankId{rank}, .stages = {StageId{rank}}, .first = DeviceId{2 * rank}, .devices = 2});
  constexpr std::size_t kMost = 100;
  const ParsedJson whole = test::data_of(html_page(std::vector{run.kept_run()}, "t"))["runs"][0];
  const ParsedJson part = test::data_of(html_page(std::vector{run.kept_run()}, "t", kMost))["runs"][0];
  CHECK(!whole.contains("drawn"));
  std::size_t spans = 0;
  std::set<int> devices;
  for (const ParsedJson& lane : part["lanes"])
    spans += lane["spans"].get<std::size_t>(), devices.insert(lane["device"].get<int>());
  CHECK(spans <= kMost);
  CHECK(2 * spans > kMost);  // Spans that start together stay together.
  CHECK(devices == std::set<int>{0, 2});
  CHECK(part["drawn"]["stands_for"] == ParsedJson{2, 0, 2, 0});
  CHECK(part["drawn"]["until"] < part["length"]);
  for (const char* same : {"length", "iteration_ends", "overview", "results"}) CHECK(part[same] == whole[same]);
  for (const Row& row : rows_of(part)) CHECK(rows_of(run).count(row) == 1);
  for (std::size_t m = 0; m < part["memory"].size(); ++m)
    CHECK(part["memory"][m]["peak"] == whole["memory"][2 * m]["peak"]);
}

TEST_CASE("the overview has the share of each kind of work in each part of the run") {
  SpanTotals totals(480'000);
  totals.add("forward", 0, 0, 0, 240'000);
  totals.add("backward", 1, 0, 240'000, 480'000);
  totals.add("", 0, 0, 240'000, 480'000);  // A message is no work.
  CHECK(totals.spans() == 3);
  CHECK(totals.length() == 480'000);
  const Json overview = totals.overview();
  CHECK(overview.at("kinds").dump() == R"(["backward","forward"])");
  const std::string& shares = overview.at("shares").text();
  REQUIRE(shares.size() == 2 * 480);
  for (std::size_t part = 0; part < 480; ++part) CHECK(shares.substr(2 * part, 2) == (part < 240 ? "Ag" : "gA"));
}

TEST_CASE("the page has every instruction with its times, and nothing else") {
  std::size_t overlapping = 0;
  for (const Run& run : runs()) {
    CAPTURE(run.what);
    const ParsedJson data = test::data_of(html_page(std::vector{run.kept_run()}, "t"));
    REQUIRE(data["runs"].size() == 1);
    const ParsedJson& shown = data["runs"][0];
    CHECK(rows_of(shown) == rows_of(run));
    CHECK(shown["results"] == ParsedJson::parse(run.kept_run().results));
    CHECK(shown["scenario"] == run.kept_run().scenario);
    CHECK(shown["name"] == "a run");
    std::map<std::pair<int, std::string>, int> lanes;
    for (const ParsedJson& lane : shown["lanes"]) overlapping += ++lanes[{lane["device"], lane["kind"]}] == 2;
  }
  CHECK(overlapping > 10);  // Else the lanes were not put to the test.
}

TEST_CASE("each lane is used as soon as it is free, and there are as many as run at once") {
  for (const Run& run : runs()) {
    CAPTURE(run.what);
    std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::int64_t, std::int64_t>>> together;
    for (const Row& row : rows_of(run)) {
      const std::string& kind = std::get<2>(row);
      const bool message = kind == "send" || kind == "receive" || kind == "all_reduce";
      together[{std::get<0>(row), message ? kind : "compute"}].emplace_back(std::get<8>(row), std::get<9>(row));
    }
    std::map<std::pair<std::string, std::string>, std::size_t> lanes;
    const ParsedJson shown = test::data_of(html_page(std::vector{run.kept_run()}, "t"))["runs"][0];
    for (const ParsedJson& lane : shown["lanes"])
      ++lanes[{shown["devices"].at(lane["device"].get<std::size_t>()), lane["kind"]}];
    CHECK(lanes.size() == together.size());
    for (auto& group : together) {
      auto& spans = group.second;
      std::sort(spans.begin(), spans.end());
      std::size_t peak = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        std::size_t at_once = 1;
        for (std::size_t j = 0; j < i; ++j) at_once += spans[j].second > spans[i].first;
        peak = std::max(peak, at_once);
      }
      CHECK(lanes[group.first] == peak);
    }
  }
}

TEST_CASE("spans that overlap by a picosecond have two lanes, and other bytes make another kind of message") {
  KeptRun run = small_run().kept_run();
  run.spans =
      "id,instruction,kind,device,stream,stage,micro_batch,iteration,version,bytes,start_ns,end_ns,critical\n"
      "0,0>1:0F0,send,d0,1,0,0,0,0,100,0.000,10.000,0\n"
      "1,0>1:0F1,send,d0,1,0,1,0,0,101,10.000,20.001,1\n"
      "2,0>1:0F2,send,d0,1,0,2,0,0,100,20.000,30.000,0\n";
  run.results = results_with(run, 3);
  run.memory =
      "device,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\n"
      "d0,1.000,7,0.5,0.25,1e17\n";
  const ParsedJson shown = test::data_of(html_page(std::vector{run}, "t"))["runs"][0];
  CHECK(shown["memory"] == ParsedJson::array({{{"device", 0},
                                               {"resident", 7.0},
                                               {"peak", 1e17 + 7.75},
                                               {"samples", 1},
                                               {"gap", {1000}},
                                               {"stash", {0.5}},
                                               {"messages", {1e17 + 0.25}}}}));
  REQUIRE(shown["lanes"].size() == 2);
  CHECK(shown["lanes"][0]["spans"] == 2);
  CHECK(shown["spans"]["gap"] == ParsedJson{0, 0, 20000});
  CHECK(shown["spans"]["length"] == ParsedJson{10000, 10001, 10000});
  CHECK(shown["spans"]["op"] == ParsedJson{0, 1, 0});
  CHECK(shown["ops"].size() == 2);
  CHECK(shown["ops"][1]["bytes"] == 101);
  CHECK(shown["critical"] == ParsedJson::array({1}));
}

TEST_CASE("the page has every device's memory, change by change") {
  std::vector<Run> cases = runs();
  cases.push_back(small_run());
  for (const Run& run : cases) {
    CAPTURE(run.what);
    const ParsedJson shown = test::data_of(html_page(std::vector{run.kept_run()}, "t"))["runs"][0];
    const MemoryHistory history(run.program, run.timeline);
    std::size_t used = 0;
    for (const DeviceReport& d : run.report.devices) used += d.used;
    REQUIRE(shown["memory"].size() == used);
    for (const ParsedJson& m : shown["memory"]) {
      const DeviceId device{m["device"].get<int>()};
      const double resident = run.program.memory[device].total().value;
      CHECK(m["resident"] == resident);
      MemoryCurve curve = history.curve(device);
      if (curve.empty() || curve.front().time > 0) curve.insert(curve.begin(), MemorySample{});
      REQUIRE(m["gap"].size() == curve.size());
      std::int64_t time = 0;
      double highest = resident;
      for (std::size_t i = 0; i < curve.size(); ++i) {
        time += m["gap"][i].get<std::int64_t>();
        CHECK(time == picoseconds(curve[i].time));
        CHECK(m["stash"][i] == curve[i].stash.value);
        CHECK(m["messages"][i] == (curve[i].received + curve[i].outgoing).value);
        highest = std::max(highest, resident + m["stash"][i].get<double>() + m["messages"][i].get<double>());
      }
      CHECK(m["peak"] == highest);
      const double peak = run.report.devices[device].memory.total.value;
      CHECK(std::abs(highest - peak) <= 1e-12 * peak);
    }
  }
}

TEST_CASE("the head of the page has the ends of the run and of its iterations") {
  for (const Run& run : runs()) {
    CAPTURE(run.what);
    const ParsedJson shown = test::data_of(html_page(std::vector{run.kept_run()}, "t"))["runs"][0];
    std::map<int, std::int64_t> ends;
    std::int64_t length = 0;
    for (const Row& row : rows_of(run)) {
      std::int64_t& end = ends[std::get<4>(row)];
      end = std::max(end, std::get<9>(row));
      length = std::max(length, std::get<9>(row));
    }
    std::vector<std::int64_t> in_order;
    for (const auto& iteration : ends) in_order.push_back(iteration.second);
    CHECK(shown["iteration_ends"] == in_order);
    CHECK(shown["length"] == length);
  }
}

TEST_CASE("a part has whole devices, and no more than it needs") {
  const Plan plan = test::dag_plan(3, 2000, {{0, 1}, {1, 2}}, 1);
  const Run run =
      run_of("long", test::program_of("gpipe", plan, uniform_costs(plan, test::times(1, 1))), test::star(3, 1, 0));
  const ParsedJson shown = test::data_of(html_page(std::vector{run.kept_run()}, "t"))["runs"][0];
  CHECK(rows_of(shown) == rows_of(run));
  // At the ends 2,000 each of forward, backward, sends and receives, an update, and their memory; more in the middle.
  CHECK(shown["parts"].size() == 3);
  for (const ParsedJson& part : shown["parts"]) CHECK(part["memory"] == 1);
}

TEST_CASE("the page keeps numbers as large as a file can have") {
  KeptRun run = small_run().kept_run();
  run.spans =
      "id,instruction,kind,device,stream,stage,micro_batch,iteration,version,bytes,start_ns,end_ns,critical\n"
      "0,0F-9223372036854775808,forward,d0,1,0,-9223372036854775808,9223372036854775807,-1,0,0.000,1.000,0\n"
      "1,0F9223372036854775807,forward,d0,1,0,9223372036854775807,-9223372036854775808,0,0,1.000,8640000000000000.000,"
      "0\n"
      "2,0F0,forward,d0,1,0,0,0,5,0,8640000000000000.000,8640000000000000.001,1\n";
  run.results = results_with(run, 3);
  run.memory.clear();
  const ParsedJson spans = test::data_of(html_page(std::vector{run}, "t"))["runs"][0]["spans"];
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(spans["micro"] == ParsedJson{kLeast, kMost, 0});
  CHECK(spans["iteration"] == ParsedJson{kMost, kLeast, 0});
  CHECK(spans["version"] == ParsedJson{-1, 0, 5});
  CHECK(spans["length"] == ParsedJson{1000, 8640000000000000000 - 1000, 1});
}

TEST_CASE("several runs stand in the order in which they were given") {
  const Run run = small_run();
  const ParsedJson data =
      test::data_of(html_page(std::vector{run.kept_run("b"), run.kept_run("a"), run.kept_run("b")}, "t"));
  REQUIRE(data["runs"].size() == 3);
  CHECK(data["runs"][0]["name"] == "b");
  CHECK(data["runs"][1]["name"] == "a");
  CHECK(data["runs"][0] == data["runs"][2]);
}

TEST_CASE("names cannot escape from the data of the page") {
  const std::string bad = "</script><script>alert(\"1\")</script><!-- & 'x', \\ \n{{script}}", no_utf8 = bad + " \xff";
  Run run = small_run();
  run.cluster.devices[DeviceId{0}].name = bad;
  KeptRun damaged = run.kept_run(no_utf8);
  damaged.scenario = no_utf8;
  const std::string page = html_page(std::vector{damaged}, no_utf8);
  CHECK(count(page, "<script") == 3);  // Data, script, and one part.
  CHECK(count(page, "</script") == 3);
  CHECK(count(test::page_block(page, "data"), "<") == 0);
  CHECK(between(page, "<title>", "</title>") ==
        "&lt;/script&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&lt;!-- &amp; 'x', \\ \n{{script}} \uFFFD");
  const ParsedJson shown = test::data_of(page)["runs"][0];
  CHECK(shown["devices"][0] == bad);
  CHECK(shown["scenario"] == bad + " \uFFFD");
  CHECK(shown["name"] == shown["scenario"]);
  CHECK(rows_of(shown) == rows_of(run));
}

TEST_CASE("the page makes no request, and allows only its own script and style") {
  const std::string page = html_page(std::vector{small_run().kept_run()}, "t");
  const std::string policy = between(page, R"(<meta http-equiv="Content-Security-Policy" content=")", "\"");
  CHECK(policy.starts_with("default-src 'none'; "));
  CHECK(count(policy, "unsafe") == 0);
  CHECK(count(policy, "'sha256-") == 2);
  // The reverse of how the fingerprints are made.
  const auto hex = [&](const std::string& directive) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bits, out;
    for (const char c : between(policy, directive + " 'sha256-", "='")) {
      REQUIRE(digits.find(c) != digits.npos);
      for (int b = 5; b >= 0; --b) bits += (digits.find(c) >> b & 1) != 0 ? '1' : '0';
    }
    for (std::size_t i = 0; i + 4 <= 256; i += 4) out += fmt::format("{:x}", std::stoi(bits.substr(i, 4), nullptr, 2));
    CHECK(bits.substr(256) == "00");
    return out;
  };
  CHECK(hex("script-src") == sha256(between(page, "<script>", "</script>")));
  CHECK(hex("style-src") == sha256(between(page, "<style>", "</style>")));
  for (const char* word : {"http:", "https:", "//cdn", " src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest",
                           "WebSocket", "innerHTML", "eval(", "style=\"", "{{"})
    CHECK_MESSAGE(count(page, word) == 0, word);
}

TEST_CASE("damaged files of a run are refused with their place") {
  const KeptRun good = small_run().kept_run("out/a");
  CHECK(problem_with(good) == "nothing");
  const auto with = [&](std::string KeptRun::*file, const std::string& what, const std::string& by) {
    KeptRun run = good;
    run.*file = replaced(run.*file, what, by);
    return problem_with(run);
  };
  CHECK(with(&KeptRun::results, "results/1", "plans/1") == "out/a/results.json:0: these are not the results of a run");
  CHECK(with(&KeptRun::results, "{", "") == "out/a/results.json:0: these are not the results of a run");
  // A field that is missing, unknown or of another type is named.
  const auto field = [&](const std::string& what, const std::string& by) {
    KeptRun run = good;
    run.results = replaced(run.results, what, by);
    try {
      html_page(std::vector{run}, "t");
    } catch (const InputError& e) {
      return e.problems().front().path + ": " + e.problems().front().message;
    }
    return std::string("nothing");
  };
  CHECK(field("\"devices\"", "\"devicez\"") == "devicez: no such field");
  CHECK(field("\"makespan_s\": ", "\"makespan_s\": -").starts_with("makespan_s: -"));
  CHECK(field("\"makespan_s\": ", "\"makespan_s\": \"long\", \"x\": ").starts_with("x: no such field"));
  CHECK(field("\"used\": true", "\"used\": 2") == "devices[0].used: '2' is neither true nor false");
  CHECK(field("\"name\": \"d0\"", "\"name\": {}") == "devices[0].name: a map cannot stand here");
  CHECK(with(&KeptRun::results, "\"instructions\": ", "\"instructions\": 1").find(" instructions here, but 1") !=
        std::string::npos);
  const std::string said = fmt::format("\"instructions\": {}", ParsedJson::parse(good.results)["instructions"].dump());
  CHECK(field(said, said + ".5").find("is not a whole number") != std::string::npos);
  CHECK(with(&KeptRun::results, "\"name\": \"d0\"", "\"name\": \"other\"") ==
        "out/a/spans.csv:2: results.json knows no device 'd0'");
  CHECK(with(&KeptRun::spans, "start_ns", "start") == "out/a/spans.csv:1: there is no column 'start_ns'");
  CHECK(with(&KeptRun::spans, "\n0,0F0,", "\n0,0F1,") == "out/a/spans.csv:2: '0F1' has another micro-batch than 0");
  CHECK(with(&KeptRun::spans, ",forward,", ",") == "out/a/spans.csv:2: 12 cells, but 13 columns");
  CHECK(with(&KeptRun::spans, ",0.000,", ",0.00,") == "out/a/spans.csv:2: '0.00' for start_ns has not 3 decimals");
  CHECK(with(&KeptRun::spans, ",0.000,", ",x.000,") == "out/a/spans.csv:2: 'x.000' is not a time for start_ns");
  CHECK(with(&KeptRun::spans, ",0.000,", ",,") == "out/a/spans.csv:2: '' for start_ns has not 3 decimals");
  CHECK(with(&KeptRun::spans, ",0.000,", ",9900000000000000000.000,") ==
        "out/a/spans.csv:2: the run is longer than 100 days, which a page cannot show");
  CHECK(with(&KeptRun::spans, ",0.000,", ",9000000000000.000,") == "out/a/spans.csv:2: 0F0 ends before it starts");
  CHECK(with(&KeptRun::spans, ",d0,", ",\"d0,") == "out/a/spans.csv:2: a quoted cell has no end");
  CHECK(with(&KeptRun::memory, ",0.000,", ",9000000000000.000,") == "out/a/memory.csv:3: time goes back");
  CHECK(with(&KeptRun::memory, "\nd0,0.000,", "\nd0,0.000,x").find("out/a/memory.csv:2: 'x") == 0);
  const auto first_row = [](const std::string& stash) {
    return "device,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\nd0,0.000,1," + stash + ",0,0\n";
  };
  for (const char* size : {"nan", "inf", "1e31", "-1"})  // JSON has no nan and no inf.
    CHECK(with(&KeptRun::memory, good.memory, first_row(size)) ==
          fmt::format("out/a/memory.csv:2: '{}' is not a size for stash_bytes", size));
  KeptRun empty = good;
  empty.spans = good.spans.substr(0, good.spans.find('\n') + 1);
  CHECK(problem_with(empty) == "out/a/spans.csv:1: there are no instructions");
  empty.spans.clear();
  CHECK(problem_with(empty) == "out/a/spans.csv:1: there is no column 'instruction'");
}

TEST_CASE("a run without memory.csv has no curve") {
  KeptRun run = small_run().kept_run();
  run.memory.clear();
  CHECK(test::data_of(html_page(std::vector{run}, "t"))["runs"][0]["memory"].empty());
}

}  // namespace stagecraft::html_test
