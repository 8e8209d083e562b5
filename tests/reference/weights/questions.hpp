#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/convergence.hpp"

namespace stagecraft::test {

using Seeds = std::vector<double>;            ///< A loss of each seed, infinite where it diverged.
using Losses = std::map<std::string, Seeds>;  ///< Losses of each method.

/// One setting of a data file, which several methods run.
struct Setting {
  std::string task;
  int depth = 8;
  std::string optimizer;
  double rate = 0, momentum = 0;
  int samples = 32, updates = 0;

  friend auto operator<=>(const Setting&, const Setting&) = default;
};

/// Methods by their names in the data. Nesterov's momentum is no optimizer here, the learning rate of PipeMare grows
/// over another number of updates, and both methods together are not a separate policy.
inline std::string our_name(std::string_view theirs) {
  static const std::map<std::string, std::string, std::less<>> names{{"sync", "sync"},
                                                                     {"naive", "naive"},
                                                                     {"stash", "stash"},
                                                                     {"vsync", "vertical-sync"},
                                                                     {"2bw", "2bw"},
                                                                     {"spectrain", "spectrain"},
                                                                     {"xpipe", "xpipe"},
                                                                     {"spectrain_v2", "spectrain-v2"},
                                                                     {"pipeoptim", "pipeoptim"},
                                                                     {"pipeoptim_code", "pipeoptim:as_released"},
                                                                     {"geo", "geometric"},
                                                                     {"pb_sc", "spike-compensation"},
                                                                     {"pipeoptim_xs", "pipeoptim"},
                                                                     {"layerpipe2", "layerpipe2"}};
  const std::size_t at = theirs.find('@');
  const auto found = names.find(theirs.substr(0, at));
  if (found == names.end()) return {};
  return at == theirs.npos ? found->second : found->second + std::string(theirs.substr(at));
}

inline test::ConvergenceQuestion question(const Setting& s, std::vector<std::string> methods, int seeds) {
  test::ConvergenceQuestion o;
  o.file = s.task == "glyph"    ? "papers/pipeoptim/glyph"
           : s.task == "charlm" ? "papers/pipeoptim/characters"
                                : "papers/pipeoptim/teacher";
  const int micro_batches = s.depth <= 8 ? 8 : 16;
  o.sets = {fmt::format("run.micro_batches={}", micro_batches),
            fmt::format("plan.micro_batch_size={}", s.samples / micro_batches),
            fmt::format("training.learning_rate={}", s.rate)};
  if (s.optimizer == "sgdm")
    o.sets.push_back(fmt::format("training.optimizer={{name: momentum, momentum: {}}}", s.momentum));
  if (s.depth != 8) {
    std::string widths = "16";
    for (int k = 1; k < s.depth; ++k) widths += ", 32";
    o.sets.insert(
        o.sets.end(),
        {fmt::format("model.widths=[{}, 4]", widths), fmt::format("plan.stages={}", s.depth),
         fmt::format("cluster={{generator: uniform, devices: {}, type: any, types: {{any: {{peak: 1 TFLOP/s, memory: "
                     "80 GiB, memory_bandwidth: 1 TB/s}}}}, link: {{bandwidth: 1 TB/s, latency: 0 s}}}}",
                     s.depth)});
  }
  o.methods = std::move(methods);
  o.updates = s.updates;
  o.seeds = seeds;
  o.measure = false;
  return o;
}

inline double lowest(const Seeds& seeds) { return *std::min_element(seeds.begin(), seeds.end()); }
inline double highest(const Seeds& seeds) { return *std::max_element(seeds.begin(), seeds.end()); }

inline std::string in_words(const Seeds& s) {
  return fmt::format("{:7.4f} [{:.4f}-{:.4f}]", median(s), lowest(s), highest(s));
}

/// Checks that our medians are ordered wherever all seeds of the data are, and returns the number of comparisons.
inline int check_less(const Losses& theirs, const Losses& ours) {
  int pairs = 0;
  for (const auto& [one, low] : theirs)
    for (const auto& [other, high] : theirs) {
      if (highest(low) >= lowest(high)) continue;
      const std::string pair = one + " before " + other;
      CHECK_MESSAGE(median(ours.at(one)) < median(ours.at(other)), pair);
      ++pairs;
    }
  return pairs;
}

}  // namespace stagecraft::test
