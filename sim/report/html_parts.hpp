#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/report/html_data.hpp"

namespace stagecraft {

/// The spans and the memory of some devices, which the page reads while it loads.
struct HtmlPart {
  int lanes = 0, curves = 0;  ///< Numbers of lanes and curves, which continue those of the previous part.
  std::string json;           ///< {"spans": digits, "memory": [{"samples": digits, "states": [stash, messages, ...]}]}
};

/// Digits: base 32, low first, A-Z a-f; as g-z 0-9 + / when another follows. A span is
///   4 op + 2 (is critical) + (is not as expected), then its gap, then where it is not as expected
///   its length and, less what is expected, micro-batch, iteration and version (2 n, or -2 n - 1 below zero).
/// Expected is what the span before with this op had, and the next micro-batch; zeros before the first.
/// A sample of memory is its gap and the number of its state.
std::vector<HtmlPart> html_parts(const HtmlSpans&, std::span<const HtmlMemory> by_device);

}  // namespace stagecraft
