#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/topologies.hpp"

namespace stagecraft::generators_test {
namespace {

constexpr auto make = test::make_cluster;
constexpr auto wrong = test::wrong_cluster;

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

std::string path(const Cluster& cluster, const std::string& from, const std::string& to) {
  const Route route = Router(cluster).require(*cluster.find_device(from), *cluster.find_device(to));
  std::string text;
  for (const Hop& hop : route.hops) text += cluster.links[hop.link].name + " ";
  return text;
}

const std::string kLinks =
    "links:\n  nvlink: {bandwidth: 300 GB/s}\n  pcie: {bandwidth: 32 GB/s}\n  nic: {bandwidth: 25 GB/s}\n";

}  // namespace

TEST_CASE("every generator has a description and documents its fields") {
  test::check_documented(topology_generators::catalog());
}

TEST_CASE("uniform: there is a link for each pair, or one for each device") {
  const Cluster mesh = make("uniform", "{devices: 4, type: a100-40, link: {bandwidth: 1 GB/s}}");
  CHECK(mesh.devices.size() == 4);
  CHECK(mesh.links.size() == 6);
  CHECK(mesh.types.size() == 1);
  CHECK(mesh.types[DeviceTypeId{0}].name == "a100-40");
  CHECK(path(mesh, "gpu3", "gpu1") == "gpu1-gpu3 ");
  const Cluster star = make("uniform", "{devices: 4, prefix: d, network: star, type: h200, link: {bandwidth: 1 GB/s}}");
  CHECK(star.links.size() == 4);
  CHECK(path(star, "d3", "d1") == "d3.link d1.link ");
  CHECK(make("uniform", "{devices: 1, type: h200, link: {bandwidth: 1 GB/s}}").links.empty());
  has(wrong("uniform", "{devices: 5000, type: h200, link: {bandwidth: 1 GB/s}}"), "too many");
}

TEST_CASE("a type is a preset, a name from the table, or a map") {
  const std::string rest = ", link: {bandwidth: 1 GB/s}}";
  CHECK(make("uniform", "{devices: 1, types: {mine: {preset: h200, speed: 2}}, type: mine" + rest)
            .types[DeviceTypeId{0}]
            .speed == 2);
  const Cluster custom =
      make("uniform", "{devices: 2, type: {peak: 1 TFLOP/s, memory_bandwidth: 1 GB/s, memory: 1 GB}" + rest);
  CHECK(custom.types.size() == 1);
  CHECK(custom.types[DeviceTypeId{0}].peak.value == 1e12);
  has(wrong("uniform", "{devices: 1, type: h10-sxm" + rest), "1: type: 'h10-sxm' is not a known device type [did you");
  has(wrong("uniform", "{devices: 1, type: {peek: 1 TFLOP/s}" + rest), "type.peek");
  has(wrong("uniform", "{devices: 1, type: {peak: 1 TFLOP/s}" + rest), "'memory' is missing");
}

TEST_CASE("star: groups of unequal devices have their own links") {
  const std::string text =
      "groups:\n"
      "  - {name: nano, type: jetson-nano, count: 2, link: fast}\n"
      "  - {name: pi, type: raspberry-pi-4, link: slow}\n"
      "links:\n"
      "  fast: {bandwidth: 1 Gbit/s}\n"
      "  slow: {bandwidth: 10 Mbit/s, duplex: half}\n";
  const Cluster cluster = make("star", text);
  CHECK(cluster.devices.size() == 3);
  CHECK(cluster.types.size() == 2);
  CHECK(cluster.links[LinkId{2}].duplex == Duplex::Half);
  CHECK(path(cluster, "nano1", "pi0") == "nano1.link pi0.link ");
  has(wrong("star", "groups:\n  - {name: a, type: h200, link: fsat}\nlinks: {fast: {bandwidth: 1 GB/s}}\n"),
      "2: groups[0].link: `links` has no entry 'fsat' [did you mean 'fast'?]");
}

TEST_CASE("nvlink_pods: a node has NVSwitch inside and a card for every GPU") {
  const Cluster cluster = make("nvlink_pods", "nodes: {n: {count: 2, gpus: 4, type: h100-sxm}}\n" + kLinks);
  CHECK(cluster.devices.size() == 8);
  CHECK(cluster.devices[DeviceId{5}].host == "n1");
  CHECK(path(cluster, "n0.gpu0", "n0.gpu3") == "n0.gpu0.nvlink n0.gpu3.nvlink ");
  CHECK(path(cluster, "n0.gpu1", "n1.gpu2") == "n0.gpu1.nic n1.gpu2.nic ");
}

TEST_CASE("nvlink_pods: a node may have PCIe only and a shared card") {
  const std::string nodes = "nodes: {n: {count: 2, gpus: 2, type: v100-16, inside: pcie, nics: shared}}\n";
  const Cluster cluster = make("nvlink_pods", nodes + kLinks);
  CHECK(path(cluster, "n0.gpu0", "n0.gpu1") == "n0.gpu0.pcie n0.gpu1.pcie ");
  CHECK(path(cluster, "n0.gpu1", "n1.gpu0") == "n0.gpu1.pcie n0.nic n1.nic n1.gpu0.pcie ");
  CHECK(path(cluster, "n0.gpu0", "n1.gpu0") == "n0.gpu0.pcie n0.nic n1.nic n1.gpu0.pcie ");
}

TEST_CASE("nvlink_pods: links of pairs, one node without a fabric and unequal nodes are possible") {
  const Cluster mesh = make("nvlink_pods", "nodes: {n: {gpus: 3, type: v100-16, inside: mesh}}\n" + kLinks);
  CHECK(mesh.links.size() == 3);
  CHECK(mesh.switches.empty());
  const Cluster mixed = make(
      "nvlink_pods", "nodes: {a: {gpus: 2, type: h100-sxm}, b: {gpus: 4, type: a100-80, nics: shared}}\n" + kLinks);
  CHECK(mixed.types.size() == 2);
  CHECK(path(mixed, "a0.gpu1", "b0.gpu3") == "a0.gpu1.nic b0.nic b0.gpu3.pcie ");
  has(wrong("nvlink_pods", "nodes: {n: {count: 2, type: h200}}\nlinks: {nvlink: {bandwidth: 1 GB/s}}\n"),
      "`links` has no entry 'nic'");
}

TEST_CASE("nvlink_pods: two sockets have their GPUs and a card each") {
  const std::string links = kLinks + "  socket: {bandwidth: 64 GB/s}\n";
  const auto node = [&](const std::string& more) {
    return make("nvlink_pods", "nodes: {n: {gpus: 4, sockets: 2, type: v100-16, " + more + "}}\n" + links);
  };
  const Cluster cluster = node("count: 2, inside: mesh, nics: shared");
  CHECK(cluster.links.size() == 2 * (2 * 1 + 4 + 1 + 2));
  CHECK(path(cluster, "n0.gpu0", "n0.gpu1") == "n0.gpu0-gpu1.nvlink ");
  CHECK(path(cluster, "n0.gpu1", "n0.gpu2") == "n0.gpu1.pcie n0.socket0-socket1 n0.gpu2.pcie ");
  CHECK(path(cluster, "n0.gpu3", "n1.gpu0") == "n0.gpu3.pcie n0.socket1.nic n1.socket0.nic n1.gpu0.pcie ");
  CHECK(path(node("inside: mesh"), "n0.gpu1", "n0.gpu2") == "n0.gpu1.pcie n0.socket0-socket1 n0.gpu2.pcie ");
  CHECK(node("inside: nvswitch").links.size() == 4);  // The sockets do not matter.
  CHECK(node("inside: pcie").links.size() == 4 + 1);
  has(wrong("nvlink_pods", "nodes: {n: {gpus: 5, sockets: 2, type: v100-16}}\n" + links),
      "1: nodes[0].sockets: 5 GPUs cannot be shared evenly by 2 sockets");
  has(wrong("nvlink_pods", "nodes: {n: {gpus: 4, sockets: 2, type: v100-16, inside: mesh}}\n" + kLinks),
      "`links` has no entry 'socket'");
}

TEST_CASE("explicit: cables, switches and a shared medium are linked as written") {
  const Cluster cluster = make("explicit",
                               "devices:\n  - {name: a, type: h200}\n  - {name: b, type: h200, host: x}\n"
                               "  - {name: c, type: v100-16}\n"
                               "switches: [hub]\n"
                               "links:\n"
                               "  ab: {between: [a, b], bandwidth: 1 GB/s}\n"
                               "  air: {among: [b, c, hub], bandwidth: 1 MB/s}\n"
                               "  up: {between: [a, hub], bandwidth: 1 GB/s, duplex: unshared}\n");
  CHECK(cluster.types.size() == 2);
  CHECK(cluster.devices[DeviceId{0}].host == "a");
  CHECK(cluster.devices[DeviceId{1}].host == "x");
  CHECK(cluster.links[LinkId{0}].duplex == Duplex::Full);
  CHECK(cluster.links[LinkId{1}].duplex == Duplex::Half);
  CHECK(cluster.links[LinkId{2}].duplex == Duplex::Unshared);
  CHECK(path(cluster, "a", "b") == "ab ");
  CHECK(path(cluster, "b", "c") == "air ");
  CHECK(path(cluster, "a", "c") == "up air ");
}

TEST_CASE("explicit: every problem is reported with its place") {
  const std::string error = wrong("explicit",
                                  "devices:\n"
                                  "  - {name: a, type: h200}\n"
                                  "  - {name: b, type: h300}\n"
                                  "switches: [hub, a]\n"
                                  "links:\n"
                                  "  - {name: l0, between: [a, hubb], bandwidth: 1 GB/s}\n"
                                  "  - {name: l1, between: [a, b, hub], bandwidth: 1 GB/s}\n"
                                  "  - {name: l2, bandwidth: 1 GB/s}\n"
                                  "  - {name: l3, among: [a, b], bandwidth: 0, duplex: full}\n"
                                  "  - {name: l4, between: [b, b], bandwidth: 1 GB/s}\n");
  has(error, "3: devices[1].type: 'h300' is not a known device type");
  has(error, "4: switches[1]: another place is called 'a' too");
  has(error, "6: links[0].between[1]: no device or switch is called 'hubb' [did you mean 'hub'?]");
  has(error, "7: links[1].between: it has 3 ends");
  has(error, "8: links[2]: a link has either `between` or `among`");
  has(error, "9: links[3].bandwidth: a bandwidth of 0 carries nothing");
  has(error, "9: links[3].duplex: a shared medium has no two directions");
  has(error, "10: links[4].between[1]: 'b' is named twice");
}

TEST_CASE("explicit: devices without a path are reported") {
  const std::string error = wrong("explicit",
                                  "devices: {a: {type: h200}, b: {type: h200}, c: {type: h200}}\n"
                                  "links: {ab: {between: [a, b], bandwidth: 1 GB/s}}\n");
  has(error, "no path leads from 'a' to 'c'");
  has(error, "1 of 3 devices is cut off");
}

TEST_CASE("explicit: given routes replace found ones, and only they use links without ends") {
  const Cluster cluster = make("explicit",
                               "devices: {a: {type: a100-40}, b: {type: a100-40}, c: {type: a100-40}}\n"
                               "switches: [s]\n"
                               "links:\n"
                               "  as: {between: [a, s], bandwidth: 1 GB/s}\n"
                               "  sb: {between: [s, b], bandwidth: 1 GB/s}\n"
                               "  ab: {between: [a, b], bandwidth: 1 GB/s}\n"
                               "  air: {bandwidth: 2 GB/s, latency: 1 us}\n"
                               "routes: [a b as sb, b a sb as, c a air, a c air]\n");
  const Router router(cluster);
  const auto text = [&](int from, int to) {
    std::string names;
    for (const Hop& hop : router.require(DeviceId{from}, DeviceId{to}).hops)
      names += cluster.links[hop.link].name + (hop.forward ? "> " : "< ");
    return names;
  };
  CHECK(text(0, 1) == "as> sb> ");
  CHECK(text(1, 0) == "sb< as< ");
  CHECK(text(2, 0) == "air> ");
  CHECK(router.require(DeviceId{0}, DeviceId{2}).latency.value == 1e-6);
  CHECK_FALSE(router.route(DeviceId{1}, DeviceId{2}));
  CHECK(cluster.links[LinkId{3}].duplex == Duplex::Half);
}

TEST_CASE("explicit: routes that lead nowhere are refused") {
  const std::string error = wrong("explicit",
                                  "devices: {a: {type: a100-40}, b: {type: a100-40}, c: {type: a100-40}}\n"
                                  "links:\n"
                                  "  ab: {between: [a, b], bandwidth: 1 GB/s}\n"
                                  "  bc: {between: [b, c], bandwidth: 1 GB/s}\n"
                                  "  air: {bandwidth: 2 GB/s, duplex: full}\n"
                                  "routes: [a b, a d ab, a b bc, a c ab, b a abc, a a ab, b c bc, b c bc]\n");
  for (const char* part : {"a link without ends has no two directions", "a route has a start, an end and links",
                           "no device is called 'd'", "'bc' does not go on here [it starts elsewhere]",
                           "this way does not lead to 'c'", "'abc' does not go on here [did you mean 'ab'?]",
                           "a device needs no way to itself", "the way from 'b' to 'c' is given twice"})
    CHECK_MESSAGE(error.find(part) != std::string::npos, part << " in " << error);
}

namespace {

const std::string kGpu = "type: {peak: 132 TFLOP/s, memory_bandwidth: 4 TB/s, memory: 132 GB, busy: 400 W, speed: 2}";
const std::string kRest = ", memory: {alone: 1 TB/s}, messages: {bandwidth: 500 GB/s, latency: 4 us}}";

}  // namespace

TEST_CASE("carved_gpu: parts have whole groups, and one memory that ops and messages share") {
  const Cluster four = make("carved_gpu", "{multiprocessors: 132, parts: 4, " + kGpu + kRest);
  REQUIRE(four.devices.size() == 4);
  const DeviceType& part = four.types[DeviceTypeId{0}];  // 16 groups of 8 fit into 132: 4 groups each, and 4 are over.
  CHECK(part.name == "gpu-32sm");
  CHECK(part.peak.value == doctest::Approx(32e12));
  CHECK(part.speed == doctest::Approx(2.0 * 32 / 132));
  CHECK(part.memory_bandwidth.value == 1e12);
  CHECK(part.memory.value == doctest::Approx(33e9));
  CHECK(part.busy.value == doctest::Approx(100));
  CHECK(path(four, "part0", "part3") == "messages memory ");
  CHECK(path(four, "part3", "part0") == "messages memory ");
  const Link& memory = four.links[LinkId{1}];
  CHECK(memory.bandwidth.value == 2e12);  // A copy reads and writes each byte.
  CHECK(memory.duplex == Duplex::Half);
  for (const Device& d : four.devices) CHECK(d.memory == LinkId{1});
  const Route way = Router(four).require(DeviceId{0}, DeviceId{1});
  CHECK(way.latency.value == doctest::Approx(4e-6));
  CHECK(way.bandwidth.value == 5e11);

  CHECK(make("carved_gpu", "{multiprocessors: 132, parts: 8, " + kGpu + kRest).types[DeviceTypeId{0}].name ==
        "gpu-16sm");
  CHECK(make("carved_gpu", "{multiprocessors: 132, group: 2, parts: 2, " + kGpu + kRest).types[DeviceTypeId{0}].name ==
        "gpu-66sm");
  const Cluster whole = make("carved_gpu", "{multiprocessors: 132, parts: 1, type: h200" + kRest);
  CHECK(whole.types[DeviceTypeId{0}].name == "h200-132sm");
  CHECK(whole.links.empty());
  CHECK_FALSE(whole.devices[DeviceId{0}].memory.valid());
}

TEST_CASE("carved_gpu: a GPU that cannot be divided is refused") {
  has(wrong("carved_gpu", "{multiprocessors: 132, parts: 17, " + kGpu + kRest),
      "132 multiprocessors make 16 groups of 8, too few for 17 parts");
  has(wrong("carved_gpu", "{multiprocessors: 4, parts: 2, " + kGpu + kRest), "0 groups of 8");
  has(wrong("carved_gpu",
            "{multiprocessors: 132, parts: 2, " + kGpu + ", memory: {alone: 5 TB/s}, messages: {bandwidth: 1 GB/s}}"),
      "5 TB/s are more than the 4 TB/s that all parts get together");
  has(wrong("carved_gpu",
            "{multiprocessors: 132, parts: 2, " + kGpu + ", memory: {alone: 0 TB/s}, messages: {bandwidth: 1 GB/s}}"),
      "is not possible here");
  has(wrong("carved_gpu", "{multiprocessors: 132, parts: 2, type: h201" + kRest), "not a known device type");
}

}  // namespace stagecraft::generators_test
