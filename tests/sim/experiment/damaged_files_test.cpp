// Damaged files of other planners are read, or refused with an InputError.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "models/pipedream_graph.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/planners/chain_partition/piper_file.hpp"
#include "sim/planners/edgepipe/pipeedge_files.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::damaged_files_test {
namespace {

constexpr int kFiles = 10000;

const std::string kGraph =
    "node1 -- Input0 -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0\n"
    "node2 -- LSTM(2048, 1024) -- forward_compute_time=3.0, backward_compute_time=6.0, "
    "activation_size=[600.0; 40.0], parameter_size=80.000\n"
    "node3 -- ReLU -- forward_compute_time=0.5, backward_compute_time=0.25, activation_size=8, parameter_size=0\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n";

const std::string kPiper =
    R"({"maxDevices": 2, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 4, "nodes": [{"id": 0, "name": "a",
"TMPCs": {"1": [{"id": "vanilla", "timePerSample": 24, "parameterSize": 4e3, "memoryUsageA": 6e7, "memoryUsageB": 8e3,
"syncTimeFw": {}, "syncTimeBw": {"1": 0}}]}}, {"id": 1, "name": "b", "TMPCs": {"1": [{"id": "vanilla",
"timePerSample": 9, "parameterSize": 4e8, "memoryUsageA": 4e3, "memoryUsageB": 8e8, "syncTimeFw": {"0": 0},
"syncTimeBw": {}}]}}], "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 6e7}]})";

const std::string kModels =
    "toy/1:\n  layers: 4\n  parameters_in: 1000\n  parameters_out: [1000, 10, 5, 1]\n  mem_MB: [10, 10, 10, 10.5]\n";
const std::string kTypes =
    "fast:\n  bw_Mbps: 1\n  mem_MB: 64\n  model_profiles:\n    toy/1:\n"
    "    - {batch_size: 8, dtype: torch.float32, time_s: [2, 1, 1, 2e0]}\n";
const std::string kDevices = "fast: [switch, 7]\n";

/// The number of damaged files that are read; any exception other than InputError ends the test.
template <class Read>
int read_damaged(const std::string& good, int files, Read read) {
  read(good);
  std::mt19937 random(1);
  int fine = 0;
  for (int i = 0; i < files; ++i) {
    const std::string text = test::damaged(good, random);
    try {
      read(text);
      ++fine;
    } catch (const InputError& error) {
      if (error.problems().empty()) FAIL("an error without a problem");
    }
  }
  return fine;
}

}  // namespace

TEST_CASE("damaged files: graph.txt of PipeDream") {
  const auto read = [](const std::string& text) {
    timed_model_yaml(read_pipedream_graph(text, "g.txt", 4), "Damaged");
  };
  const int fine = read_damaged(kGraph, kFiles, read);
  CHECK(fine > 0);
  CHECK(fine < kFiles);
}

TEST_CASE("damaged files: JSON of Piper") {
  const int fine =
      read_damaged(kPiper, kFiles, [](const std::string& text) { chain_partition::read_piper(text, "p.json"); });
  CHECK(fine > 0);
  CHECK(fine < kFiles);
}

TEST_CASE("damaged files: YAML of PipeEdge") {
  const test::Folder folder;
  const pipeedge::Files files{folder / "models.yml", folder / "types.yml", folder / "devices.yml"};
  const std::pair<std::string, std::string> originals[] = {
      {files.models, kModels}, {files.types, kTypes}, {files.devices, kDevices}};
  const auto write = [](const std::string& file, const std::string& text) {
    std::filesystem::remove(file);  // A file that is cut off and filled again is flushed to the disk at once.
    std::ofstream(file) << text;
  };
  for (const auto& [file, good] : originals) write(file, good);
  int fine = 0;
  for (const auto& one : originals) {
    fine += read_damaged(one.second, kFiles / 3, [&](const std::string& text) {
      write(one.first, text);
      pipeedge::problem_of(pipeedge::read(files, {.model = "toy/1"}), 2, 2);
    });
    write(one.first, one.second);
  }
  CHECK(fine > 0);
  CHECK(fine < kFiles / 3 * 3);
}

}  // namespace stagecraft::damaged_files_test
