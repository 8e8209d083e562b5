#include <fmt/format.h>

#include "sim/report/files.hpp"
#include "sim/report/text.hpp"

namespace stagecraft {

std::string learnt_text(const Learnt& learnt, const Cluster& cluster) {
  std::string text;
  if (!learnt.losses.empty())
    text += fmt::format("  {:<22} {:>12.6g}   {}\n", "loss", learnt.losses.back(),
                        learnt.losses.size() > 1 ? fmt::format("of the last of {} iterations; {:.6g} at first",
                                                               learnt.losses.size(), learnt.losses.front())
                                                 : std::string("of one iteration"));
  if (!learnt.evaluations.empty())
    text += fmt::format("  {:<22} {:>12.6g}   after {} updates, of the weights themselves\n", "evaluation",
                        learnt.evaluations.back().loss, learnt.evaluations.back().updates);
  text += fmt::format("\n  {:<12}  {:>12}  {:>22}  {:>12}  {:>12}  {:>12}\n", "measured", "memory", "weights",
                      "gradients", "optimizer", "activations");
  for (std::size_t d = 0; d < learnt.memory.size() && d < cluster.devices.size(); ++d) {
    const MeasuredMemory& m = learnt.memory[d];
    if (m.total.value == 0) continue;
    text += fmt::format("  {:<12}  {:>12}  {:>22}  {:>12}  {:>12}  {:>12}\n", cluster.devices[d].name, to_text(m.total),
                        fmt::format("{} in {}", to_text(m.weights), m.weight_buffers), to_text(m.gradients),
                        to_text(m.optimizer), to_text(m.activations));
  }
  return text;
}

std::string enqueued_text(const Enqueued& e) {
  std::string how;
  if (e.by_graph.value > 0) how = fmt::format("; {} as a graph, launched {} times", to_text(e.by_graph), e.launches);
  if (e.graphs > 0) how += fmt::format(", {} made while the clock ran", e.graphs);
  std::string text =
      fmt::format("  {:<22} {:>12}   of the host for an iteration{}\n", "enqueueing", to_text(e.by_calls), how);
  if (!e.no_graph.empty()) text += fmt::format("  {:<22} {:>12}   {}\n", "no graph", "", e.no_graph);
  return text;
}

std::string losses_csv(const Learnt& learnt) {
  std::string text = "iteration,loss\n";
  for (std::size_t i = 0; i < learnt.losses.size(); ++i) text += fmt::format("{},{:.17g}\n", i, learnt.losses[i]);
  return text;
}

}  // namespace stagecraft
