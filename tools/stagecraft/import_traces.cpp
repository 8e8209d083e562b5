// The kinds kineto, nsight, megatron-timing and trace of `import`: read a file, unpacked if it is gzip, print the
// notes, and give a model file or a CSV.

#include "tools/stagecraft/foreign_files.hpp"

#include "models/pipedream_graph.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/interchange/imports/megatron_timing.hpp"
#include "sim/interchange/imports/stream_overlap.hpp"
#include "sim/interchange/imports/traces.hpp"
#include "tools/stagecraft/gzip.hpp"
#include "tools/stagecraft/nsight_trace.hpp"

namespace stagecraft {
namespace {

std::string read_trace(const std::string& file) {
  std::string bytes = read_file(file);
  return is_gzip(bytes) ? gunzip(bytes, file) : bytes;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_error("note: {}\n", note);
}

int samples_of(const Arguments& a) {
  constexpr int kMostSamples = 1 << 20;
  return a.has("samples") ? a.count("samples", 1, kMostSamples) : 1;
}

std::string profile_text(const Arguments& a, const std::string& trace, const std::string& profiler) {
  const std::string file = a.text("FILE");
  if (a.flag("overlap")) return stream_overlap_csv(trace, file);
  const KinetoModel read = read_kineto(trace, file, a.list("layer"), samples_of(a));
  print_notes(read.notes);
  return timed_model_yaml(read.model, "Measured by " + profiler);
}

}  // namespace

std::string import_kineto(const Arguments& a) {
  return profile_text(a, read_trace(a.text("FILE")), "PyTorch's profiler");
}

std::string import_nsight(const Arguments& a) {
  const NsightTrace read = read_nsight_trace(a.text("FILE"));
  print_notes(read.notes);
  if (!read.has_kernels && a.flag("overlap"))
    throw InputError({{{a.text("FILE"), 0, 0},
                       {},
                       "the machine of this profile has no GPU, so there are no streams to compare",
                       "profile on a GPU with nsys profile --trace=cuda,nvtx",
                       "nsight"}});
  if (!read.has_layers && !a.flag("overlap"))
    throw InputError({{{a.text("FILE"), 0, 0},
                       {},
                       "no NVTX range has a name with a number at its end, so there are no layers",
                       "torch.cuda.nvtx.range_push(f\"layer_{i}\") around each layer; --overlap needs no ranges",
                       "nsight"}});
  return profile_text(a, read.json, "Nsight Systems");
}

std::string import_megatron_timing(const Arguments& a) {
  const std::string file = a.text("FILE");
  const MegatronTiming read = read_megatron_timing(read_trace(file), file, samples_of(a));
  print_notes(read.notes);
  return timed_model_yaml(read.model, "Measured by Megatron-LM");
}

std::string import_trace(const Arguments& a) {
  const TraceSpans read = read_stagecraft_trace(read_trace(a.text("FILE")), a.text("FILE"));
  print_notes(read.notes);
  return read.csv;
}

}  // namespace stagecraft
