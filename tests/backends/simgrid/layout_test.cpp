#include "backends/simgrid/engine/layout.hpp"

#include <doctest/doctest.h>

#include "backends/des/routes.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::layout_test {
namespace {

sg::Layout build_layout(const Program& program, const Cluster& cluster) {
  return sg::build_layout(program, cluster, des::routes_of(program, cluster));
}

}  // namespace

TEST_CASE("a star has no exceptions, and only those who talk are in it") {
  test::ProgramBuilder builder(6);
  builder.send(1, 2, 8);
  builder.send(2, 1, 8);
  builder.send(4, 1, 8);
  builder.send(3, 3, 8);
  const sg::Layout layout = build_layout(builder.build(), test::star(6, 1e9, 0));
  REQUIRE(layout.hosts.size() == 3);
  CHECK(layout.hosts[0].device == DeviceId{1});
  CHECK(layout.hosts[2].device == DeviceId{4});
  CHECK(layout.hosts[2].up == std::vector<Hop>{{LinkId{4}, true}});
  CHECK(layout.links.size() == 3);
  CHECK(layout.exceptions.empty());
}

TEST_CASE("the ring of a collective repeats no pair") {
  Cluster cluster = test::bare_cluster(2);
  test::connect(cluster, {0, 1}, 1e9, 0);
  test::ProgramBuilder builder(2);
  builder.send(0, 1, 8);
  builder.all_reduce({0, 1}, 8);
  const sg::Layout layout = build_layout(builder.build(), cluster);
  CHECK(layout.hosts[0].up.empty());
  CHECK(layout.exceptions == std::vector<std::int32_t>{0, 2});
}

TEST_CASE("routes over more than one switch go up and down too") {
  Cluster cluster = test::bare_cluster(4, 3);  // a tree: devices, two leaves, one root
  for (int d = 0; d < 4; ++d) test::connect(cluster, {4 + d / 2, d}, 1e9, 0);
  test::connect(cluster, {4, 6}, 1e9, 0);
  test::connect(cluster, {5, 6}, 1e9, 0);
  test::ProgramBuilder builder(4);
  builder.send(0, 2, 8);
  builder.send(3, 1, 8);
  builder.send(2, 1, 8);
  builder.send(0, 1, 8);
  const sg::Layout layout = build_layout(builder.build(), cluster);
  CHECK(layout.hosts.size() == 4);
  CHECK(layout.links.size() == 6);
  CHECK(layout.exceptions.size() <= 1);
}

}  // namespace stagecraft::layout_test
