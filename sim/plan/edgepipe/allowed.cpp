#include "sim/plan/edgepipe/allowed.hpp"

namespace stagecraft::edgepipe {
namespace {

void add(std::uint64_t* cuts, int cut) { cuts[cut / 64] |= std::uint64_t{1} << (cut % 64); }

}  // namespace

Allowed::Allowed(const Problem& p, Limits limits)
    : layers_(p.layers),
      words_(p.layers / 64 + 1),
      starts_(p.machines.size(), Cuts(words_)),
      ends_(p.machines.size() * (p.layers * words_)) {
  for (int u = 0; u < static_cast<int>(p.machines.size()); ++u) {
    const Machines& own = p.machines[u];
    const auto hop_allowed = [&](int cut) { return hop_seconds(p.message[cut], own.bandwidth) <= limits.hop; };
    for (int from = 0; from < layers_; ++from) {
      if (from > 0 && (own.first_only || !hop_allowed(from))) continue;
      add(starts_[u].data(), from);
      for (int to = from + 1; to <= layers_; ++to)
        if (own.compute.at(from, to) <= limits.stage && (to == layers_ || hop_allowed(to)) && fits(p, {from, to, u}))
          add(&ends_[(u * layers_ + from) * words_], to);
    }
  }
}

}  // namespace stagecraft::edgepipe
