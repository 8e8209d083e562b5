#pragma once

#include <string>
#include <vector>

#include "backends/box/link_check.hpp"
#include "backends/box/network.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// Options of commands that build networks of namespaces.
Argument queue_argument();
Argument scale_argument();
box::NetworkOptions box_options(const Arguments&, const Cluster&);

/// What the check of the links found: one line if each is within 2 % of its nominal rate, else each that is not.
std::string readings_text(const std::vector<box::RateReading>&);
bool are_nominal(const std::vector<box::RateReading>&);

/// BackendError with box::why_no_namespaces(), if that is not empty.
void require_namespaces();

}  // namespace stagecraft
