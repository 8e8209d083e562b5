#include "sim/config/units.hpp"

#include <doctest/doctest.h>

namespace stagecraft::units_test {
using config::Dimension;

namespace {

struct Right {
  Dimension dimension;
  const char* text;
  double base;
};

struct Wrong {
  Dimension dimension;
  const char* text;
  const char* why;
};

constexpr const char* kSpeedUnits =
    "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s";

}  // namespace

TEST_CASE("units are read to the nearest double") {
  const Right cases[] = {
      {Dimension::Time, "40 us", 40e-6},
      {Dimension::Time, "2us", 2e-6},
      {Dimension::Time, "0", 0},
      {Dimension::Time, "0.0", 0},
      {Dimension::Time, "1e3 ns", 1e-6},
      {Dimension::Time, ".5 ms", 5e-4},
      {Dimension::Size, "16 GiB", 16 * 0x1p30},
      {Dimension::Size, "80 GB", 80e9},
      {Dimension::Bandwidth, "25 GB/s", 25e9},
      {Dimension::Bandwidth, "100 Gbit/s", 12.5e9},
      {Dimension::Bandwidth, "1 TiB/s", 0x1p40},
      {Dimension::Work, "3 GFLOP", 3e9},
      {Dimension::WorkRate, "989 TFLOP/s", 989e12},
      {Dimension::Power, "0.7 kW", 700},
      {Dimension::Share, "70 %", 0.7},
      {Dimension::Share, "200%", 2},
  };
  for (const Right& right : cases) {
    CAPTURE(right.text);
    std::string why;
    CHECK(config::parse_quantity(right.dimension, right.text, why) == right.base);
    CHECK(why.empty());
  }
}

TEST_CASE("a refused quantity says what to write") {
  const std::string all_speeds = std::string("'40' has no unit; write one of ") + kSpeedUnits;
  const Wrong cases[] = {
      {Dimension::Time, "40", "'40' has no unit; write one of s, ms, us, ns, min, h, days"},
      {Dimension::Bandwidth, "40", all_speeds.c_str()},
      {Dimension::Bandwidth, "25 GB", "'GB' has no time; a bandwidth is in bytes for each second; write '25 GB/s'"},
      {Dimension::Bandwidth, "10Gb", "'Gb' can be read in two ways; write '10 Gbit/s' for bits or '10 GB/s' for bytes"},
      {Dimension::Bandwidth, "25 Gb/s",
       "'Gb/s' can be read in two ways; write '25 GB/s' for bytes or '25 Gbit/s' for bits"},
      {Dimension::Bandwidth, "25Gbps",
       "'Gbps' can be read in two ways; write '25 GB/s' for bytes or '25 Gbit/s' for bits"},
      {Dimension::Bandwidth, "25 GBps",
       "'GBps' can be read in two ways; write '25 GB/s' for bytes or '25 Gbit/s' for bits"},
      {Dimension::Size, "16 Gb",
       "'Gb' can be read in two ways; write '16 GB' for bytes or '2 GB' for that number of bits"},
      {Dimension::Time, "-5 us", "'-5 us' is negative; a time is zero or more"},
      {Dimension::Time, "-0 us", "'-0 us' is negative; a time is zero or more"},
      {Dimension::Time, "inf", "'inf' is not a finite number"},
      {Dimension::Time, ".nan", "'.nan' is not a finite number"},
      {Dimension::Time, "1e999 s", "'1e999' is too large or too small"},
      {Dimension::Size, "1e290 TiB", ""},
      {Dimension::Size, "1e308 TiB", "'1e308 TiB' is too large"},
      {Dimension::Time, "010 s", "'010' starts with a zero; write 10"},
      {Dimension::Time, "fast", "'fast' is not a number with a unit of time, such as '1 s'"},
      {Dimension::Time, "", "'' is not a number with a unit of time, such as '1 s'"},
      {Dimension::Time, "5  us", "write '5 us' with one space, or none"},
      {Dimension::Time, "5 m", "'m' is not a unit of time; write '5 min' or '5 ms'"},
      {Dimension::Time, "2 hours", "'hours' is not a unit of time; write '2 h'"},
      {Dimension::Time, "30 d", "'d' is not a unit of time; write '30 days'"},
      {Dimension::Bandwidth, "-1", "'-1' is negative; a bandwidth is zero or more"},
      {Dimension::Time, "5 \u00b5s", "'\u00b5s' is not a unit of time; did you mean 'us'?"},
      {Dimension::Size, "16 KB", "'KB' is not a unit of size; did you mean 'kB'?"},
      {Dimension::WorkRate, "989 TFLOPS", "'TFLOPS' is not a unit of speed of computing; did you mean 'TFLOP/s'?"},
      {Dimension::Power, "700 hp", "'hp' is not a unit of power; write one of W, kW"},
  };
  for (const Wrong& wrong : cases) {
    CAPTURE(wrong.text);
    std::string why;
    const auto value = config::parse_quantity(wrong.dimension, wrong.text, why);
    CHECK(value.has_value() == std::string(wrong.why).empty());
    CHECK(why == wrong.why);
  }
}

TEST_CASE("bare numbers follow YAML 1.2, without octal, hexadecimal, inf and nan") {
  std::string why;
  for (const char* text : {"0", "8", "-8", "+8", "0.5", ".5", "5.", "1e3", "1E-3", "-0.0"}) {
    CAPTURE(text);
    CHECK(config::parse_number(text, why) == std::stod(text));
  }
  for (const char* text :
       {"", "-", ".", "e3", "1e", "0x10", "1_000", "010", "00", "-01", "1 ", "yes", "inf", "nan", ".inf"}) {
    CAPTURE(text);
    why.clear();
    CHECK_FALSE(config::parse_number(text, why));
    CHECK_FALSE(why.empty());
  }
  config::parse_number("-007", why);
  CHECK(why == "'-007' starts with a zero; write -7");
  config::parse_number("85%", why);
  CHECK(why == "'85%' is a percentage; write the ratio 0.85");
}

}  // namespace stagecraft::units_test
