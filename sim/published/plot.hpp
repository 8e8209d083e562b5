#pragma once

#include <span>
#include <string>

#include "sim/published/reproduce.hpp"

namespace stagecraft {

/// Ours over the published figures of one table as SVG; what agrees lies on the diagonal. Logarithmic when they span
/// more than a factor of 30. Nothing when there are too few figures for a picture.
std::string plot_svg(const PublishedTable&, std::span<const Reproduced> cells);

}  // namespace stagecraft
