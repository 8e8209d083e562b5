// The margin of memory of a search: its first row is the best of those that leave it free.

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/search/choices.hpp"

namespace stagecraft::margin_test {
namespace {

/// Three equal devices with this much memory.
ChoiceTable search(double memory, double margin) {
  const Experiment e = load_experiment(
      "scenarios/examples/quickstart.yaml",
      {"model={builder: mlp, widths: [64, 64, 256, 64, 64, 64]}",
       fmt::format(
           "cluster={{generator: uniform, devices: 3, type: any, types: {{any: {{peak: 1 TFLOP/s, memory: {:.0f} B, "
           "memory_bandwidth: 100 GB/s}}}}, link: {{bandwidth: 1 GB/s, latency: 1 us}}}}",
           memory),
       "plan={planner: balanced, stages: 3, micro_batch_size: 2}", "run.micro_batches=4"});
  return search_choices(e, {.schedules = {"1f1b", "gpipe"}, .margin = margin}, [](const SearchProgress&) {});
}

/// The smallest period of the rows that leave a share of the memory free.
double shortest_with(const ChoiceTable& table, double memory, double margin) {
  double shortest = kInfinity;
  for (const Choice& c : table.front)
    if (c.memory.value <= (1 - margin) * memory) shortest = std::min(shortest, c.amount);
  return shortest;
}

const double kAmple = 1 << 30;

}  // namespace

TEST_CASE("with ample memory the margin changes nothing") {
  const ChoiceTable with = search(kAmple, 0.06), without = search(kAmple, 0);
  REQUIRE(with.front.size() == without.front.size());
  for (std::size_t i = 0; i < with.front.size(); ++i) CHECK(with.front[i].amount == without.front[i].amount);
  CHECK_FALSE(with.has_shorter_tight);
}

TEST_CASE("the first row is the shortest inside of the margin, and a shorter one that is tight stays in the table") {
  const double memory = search(kAmple, 0).front.front().memory.value / 0.97;  // The shortest leaves 3 % free.
  const ChoiceTable without = search(memory, 0), with = search(memory, 0.06);
  CHECK(without.front.front().filled == doctest::Approx(0.97));
  REQUIRE(shortest_with(without, memory, 0.06) < kInfinity);
  CHECK(with.front.front().filled <= 0.94);
  CHECK(with.front.front().amount == shortest_with(without, memory, 0.06));
  const auto tight = std::find_if(with.front.begin(), with.front.end(), [](const Choice& c) { return c.is_tight; });
  REQUIRE(tight != with.front.end());
  CHECK(tight->amount == without.front.front().amount);
  CHECK(std::all_of(tight, with.front.end(), [](const Choice& c) { return c.is_tight; }));
  CHECK(remark_of(*tight, with) == "tight");
  CHECK(with.has_shorter_tight);
  CHECK(proved_text(with).find("with 6 % of memory free") != std::string::npos);
}

TEST_CASE("an order that uses the margin is searched for again within it") {
  // Four stages with room for six of the eight stashes that an order without a bubble has, and for five within 6 %.
  const Experiment e = load_experiment(
      "scenarios/examples/quickstart.yaml",
      {"model={builder: uniform, layers: 8, forward: 1 ms, backward: 2 ms, stash: 1 MB, output: 10 B, parameters: "
       "10000}",
       "cluster={generator: uniform, devices: 4, type: any, types: {any: {peak: 1 TFLOP/s, memory: 12.7 MB, "
       "memory_bandwidth: 100 GB/s}}, link: {bandwidth: 1 MB/s, latency: 1 us}}",
       "plan={planner: balanced, stages: 4, micro_batch_size: 1}", "run.micro_batches=8"});
  const auto first_with = [&](double margin) {
    return search_choices(e, {.schedules = {"1f1b", "synthesised"}, .margin = margin}, [](const SearchProgress&) {})
        .front.front();
  };
  const Choice without = first_with(0), with = first_with(0.06);
  CHECK(without.filled > 0.94);
  CHECK(without.sets[1] == "run.schedule=synthesised");
  CHECK_FALSE(with.is_tight);
  CHECK(with.sets[1] == "run.schedule={name: synthesised, memory: \"11938000 B\"}");
  CHECK(with.period > without.period);
  CHECK(with.period < 1.05 * without.period);  // 1F1B, which keeps four stashes, takes 32 % longer.
}

TEST_CASE("where nothing leaves the margin free, the first row is the shortest of all and says so") {
  const double memory = search(kAmple, 0).front.front().memory.value / 0.97;
  const ChoiceTable with = search(memory, 0.9999), without = search(memory, 0);
  CHECK(with.front.front().is_tight);
  CHECK(with.front.front().amount == without.front.front().amount);
  CHECK(to_text(with, false, false)
            .find("no plan that was tried leaves 99.99 % of each device's memory free; the first "
                  "uses 97.0 %") != std::string::npos);
}

TEST_CASE("the row with the most free memory within 2 % of the first is always printed") {
  ChoiceTable table;
  const auto add = [&](double amount, double memory, bool is_tight = false) {
    Choice& c = table.front.emplace_back();
    c.id = static_cast<int>(table.front.size());
    c.amount = amount, c.period = Seconds{amount}, c.memory = Bytes{memory}, c.is_tight = is_tight, c.devices = 1;
  };
  add(1, 100), add(1.01, 90), add(1.019, 85), add(1.03, 70), add(1.5, 10), add(0.9, 120, true);
  CHECK(knee_of(table)->memory == Bytes{85});
  CHECK(remark_of(table.front[2], table) == "least memory within 2 %");
  CHECK(remark_of(table.front[0], table).empty());
  const std::vector<Choice> rows = printed_rows(table, false);
  CHECK(std::count_if(rows.begin(), rows.end(), [](const Choice& c) { return c.memory == Bytes{85}; }) == 1);
  CHECK(rows.front().amount == 1);
}

TEST_CASE("where no row within 2 % of the first needs 5 % less memory, the answer has the next that does") {
  ChoiceTable table;
  for (const auto& [amount, memory] : {std::pair{1.0, 100.0}, {1.01, 97.0}, {1.03, 80.0}, {1.5, 10.0}}) {
    Choice& c = table.front.emplace_back();
    c.id = static_cast<int>(table.front.size());
    c.amount = amount, c.period = Seconds{amount}, c.memory = Bytes{memory}, c.devices = 1;
  }
  CHECK(knee_of(table)->id == table.front.front().id);
  CHECK(to_text(table, false, false)
            .find("within 2 % of the first, no plan that was tried needs 5 % less memory; 1.03 s with 80 B does\n") !=
        std::string::npos);
}

}  // namespace stagecraft::margin_test
