#pragma once

#include <functional>

#include "sim/cluster/cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// The program with forwards that are as late as can be: those before the first backward of a device, but for its first
/// one, wait until no later start would delay another op of `early`, a timeline of the program. They wait from the
/// start of the first one on, in each iteration that follows a drain.
Program with_late_forwards(Program, const Timeline& early);

/// The share of the stash of a forward that goes to host memory.
using OffloadShare = std::function<double(const Instruction& forward)>;

/// The program with copies of stashes between devices and the memory of their hosts, which a copy engine for each
/// direction runs in order next to computation. After a forward its share goes down, and its memory on the device is
/// free when that has ended. It comes up after that, from the start of the op `ahead` places before the backward on,
/// takes its memory again at its own start, and the backward waits for it.
///
/// A stash stays where both copies take longer, alone on their links, than the time between forward and backward in
/// `base`, a timeline of the program, so always where the backward follows at once; with `partly` as much of it stays
/// as takes longer. So do stashes that are made by a recomputation.
Program with_offloaded_stashes(Program, const Plan&, const Cluster&, const Timeline& base, int ahead,
                               const OffloadShare&, bool partly = false);

/// Whether it copies any stash to host memory.
bool copies_stashes(const Program&);

}  // namespace stagecraft
