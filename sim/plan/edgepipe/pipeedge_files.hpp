#pragma once

#include <string>
#include <vector>

#include "sim/plan/edgepipe/problem.hpp"

namespace stagecraft::pipeedge {

/// The three files that PipeEdge's scheduler reads (usc-isi/PipeEdge, README_Scheduler.md).
struct Files {
  std::string models = "models.yml", types = "device_types.yml", devices = "devices.yml";
};

struct Request {
  std::string model;
  int batch = 8;  ///< Samples of one micro-batch; times hold for that number alone.
  std::string dtype = "torch.float32";
  std::string data_host = {};  ///< Has the data, so that it runs the first stage or none; empty: any does.
  bool binary = true;          ///< Mbps and MB are 2^20 bits and bytes, as its scheduler has it; else 10^6.
};

/// Equal hosts.
struct HostType {
  std::string name;
  double bandwidth, memory;     ///< Bytes a second, and bytes.
  std::vector<double> seconds;  ///< Of each layer, one micro-batch.
  std::vector<std::string> hosts;
  bool has_data = false;  ///< The one host of it is the data host.
};

/// What the files say of one model.
struct Profiles {
  std::string model;
  int batch;
  double input;                 ///< Bytes of one sample.
  std::vector<double> outputs;  ///< Bytes of one sample behind each layer.
  std::vector<double> weights;  ///< Bytes of each layer that stay in memory.
  std::vector<HostType> types;  ///< With hosts and times, in the order of the file.
  std::vector<std::string> warnings;

  int layers() const { return static_cast<int>(outputs.size()); }
};

/// InputError with everything that is wrong. What PipeEdge passes over in silence is a warning.
Profiles read(const Files&, const Request&);

/// As its scheduler sees it.
edgepipe::Problem problem_of(const Profiles&, double buffers_in, double buffers_out);

/// One line for each stage, "- host: [first, last]" with layers counted from 1, as its runtime reads it.
std::string to_schedule(const edgepipe::Chain&, const Profiles&);

}  // namespace stagecraft::pipeedge
