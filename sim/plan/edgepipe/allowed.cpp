#include "sim/plan/edgepipe/allowed.hpp"

namespace stagecraft::edgepipe {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void add(std::uint64_t* cuts, int cut) { cuts[at(cut) / 64] |= std::uint64_t{1} << (cut % 64); }

}  // namespace

Allowed::Allowed(const Problem& p, Limits limits)
    : layers_(p.layers),
      words_(p.layers / 64 + 1),
      starts_(p.machines.size(), Cuts(at(words_))),
      ends_(p.machines.size() * at(p.layers * words_)) {
  for (int u = 0; u < static_cast<int>(p.machines.size()); ++u) {
    const Machines& own = p.machines[at(u)];
    const auto hop_allowed = [&](int cut) { return hop_seconds(p.message[at(cut)], own.bandwidth) <= limits.hop; };
    for (int from = 0; from < layers_; ++from) {
      if (from > 0 && (own.first_only || !hop_allowed(from))) continue;
      add(starts_[at(u)].data(), from);
      for (int to = from + 1; to <= layers_; ++to)
        if (own.compute.at(from, to) <= limits.stage && (to == layers_ || hop_allowed(to)) && fits(p, {from, to, u}))
          add(&ends_[at((u * layers_ + from) * words_)], to);
    }
  }
}

}  // namespace stagecraft::edgepipe
