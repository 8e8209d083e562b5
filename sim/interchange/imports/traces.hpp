#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Spans of a trace that Stagecraft wrote, as CSV with the columns of spans.csv that a trace has.
struct TraceSpans {
  std::string csv;
  std::vector<std::string> notes;
};
TraceSpans read_stagecraft_trace(std::string_view text, const std::string& file);

/// A model whose layers have the times that PyTorch's profiler (Kineto) measured.
struct KinetoModel {
  ModelGraph model;
  std::vector<std::string> notes;  ///< What matched, and the time that belongs to no layer.
};

/// `layers` are classes of torch.nn.Module, of which each outermost instance is a layer; in a trace without modules,
/// names of ranges that have a number after them (layer_ranges.hpp). A kernel belongs to the
/// instance in which it was launched, or in backward to the instance whose forward has the same sequence number. Times
/// are means over the calls, divided by `samples`. InputError where nothing matches, with the classes that are there.
KinetoModel read_kineto(std::string_view text, const std::string& file, const std::vector<std::string>& layers,
                        int samples);

}  // namespace stagecraft
