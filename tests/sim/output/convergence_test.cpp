// Updates and time to a loss, from curves written by hand.

#include "sim/output/convergence.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/text.hpp"

namespace stagecraft::convergence_test {
namespace {

/// A curve with evaluations 10 updates apart, starting at 0.
Curve curve(const std::vector<double>& losses) {
  Curve c;
  for (std::size_t i = 0; i < losses.size(); ++i) c.evaluations.push_back({static_cast<int>(10 * i), losses[i]});
  c.losses.assign(10 * (losses.size() - 1), losses.back());
  return c;
}

Curve diverged() {
  Curve c;
  c.diverged = true;
  return c;
}

/// A curve that is 8 at first, and 1 from one evaluation before `updates` on, so that the mean of three is 1 at
/// `updates`.
Curve reaching(int updates) {
  std::vector<double> losses(static_cast<std::size_t>(updates) / 10 - 1, 8);
  losses.insert(losses.end(), 4, 1);
  return curve(losses);
}

MethodRuns method(std::string name, double update, std::vector<Curve> curves, double measured = 0) {
  return {std::move(name), "", Seconds{update}, Seconds{0.5}, Seconds{measured}, Bytes{1024}, std::move(curves)};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t occurrences = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++occurrences;
  return occurrences;
}

}  // namespace

TEST_CASE("updates to a loss are counted by the mean of an evaluation and its neighbors") {
  const Curve c = curve({9, 6, 3, 3, 0, 0});
  CHECK(updates_to(c, 8) == 0);     // (9 + 6) / 2
  CHECK(updates_to(c, 7) == 10);    // (9 + 6 + 3) / 3
  CHECK(updates_to(c, 4) == 20);    // (6 + 3 + 3) / 3, although 3 itself is there from 20 on
  CHECK(updates_to(c, 3.9) == 30);  // (3 + 3 + 0) / 3
  CHECK(updates_to(c, 1) == 40);    // (3 + 0 + 0) / 3
  CHECK(updates_to(c, 0) == 50);    // (0 + 0) / 2
  CHECK_FALSE(updates_to(c, -1));
  // One lucky evaluation is not enough.
  CHECK_FALSE(updates_to(curve({9, 9, 1, 9, 9}), 2));
  CHECK_FALSE(updates_to(diverged(), 100));
  CHECK(updates_to(curve({5}), 5) == 0);
  CHECK_FALSE(updates_to(curve({5, std::nan(""), 1}), 2));
}

TEST_CASE("the cost ratio is statistical times hardware ratio, against the first method") {
  Convergence c;
  c.methods = {method("sync", 3, {reaching(20), reaching(40), reaching(60)}, 30),
               method("other", 1, {reaching(40), reaching(80), reaching(120)})};
  const Standing first = standing(c, 0, 1), other = standing(c, 1, 1);
  CHECK(first.updates == 40);
  CHECK(first.low == 20);
  CHECK(first.high == 60);
  CHECK(first.cost == 1);
  CHECK(first.cost_low == 1);
  CHECK(first.cost_high == 1);
  CHECK(first.hardware == 1);
  CHECK(first.time == 40 * 3 + 0.5);
  CHECK(first.measured_time == 40 * 30);
  CHECK(other.reached == 3);
  CHECK(other.total == 3);
  CHECK(other.updates == 80);
  CHECK(other.cost == 2);
  CHECK(other.hardware == 3);
  CHECK(other.time == 80 * 1 + 0.5);
  CHECK(other.measured_time == 0);
}

TEST_CASE("the interval of the cost is one number if seeds differ by one factor, and wider otherwise") {
  Convergence c;
  const std::vector<Curve> curves{reaching(20), reaching(40), reaching(60), reaching(80), reaching(100)};
  c.methods = {method("sync", 1, curves), method("same", 1, curves),
               method("shuffled", 1, {curves[4], curves[3], curves[2], curves[1], curves[0]}),
               method("twice", 1, {reaching(40), reaching(80), reaching(120), reaching(160), reaching(200)})};
  const Standing same = standing(c, 1, 1), shuffled = standing(c, 2, 1), twice = standing(c, 3, 1);
  CHECK(twice.cost == 2);
  CHECK(twice.cost_low == 2);
  CHECK(twice.cost_high == 2);
  CHECK(same.cost_low == 1);
  CHECK(same.cost_high == 1);
  CHECK(shuffled.cost == 1);
  CHECK(shuffled.cost_low < 1);
  CHECK(shuffled.cost_high > 1);
  CHECK(shuffled.cost_low >= 20.0 / 100);
  CHECK(shuffled.cost_high <= 100.0 / 20);
  const Standing again = standing(c, 2, 1);
  CHECK(again.cost_low == shuffled.cost_low);
  CHECK(again.cost_high == shuffled.cost_high);
}

TEST_CASE("seeds that never reach the loss are counted, not dropped") {
  Convergence c;
  c.methods = {method("sync", 1, {reaching(20), reaching(40), reaching(60), reaching(80)}),
               method("most", 1, {reaching(20), reaching(40), diverged(), reaching(60)}),
               method("half", 1, {reaching(20), reaching(40), diverged(), curve({8, 8, 8})}),
               method("none", 1, {diverged(), diverged(), diverged(), diverged()})};
  const Standing first = standing(c, 0, 1), three_of_four = standing(c, 1, 1), half = standing(c, 2, 1),
                 none = standing(c, 3, 1);
  CHECK(first.updates == 50);  // An even number of seeds has two in the middle.
  CHECK(three_of_four.reached == 3);
  CHECK(three_of_four.total == 4);
  CHECK(three_of_four.updates == 50);
  CHECK(std::isinf(three_of_four.high));
  CHECK(half.reached == 2);
  CHECK(half.low == 20);
  CHECK(std::isinf(half.updates));
  CHECK(std::isinf(half.cost));
  CHECK(std::isinf(half.time));
  CHECK(none.reached == 0);
  CHECK(std::isinf(none.low));
  const std::string text = to_text(c, {1, 0.5});
  CHECK(text.find("2/4") != std::string::npos);
  CHECK(text.find("4/4") != std::string::npos);
  CHECK(text.find("never") != std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
  CHECK(count(text, "target") == 2);
}

TEST_CASE("a method that never reaches the loss gives no ratio") {
  Convergence c;
  c.methods = {method("sync", 1, {diverged()}), method("other", 1, {reaching(20)}), method("neither", 1, {diverged()})};
  CHECK(std::isnan(standing(c, 1, 1).cost));
  CHECK(std::isnan(standing(c, 2, 1).cost));
  CHECK(to_text(c, {1}).find("nan") == std::string::npos);
}

TEST_CASE("files have one row per evaluation, and one row per target and method") {
  Convergence c;
  c.samples_per_update = 32;
  c.methods = {method("sync", 2, {curve({4, 2, 1})}, 3),
               method("pipeoptim:as_released", 1, {curve({4, 3, 2}), diverged()})};
  c.methods[1].curves[0].seed = 7;
  const auto rows = split(convergence_csv(c), '\n');
  REQUIRE(rows.size() == 1 + 3 + 3 + 1);
  CHECK(rows[0] == "method,seed,update,samples,simulated_s,measured_s,training_loss,evaluation_loss");
  CHECK(rows[1] == "sync,1,0,0,0,0,,4");
  CHECK(rows[2] == "sync,1,10,320,20.5,30,1,2");
  CHECK(rows[5] == "pipeoptim:as_released,7,10,320,10.5,,2,3");
  const auto targets = split(tta_csv(c, {2, 1}), '\n');
  REQUIRE(targets.size() == 1 + 2 * 2 + 1);
  CHECK(targets[0] ==
        "method,target,reached,seeds,updates,updates_low,updates_high,cost,cost_low,cost_high,hardware_ratio,"
        "simulated_s,measured_s");
  CHECK(targets[1] == "sync,2,1,1,20,20,20,1,1,1,1,40.5,60");
  CHECK(targets[2].starts_with("pipeoptim:as_released,2,0,2,inf,"));
  for (const std::string& row : targets)
    if (!row.empty()) CHECK(count(row, ",") == 12);
}

TEST_CASE("the picture has a line for each method in each panel") {
  Convergence c;
  c.methods = {method("sync", 2, {curve({4, 2, 1})}), method("a<b", 1, {curve({4, 3, 2})}),
               method("gone", 1, {diverged()})};
  const auto svg = [&](const char* title) { return to_svg(convergence_pictures(c, title, kScreenPicture)); };
  const std::string simulated = svg("losses & times");
  // A line in each panel, and one in the legend of each.
  CHECK(count(simulated, "<polyline fill=\"none\" stroke=\"#3a78bd\"") == 2 * 2);
  CHECK(count(simulated, "<polyline fill=\"none\" stroke=\"#c76b1a\"") == 2 * 2);
  CHECK(simulated.find("losses &amp; times") != std::string::npos);
  CHECK(simulated.find("a&lt;b") != std::string::npos);
  CHECK(simulated.find("nan") == std::string::npos);
  CHECK(simulated.find("inf") == std::string::npos);
  CHECK(simulated.ends_with("</svg>\n"));
  for (MethodRuns& m : c.methods) m.measured = Seconds{1};
  CHECK(count(svg("t"), "<polyline fill=\"none\" stroke=\"#3a78bd\"") == 3 * 2);
  // Nothing but runs that diverged still is a picture.
  c.methods = {method("gone", 1, {diverged()})};
  const std::string empty = svg("t");
  CHECK(count(empty, ">gone</text>") == 2);
  CHECK(empty.find("nan") == std::string::npos);
}

}  // namespace stagecraft::convergence_test
