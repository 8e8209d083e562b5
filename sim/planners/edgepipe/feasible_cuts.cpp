// The cuts that chains of allowed stages reach with each set of devices: whether a chain runs all layers within a
// period, for search.cpp, and which cuts lead to the end, for min_latency.cpp.

#include "sim/planners/edgepipe/search.hpp"

#include <algorithm>

#include "sim/planners/shared/device_mix.hpp"

namespace stagecraft::edgepipe {
namespace {

class Reach {
 public:
  Reach(const ChainProblem& p, const Allowed& allowed)
      : p_(p),
        allowed_(allowed),
        mixes_(counts_of(p)),
        words_(allowed.words()),
        reached_(mixes_.size() * words_),
        begins_(words_) {}

  /// Follows chains until all layers run, or `to_the_end`, until no chain is left to extend.
  bool forward(bool to_the_end) {
    row(0)[0] = 1;
    bool finished = false;
    for (std::int64_t s = 0; s < mixes_.size(); ++s) {
      if (is_empty(s)) continue;
      for (int u = 0; u < kinds(); ++u) {
        if (!mixes_.has_free(s, u)) continue;
        std::uint64_t* const next = row(s + mixes_.stride(u));
        for_each(begins(s, u), [&](int from) {
          const auto more = allowed_.ends(u, from);
          for (std::size_t w = 0; w < words_; ++w) next[w] |= more[w];
        });
        finished = finished || has({next, words_}, p_.layers);
        if (finished && !to_the_end) return true;
      }
    }
    return finished;
  }

  /// Takes away what leads nowhere, from the largest S to the smallest.
  void backward() {
    Cuts reachable(words_);
    for (std::int64_t s = mixes_.size() - 1; s >= 0; --s) {
      if (is_empty(s)) continue;
      std::fill(reachable.begin(), reachable.end(), 0);
      const auto keep = [&](int cut) { reachable[cut / 64] |= std::uint64_t{1} << (cut % 64); };
      if (has({row(s), words_}, p_.layers)) keep(p_.layers);
      for (int u = 0; u < kinds(); ++u) {
        if (!mixes_.has_free(s, u)) continue;
        const std::uint64_t* const next = row(s + mixes_.stride(u));
        for_each(begins(s, u), [&](int from) {
          const auto ends = allowed_.ends(u, from);
          for (std::size_t w = 0; w < words_; ++w)
            if ((ends[w] & next[w]) != 0) return keep(from);
        });
      }
      std::copy(reachable.begin(), reachable.end(), row(s));
    }
  }

  Cuts take() { return std::move(reached_); }
  std::int64_t cuts() const {
    std::int64_t count = 0;
    for (const std::uint64_t word : reached_) count += __builtin_popcountll(word);
    return count;
  }

 private:
  int kinds() const { return static_cast<int>(p_.machines.size()); }
  std::uint64_t* row(std::int64_t s) { return &reached_[s * words_]; }
  bool is_empty(std::int64_t s) {
    return std::all_of(row(s), row(s) + words_, [](std::uint64_t word) { return word == 0; });
  }
  const Cuts& begins(std::int64_t s, int u) {
    for (std::size_t w = 0; w < words_; ++w) begins_[w] = row(s)[w] & allowed_.starts(u)[w];
    return begins_;
  }

  const ChainProblem& p_;
  const Allowed& allowed_;
  DeviceMixes mixes_;
  std::size_t words_;
  Cuts reached_;  ///< [S][word]
  Cuts begins_;
};

}  // namespace

bool can_finish(const ChainProblem& p, const Allowed& allowed, std::int64_t& states) {
  Reach reach(p, allowed);
  const bool finished = reach.forward(false);
  states += reach.cuts();
  return finished;
}

Cuts cuts_on_the_way(const ChainProblem& p, const Allowed& allowed) {
  Reach reach(p, allowed);
  reach.forward(true);
  reach.backward();
  return reach.take();
}

}  // namespace stagecraft::edgepipe
