// The queue of turns compared with a set for this pass and one for the next; and rows that wait for each other.

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <set>
#include <string>

#include <fmt/core.h>

#include "sim/schedule/dispatcher.hpp"
#include "sim/schedule/wait_graph.hpp"

namespace stagecraft::dispatcher_test {

TEST_CASE("turns: the smallest row comes first, then rows woken in this pass, then the next pass") {
  std::mt19937 random(5);
  for (const int devices : {0, 1, 63, 64, 65, 4095, 4096, 4097, 9000}) {
    TurnQueue turns(static_cast<std::size_t>(devices));
    std::set<int> next;
    for (int d = 0; d < devices; ++d) next.insert(next.end(), d);
    for (int pass = 0; pass < 20; ++pass) {
      std::set<int> now;
      std::swap(now, next);
      const bool expected = !now.empty();
      const bool any = turns.pass([&](int d) {
        REQUIRE(!now.empty());
        CHECK(d == *now.begin());
        now.erase(now.begin());
        const int other = static_cast<int>(random() % static_cast<unsigned>(devices)),
                  what = static_cast<int>(random() % 4);
        if (what == 0) turns.later(d), next.insert(d);
        if (what == 1) turns.wake(other, d), (other > d ? now : next).insert(other);
      });
      CHECK(now.empty());
      CHECK(any == expected);
    }
  }
}

namespace {

struct Item {
  int needs = -1;  ///< A row that must have run its item of the same index.
  bool fused = false;
};

/// Every item waits for the same item of another row.
struct InStep {
  explicit InStep(const std::vector<std::vector<Item>>& given) : rows(given), dispatcher(given, *this) {}
  bool ready(int row, std::size_t i) const { return rows[row][i].needs < 0 || ran[rows[row][i].needs] > i; }
  void arrive(int, const Item&) {}
  void take(int row, std::size_t first, std::size_t end) {
    ran[row] = end;
    order.push_back(fmt::format("{}:{}-{}", row, first, end));
    for (int other = 0; other < std::ssize(rows); ++other) dispatcher.wake(other);
  }
  const std::vector<std::vector<Item>>& rows;
  std::array<std::size_t, 3> ran{};
  std::vector<std::string> order;
  Dispatcher<Item, InStep> dispatcher;
};

}  // namespace

TEST_CASE("dispatcher: a pass runs one group of each row, and a blocked row as soon as it can continue") {
  const std::vector<std::vector<Item>> rows{{{2}, {2}}, {{}, {0}}, {{-1, true}, {}}};
  InStep in_step(rows);
  CHECK(in_step.dispatcher.run());
  // Row 0 waits for row 2, which comes after it, so it goes on in the second pass; row 1 there waits for row 0.
  CHECK(in_step.order == std::vector<std::string>{"1:0-1", "2:0-2", "0:0-1", "0:1-2", "1:1-2"});
}

TEST_CASE("dispatcher: rows that wait for each other stop there") {
  const std::vector<std::vector<Item>> rows{{{}, {1}}, {{}, {0}}};
  InStep in_step(rows);
  CHECK_FALSE(in_step.dispatcher.run());
  CHECK(in_step.dispatcher.head(0) == 1);
  CHECK(in_step.dispatcher.blocked(1));
  CHECK_FALSE(in_step.dispatcher.ended(1));
}

TEST_CASE("wait graph: a deadlock is its shortest cycle, with the first reason of each wait") {
  WaitGraph waits(4);
  waits.add(0, 1, "a");
  waits.add(1, 2, "b");
  waits.add(2, 0, "c");
  waits.add(2, 3, "d");
  waits.add(3, 2, "e");
  waits.add(3, 2, "f");
  const auto cycle = waits.shortest_cycle();
  REQUIRE(cycle.size() == 2);
  CHECK(joined_reasons(cycle) == (cycle.front().node == 2 ? "d; e" : "e; d"));
}

}  // namespace stagecraft::dispatcher_test
