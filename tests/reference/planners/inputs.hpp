#pragma once

#include <unistd.h>

#include "models/pipedream_graph.hpp"
#include "sim/planners/edgepipe/pipeedge_files.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/files.hpp"

// Restated inputs of planners in the formats that these planners read.

namespace stagecraft::test {

/// A profile in the format of PipeDream's profiler.
inline std::string graph_text(const std::string& name) {
  const ParsedJson profile = reference_json("pipedream_profiles.json").at(name);
  std::string text;
  for (const ParsedJson& layer : profile["layers"]) {
    const std::vector<std::string> words = split(layer.get<std::string>(), ' ');
    text += fmt::format(
        "{} -- {} -- forward_compute_time={}, backward_compute_time={}, activation_size=[{}], parameter_size={}\n",
        words.at(0), words.at(1), words.at(2), words.at(3), words.at(4), words.at(5));
  }
  for (const ParsedJson& edge : profile["edges"]) {
    const std::vector<std::string> ends = split(edge.get<std::string>(), ' ');
    text += fmt::format("\t{} -- {}\n", ends.at(0), ends.at(1));
  }
  return text;
}

inline ModelGraph profile(const std::string& name, int samples) {
  return read_pipedream_graph(graph_text(name), name, samples);
}

/// The input in the format of Piper. Without tensor parallelism nothing is gathered.
inline std::string piper_text() {
  const ParsedJson given = reference_json("piper_input.json");
  const ParsedJson& limits = given["limits"];
  ParsedJson input = {{"maxDevices", limits["devices"]},
                      {"maxMemoryPerDevice", limits["memory"]},
                      {"bandwidth", limits["bandwidth"]},
                      {"mbsInBatch", limits["micro_batches"]}};
  for (const ParsedJson& layer : given["layers"]) {
    ParsedJson variants, forward = ParsedJson::object();
    for (const ParsedJson& edge : given["edges"])
      if (edge[1] == input["nodes"].size()) forward[to_string(edge[0])] = edge[2];
    for (const auto& degree : layer["variants"].items()) {
      const auto gathered = [&](ParsedJson bytes) {
        if (degree.key() == "1") std::fill(bytes.begin(), bytes.end(), 0);
        return bytes;
      };
      for (const ParsedJson& v : degree.value())
        variants[degree.key()].push_back({{"id", variants[degree.key()].empty() ? "vanilla" : "activation recomp"},
                                          {"timePerSample", v[0]},
                                          {"parameterSize", v[1]},
                                          {"memoryUsageA", v[2]},
                                          {"memoryUsageB", v[3]},
                                          {"syncTimeFw", gathered(forward)},
                                          {"syncTimeBw", gathered(layer["gradient_bytes"])}});
    }
    input["nodes"].push_back({{"id", input["nodes"].size()}, {"name", layer["name"]}, {"TMPCs", variants}});
  }
  for (const ParsedJson& edge : given["edges"])
    input["edges"].push_back({{"sourceId", edge[0]}, {"destId", edge[1]}, {"communicationCost", edge[2]}});
  return input.dump();
}

/// A folder with PipeEdge's three files.
struct PipeEdgeFolder {
  test::Folder folder;
  pipeedge::Files files{folder / "models.yml", folder / "device_types.yml", folder / "devices.yml"};

  /// Writes the files of a case. `data` has the models and times by the names that the case uses.
  void write(const ParsedJson& c, const ParsedJson& data) const {
    const std::string name = c["model"];
    const ParsedJson& model = data["models"][name];
    ParsedJson types = ParsedJson::object(), devices = types;
    for (const ParsedJson& type : c["types"]) {
      const std::string kind = type[0], times = type[3];
      ParsedJson profiles = {{name, ParsedJson::array()}};
      profiles[name].push_back({{"batch_size", 8}, {"dtype", "torch.float32"}, {"time_s", data["times"][times]}});
      types[kind] = {{"bw_Mbps", type[1]}, {"mem_MB", type[2]}, {"model_profiles", profiles}};
      for (int host = 0; host < type[4]; ++host) devices[kind].push_back(fmt::format("{}-{}", kind, host));
    }
    ParsedJson models;
    models[name] = {
        {"layers", model[1].size()}, {"parameters_in", model[0]}, {"parameters_out", model[1]}, {"mem_MB", model[2]}};
    write_file(files.models, models.dump());
    write_file(files.types, types.dump());
    write_file(files.devices, devices.dump());
  }
};

}  // namespace stagecraft::test
