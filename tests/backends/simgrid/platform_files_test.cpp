// Platform files: what is read of them gives the times that SimGrid itself gives for the file.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "backends/platform.hpp"
#include "backends/simgrid/engine/platform.hpp"
#include "backends/simgrid/platform_xml.hpp"
#include "backends/simgrid/sandbox.hpp"
#include "sim/cluster/device_presets.hpp"
#include "sim/core/file.hpp"
#include "sim/core/random.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/simgrid_xml.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program_builder.hpp"
#include "topologies/simgrid_xml.hpp"

namespace stagecraft::platform_files_test {
namespace {

namespace s4u = sg::s4u;

const std::string kFolder = "tests/backends/simgrid/platforms/";
const char* const kFiles[] = {"backbone", "dragonfly", "fat_tree", "nested", "star", "torus"};

config::Member memory() { return {"memory", {}, config::Value::scalar("16 GiB", {})}; }

Cluster imported(const std::string& file) { return build_cluster(platform_cluster(file, {memory()})); }

/// One message, which leaves at `start`.
struct Message {
  int from, to;
  std::uint64_t bytes;
  double start;
};

/// Messages at random times, so that many are in flight at once; or one after the other.
std::vector<Message> random_messages(const Cluster& cluster, Rng& rng, bool together) {
  const int hosts = static_cast<int>(cluster.devices.size());
  std::vector<Message> messages;
  for (int i = 0; i < 60; ++i) {
    const int from = rng.integer(0, hosts - 1);
    const int to = (from + rng.integer(1, hosts - 1)) % hosts;
    messages.push_back(
        {from, to, static_cast<std::uint64_t>(rng.integer(1, 50'000'000)), together ? rng.uniform(0, 0.2) : 10.0 * i});
  }
  return messages;
}

/// SimGrid itself on the file: it finds the ways, shares the links and, for messages that never meet, pays the latency.
/// With other messages in flight a latency would change their shares, so an op pays it first, as the route says.
std::vector<double> direct(const std::string& file, const Cluster& cluster, const std::vector<Message>& messages,
                           bool own_latency) {
  const sg::SharedMemory memory(messages.size() * sizeof(double));
  const std::span<double> end = memory.as<double>();
  const auto play = [&] {
    s4u::Engine& engine = sg::make_engine();
    if (own_latency) s4u::Engine::set_config("network/latency-factor:1");
    engine.load_platform(file);
    engine.seal_platform();
    sg::on_transfer_end([&](const s4u::Activity& activity) {
      end[reinterpret_cast<std::intptr_t>(activity.get_data<void>()) - 1] = s4u::Engine::get_clock();
    });
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& m = messages[i];
      s4u::Host* from = engine.host_by_name(cluster.devices[DeviceId{m.from}].name);
      s4u::Host* to = engine.host_by_name(cluster.devices[DeviceId{m.to}].name);
      std::vector<s4u::Link*> links;
      double latency = 0;
      from->route_to(to, links, &latency);
      sg::Timer::set(m.start + (own_latency ? 0 : latency), [&, from, to, i] {
        const s4u::CommPtr comm = s4u::Comm::sendto_init(from, to)->set_payload_size(messages[i].bytes);
        comm->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(i) + 1));
        comm->add_ref();  // never given back: the process ends
        sg::start_activity(comm);
      });
    }
    engine.run();
  };
  sg::run_in_child(play, Seconds{20});
  return {end.begin(), end.end()};
}

/// The messages as a program: each follows a separate op that lasts until the message leaves.
std::vector<double> ours(const char* backend, const Cluster& cluster, const std::vector<Message>& messages) {
  test::ProgramBuilder builder(static_cast<int>(cluster.devices.size()), false);
  builder.unordered_ops().unordered_messages();
  std::vector<InstructionId> sends;
  for (const Message& m : messages)
    sends.push_back(builder.send(m.from, m.to, m.bytes, {builder.compute(m.from, m.start)}).send);
  const Program program = builder.build();
  const Timeline t = get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
  std::vector<double> end;
  for (const InstructionId send : sends) end.push_back(t.end_of(send).value);
  return end;
}

void check_same(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-9));
}

void check_file(const std::string& file, const std::string& as_imported) {
  CAPTURE(file);
  const Cluster cluster = imported(as_imported);
  Rng rng(3, file);
  for (int trial = 0; trial < 4; ++trial) {
    const std::vector<Message> apart = random_messages(cluster, rng, false), met = random_messages(cluster, rng, true);
    const std::vector<double> alone = direct(file, cluster, apart, true);
    check_same(ours("ideal", cluster, apart), alone);
    check_same(ours("simgrid", cluster, apart), alone);
    const std::vector<double> shared = direct(file, cluster, met, false);
    check_same(ours("simgrid", cluster, met), shared);
    check_same(ours("fluid", cluster, met), shared);
  }
}

std::string wrong_file(const std::string& file) {
  try {
    read_simgrid_platform(file, {}, 512);
  } catch (const InputError& e) {
    const Diagnostic& p = e.problems().front();
    return (p.where.line > 0 ? std::to_string(p.where.line) + ": " : "") + p.message;
  }
  return "it was taken";
}

std::string wrong_platform(const std::string& inside) {
  const std::string file =
      test::own_file("wrong.xml",
                     "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                     "<platform version=\"4.1\">\n" +
                         inside + "\n</platform>\n");
  std::string message = wrong_file(file);
  std::filesystem::remove(file);
  return message;
}

std::string wrong_text(const std::string& inside) {
  return wrong_platform("<zone id=\"w\" routing=\"Full\">\n" + inside + "\n</zone>");
}

}  // namespace

TEST_CASE("a file without hosts, and names that no line can hold, are refused") {
  CHECK(wrong_platform("") == "SimGrid does not take this platform: it has no zone");
  CHECK(wrong_text("") == "SimGrid does not take this platform: it has no host");
  CHECK(wrong_text("<host id=\"a&#10;2\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>") ==
        "SimGrid does not take this platform: the name of a host has a line break or a tab in it");
  CHECK(wrong_text("<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>\n"
                   "<link id=\"l&#10;1 2 s\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
                   "<route src=\"a\" dst=\"b\"><link_ctn id=\"l&#10;1 2 s\"/></route>") ==
        "SimGrid does not take this platform: the name of a link has a line break or a tab in it");
}

TEST_CASE("where SimGrid crashes at a host without routes, the message names the way that was asked for") {
  const std::string text =
      "<zone id=\"w\" routing=\"Dijkstra\">\n<host id=\"a\" speed=\"1Gf\"/>\n<host id=\"b\" speed=\"1Gf\"/>\n</zone>";
  const std::string message = wrong_platform(text);
  CHECK(message.starts_with("SimGrid does not take this platform: "));
  CHECK(message.find("from 'a' to 'b'") != message.npos);
}

TEST_CASE("random messages between random hosts take as long as on the file itself") {
  for (const char* name : kFiles) check_file(kFolder + name + ".xml", kFolder + name + ".xml");
}

TEST_CASE("hosts, links and routes match the file") {
  const Platform p = read_simgrid_platform(kFolder + "nested.xml", {}, 512);
  REQUIRE(p.hosts.size() == 5);
  CHECK(p.hosts[1].name == "a1");
  CHECK(p.hosts[1].speed == 3e9);
  CHECK(p.hosts[1].cores == 2);
  CHECK(p.hosts[3].properties.at("memory") == "64 GiB");
  const auto name = [&](std::int32_t l) { return p.links[l].name; };
  std::set<std::string> over;
  for (const std::int32_t l : p.route(2, 4)) over.insert(name(l));
  CHECK(over == std::set<std::string>{"a12", "a01_DOWN", "a0gate", "sea", "b0gate", "b01"});
  for (const Platform::Link& l : p.links)
    CHECK((l.sharing == Platform::Sharing::Fatpipe) == (l.name == "sea" || l.name == "b01"));
}

TEST_CASE("hosts come in the order of their numbers, or as they are named") {
  const auto names = [](const std::vector<std::string>& wanted) {
    std::string text;
    for (const Platform::Host& h : read_simgrid_platform(kFolder + "fat_tree.xml", wanted, 512).hosts)
      text += h.name + " ";
    return text;
  };
  CHECK(names({}) ==
        "n0.fat n1.fat n2.fat n3.fat n4.fat n5.fat n6.fat n7.fat n8.fat n9.fat n10.fat n11.fat n12.fat "
        "n13.fat n14.fat n15.fat ");
  CHECK(names({"n15.fat", "n1*.fat", "n2.fat"}) == "n15.fat n1.fat n10.fat n11.fat n12.fat n13.fat n14.fat n2.fat ");
}

TEST_CASE("devices have the speed, cores and memory of their hosts") {
  const Cluster cluster = imported(kFolder + "nested.xml");
  CHECK(cluster.type_of(DeviceId{0}).peak.value == 3e9);
  CHECK(cluster.type_of(DeviceId{1}).peak.value == 6e9);
  CHECK(cluster.type_of(DeviceId{0}).memory.value == 16 * 0x1p30);
  CHECK(cluster.type_of(DeviceId{3}).memory.value == 64 * 0x1p30);
  CHECK(cluster.types.size() == 5);  // 3, 6, 1 and twice 5 GFLOP/s, one of these with memory of its own
}

TEST_CASE("what is wrong with a file is said with its place") {
  CHECK(wrong_file(kFolder + "vivaldi.xml") ==
        "SimGrid does not take this platform: the latency from 'p0' to 'p1' is not that of its links, as with "
        "coordinates "
        "(Vivaldi)");
  CHECK(wrong_file("no-such.xml").find("no-such.xml") != std::string::npos);
  CHECK(wrong_text("<host id=\"a\"/>") ==
        "5: SimGrid does not take this platform: Invalid XML (XML input line 5, state 74): Required attribute `speed' "
        "not "
        "set for `host' element.");
  CHECK(wrong_text("<host id=\"a\" speed=\"1Gf\"/>\n<host id=\"b\" speed=\"1Gfoo\"/>") ==
        "6: SimGrid does not take this platform: unknown unit: Gfoo");
  CHECK(wrong_text("<host id=\"a\" speed=\"0f\"/>") ==
        "SimGrid does not take this platform: host 'a' has a speed of 0");
  CHECK(wrong_text("<host id=\"a\" speed=\"1f\"/><host id=\"a\" speed=\"1f\"/>") ==
        "SimGrid does not take this platform: Refusing to create a second host named 'a'.");
  CHECK(wrong_text("<host id=\"a\" speed=\"1f\"/><host id=\"b\" speed=\"1f\"/><link id=\"l\" bandwidth=\"0\" "
                   "latency=\"0\"/><route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>") ==
        "SimGrid does not take this platform: link 'l' has a bandwidth of 0 and a latency of 0");
  // SimGrid aborts here.
  CHECK(wrong_text("<cluster id=\"f\" prefix=\"d\" suffix=\"\" radical=\"0-6\" speed=\"1Gf\" bw=\"2GBps\" lat=\"2us\" "
                   "topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2;1,1\"/>")
            .find("SimGrid does not take this platform: Zone(f): error when creating host number 7") == 0);
}

TEST_CASE("what could make SimGrid open a file is refused with its place, and no file changes") {
  const std::string victim = test::own_file("victim.txt");
  std::ofstream(victim) << "precious";
  const auto settings = [&](const std::string& key) {
    return wrong_platform("<config><prop id=\"tracing\" value=\"yes\"/><prop id=\"" + key + "\" value=\"" + victim +
                          "\"/></config>\n<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/></zone>");
  };
  for (const char* key : {"tracing/filename", "tracing/comment-file", "path", "network/model", "plugin"})
    CHECK(settings(key) == "4: <config> is not accepted in a platform file");
  CHECK(read_file(victim) == "precious");
  std::filesystem::remove(victim);

  CHECK(wrong_platform("<include file=\"/etc/passwd\"/>") == "4: <include> is not accepted in a platform file");
  CHECK(wrong_text("<trace id=\"t\" file=\"/etc/passwd\"/>") == "5: <trace> is not accepted in a platform file");
  CHECK(wrong_text("<storage_type id=\"t\" size=\"1GiB\" content=\"/etc/passwd\"/>") ==
        "5: <storage_type> is not accepted in a platform file");
  CHECK(wrong_platform("<actor host=\"a\" function=\"f\"/>") == "4: <actor> is not accepted in a platform file");
  for (const char* file : {"availability_file", "speed_file", "state_file"})
    CHECK(wrong_text(std::string("<host id=\"a\" speed=\"1Gf\" ") + file + "=\"/etc/passwd\"/>") ==
          std::string("5: '") + file + "' is not accepted in <host>");
  for (const char* file : {"bandwidth_file", "latency_file", "state_file"})
    CHECK(wrong_text(std::string("<link id=\"a\" bandwidth=\"1GBps\" latency=\"0\" ") + file + "=\"x\"/>") ==
          std::string("5: '") + file + "' is not accepted in <link>");
  CHECK(wrong_text("<host id=\"&file;\" speed=\"1Gf\"/>") == "5: this is no character that is known");
  CHECK(wrong_platform("<prop id=\"a\" value=\"b\"/>") == "4: <prop> may not stand in <platform>");
}

TEST_CASE(
    "only plain XML is taken: no declarations, no instructions, nothing that two readers could read differently") {
  const auto place = [](const std::string& text) {
    try {
      sg::checked_platform_xml("p.xml", text);
    } catch (const InputError& e) {
      const Diagnostic& p = e.problems().front();
      return fmt::format("{}:{}: {}", p.where.line, p.where.column, p.message);
    }
    return std::string("taken");
  };
  CHECK(place("<platform version='4.1'/>") == "taken");
  CHECK(place("<!DOCTYPE platform [<!ENTITY file SYSTEM \"/etc/passwd\">]>\n<platform version='4.1'/>") ==
        "1:1: a document type with declarations of its own is not accepted");
  CHECK(place("<platform version='4.1'>\né </platform>") == "2:1: there may be no text in <platform>");
  CHECK(place("<platform version='4.1'>\n  <![CDATA[<config>]]></platform>") ==
        "2:3: only elements and comments are accepted here");
  CHECK(place("<platform version='4.1'>\n  <?php?></platform>") == "2:3: only elements and comments are accepted here");
  CHECK(place("<platform version='4.1'>\n  <!-- a -- b --></platform>") == "2:3: '--' may not be in a comment");
  CHECK(place("<platform version='4.1'>\n  <!-- a") == "2:7: a comment does not end");
  CHECK(place("<platform version='4.1'>\n  <zone id='a' id='b'/></platform>") == "2:16: 'id' is written twice");
  CHECK(place("<platform version='4.1'>\n  <zone id='a<b'/></platform>") == "2:14: '<' in a value is written &lt;");
  CHECK(place("<platform version='4.1'><zone></platform>") == "1:31: </platform> stands where </zone> is expected");
  CHECK(place("<platform version='4.1'/><platform version='4.1'/>") == "1:26: nothing may follow </platform>");
  CHECK(place(std::string("<platform version='4.1'>\n\x1b[2J</platform>")) ==
        "2:1: a control character may not be in XML");
  CHECK(place("<platform version='4.1'>\n<zone id='&#27;'/></platform>") == "2:11: this is no character that is known");
  CHECK(place("\x7f"
              "ELF") == "1:1: this is no platform file: <platform version=\"4.1\"> is missing");
  std::string deep;
  for (int i = 0; i < 512; ++i) deep += "<zone id='z" + std::to_string(i) + "' routing='Full'>";
  CHECK(place("<platform version='4.1'>" + deep).find(": elements may be nested 100 deep at most") !=
        std::string::npos);
}

TEST_CASE("SimGrid sees a platform as it was understood, with each element on its line") {
  CHECK(sg::checked_platform_xml("p.xml",
                                 "\xEF\xBB\xBF<?xml version='1.0' encoding='UTF-8'?>\n<!-- of ours -->\n"
                                 "<platform version = '4.1'>\n<zone id='&#x61;&amp;\"' routing='Full'\n>\n"
                                 "<host id='é&#10;' speed='1Gf'/>\n</zone></platform>\n<!-- the end -->") ==
        "<?xml version=\"1.0\"?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\n"
        "<platform version=\"4.1\">\n<zone id=\"a&amp;&quot;\" routing=\"Full\">\n\n"
        "<host id=\"é&#10;\" speed=\"1Gf\"/></zone></platform>");
}

TEST_CASE("clusters of very many hosts are refused before SimGrid makes them") {
  const auto cluster = [](const std::string& radical) {
    return wrong_text("<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"" + radical +
                      "\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"/>");
  };
  CHECK(cluster("0-199999,7") == "5: 200001 hosts are named up to here, and at most 200000 are read");
  CHECK(cluster("\n0 - 3000000") == "5: 3000001 hosts are named up to here, and at most 200000 are read");
  CHECK(cluster("0-99999\"/>\n<cluster radical = \"0-100000").find("6: 200001 hosts") == 0);
  CHECK(cluster("0-1e999").find("5: 200002 hosts") == 0);
  CHECK(cluster("8-2,").find("5: SimGrid does not take this platform") == 0);
}

TEST_CASE("too many hosts, or one that is not there") {
  CHECK_THROWS_WITH_AS(read_simgrid_platform(kFolder + "fat_tree.xml", {}, 15),
                       doctest::Contains("has 16 hosts, and a way between every two of at most 15"), InputError);
  CHECK_THROWS_WITH_AS(read_simgrid_platform(kFolder + "star.xml", {"s9"}, 15), doctest::Contains("is called 's9'"),
                       InputError);
}

TEST_CASE("a platform that is written gives SimGrid, and whoever imports it, the same times") {
  const std::string file = test::own_file("there.xml");
  for (const char* name : {"two-node-mixed", "dragonfly-72", "edge-wireless-7", "summit-4", "random-16"}) {
    CAPTURE(name);
    const Cluster cluster = build_cluster(load_cluster_file(std::string("topologies/") + name + ".yaml"));
    test::write_file(file, simgrid_xml(cluster));
    const Cluster back = imported(file);
    REQUIRE(back.devices.size() == cluster.devices.size());
    // Devices may come in another order of names.
    IdVector<DeviceId, DeviceId> there;
    for (const Device& d : cluster.devices) there.push_back(back.find_device(d.name).value());
    Rng rng(4, name);
    std::vector<Message> messages = random_messages(cluster, rng, true), moved = messages;
    for (Message& m : moved) m.from = there[DeviceId{m.from}].value, m.to = there[DeviceId{m.to}].value;
    const std::vector<double> before = ours("simgrid", cluster, messages);
    check_same(before, direct(file, cluster, messages, false));
    check_same(before, ours("fluid", back, moved));
    for (const DeviceId d : there.ids()) {
      const DeviceType &a = cluster.type_of(d), &b = back.type_of(there[d]);
      CHECK(b.peak.value * b.efficiency == doctest::Approx(a.peak.value * a.efficiency).epsilon(1e-12));
      if (find_device_preset(a.name)) CHECK(b.memory_bandwidth.value == a.memory_bandwidth.value);
      CHECK(b.memory.value == a.memory.value);
    }
  }
  std::filesystem::remove(file);
}

TEST_CASE("links have names of their own without spaces, and a preset counts where its speed and memory agree") {
  const std::string file = test::own_file("named.xml");
  Cluster cluster = test::star(2, 1e9, 1e-6);
  cluster.types.front() = find_device_preset("h100-sxm")->type;
  cluster.links[LinkId{0}].name = "l 1";
  cluster.links[LinkId{1}].name = "l_1";
  CHECK(types_lost(cluster).empty());
  test::write_file(file, simgrid_xml(cluster));
  CHECK(imported(file).types.front().memory_bandwidth.value == 3350e9);
  for (double DeviceType::*const figure : {&DeviceType::efficiency, &DeviceType::speed}) {
    cluster.types.front() = find_device_preset("h100-sxm")->type;
    cluster.types.front().*figure /= 2;
    CHECK(types_lost(cluster) == std::vector<std::string>{"h100-sxm"});
    test::write_file(file, simgrid_xml(cluster));
    CHECK(imported(file).types.front().name != "h100-sxm");
  }
  std::filesystem::remove(file);
}

}  // namespace stagecraft::platform_files_test
