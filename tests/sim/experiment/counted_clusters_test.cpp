// `nodes: 32` and the like on every cluster of the library.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/experiment/experiment.hpp"

namespace stagecraft::counted_clusters_test {
namespace {

std::string with_override(const std::string& cluster, const std::string& field, const std::string& number) {
  return fmt::format("{{base: {}, override: {{{}: {}}}}}", cluster, field, number);
}

/// A list or number of a cluster file that says how many equal things there are, and how many there are now.
struct Counted {
  std::string cluster, field;
  int count = 0;
};

int count_of(const config::Value& value) {
  if (value.is_scalar()) return config::as_int(value);
  int count = 0;
  for (const config::Value& entry : value.items) count += entry.has("count") ? config::as_int(entry.at("count")) : 1;
  return count;
}

std::vector<Counted> counted_clusters() {
  std::vector<Counted> counted;
  for (const NamedFile& file : named_files(FileKind::Cluster)) {
    config::Problems problems;
    const config::Value root = config::parse_yaml_file(file.path, problems);
    problems.throw_if_any();
    for (const char* field : {"nodes", "groups"})
      if (const config::Value* value = root.find(field); value && root.at("generator").text != "dragonfly")
        counted.push_back({file.name, field, count_of(*value)});
  }
  return counted;
}

std::shared_ptr<const Cluster> cluster_of(const std::string& cluster, const std::string& set = "run.seed=1") {
  return load_experiment("examples/quickstart", {"plan={planner: balanced, stages: 1}", "cluster=" + cluster, set})
      .cluster;
}

std::size_t devices_of(const std::string& cluster) { return cluster_of(cluster)->devices.size(); }

std::string refusal(const std::string& cluster) {
  try {
    devices_of(cluster);
  } catch (const InputError& e) {
    if (e.problems().size() != 1) return "several problems";
    return e.problems().front().path + ": " + e.problems().front().message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every cluster of the library gets larger and smaller by one number") {
  int lists = 0;
  for (const Counted& c : counted_clusters()) {
    CAPTURE(c.cluster);
    CAPTURE(c.field);
    const std::size_t devices = devices_of(c.cluster);
    CHECK(devices_of(with_override(c.cluster, c.field, std::to_string(c.count))) == devices);
    CHECK(devices_of(with_override(c.cluster, c.field, std::to_string(3 * c.count))) == 3 * devices);
    const auto set = cluster_of(c.cluster, fmt::format("cluster.{}={}", c.field, 2 * c.count));
    CHECK(set->devices.size() == 2 * devices);
    ++lists;
  }
  CHECK(lists >= 17);  // 14 with nodes, 3 with groups.
}

TEST_CASE("a number that is no count is refused on every cluster") {
  for (const Counted& c : counted_clusters()) {
    CAPTURE(c.cluster);
    for (const char* number : {"0", "-2", "2147483648", "1e300"}) {
      CAPTURE(number);
      const std::string text = refusal(with_override(c.cluster, c.field, number));
      CHECK(text.find(fmt::format("{}: {} is outside 1 to ", c.field, number)) != std::string::npos);
    }
    CHECK(refusal(with_override(c.cluster, c.field, "1.5")).find("'1.5' is not a whole number") != std::string::npos);
  }
}

TEST_CASE("a number of devices that no cluster may have is refused") {
  CHECK(refusal("{base: dgx-b200-x2, override: {nodes.node.gpus: 1024, nodes: 100000}}") ==
        "cluster: the cluster has more than 4194304 devices");
}

TEST_CASE("one ratio of oversubscription is for all levels") {
  const std::string tree = "generator: fat_tree, down: [8, 4, 2], type: h100-sxm, link: {bandwidth: 400 Gbit/s}";
  const auto links = [&](const std::string& ratio) {
    return cluster_of("{" + tree + ", oversubscription: " + ratio + "}")->links.size();
  };
  CHECK(links("2") == links("[2, 2]"));
  CHECK(links("2") < links("1"));
}

}  // namespace stagecraft::counted_clusters_test
