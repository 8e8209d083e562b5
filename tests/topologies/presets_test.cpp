// Every file of topologies/ reads, builds, and joins each device to every other.

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/cluster/generator.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::presets_test {

TEST_CASE("every cluster preset builds, and its devices reach each other") {
  int seen = 0;
  const std::filesystem::path root = "topologies";  // Tests run in the root of the project.
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    config::Problems problems;
    const config::Value tree = config::parse_yaml_file(entry.path().string(), problems);
    problems.throw_if_any();
    CHECK(tree.at("schema").text == "cluster/1");
    const TopologyGenerator& def = get_from(topology_generators::catalog(), "generator", tree.at("generator").text);
    const config::Value bare = test::without(tree, {"schema", "title", "generator"});
    const config::Value map = config::check(bare, *def.fields, "", problems);
    problems.throw_if_any();
    const Cluster cluster = def.build(map);
    const Router router(cluster);
    bool reachable = true;
    for (const DeviceId a : cluster.devices.ids())
      for (const DeviceId b : cluster.devices.ids()) reachable &= router.route(a, b).has_value();
    CHECK(reachable);
    ++seen;
  }
  CHECK(seen >= 23);
}

}  // namespace stagecraft::presets_test
