#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/report/html_assets.hpp"

namespace stagecraft {

/// A page with its data, which is JSON in UTF-8, and a policy that lets nothing else run or be fetched. The script runs
/// before the `parts`, which are JSON as well, have arrived.
std::string html_page(const html::Source&, const std::string& title, std::string_view json,
                      std::span<const std::string> parts = {});

}  // namespace stagecraft
