// Any bytes as a number or a quantity: a finite amount that reads back to the same, or a reason.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/config/units.hpp"
#include "sim/core/text.hpp"

using namespace stagecraft;

namespace {

void check_quantity(config::Dimension dimension, std::string_view text) {
  std::string why;
  const auto amount = config::parse_quantity(dimension, text, why);
  if (amount.has_value() != why.empty()) std::abort();
  if (!amount) return;
  if (!std::isfinite(*amount) || std::signbit(*amount)) std::abort();
  // Per cent are divided by a hundred, so that share is not written in its base.
  if (dimension == config::Dimension::Share) return;
  const std::string written = shortest(*amount) + ' ' + config::unit_names(dimension).front();
  if (config::parse_quantity(dimension, written, why) != amount) std::abort();
}

void check_number(std::string_view text) {
  std::string why;
  const auto number = config::parse_number(text, why);
  if (number.has_value() != why.empty()) std::abort();
  if (!number) return;
  if (!std::isfinite(*number)) std::abort();
  if (config::parse_number(shortest(*number), why) != number) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_number(text);
  for (int d = 0; d <= static_cast<int>(config::Dimension::Share); ++d)
    check_quantity(static_cast<config::Dimension>(d), text);
  return 0;
}
