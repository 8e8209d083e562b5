// Measured runs as scenarios, their simulation, and the cache of what was simulated.

#include "sim/published/simulated_predictions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/core/text.hpp"
#include "tests/sim/published/predicted_sets.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::simulated_predictions_test {
namespace {

const std::string kFile = test::own_file("prediction_cache.csv");
const std::string kBuild = "1.0, build 0123";

std::vector<PredictionSet> small_sets() { return {load_predictions("sc21"), load_predictions("simumax-dense")}; }

Accelerator device_of(const MeasuredRun& m) { return load_accelerator("topologies/devices/" + m.device + ".yaml"); }

std::vector<PredictionSet> predicted_with(PredictionCache cache) {
  std::vector<PredictionSet> sets = small_sets();
  predict(sets, cache);
  return sets;
}

bool equal(const SimulatedRun& a, const SimulatedRun& b) {
  const auto& classes = time_class_list();
  return a.time == b.time && a.memory == b.memory && a.idle == b.idle && a.work == b.work &&
         a.parameters == b.parameters && std::all_of(classes.begin(), classes.end(), [&](const TimeClass& c) {
           return a.spent.*c.part == b.spent.*c.part;
         });
}

bool equal(const std::vector<PredictionSet>& a, const std::vector<PredictionSet>& b) {
  for (std::size_t s = 0; s < a.size(); ++s) {
    REQUIRE(a[s].runs.size() == b[s].runs.size());
    for (std::size_t i = 0; i < a[s].runs.size(); ++i)
      if (!equal(a[s].runs[i].predicted, b[s].runs[i].predicted)) return false;
  }
  return true;
}

/// read_file() would make it an input, which nothing may replace.
std::string content_of_cache() {
  std::ifstream stream(kFile, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t lines_of_cache() { return split(content_of_cache(), '\n').size() - 3; }  // Two comments, and the end.

}  // namespace

TEST_CASE("each run is predicted as it is simulated alone, on any number of threads") {
  for (const PredictionSet& set : predicted_with({}))
    for (const MeasuredRun& m : set.runs) {
      std::string why;
      const auto alone = simulate(m, device_of(m), why);
      REQUIRE(alone);
      CHECK(equal(*alone, m.predicted));
      CHECK(m.predicted.time.value > 0);
      CHECK((m.predicted.spent.total() + m.predicted.idle).value ==
            doctest::Approx(m.predicted.time.value).epsilon(1e-9));
    }
}

TEST_CASE("a cached prediction equals a simulated one to the last bit") {
  std::filesystem::remove(kFile);
  const auto simulated = predicted_with({});
  const auto cold = predicted_with({kFile, kBuild});
  CHECK(lines_of_cache() == 6 + 19);
  const auto written = std::filesystem::last_write_time(kFile);
  const auto warm = predicted_with({kFile, kBuild});
  CHECK(equal(simulated, cold));
  CHECK(equal(simulated, warm));
  CHECK(std::filesystem::last_write_time(kFile) == written);  // Nothing was simulated, so nothing is written.
}

namespace {

/// What a set of one run takes by a cache with this file.
Seconds time_with(const std::string& build) {
  std::vector<PredictionSet> sets{load_predictions("simumax-dense")};
  sets.front().runs.resize(1);
  PredictionCache cache(kFile, build);
  predict(sets, cache);
  return sets.front().runs.front().predicted.time;
}

}  // namespace

TEST_CASE("a cache that is damaged, of another build, or not a cache is passed over and replaced") {
  std::filesystem::remove(kFile);
  const Seconds time = time_with(kBuild);
  const std::string good = content_of_cache(), digits = "," + shortest(time.value) + ",";
  REQUIRE(good.find(digits) != std::string::npos);
  std::string changed = good;
  changed[good.find(digits) + 1] = changed[good.find(digits) + 1] == '7' ? '8' : '7';
  for (const std::string& content : {changed, good.substr(0, good.size() / 2), std::string("not a cache\n"),
                                     std::string(), std::string(100, '\0')}) {
    test::write_file(kFile, content);
    CHECK(time_with(kBuild) == time);
    CHECK(content_of_cache() == good);
  }
  CHECK(time_with("1.0, build 4567") == time);
  CHECK(content_of_cache().find("build 4567") != std::string::npos);
  CHECK(content_of_cache().find("build 0123") == std::string::npos);
  CHECK(lines_of_cache() == 1);
}

TEST_CASE("a build that the linker has not told apart, or a folder that cannot be made, has no cache") {
  std::filesystem::remove(kFile);
  const Seconds time = time_with(kBuild);
  std::filesystem::remove(kFile);
  CHECK(time_with("1.0") == time);
  CHECK_FALSE(std::filesystem::exists(kFile));
  std::vector<PredictionSet> sets{load_predictions("simumax-dense")};
  sets.front().runs.resize(1);
  PredictionCache cache("/proc/none/predictions.csv", kBuild);
  predict(sets, cache);
  CHECK(sets.front().runs.front().predicted.time == time);
}

TEST_CASE("what a prediction depends on is in its hash: the row and the figures of the device type") {
  std::filesystem::remove(kFile);
  std::vector<PredictionSet> sets{load_predictions("simumax-dense")};
  std::vector<MeasuredRun>& runs = sets.front().runs;
  runs.resize(1, runs.front());
  runs.resize(4, runs.front());
  runs[1].name = "another name", runs[1].measured = 2 * runs[1].measured;  // It is the same run.
  test::set_field(runs[2], "micro_batches", 2 * runs[2].count("micro_batches"));
  runs[3].device = "h100-sxm";
  PredictionCache cache(kFile, kBuild);
  predict(sets, cache);
  CHECK(lines_of_cache() == 3);
  CHECK(equal(runs[0].predicted, runs[1].predicted));
  CHECK(runs[2].predicted.time > 1.5 * runs[0].predicted.time);
  CHECK(runs[3].predicted.time > runs[0].predicted.time);
}

TEST_CASE("a run that no group can divide, or that is too large, is left out with a reason") {
  std::vector<PredictionSet> sets{load_predictions("zero-bubble")};
  std::vector<MeasuredRun>& runs = sets.front().runs;
  runs.resize(3);
  test::set_field(runs[1], "tensor", 7);  // It divides no number of heads here.
  test::set_field(runs[2], "micro_batches", 10'000'000);
  PredictionCache cache;
  predict(sets, cache);
  CHECK(runs.size() == 1);
  CHECK(sets.front().not_predicted.size() == 2);
  CHECK(sets.front().not_predicted.at("it has more than 2000000 ops, which are not simulated for a prediction") == 1);
}

TEST_CASE("small networks that are bound by launches are predicted within 9 % in the mean") {
  double sum = 0;
  const std::vector<MeasuredRun>& runs = test::predicted_set("vtrain-small").runs;
  for (const MeasuredRun& m : runs) sum += std::abs(m.predicted.time / m.measured - 1);
  CHECK(runs.size() == 872);
  CHECK(sum / 872 < 0.09);
}

TEST_CASE("memory of Llama on B200 is simulated within 3 % for 70B and within 6 % for 405B") {
  int count = 0;
  for (const MeasuredRun& m : test::predicted_set("simumax-dense").runs) {
    if (m.memory.value <= 0) continue;
    CAPTURE(m.name);
    const double limit = m.count("hidden") == 8192 ? 0.03 : 0.06;
    CHECK(std::abs(m.predicted.memory / m.memory - 1) < limit);
    ++count;
  }
  CHECK(count == 19);
}

TEST_CASE("layers are divided as frameworks do it") {
  struct Case {
    int layers, stages, chunks;
    bool ends_count;
    int first, last;
    const char* layout;
  };
  const Case cases[] = {{70, 12, 1, false, -1, -1, "Et*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*4L"},
                        {70, 12, 1, true, -1, -1, "Et*5|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*6|t*5L"},
                        {14, 2, 4, true, -1, -1, "Et*1|t*2|t*2|t*2|t*2|t*2|t*2|t*1L"},
                        {13, 2, 2, false, -1, -1, "Et*3|t*4|t*3|t*3L"},
                        {61, 4, 4, false, 4, 1, "Et*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*1L"}};
  MeasuredRun run = load_predictions("zero-bubble").runs.front();
  for (const Case& c : cases) {
    CAPTURE(c.layout);
    test::set_field(run, "layers", c.layers);
    test::set_field(run, "stages", c.stages);
    test::set_field(run, "chunks", c.chunks);
    test::set_field(run, "first_chunk", c.first);
    test::set_field(run, "last_chunk", c.last);
    test::set_field(run, "micro_batches", c.stages);
    *run.row.find("ends_count") = config::Value::scalar(c.ends_count ? "true" : "false", {});
    CHECK(experiment_of(run, device_of(run)).source->at("plan").at("layout").text == c.layout);
  }
}

TEST_CASE("experts are divided over the tensor group unless a row or its framework says otherwise") {
  MeasuredRun run = load_predictions("dgxc-experts").runs.front();  // Tensor group of four.
  const auto divided = [&](int given, const char* software) {
    test::set_field(run, "expert_tensor", given);
    *run.row.find("software") = config::Value::scalar(software, {});
    std::erase_if(run.row.members, [](const config::Member& m) { return m.key == "release"; });
    return experiment_of(run, device_of(run)).plan.group.expert_tensor;
  };
  CHECK(divided(0, "nemo") == 4);
  CHECK(divided(0, "nemo-2024") == 4);
  CHECK(divided(1, "nemo") == 1);
  CHECK(divided(0, "megatron-bridge") == 1);
}

TEST_CASE("a row has modules that a backward recomputes") {
  const PredictionSet set = load_predictions("megatron-bridge-experts");
  const auto recomputation = [&](const char* name) {
    const auto run =
        std::find_if(set.runs.begin(), set.runs.end(), [&](const MeasuredRun& m) { return m.name == name; });
    REQUIRE(run != set.runs.end());
    return experiment_of(*run, device_of(*run)).plan.recompute;
  };
  CHECK(recomputation("26.04 GPT OSS 120B B200") == (Recomputation::Norms | Recomputation::ExpertActivations));
  CHECK(recomputation("26.06 DeepSeekV3 B300") == Recomputation::UpProjections);
  CHECK(recomputation("26.06 DeepSeekV3 GB300") == Recomputation::None);
}

}  // namespace stagecraft::simulated_predictions_test
