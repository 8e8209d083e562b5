#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/quantity.hpp"

// Reads quantities such as "25 GB/s", and converts them to base units.

namespace stagecraft::config {

enum class Dimension { Time, Size, Bandwidth, Work, WorkRate, Power, Share };

/// "25 GB/s" in base units. On failure returns nothing and says why, offering both readings of an ambiguous unit.
std::optional<double> parse_quantity(Dimension, std::string_view text, std::string& why);

/// A bare finite number as YAML 1.2 writes it, without leading zeros. On failure returns nothing and says why.
std::optional<double> parse_number(std::string_view text, std::string& why);

std::string_view dimension_name(Dimension);
std::vector<std::string> unit_names(Dimension);

}  // namespace stagecraft::config
