#pragma once

// Random graphs of layers, and every division of one into stages: what the searches have to find.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/core/numbers.hpp"
#include "sim/planners/graph/problem.hpp"
#include "tests/sim/planners/random_graph.hpp"

namespace stagecraft::test {

using namespace stagecraft::graph;

/// A layer with these device seconds, which replicas share, and these resident and stashed bytes.
inline Sums layer(double seconds, double resident, double stash) {
  Sums sums;
  for (int c = 0; c < kMostChoices; ++c) {
    sums.seconds[c] = seconds / (1 << c);
    sums.stash[c] = stash / (1 << c);
  }
  sums.gradients = resident;
  return sums;
}

inline GraphProblem random_problem(Rng& rng, Digraph graph) {
  GraphProblem p;
  p.devices = rng.integer(1, 5);
  p.micro_batches = rng.integer(1, 10);
  for (int r = 1; r <= rng.integer(1, 4); r *= 2) p.replicas.push_back(r);
  for (int l = 0; l < graph.size(); ++l) {
    p.amounts.push_back(layer(rng.integer(0, 20), rng.integer(0, 10), rng.integer(0, 10)));
    p.amounts.back().update = rng.integer(0, 5);
    p.output.push_back(rng.integer(0, 3) == 0 ? 0 : rng.integer(1, 30));
  }
  p.bandwidth = rng.integer(0, 2) == 0 ? kInfinity : rng.integer(2, 20);
  for (int c = 0; c < 16; ++c) p.among_replicas[c] = rng.integer(0, 2) == 0 ? kInfinity : rng.integer(2, 40);
  if (rng.integer(0, 1) == 0) p.memory = rng.integer(15, 80);
  p.operations = rng.integer(0, 1);
  p.layers = std::move(graph);
  return p;
}

struct BestValues {
  double iteration = kInfinity, bottleneck = kInfinity;
};

/// Visits every division of the layers into acyclic stages, every choice of replicas and, for a sequence, every order.
class BruteForce {
 public:
  BruteForce(const GraphProblem& p, bool sequential) : p_(p), sequential_(sequential), part_of_(p.size(), 0) {}
  BestValues run() { return divide(0, 0), best_; }

 private:
  void divide(int layer, int parts) {
    if (layer == p_.size()) return choose(parts);
    for (int part = 0; part <= parts; ++part) {
      part_of_[layer] = part;
      divide(layer + 1, std::max(parts, part + 1));
    }
  }

  void choose(int parts) {
    std::vector<std::set<int>> readers(parts);
    for (int l = 0; l < p_.size(); ++l)
      for (const int r : p_.layers.next[l])
        if (part_of_[l] != part_of_[r]) readers[part_of_[l]].insert(part_of_[r]);
    std::vector<int> order;
    std::vector<char> placed(parts, 0);
    const std::function<bool()> from_the_end = [&] {
      if (static_cast<int>(order.size()) == parts) return replicate(order, readers), !sequential_;
      for (int s = 0; s < parts; ++s) {
        if (placed[s]) continue;
        if (!std::all_of(readers[s].begin(), readers[s].end(), [&](int r) { return placed[r]; })) continue;
        placed[s] = 1, order.push_back(s);
        const bool enough = from_the_end();
        placed[s] = 0, order.pop_back();
        if (enough) return true;
      }
      return false;
    };
    from_the_end();
  }

  /// Visits all choices of replicas on devices of several types.
  void replicate_types(const std::vector<int>& order, const std::vector<std::set<int>>& readers) {
    const std::size_t parts = order.size();
    std::vector<int> choice(parts, 0);
    const std::function<void(std::size_t, std::vector<int>, int)> walk = [&](std::size_t s, std::vector<int> left,
                                                                             int any) {
      int spare = 0;
      for (const int n : left) spare += n;
      if (any > spare || *std::min_element(left.begin(), left.end()) < 0) return;
      if (s == parts) return evaluate(order, readers, choice);
      for (std::size_t c = 0; c < p_.replicas.size(); ++c) {
        choice[s] = static_cast<int>(c);
        std::vector<int> rest = left;
        if (p_.type[c] != kAnyType) rest[p_.type[c]] -= p_.replicas[c];
        walk(s + 1, rest, any + (p_.type[c] == kAnyType ? p_.replicas[c] : 0));
      }
    };
    walk(0, p_.of_type, 0);
  }

  void replicate(const std::vector<int>& order, const std::vector<std::set<int>>& readers) {
    if (!p_.of_type.empty()) return replicate_types(order, readers);
    const std::size_t parts = order.size();
    std::vector<int> choice(parts, 0);
    const std::function<void(std::size_t, int)> walk = [&](std::size_t s, int used) {
      if (used > p_.devices) return;
      if (s == parts) return evaluate(order, readers, choice);
      for (std::size_t c = 0; c < p_.replicas.size(); ++c) {
        choice[s] = static_cast<int>(c);
        walk(s + 1, used + p_.replicas[c]);
      }
    };
    walk(0, 0);
  }

  void evaluate(const std::vector<int>& order, const std::vector<std::set<int>>& readers,
                const std::vector<int>& choice) {
    const std::size_t parts = order.size();
    std::vector<int> depth(parts, 0);
    std::vector<double> path(parts, 0);
    double slowest = 0, longest = 0, previous_path = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const int s = order[i];
      const double r = p_.replicas[choice[s]];
      double seconds = p_.operations, update = 0, resident = 0, stash = 0, gradients = 0, entering = 0;
      std::set<int> entered;
      for (int l = 0; l < p_.size(); ++l) {
        if (part_of_[l] != s) continue;
        seconds += p_.amounts[l].seconds[choice[s]], stash += p_.amounts[l].stash[choice[s]];
        update += p_.amounts[l].update;
        gradients += p_.amounts[l].gradients;
        resident += p_.amounts[l].weights + p_.amounts[l].gradients + p_.amounts[l].optimizer;
        for (const int input : p_.layers.previous[l])
          if (part_of_[input] != s && entered.insert(input).second) entering += p_.output[input];
      }
      if (r > 1) update += 2 * (r - 1) / r * gradients / p_.among_replicas[choice[s]];
      seconds += update / p_.micro_batches;
      const double channel = 2 * entering / r / p_.bandwidth;
      int below = 0;
      double after = 0;
      for (const int t : readers[s]) below = std::max(below, depth[t]), after = std::max(after, path[t]);
      if (sequential_) below = static_cast<int>(i), after = previous_path;
      depth[s] = below + 1;
      path[s] = previous_path = after + seconds + channel;
      const double bytes = resident + stash * std::min(below + 1, p_.micro_batches);
      if (bytes > p_.memory || bytes > p_.memory_by_choice[choice[s]]) return;
      slowest = std::max({slowest, seconds, channel});
      longest = std::max(longest, path[s]);
    }
    best_.bottleneck = std::min(best_.bottleneck, slowest);
    best_.iteration = std::min(best_.iteration, (p_.micro_batches - 1) * slowest + longest);
  }

  const GraphProblem& p_;
  bool sequential_;
  std::vector<int> part_of_;
  BestValues best_;
};

inline void check_partition(const GraphProblem& p, const std::vector<GraphStage>& parts) {
  std::vector<int> layers;
  for (const GraphStage& part : parts) layers.insert(layers.end(), part.layers.begin(), part.layers.end());
  std::sort(layers.begin(), layers.end());
  REQUIRE(static_cast<int>(layers.size()) == p.size());
  for (int l = 0; l < p.size(); ++l) CHECK(layers[l] == l);
}

}  // namespace stagecraft::test
