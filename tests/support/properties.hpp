#pragma once

#include <rapidcheck.h>

#include <cstdlib>

#include "backends/backend.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::test {

/// Numbers of a case from rapidcheck, so that a counterexample is made as small as it can be.
inline int pick(int low, int high) { return *rc::gen::inRange(low, high + 1); }

/// Checks `property` on 150 cases, or on 40 of them, the same ones in every run unless RC_PARAMS says otherwise.
template <class Property>
bool holds(const char* what, Property&& property) {
  const char* const params = all_trials() ? "seed=20240731 max_success=150 max_size=60 max_discard_ratio=20"
                                          : "seed=20240731 max_success=40 max_size=60 max_discard_ratio=20";
  setenv("RC_PARAMS", params, 0);
  return rc::check(what, std::forward<Property>(property));
}

inline RandomCase any_case() { return random_case(pick, 5); }

/// Its program. Blocking rendezvous may say deadlock, which is another test's business.
inline Program program_or_discard(const RandomCase& c) {
  try {
    return program_of(c);
  } catch (const Infeasible& error) {
    RC_ASSERT(error.code() == "deadlock");
    RC_ASSERT(!c.options.overlap && c.options.rendezvous);
    RC_DISCARD("deadlock");
  }
}

/// The simulators that this build can run.
inline std::vector<const BackendDef*> simulators() {
  std::vector<const BackendDef*> result;
  for (const BackendDef* def : backends::catalog())
    if (def->clock == Clock::Simulated && def->why_not().empty()) result.push_back(def);
  return result;
}

/// Cards of different speeds on one switch.
inline Cluster any_star(int devices) {
  Cluster cluster = bare_cluster(devices, 1);
  for (int d = 0; d < devices; ++d) connect(cluster, {d, devices}, 1e6 * pick(100, 10000), 1e-6 * pick(0, 200));
  return cluster;
}

}  // namespace stagecraft::test
