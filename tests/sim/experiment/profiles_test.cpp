// Measured costs in a scenario: found by file or name, written into the resolved scenario, and used for links.

#include "sim/experiment/profiles.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "sim/core/cores.hpp"
#include "sim/experiment/profiling.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::profiles_test {
namespace {

namespace fs = std::filesystem;

/// A temporary folder that is searched for files by name while this object lives.
class Folder {
 public:
  Folder() {
    fs::create_directories(root_ / "models/profiles");
    setenv("STAGECRAFT_PATH", root_.path().c_str(), 1);
  }
  ~Folder() { unsetenv("STAGECRAFT_PATH"); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = root_ / name;
    test::write_file(file, text);
    return file;
  }

 private:
  test::Folder root_;
};

Profile by_hand() {
  Profile p;
  p.device = "cpu-thread";
  p.machine = p.date = p.commit = p.backend = p.precision = "by hand";
  p.optimizer = "momentum";
  for (const char* layer : {"fp64: linear 1x32 from 16; tanh 1x32", "fp64: linear 1x32 from 32; tanh 1x32"})
    p.layers.push_back({layer, 4, Seconds{3e-3}, Seconds{4e-3}, Seconds{5e-3}, 0});
  p.updates = {{1000, Seconds{1e-3}, {}}};
  p.operation = Seconds{1e-6};
  p.latency = Seconds{7e-6};
  p.bandwidth = Bandwidth{5e9};
  return p;
}

Experiment with(const std::string& profile) { return load_experiment("examples/teacher", {"profile=" + profile}); }

std::string text_of(const Program& program) {
  std::string text = to_text(program);
  for (const Instruction& i : program.instructions) text += shortest(i.duration.value) + " ";
  return text;
}

std::string refusal(const std::string& profile) {
  return test::input_error_of([&] { compile(with(profile)); });
}

}  // namespace

TEST_CASE("a profile by file or by name decides what ops and links cost") {
  const Folder folder;
  const std::string file = folder.write("models/profiles/here.yaml", to_yaml(by_hand()));
  const CompiledExperiment plain = compile(load_experiment("examples/teacher", {}));
  for (const std::string& name : {file, std::string("here")}) {
    CAPTURE(name);
    const Experiment scenario = with(name);
    REQUIRE(scenario.profiles.size() == 1);
    CHECK(to_yaml(*scenario.profiles.front()) == to_yaml(by_hand()));
    const CompiledExperiment p = compile(scenario);
    CHECK(p.costs.at(StageId{1}, 0).forward.value == doctest::Approx(3e-3 + 1e-6));
    CHECK(text_of(p.program) != text_of(plain.program));
    for (const Link& link : p.cluster().links) {
      CHECK(link.latency.value == doctest::Approx(7e-6));
      CHECK(link.bandwidth.value == doctest::Approx(5e9));
    }
  }
}

TEST_CASE("a resolved scenario contains its profile and does not need the file") {
  Experiment first;
  std::string resolved, program;
  {
    const Folder folder;
    first = with(folder.write("measured.yaml", to_yaml(by_hand())));
    program = text_of(compile(first).program);
    resolved = config::to_yaml(*first.source, false);
  }
  const Folder elsewhere;
  const Experiment again = load_experiment(elsewhere.write("resolved.yaml", resolved), {});
  CHECK(again.scenario_hash == first.scenario_hash);
  CHECK(text_of(compile(again).program) == program);
}

TEST_CASE("each type of device has a profile, and links between them stay as they are written") {
  const Folder folder;
  Profile slow = by_hand();
  slow.device = "slow";
  for (MeasuredLayer& layer : slow.layers) layer.forward = Seconds{30e-3};
  const std::string files =
      "[" + folder.write("fast.yaml", to_yaml(by_hand())) + ", " + folder.write("slow.yaml", to_yaml(slow)) + "]";
  const std::string type = "{peak: 1 TFLOP/s, memory: 8 GiB, memory_bandwidth: 25 GB/s}";
  const Experiment e = load_experiment(
      "examples/teacher",
      {"profile=" + files, "cluster={generator: star, types: {cpu-thread: " + type + ", slow: " + type +
                               "}, links: {link: {bandwidth: 1 Gbit/s, latency: 1 ms}}, groups: [{name: a, type: "
                               "cpu-thread, count: 4}, {name: b, type: slow, count: 4}]}"});
  const LayerId layer{2};
  const auto forward = [&](int type_number) {
    return e.costs->at(layer, DeviceTypeId{type_number}, whole_samples(4)).forward.value;
  };
  CHECK(forward(0) == doctest::Approx(3e-3));
  CHECK(forward(1) == doctest::Approx(30e-3));
  for (const Link& link : e.cluster->links) CHECK(link.latency.value == doctest::Approx(1e-3));
}

TEST_CASE("a mixed cluster keeps its links, and a profile of a missing type is refused") {
  Cluster cluster = test::star(3, 1e9, 1e-3);
  for (DeviceType& type : cluster.types) type.name = "cpu-thread";
  cluster.types.push_back({.name = "other"});
  Cluster same = cluster;
  apply(by_hand(), {}, same);
  for (const Link& link : same.links) CHECK(link.latency.value == 7e-6);
  cluster.devices[DeviceId{1}].type = DeviceTypeId{1};
  Cluster mixed = cluster;
  apply(by_hand(), {}, mixed);
  for (const Link& link : mixed.links) CHECK(link.latency.value == 1e-3);
  for (Device& device : cluster.devices) device.type = DeviceTypeId{1};
  CHECK(test::input_error_of([&] {
          apply(by_hand(), {}, cluster);
        }).find("'cpu-thread', but the cluster 'by hand' has none") != std::string::npos);
}

TEST_CASE("a profile of parts of a GPU decides what they share; one without these figures is refused") {
  Cluster parts = test::bare_cluster(2);
  parts.types[DeviceTypeId{0}].name = "cpu-thread";
  test::connect(parts, {0, 1}, 1e9, 1e-3, Duplex::Unshared);
  test::connect(parts, {0, 1}, 1e9, 0, Duplex::Half);
  for (Device& d : parts.devices) d.memory = LinkId{1};
  Cluster other = parts;
  apply(by_hand(), {}, other);  // It was measured on one thread, which shared its memory with no other.
  CHECK(other.links[LinkId{1}].bandwidth.value == 1e9);
  Profile all_busy = by_hand();
  all_busy.threads = 2;
  CHECK(test::input_error_of([&] { apply(all_busy, {}, other); }).find("share their memory") != std::string::npos);
  Profile p = by_hand();
  p.gpu = MeasuredGpu{132, 8, 2, 64, Bandwidth{4e12}, Bandwidth{3e12}};
  apply(p, {}, parts);
  CHECK(parts.links[LinkId{0}].bandwidth.value == 5e9);
  CHECK(parts.links[LinkId{0}].latency.value == 7e-6);
  CHECK(parts.links[LinkId{1}].bandwidth.value == 2e12);
  CHECK(parts.links[LinkId{1}].latency.value == 0);
  CHECK(parts.types[DeviceTypeId{0}].memory_bandwidth.value == 3e12);
}

TEST_CASE("a profile of a GPU that was divided differently from the cluster is refused") {
  const Folder folder;
  const auto said = [&](MeasuredGpu gpu, const std::vector<std::string>& more = {}) {
    Profile p = by_hand();
    p.device = "gpu-32sm";
    p.optimizer = "adam";
    p.gpu = gpu;
    std::vector<std::string> overrides = {"profile=" + folder.write("parts.yaml", to_yaml(p))};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return test::input_error_of([&] { compile(load_experiment("examples/carved-gpu", overrides)); });
  };
  const Bandwidth whole{4e12}, alone{2e12};
  const std::string asked = "cluster.parts: the cluster has 4 parts of 32 of 132 multiprocessors, ";
  CHECK(said({132, 8, 4, 32, whole, alone}) == "nothing");
  CHECK(said({132, 1, 4, 132, whole, alone}) == "nothing");  // The driver could not divide it.
  for (const auto& [gpu, words] : std::vector<std::pair<MeasuredGpu, std::string>>{
           {{132, 8, 3, 32, whole, alone}, asked + "but the profile was measured on 3 parts of 32 of 132"},
           {{132, 8, 4, 24, whole, alone}, asked + "but the profile was measured on 4 parts of 24 of 132"},
           {{144, 8, 4, 32, whole, alone}, asked + "but the profile was measured on 4 parts of 32 of 144"}}) {
    const std::string text = said(gpu);
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
    CHECK(text.find("with a plan that uses all 4 parts") != std::string::npos);
  }
  // Another GPU with parts of the same size, but three of them.
  const std::string three =
      said({132, 8, 4, 32, whole, alone}, {"cluster.multiprocessors=96", "cluster.parts=3", "plan.stages=3"});
  CHECK_MESSAGE(three.find("the cluster has 3 parts of 32 of 96") != std::string::npos, three);
}

TEST_CASE("unusable profiles are refused") {
  const Folder folder;
  folder.write("models/profiles/laptop.yaml", to_yaml(by_hand()));
  const auto says = [](const std::string& profile, const char* words) {
    const std::string text = refusal(profile);
    CAPTURE(profile);
    CHECK_MESSAGE(text.find(words) != std::string::npos, text);
  };
  says("labtop", "profile: there is no profile 'labtop' [did you mean 'laptop'?]");
  says("./nowhere.yaml", "profile: there is no profile './nowhere.yaml'");
  says("scenarios/examples/teacher.yaml", "this is a scenario file; a profile file was expected here");
  says("{schema: profile/1, device: cpu-thread}", "profile.layers: this field is missing");
  says("[a, b]", "profile: there is no profile 'a'");
  says("[[a], b]", "profile: a list cannot stand here");
  says("[laptop, laptop]", "two profiles are of devices of the type 'cpu-thread'");
  says(folder.write("bad.yaml", "schema: profile/1\ndevice: 3\nlatency: 2\n"), "latency: no such field");
  Profile other = by_hand();
  other.device = "h100";
  says(folder.write("other.yaml", to_yaml(other)), "'h100', but the cluster 'threads-8' has none");
}

TEST_CASE("real backends profile every layer and micro-batch size of the plan") {
  const Experiment scenario = load_experiment("examples/teacher", {"model.widths=[6, 8, 8, 3]", "plan.stages=2",
                                                                   "plan.micro_batch_size=3", "training.task=random"});
  const CompiledExperiment p = compile(scenario);
  const Profile profile = take_profile(p, "cpu", 0);
  CHECK(profile.device == "cpu-thread");
  CHECK(profile.precision == "fp64");
  CHECK(profile.optimizer == "momentum");
  CHECK(profile.threads >= 1);
  CHECK(profile.threads <= 2);
  for (const Layer& layer : p.model().layers)
    CHECK(profile.find(signature(layer.operations, p.model().precision), 3).has_value());
  CHECK(profile.bandwidth.value > 0);
  CHECK(profile.update(100).has_value());

  const auto refused = [](auto&& act) { return test::input_error_of(act); };
  CHECK(refused([&] { take_profile(p, "ideal", 0); }).find("'ideal' does not really compute") != std::string::npos);
  CHECK(refused([&] { validate_experiment(scenario, "ideal", "ideal", 0); }).find("'ideal' does not really compute") !=
        std::string::npos);
  CHECK(refused([&] { validate_experiment(scenario, "cpu", "cpu", 0); }).find("'cpu' measures times") !=
        std::string::npos);
  CHECK(refused([&] { take_profile(p, "cpuu", 0); }).find("did you mean 'cpu'?") != std::string::npos);
}

TEST_CASE("validate simulates with the profile that it took, or with that of the scenario") {
  const Experiment scenario =
      load_experiment("examples/teacher", {"model.widths=[6, 8, 8, 3]", "plan.stages=2", "run.iterations=4"});
  const Validated fresh = validate_experiment(scenario, "cpu", "ideal", 0);
  CHECK(fresh.validation.iterations.size() == 3);
  CHECK(fresh.validation.replayed.size() == 3);
  CHECK(fresh.validation.waits.size() == (fresh.measured.timeline.core_waits.empty() ? 0 : 3));
  CHECK(fresh.simulated.timeline.clock == Clock::Simulated);
  CHECK(fresh.measured.timeline.clock == Clock::Host);
  CHECK(fresh.measured.timeline.learnt.has_value());
  CHECK(fresh.profile.layers.size() == 5);
  CHECK(to_yaml(validate_experiment(with_profile(scenario, by_hand()), "cpu", "ideal", 0).profile) ==
        to_yaml(by_hand()));
}

TEST_CASE("two profiles of the same layers tell whether the load of the machine changed") {
  const Profile before = by_hand();
  const auto scaled = [&](double factor) {
    Profile after = before;
    for (MeasuredLayer& l : after.layers)
      for (Seconds* time : {&l.forward, &l.input_gradient, &l.weight_gradient}) *time = factor * *time;
    return after;
  };
  for (const double factor : {1.0, 1.04, 0.96}) CHECK(changed_load(before, scaled(factor)).empty());
  CHECK(changed_load(before, scaled(1.2)).find("layers took 20 % longer than before") != std::string::npos);
  CHECK(changed_load(before, scaled(0.8)).find("layers took 20 % less than before") != std::string::npos);
  Profile other = scaled(2);
  other.layers.front().samples = 99;  // It is compared with no other.
  CHECK(changed_load(before, other).find("100 % longer") != std::string::npos);
}

TEST_CASE("threads that share cores are simulated so, or no verdict is sure") {
  // As many devices as no machine here has cores.
  const Experiment scenario = load_experiment(
      "examples/teacher", {"cluster.devices=128", "model.widths=[6, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3]",
                           "plan.stages=16", "run.iterations=3"});
  const CompiledExperiment c = compile(scenario);
  if (usable_cores().count() >= 16) return;  // Nothing is shared on this machine.
  CHECK(shared_cores_note(c).find("16 threads share") != std::string::npos);
  const Validated shared = validate_experiment(scenario, "cpu", "fluid", 0);
  REQUIRE(!shared.validation.notes.empty());
  CHECK(shared.validation.notes.front().find("16 threads share") == 0);
  const Validated unshared = validate_experiment(scenario, "cpu", "ideal", 0);
  REQUIRE(!unshared.validation.doubts.empty());
  CHECK(unshared.validation.doubts.front().find("which 'ideal' does not simulate") != std::string::npos);
  CHECK(!is_sure(unshared.validation, 1e9));
}

TEST_CASE("a profile with messages of another kind leaves no verdict sure") {
  Profile profile = by_hand();
  profile.messages = "nccl";
  CHECK(to_yaml(profile).find("transport: nccl\n") != std::string::npos);
  const Experiment scenario =
      load_experiment("examples/teacher", {"model.widths=[6, 8, 8, 3]", "plan.stages=2", "run.iterations=3"});
  const Validated v = validate_experiment(with_profile(scenario, profile), "cpu", "ideal", 0);
  REQUIRE(!v.validation.doubts.empty());
  CHECK(v.validation.doubts.back().find("'nccl', and the run has them by 'copy'") != std::string::npos);
}

}  // namespace stagecraft::profiles_test
