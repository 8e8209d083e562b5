#pragma once

#include <string>
#include <vector>

#include "sim/planners/edgepipe/problem.hpp"

namespace stagecraft::pipeedge {

/// The three files that PipeEdge's scheduler reads (usc-isi/PipeEdge, README_Scheduler.md).
struct Files {
  std::string models = "models.yml", types = "device_types.yml", devices = "devices.yml";
};

struct Request {
  std::string model;
  int batch = 8;  ///< Samples of one micro-batch; times hold only for this number.
  std::string dtype = "torch.float32";
  std::string data_host = {};  ///< Has the data, so it runs the first stage or none; empty: any host has the data.
  bool binary = true;          ///< Mbps and MB are 2^20 bits and bytes, as in PipeEdge's scheduler; else 10^6.
};

/// Hosts that are equal.
struct HostType {
  std::string name;
  double bandwidth, memory;     ///< Bytes a second, and bytes.
  std::vector<double> seconds;  ///< Time of each layer for one micro-batch.
  std::vector<std::string> hosts;
  bool has_data = false;  ///< The only host of this type is the data host.
};

/// The content of the files for one model.
struct SchedulerInput {
  std::string model;
  int batch;
  double input;                 ///< Bytes of one sample.
  std::vector<double> outputs;  ///< Bytes of one sample after each layer.
  std::vector<double> weights;  ///< Bytes of each layer that stay in memory.
  std::vector<HostType> types;  ///< Types that have hosts and times, in the order of the file.
  std::vector<std::string> warnings;

  int layers() const { return static_cast<int>(outputs.size()); }
};

/// Throws InputError with every problem. A mistake that PipeEdge silently ignores becomes a warning.
SchedulerInput read(const Files&, const Request&);

/// The planning problem that PipeEdge's own scheduler would build.
edgepipe::ChainProblem problem_of(const SchedulerInput&, double buffers_in, double buffers_out);

/// One line for each stage, "- host: [first, last]" with layers counted from 1, as its runtime reads it.
std::string to_schedule(const edgepipe::Chain&, const SchedulerInput&);

}  // namespace stagecraft::pipeedge
