#include "sim/core/from_chars.hpp"

#include <doctest/doctest.h>
#include <bit>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/core.h>

namespace stagecraft::from_chars_test {
namespace {

/// That double_from_chars() reads a text as std::from_chars does: value, end and error.
void check_same(const std::string& text) {
  CAPTURE(text);
  double expected = 7, read = 7;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  const auto [our_end, our_error] = double_from_chars(text.data(), text.data() + text.size(), read);
  CHECK(our_end == end);
  CHECK(our_error == error);
  CHECK(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(expected));
}

}  // namespace

TEST_CASE("a double is read as std::from_chars reads it, with its end and its errors") {
  for (const char* text :
       {"",       "0",      "-0",  "1.5x", "+1",       " 1",      ".5",       "5.",       ".",
        "-",      "-.",     "1e",  "1e+",  "1e5",      "1E-5",    "1e5.5",    "0x10",     "1e400",
        "1e-400", "-1e400", "inf", "-inf", "INFINITY", "infinit", "nan",      "-nan",     "nanx",
        "in",     "e5",     "--1", "1-1",  "1,5",      "1_0",     "4.9e-324", "2.2e-308", "1.7976931348623157e308"})
    check_same(text);
}

TEST_CASE("random doubles read back to the last bit, however many digits they have") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random());
    check_same(fmt::format("{}", value));
    check_same(fmt::format("{:.25e}", value));
    check_same(fmt::format("{:.3g}", value));
  }
}

}  // namespace stagecraft::from_chars_test
