#pragma once

#include <cstdint>

#include "sim/plan/edgepipe/allowed.hpp"

namespace stagecraft::edgepipe {

/// Whether some chain of allowed stages runs all layers. Adds the cuts that it looked at to `states`.
///
///   R(0) = {0},  R(S + 1_u) contains the ends of the stages of u that begin in R(S) and in the starts of u
///
/// where S counts the devices of each kind in use and R(S) is the set of cuts that chains of them reach: one bit each.
/// A farther cut is not always the better one, since cuts differ in their messages; so all are kept.
bool can_finish(const Problem&, const Allowed&, std::int64_t& states);

/// R(S) for each S, one behind the other, without the cuts from which the devices that are left cannot run the rest.
Cuts cuts_on_the_way(const Problem&, const Allowed&);

}  // namespace stagecraft::edgepipe
