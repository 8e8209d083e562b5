// Any bytes as an input of Piper: a graph without a cycle and a tensor for each edge of each variant, or refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/planners/chain_partition/piper_file.hpp"

using namespace stagecraft;

namespace {

void check_layer(const chain_partition::PiperLayer& layer, std::size_t in, std::size_t out) {
  for (const auto& [degree, variants] : layer.by_degree) {
    if (degree < 1) std::abort();
    for (const chain_partition::PiperVariant& v : variants) {
      if (v.in.size() != in || v.out.size() != out) std::abort();
      std::vector<double> amounts{v.seconds, v.parameters, v.memory.stash.value, v.memory.weights.value};
      amounts.insert(amounts.end(), v.in.begin(), v.in.end());
      amounts.insert(amounts.end(), v.out.begin(), v.out.end());
      for (const double a : amounts)
        if (!std::isfinite(a) || a < 0) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const chain_partition::PiperFile file =
        chain_partition::read_piper({reinterpret_cast<const char*>(data), size}, "piper.json");
    const chain_partition::PiperInput& input = file.input;
    if (input.devices < 1 || input.micro_batches < 1 || !(input.memory > 0) || !(input.bandwidth > 0)) std::abort();
    if (static_cast<int>(input.layers.size()) != input.graph.size() || !topological_order(input.graph)) std::abort();
    for (std::size_t n = 0; n < input.layers.size(); ++n)
      check_layer(input.layers[n], input.graph.previous[n].size(), input.graph.next[n].size());
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
