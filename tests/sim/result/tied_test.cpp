// The note below tables in which some rows omit the exchange of tied weights' gradients.

#include "sim/output/text.hpp"

#include <doctest/doctest.h>

namespace stagecraft::tied_test {

TEST_CASE("rows without the exchange of tied gradients are named once each, with its bytes") {
  constexpr Bytes kNone{0}, kOne{1 << 20}, kThree{3 << 20};
  CHECK(unexchanged_text({}).empty());
  CHECK(unexchanged_text({{"1f1b", kNone}, {"gpipe", kNone}}).empty());
  CHECK(unexchanged_text({{"2bw", kOne}, {"1f1b", kNone}, {"pipedream", kOne}, {"2bw", kOne}}) ==
        "without the exchange of tied weights' gradients (1 MiB for each update), which is simulated only where a "
        "schedule flushes: 2bw, pipedream");
  CHECK(unexchanged_text({{"2bw", kThree}, {"pipedream", kOne}}) ==
        "without the exchange of tied weights' gradients (1 MiB to 3 MiB for each update), which is simulated only "
        "where a schedule flushes: 2bw, pipedream");
}

}  // namespace stagecraft::tied_test
