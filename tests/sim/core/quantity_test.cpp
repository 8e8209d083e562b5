#include "sim/core/quantity.hpp"
#include "sim/core/numbers.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stagecraft::quantity_test {

TEST_CASE("quantities print four significant digits and the word of their unit") {
  CHECK(to_text(Seconds{0.05731}) == "57.31 ms");
  CHECK(to_text(Seconds{0}) == "0 s");
  CHECK(to_text(Seconds{2e-6}) == "2 us");
  CHECK(to_text(Seconds{1.23456}) == "1.235 s");
  CHECK(to_text(Seconds{123456}) == "123500 s");
  CHECK(to_text(Seconds{-3e-9}) == "-3 ns");
  CHECK(to_text(Seconds{2.5e-10}) == "0.25 ns");
  CHECK(to_text(Bytes{61.4 * 0x1p30}) == "61.4 GiB");
  CHECK(to_text(Bytes{512}) == "512 B");
  CHECK(to_text(Bytes{1e9}) == "953.7 MiB");
  CHECK(to_text(Bandwidth{25e9}) == "25 GB/s");
  CHECK(to_text(Flops{2500}) == "2500 FLOP");
  CHECK(to_text(Flops{3.2e12}) == "3.2 TFLOP");
  CHECK(to_text(FlopRate{989e12}) == "989 TFLOP/s");
  CHECK(to_text(Watts{700}) == "700 W");
  CHECK(to_text(Joules{3.6e6}) == "3.6 MJ");
}

TEST_CASE("rounding up carries into the next unit") {
  CHECK(to_text(Seconds{0.99996}) == "1 s");
  CHECK(to_text(Seconds{0.99994}) == "999.9 ms");
  CHECK(to_text(Bytes{1023.6 * 0x1p20}) == "1 GiB");
  CHECK(to_text(Bytes{-1023.6 * 0x1p20}) == "-1 GiB");
  CHECK(to_text(Bytes{1000 * 0x1p20}) == "1000 MiB");
}

TEST_CASE("a quantity that is not finite is printed with its unit") {
  CHECK(to_text(Seconds{kInfinity}) == "inf s");
  CHECK(to_text(Bytes{-kInfinity}) == "-inf B");
}

TEST_CASE("dimensions divide into each other") {
  CHECK(Bytes{100} / Bandwidth{50} == Seconds{2});
  CHECK(Flops{100} / FlopRate{50} == Seconds{2});
  CHECK(Watts{3} * Seconds{4} == Joules{12});
  CHECK(Seconds{6} / Seconds{4} == 1.5);
}

}  // namespace stagecraft::quantity_test
