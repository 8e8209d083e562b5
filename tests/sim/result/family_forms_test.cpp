// Properties that families_test.cpp does not cover: messages, memory rank by rank, orders with options, bounds.

#include <doctest/doctest.h>

#include "tests/support/families.hpp"

namespace stagecraft::family_forms_test {
using test::figures;
using test::ScheduleFigures;
using Times = test::OpTimes;

namespace {

constexpr int kRanks[] = {2, 4, 8, 16};
constexpr Times kTimes[] = {{1, 1, 1}, {1, 1, 0.5}, {0.5, 1, 0.25}, {2, 1.5, 1}};  // W <= I

double max_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

/// The peak along a device's list when each op adds `forward`, `input` or `weight` by its kind.
double most_kept(const Schedule& order, int device, double forward, double input, double weight) {
  double stash = 0, peak = 0;
  for (const Op& op : order.row(DeviceId{device})) {
    stash += op.kind == OpKind::Forward          ? forward
             : op.kind == OpKind::InputGradient  ? input
             : op.kind == OpKind::WeightGradient ? weight
             : op.kind == OpKind::Backward       ? input + weight
                                                 : 0;
    peak = std::max(peak, stash);
  }
  return peak;
}

}  // namespace

// A chain of S stages has S - 1 edges, crossed once each way by each micro-batch but where both ends are on one rank:
// once in the middle of a V, at every turn of a wave.
TEST_CASE("messages of a micro-batch: 2(p - 1), 2(pv - 1) in a loop, 4(p - 1) in a V, 2v(p - 1) in waves") {
  for (const int p : kRanks) {
    CAPTURE(p);
    const int m = 4 * p;
    for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "graph", "spp-pe", "zb-h1", "zb-h1-light", "zb-h2", "zb-1p",
                             "zb-2p", "seq1f1b", "pipedream", "2bw"})
      CHECK(figures(name, p, 1, m, test::kUnitTimes).messages == 2 * (p - 1));
    for (const char* name : {"chimera", "gems", "dualpipe"})
      CHECK(figures(name, p, 2, m, test::kUnitTimes).messages == 2 * (p - 1));
    for (const char* name : {"zb-v", "zb-v-auto", "v-half", "v-min", "1f1b-v", "dualpipev", "stp", "v-adaptive"})
      CHECK(figures(name, p, 2, m, test::kUnitTimes).messages == 4 * (p - 1));
    for (const int v : {2, 4}) {
      for (const char* name : {"interleaved", "interleaved-zb", "looped-bfs", "group-interleaved"})
        CHECK(figures(name, p, v, m, test::kUnitTimes).messages == 2 * (p * v - 1));
      CHECK(figures("hanayo", p, v, m, test::kUnitTimes).messages == 2 * v * (p - 1));
    }
  }
}

// The last rank works without a break from its first forward on. A gradient goes up with one backward each rank, for
// whatever else a rank does it has done while it waited: it did the same for the micro-batch before.
TEST_CASE("gpipe that recomputes has a bubble of (p - 1)(F + B), also if the last micro-batch is kept") {
  for (const int p : kRanks)
    for (const int m : {2, p, 3 * p})
      for (const Times t : kTimes) {
        CAPTURE(p);
        CAPTURE(m);
        const double bubble = (p - 1) * (t.forward + t.input + t.weight);
        const ScheduleFigures recomputed = figures("gpipe", p, 1, m, t, "{}", true);
        CHECK(recomputed.busy == m * (2 * t.forward + t.input + t.weight));
        CHECK(recomputed.bubble == bubble);
        CHECK(max_of(recomputed.activations) == 1);
        const ScheduleFigures but_last = figures("gpipe", p, 1, m, t, "{backward: reverse, keep_last: true}");
        CHECK(but_last.busy == m * (2 * t.forward + t.input + t.weight) - t.forward);
        CHECK(but_last.bubble == bubble);
      }
}

TEST_CASE(
    "interleaved in groups of G: min(2(p - 1 - r) + (v - 1)G + 1, mv) chunks alive, one more during an overlapped "
    "backward") {
  for (const int p : kRanks)
    for (const int v : {2, 4})
      for (const int group : {p, p + p / 2, 2 * p}) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(group);
        const int m = 3 * group;
        const std::string g = "group: " + std::to_string(group);
        const ScheduleFigures f = figures("interleaved", p, v, m, test::kUnitTimes, "{" + g + "}");
        const ScheduleFigures overlapped =
            figures("interleaved", p, v, m, test::kUnitTimes, "{" + g + ", overlap_moe: true}");
        for (int r = 0; r < p; ++r) {
          const int alive = 2 * (p - 1 - r) + (v - 1) * group + 1;
          CHECK(f.activations[r] == std::min(alive, m * v));
          CHECK(overlapped.activations[r] == std::min(alive + 1, m * v));
        }
      }
}

// Qi et al., Zero Bubble, ICLR 2024, table 2: a micro-batch is kept whole until its input gradient, then as M_W.
TEST_CASE("zero bubble H2: (p - 1)(F + I - 2W) from a rank's first start to its last end, (2(p - r) - 1) and 2r kept") {
  for (const int p : kRanks)
    for (const int m : {3 * p, 4 * p})
      for (const Times t : {Times{1, 1, 1}, Times{1, 1, 0.5}, Times{2, 1.5, 1}}) {
        CAPTURE(p);
        CAPTURE(m);
        const ScheduleFigures f = figures("zb-h2", p, 1, m, t);
        CHECK(f.span - f.busy == (p - 1) * (t.forward + t.input - 2 * t.weight));
        for (int r = 0; r < p; ++r) {
          CHECK(most_kept(f.order, r, 1, -1, 0) == 2 * (p - r) - 1);
          CHECK(most_kept(f.order, r, 0, 1, -1) == 2 * r + 1);  // With the one at hand.
        }
      }
}

TEST_CASE("zero bubble from the costs keeps at most k p activations, of which I and W each free half") {
  for (const int p : kRanks)
    for (const Times t : kTimes)
      for (const double k : {1.0, 1.5, 2.0}) {
        const ScheduleFigures f = figures("zb-1p", p, 1, 3 * p, t, "{memory: " + std::to_string(k) + "}");
        for (int r = 0; r < p; ++r) CHECK(most_kept(f.order, r, 2, -1, -1) <= 2 * k * p);
      }
}

// sail-sg's orders, which ours are (tests/reference): bubbles of 15, 33 and 75 steps and 6, 12 and 22 activations.
TEST_CASE("1f1b-v with B = 2F: bubble and memory do not grow with the micro-batches") {
  const struct {
    int p;
    double bubble, activations;
  } cases[] = {{4, 15, 6}, {8, 33, 12}, {16, 75, 22}};
  for (const auto& c : cases)
    for (const int m : {2 * c.p, 3 * c.p, 5 * c.p}) {
      CAPTURE(c.p);
      CAPTURE(m);
      const ScheduleFigures f = figures("1f1b-v", c.p, 2, m, test::kUnitTimes);
      CHECK(f.bubble == c.bubble);
      CHECK(max_of(f.activations) == c.activations);
    }
}

// Of N = D micro-batches half go down, of which rank r keeps min(D - r, D / 2), and half up, of which it keeps
// min(r + 1, D / 2).
TEST_CASE("chimera with m = p has p / 2 + 1 + min(r, p - 1 - r) alive on rank r") {
  for (const int p : kRanks) {
    const ScheduleFigures f = figures("chimera", p, 2, p, test::kUnitTimes);
    for (int r = 0; r < p; ++r) CHECK(f.activations[r] == p / 2 + 1 + std::min(r, p - 1 - r));
  }
}

TEST_CASE("dualpipe where I > F: between (p / 2 - 1)(2F + I - W) and DeepSeek's (p / 2 - 1)(F + 2I - W)") {
  for (const int p : {4, 8, 16})
    for (const Times t : {Times{1, 2, 1}, Times{0.5, 1, 0.25}, Times{1, 1.5, 0.5}})
      for (const int m : {2 * p, 4 * p}) {
        CAPTURE(p);
        CAPTURE(m);
        const double bubble = figures("dualpipe", p, 2, m, t).bubble;
        CHECK(bubble >= (p / 2 - 1) * (2 * t.forward + t.input - t.weight));
        CHECK(bubble <= (p / 2 - 1) * (t.forward + 2 * t.input - t.weight));
      }
}

// PipeOffload's group-interleaved order compared with interleaved 1F1B: 18, 14 and 23 steps of bubble to its 21, and
// 12, 16 and 13 chunks to its 23 (sail-sg, group_interleaved_1f1b.py, run).
TEST_CASE("group-interleaved on 8 ranks with 2 chunks and 24 micro-batches has the figures of three groups") {
  const struct {
    int group;
    double bubble, activations;
  } cases[] = {{4, 18, 12}, {8, 14, 16}, {1, 23, 13}};
  for (const auto& c : cases) {
    CAPTURE(c.group);
    const ScheduleFigures f =
        figures("group-interleaved", 8, 2, 24, test::kUnitTimes, "{group: " + std::to_string(c.group) + "}");
    CHECK(f.bubble == c.bubble);
    CHECK(max_of(f.activations) == c.activations);
  }
  const ScheduleFigures interleaved = figures("interleaved", 8, 2, 24, test::kUnitTimes);
  CHECK(interleaved.bubble == 21);
  CHECK(max_of(interleaved.activations) == 23);
}

TEST_CASE("v-adaptive keeps its limit, and is no longer than v-half, v-min and zb-v in theirs") {
  for (const int p : {4, 8})
    for (const int m : {1, 2, p, 2 * p, 3 * p}) {
      const std::pair<const char*, int> others[] = {
          {"v-min", 2 * ((p + 4) / 3)}, {"v-half", 2 * ((p + 2) / 2)}, {"zb-v", 2 * p}};
      for (const auto& other : others) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(other.first);
        const std::string memory = "{memory: " + std::to_string(other.second / (2.0 * p) + 1e-6) + "}";
        const ScheduleFigures ours = figures("v-adaptive", p, 2, m, test::kUnitTimes, memory);
        CHECK(max_of(ours.activations) <= other.second);
        CHECK(ours.span <= figures(other.first, p, 2, m, test::kUnitTimes).span);
      }
    }
}

}  // namespace stagecraft::family_forms_test
