#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/quantity.hpp"
#include "sim/output/text_layout.hpp"
#include "sim/program/program.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// The answer of `stagecraft run`: how long an iteration takes, its rates, its memory, its cost, and where its time
/// goes. `measured` says that the times come from a real run; memory and traffic always come from the program, and the
/// text says so.
std::string answer_text(const Program&, const Report&, const Cluster&, bool measured = false);
/// The other numbers of a run, as `--details` prints them.
std::string details_text(const Program&, const Report&, const Cluster&, bool measured = false);

/// What only a real run knows: losses, and the memory that it allocated.
std::string learnt_text(const Learnt&, const Cluster&, const TextLayout& = {});
/// Time that the host needs to enqueue work on a GPU.
std::string enqueued_text(const Enqueued&);
std::string lateness_text(const std::vector<double>& lateness);  ///< See Timeline::lateness; not empty.

/// Names of rows, each with the bytes of tied gradients whose exchange its simulation leaves out.
using Unexchanged = std::vector<std::pair<std::string, Bytes>>;

/// Names the rows that look faster than they are, because that exchange is missing; empty where there are none.
std::string unexchanged_text(const Unexchanged&);

}  // namespace stagecraft
