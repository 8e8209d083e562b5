// Rows of V schedules on two ranks, by hand. One micro-batch comes down to rank 1 with F0, back with F1, down again
// with I1 and back with I0, a step each: rank 0 runs them at 0, 3, 4 and 7, rank 1 at 1, 2, 5 and 6.

#include <doctest/doctest.h>

#include "sim/schedule/v_shape/patterns.hpp"
#include "sim/schedule/v_shape/reshape.hpp"

namespace stagecraft::v_rows_test {
namespace {

using enum VPass;

const VRow kTop{{0, F0}, {3, F1}, {4, I1}, {7, I0}, {8, W1}, {9, W0}};
const VRow kBottom{{1, F0}, {2, F1}, {5, I1}, {6, I0}, {7, W1}, {8, W0}};

VRow spread(VRow row) {
  for (VStep& step : row) step.time = 10 * step.time + 5;
  return row;
}

}  // namespace

TEST_CASE("rows: ops go step by step, and in a step downward passes before upward ones") {
  CHECK(ranks_by_step({kTop, kBottom}) == std::vector<int>{0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0});
  CHECK(ranks_by_step({{{4, F1}}, {{4, F1}}, {{4, F0}}, {{4, I1}}}) == std::vector<int>{2, 3, 1, 0});
  CHECK(ranks_by_step({{}, {}}).empty());
}

TEST_CASE("rows: squeezing starts ops as early as their messages let them, in the same order") {
  VRows rows{spread(kTop), spread(kBottom)};
  REQUIRE(squeeze(rows, 1));
  CHECK(rows == VRows{kTop, kBottom});
  VRows early{kTop, kBottom};
  early[1][0].time = 0, early[0][0].time = 1;  // F0 of rank 1 before that of rank 0.
  CHECK_FALSE(squeeze(early, 1));
}

TEST_CASE("rows: weight gradients go into the bubbles before them") {
  VRows rows{kTop, kBottom};
  fill_bubbles(rows, 1);
  CHECK(rows == VRows{{{0, F0}, {3, F1}, {4, I1}, {5, W1}, {7, I0}, {8, W0}}, kBottom});
}

TEST_CASE("rows: a forward goes into a bubble only if the peak of activations does not rise") {
  // One rank. F0 of micro-batch 1 could run at 3, next to two activations of micro-batch 0.
  VRows tight{{{0, F0}, {1, F1}, {2, I1}, {5, I0}, {6, W1}, {7, W0}, {8, F0}, {9, F1}, {10, I1}, {11, I0}}};
  fill_bubbles(tight, 2);
  CHECK(tight[0] == VRow{{0, F0}, {1, F1}, {2, I1}, {3, I0}, {4, W1}, {5, W0}, {6, F0}, {7, F1}, {8, I1}, {9, I0}});
  // Three activations are kept at 9 here, so two may be at 4.
  VRows roomy{{{0, F0}, {1, F1}, {2, I1}, {3, W1}, {8, F0}, {9, F1}, {10, I1}, {11, W1}, {12, I0}, {13, W0}}};
  fill_bubbles(roomy, 2);
  CHECK(roomy[0] == VRow{{0, F0}, {1, F1}, {2, I1}, {3, W1}, {4, F0}, {5, F1}, {6, I1}, {7, W1}, {8, I0}, {9, W0}});
}

TEST_CASE("rows: only complete rows become orders, and weight gradients follow their gradients") {
  VRows rows{kTop, kBottom};
  std::swap(rows[1][4].pass, rows[1][5].pass);  // W0 before W1.
  REQUIRE(order_weights(rows, 1));
  CHECK(rows == VRows{kTop, kBottom});
  VRows late{kTop, kBottom};
  late[1][2].time = 4;  // In the step of the I1 that it needs.
  CHECK_FALSE(order_weights(late, 1));
  VRows missing{kTop, kBottom};
  missing[1].pop_back();
  CHECK_FALSE(order_weights(missing, 1));
}

TEST_CASE("rows: each rank has two repetitions, up to 64 beyond the micro-batches") {
  CHECK(repetitions(32, 1) == 64);
  CHECK(repetitions(33, 1) == 65);
  CHECK(repetitions(256, 32) == 96);
  CHECK(repetitions(256, 500) == 512);
  CHECK(repetitions(4, 9) == 9);
}

}  // namespace stagecraft::v_rows_test
