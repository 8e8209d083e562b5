#include "backends/des/routes.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::routes_test {
namespace {

Program one_message() {
  test::ProgramBuilder builder(3);
  builder.send(0, 1, 8);
  builder.send(1, 1, 8);
  return builder.build();
}

}  // namespace

TEST_CASE("routes follow the program's pairs") {
  const auto routes = des::routes_of(one_message(), test::star(3, 1e9, 1e-6));
  REQUIRE(routes.size() == 2);
  CHECK(routes[0].hops.size() == 2);
  CHECK(routes[0].latency.value == doctest::Approx(2e-6));
  CHECK(routes[1].hops.empty());
  CHECK(routes[1].latency.value == 0);
}

TEST_CASE("a link that is used must make sense") {
  const double infinite = kInfinity, none = std::numeric_limits<double>::quiet_NaN();
  for (const double bandwidth : {0.0, -1.0, infinite, none})
    CHECK_THROWS_AS(des::routes_of(one_message(), test::star(3, bandwidth, 0)), InputError);
  for (const double latency : {-1e-9, infinite, none})
    CHECK_THROWS_AS(des::routes_of(one_message(), test::star(3, 1e9, latency)), InputError);
  try {
    des::routes_of(one_message(), test::star(3, -1, -1));
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 4);  // two of each link that is used, none of the third
    CHECK(error.problems()[0].path == "cluster.links.l0");
    CHECK(error.problems()[0].message == "bandwidth is -1");
  }
}

TEST_CASE("devices without a way between them cannot talk") {
  CHECK_THROWS_AS(des::routes_of(one_message(), test::bare_cluster(3)), Infeasible);
}

}  // namespace stagecraft::routes_test
