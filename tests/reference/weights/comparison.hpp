#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/core/numbers.hpp"
#include "tests/support/convergence.hpp"
#include "tests/support/reference.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::test {

using Seeds = std::vector<double>;            ///< A loss of each seed, infinite where it diverged.
using Losses = std::map<std::string, Seeds>;  ///< Losses of each method.

/// One setting of the data, which several methods run.
struct Setting {
  std::string task;
  int depth = 8;
  std::string optimizer;
  double rate = 0, momentum = 0;
  int samples = 32, updates = 0;

  friend auto operator<=>(const Setting&, const Setting&) = default;
};

inline test::ConvergenceQuestion convergence_question(const Setting& s, std::vector<std::string> methods, int seeds) {
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

/// Numbers with spaces between; "inf" is infinite.
inline Seeds numbers(const std::string& text) {
  Seeds values;
  for (const std::string& word : split(text, ' ')) values.push_back(std::stod(word));
  return values;
}

inline double lowest(const Seeds& seeds) { return *std::min_element(seeds.begin(), seeds.end()); }
inline double highest(const Seeds& seeds) { return *std::max_element(seeds.begin(), seeds.end()); }

inline std::string in_words(const Seeds& s) {
  return fmt::format("{:7.4f} [{:.4f}-{:.4f}]", median(s), lowest(s), highest(s));
}

/// Checks that the actual medians are ordered wherever all reference seeds are. Returns the number of comparisons.
inline int check_less(const Losses& reference, const Losses& actual) {
  int pairs = 0;
  for (const auto& [one, low] : reference)
    for (const auto& [other, high] : reference) {
      if (highest(low) >= lowest(high)) continue;
      const std::string pair = one + " before " + other;
      CHECK_MESSAGE(median(actual.at(one)) < median(actual.at(other)), pair);
      ++pairs;
    }
  return pairs;
}

}  // namespace stagecraft::test
