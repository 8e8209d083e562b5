// Bubbles and activations of schedules with a placement, compared with the formulas of their papers.

#include <doctest/doctest.h>

#include "tests/support/families.hpp"

namespace stagecraft::families_test {
namespace {

using test::figures;
using test::ScheduleFigures;
using Times = test::OpTimes;
constexpr Times kUnit = test::kUnitTimes;

double max_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }
double min_of(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

constexpr int kRanks[] = {2, 4, 8, 16};
constexpr Times kTimes[] = {{1, 1, 1}, {1, 1, 0.5}, {0.5, 1, 0.25}, {2, 1.5, 1}};  // W <= I

}  // namespace

TEST_CASE("eager 1f1b has the bubble of 1f1b and min(2(p - 1 - r) + 1, m) activations") {
  for (const int p : kRanks)
    for (const int m : {1, 3, p, 2 * p + 1})
      for (const Times t : kTimes) {
        CAPTURE(p);
        CAPTURE(m);
        const ScheduleFigures f = figures("eager-1f1b", p, 1, m, t);
        CHECK(f.bubble == (p - 1) * (t.forward + t.input + t.weight));
        for (int r = 0; r < p; ++r) CHECK(f.activations[r] == std::min(2 * (p - 1 - r) + 1, m));
      }
}

TEST_CASE("spp-pe takes at most (m + 4p - 4) times the work of a stage on one micro-batch") {
  for (const int p : kRanks)
    for (const int m : {1, p, 4 * p})
      for (const Times t : kTimes) {
        const ScheduleFigures f = figures("spp-pe", p, 1, m, t);
        CHECK(f.bubble + f.busy <= (m + 4 * p - 4) * (t.forward + t.input + t.weight));
      }
}

TEST_CASE("interleaved has a bubble of (p - 1)(F + B) of a chunk, min(2(p - 1 - r) + (v - 1)p + 1, mv) alive") {
  for (const int p : kRanks)
    for (const int v : {2, 4})
      for (const int m : {p, 2 * p, 4 * p})
        for (const Times t : kTimes) {
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          const ScheduleFigures f = figures("interleaved", p, v, m, t);
          CHECK(f.bubble == (p - 1) * (t.forward + t.input + t.weight));
          for (int r = 0; r < p; ++r) CHECK(f.activations[r] == std::min(2 * (p - 1 - r) + (v - 1) * p + 1, m * v));
        }
}

TEST_CASE("looped bfs has a bubble of (p - 1)(F + B) of a chunk, and everything alive") {
  for (const char* order : {"{backward: forward}", "{backward: reverse}"})
    for (const int p : kRanks)
      for (const int v : {1, 2, 4})
        for (const int m : {p, 2 * p}) {
          CAPTURE(order);
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          const ScheduleFigures f = figures("looped-bfs", p, v, m, {1, 1, 0.5}, order);
          CHECK(f.bubble == (p - 1) * 2.5);
          CHECK(min_of(f.activations) == m * v);
        }
}

TEST_CASE("zero bubble H1 has a bubble of (p - 1)(F + I - W) of a chunk, and pv chunks alive on every rank") {
  for (const int p : kRanks)
    for (const int v : {1, 2, 4})
      for (const int m : {2 * p, 3 * p})
        for (const Times t : kTimes) {
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          const ScheduleFigures f = figures(v == 1 ? "zb-h1" : "interleaved-zb", p, v, m, t);
          CHECK(f.bubble == (p - 1) * (t.forward + t.input - t.weight));
          CHECK(min_of(f.activations) == p * v);
          CHECK(max_of(f.activations) == p * v);
        }
}

TEST_CASE("zero bubble H2 with F = I = W has no bubble between iterations, and 2p - 1 alive") {
  for (const int p : kRanks)
    for (const int m : {3 * p, 4 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const ScheduleFigures f = figures("zb-h2", p, 1, m, kUnit);
      CHECK(f.bubble == p - 1);  // the last rank starts so late
      CHECK(f.period == f.busy);
      CHECK(max_of(f.activations) == 2 * p - 1);
    }
}

TEST_CASE("zero bubble from the costs is never longer than the one by hand, in the memory it is given") {
  for (const int p : kRanks)
    for (const int m : {2 * p, 4 * p})
      for (const Times t : kTimes) {
        CAPTURE(p);
        CAPTURE(m);
        CHECK(figures("zb-1p", p, 1, m, t).period <= figures("1f1b", p, 1, m, t).period);
        CHECK(figures("zb-2p", p, 1, m, t).period <= figures("zb-1p", p, 1, m, t).period);
        CHECK(figures("zb-2p", p, 1, 4 * p, kUnit).period == 3 * 4 * p);
      }
}

TEST_CASE("zb-v with F = I = W has no bubble between iterations in the memory of 1f1b") {
  for (const int p : kRanks)
    for (const int m : {2 * p, 3 * p})
      for (const char* name : {"zb-v", "zb-v-auto"}) {
        CAPTURE(name);
        CAPTURE(p);
        CAPTURE(m);
        const ScheduleFigures f = figures(name, p, 2, m, kUnit);
        CHECK(f.bubble == p - 1);
        CHECK(f.period == f.busy);
        CHECK(max_of(f.activations) <= 2 * p);
      }
}

TEST_CASE("v-half and v-min with F = I = W have 2 floor((p + 2) / 2) and 2 floor((p + 4) / 3) chunks alive") {
  for (const int p : kRanks)
    for (const int m : {2 * p, 3 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const ScheduleFigures half = figures("v-half", p, 2, m, kUnit), least_memory = figures("v-min", p, 2, m, kUnit);
      CHECK(max_of(half.activations) == 2 * ((p + 2) / 2));
      CHECK(max_of(least_memory.activations) == 2 * ((p + 4) / 3));
      CHECK(least_memory.bubble == 4 * p - 5);
      if (p > 2) CHECK(half.bubble == 3 * (p - 1) - 4);
    }
}

TEST_CASE("1f1b-v takes two thirds of the memory of 1f1b") {
  for (const int p : {4, 8, 16}) {
    const ScheduleFigures f = figures("1f1b-v", p, 2, 3 * p, kUnit);
    CHECK(max_of(f.activations) <= 2 * (2 * p / 3 + 1));
    CHECK(f.bubble < 2 * 3 * (p - 1));  // of 1f1b, in chunks
  }
}

TEST_CASE("dualpipe: (p / 2 - 1)(2F + I - W) with F >= I, p + 1 alive; dualpipev on half the ranks is the same") {
  for (const int p : {2, 4, 8, 16})
    for (const Times t : {Times{1, 1, 1}, Times{1, 1, 0.5}, Times{2, 1.5, 1}}) {
      const double bubble = 2 * t.forward + t.input - t.weight;
      for (const int m : {2 * p, 2 * p + 4, 4 * p}) {
        CAPTURE(p);
        CAPTURE(m);
        const ScheduleFigures both = figures("dualpipe", p, 2, m, t), one = figures("dualpipev", p, 2, m, t);
        CHECK(both.bubble == (p / 2 - 1) * bubble);
        CHECK(min_of(both.activations) == p + 1);
        CHECK(max_of(both.activations) == p + 1);
        CHECK(one.bubble == (p - 1) * bubble);
        CHECK(max_of(one.activations) == 2 * p + 1);
      }
    }
}

// The published bubble is (p - 1)(F + I - W) where F = W. Its peak counts a chunk until its input gradient is there.
TEST_CASE("stp: (p - 1)(3F + I - 3W) with F >= I and F >= W, 3p without an input gradient") {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "stp");
  for (const int p : {2, 4, 8, 16})
    for (const int m : {3 * p - 1, 3 * p, 4 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      for (const Times t : {Times{1, 1, 1}, Times{1, 1, 0.5}, Times{2, 1.5, 1}})
        CHECK(figures("stp", p, 2, m, t).bubble == (p - 1) * (3 * t.forward + t.input - 3 * t.weight));
      const Schedule schedule = test::build("stp", plan_for(def, p, 2, m));
      for (const std::vector<Op>& row : schedule.ranks) {
        int alive = 0, peak = 0;
        for (const Op& op : row) {
          alive += op.kind == OpKind::Forward ? 1 : passes_gradient(op.kind) ? -1 : 0;
          if (!op.fused) peak = std::max(peak, alive);
        }
        CHECK(peak == 3 * p);
      }
    }
}

TEST_CASE("chimera with F = B has a bubble of (p - 2) / (2m + p - 2), and p/2 + 1 to p alive") {
  for (const int p : kRanks)
    for (const int m : {p, 2 * p, 3 * p, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const ScheduleFigures f = figures("chimera", p, 2, m, {1, 0.5, 0.5});
      CHECK(f.busy == 2 * m);
      CHECK(f.bubble == p - 2);
      CHECK(f.activations.front() == p / 2 + 1);
      CHECK(max_of(f.activations) == p);
    }
}

TEST_CASE("chimera with B = 2F and m = p has a bubble of (p - 2)B") {
  for (const int p : kRanks) CHECK(figures("chimera", p, 2, p, kUnit).bubble == (p - 2) * 2);
}

TEST_CASE("gems has two alive") {
  for (const int p : kRanks)
    for (const int m : {2, 5, 8}) CHECK(max_of(figures("gems", p, 2, m, kUnit).activations) == 2);
}

TEST_CASE("hanayo where B = 2F: as wide a bubble as two stages to go, the smaller the more waves") {
  for (const int p : {2, 4, 8}) {
    double before = 1e9;
    for (const int v : {2, 4, 8}) {
      const ScheduleFigures f = figures("hanayo", p, v, p, kUnit);
      const double share = f.bubble / (f.bubble + f.busy);
      CHECK(share < before);
      before = share;
    }
  }
}

TEST_CASE("group-interleaved: the smaller the group, the less memory; never below ceil(p / 2) micro-batches") {
  for (const int p : {4, 8, 16}) {
    const int m = 3 * p;
    const ScheduleFigures half = figures("group-interleaved", p, 2, m, kUnit),
                          whole = figures("interleaved", p, 2, m, kUnit);
    CHECK(max_of(half.activations) < max_of(whole.activations));
    CHECK(half.bubble < whole.bubble);
  }
}

TEST_CASE("seq1f1b: (p - 1)(F + B) of a slice, p - 1 - r + slices alive") {
  for (const int p : kRanks)
    for (const int slices : {1, 2, 4})
      for (const int sequences : {p, 2 * p}) {
        CAPTURE(p);
        CAPTURE(slices);
        CAPTURE(sequences);
        const ScheduleFigures f =
            figures("seq1f1b", p, 1, sequences * slices, {1, 1, 0.5}, "{slices: " + std::to_string(slices) + "}");
        CHECK(f.bubble == (p - 1) * 2.5);
        for (int r = 0; r < p; ++r) CHECK(f.activations[r] == p - 1 - r + slices);
      }
}

TEST_CASE("slimpipe: (p - 1)(F + B) of a slice of a chunk, v slices + ahead (p - 1 - r) alive; seq1f1b with v 1") {
  for (const int p : kRanks)
    for (const int v : {1, 2, 5})
      for (const int slices : {p, 2 * p})
        for (const int ahead : {1, 2}) {
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(slices);
          CAPTURE(ahead);
          const std::string count = "slices: " + std::to_string(slices);
          const ScheduleFigures f = figures("slimpipe", p, v, 2 * slices, {1, 1, 0.5},
                                            "{" + count + ", ahead: " + std::to_string(ahead) + "}");
          CHECK(f.bubble == (p - 1) * 2.5);
          for (int r = 0; r < p; ++r)
            CHECK(f.activations[r] == std::min(v * slices + ahead * (p - 1 - r), 2 * v * slices));
          if (v == 1 && ahead == 1)
            CHECK(test::rows_of(f.order) ==
                  test::rows_of(figures("seq1f1b", p, 1, 2 * slices, kUnit, "{" + count + "}").order));
        }
}

}  // namespace stagecraft::families_test
