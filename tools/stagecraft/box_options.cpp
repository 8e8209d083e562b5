// The options --queue and --scale of `cluster` and `validate --network`, and the text about the link rates that were
// measured in a built network.

#include "tools/stagecraft/box_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "backends/box/namespaces.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The built network has queues of one kind: those that --queue says, or all links.
box::Queue queue_of(const Arguments& a, const Cluster& cluster) {
  const std::string queue = a.text("queue");
  if (a.has("queue") && queue != "fair" && queue != "fifo")
    throw InputError(fmt::format("--queue: '{}' is not known", queue),
                     suggest(queue, std::vector<std::string>{"fair", "fifo"}));
  if (queue == "fair" && cluster.has_one_queue())
    throw InputError("--queue: fair contradicts the links with `queue: fifo`", "leave one of the two out");
  if (queue == "fifo") return box::Queue::Fifo;
  if (!cluster.has_one_queue()) return box::Queue::Fair;
  for (const Link& link : cluster.links)
    if (!link.one_queue)
      throw InputError(
          fmt::format("a network has queues of one kind: '{}' lacks the `queue: fifo` of other links", link.name),
          "--queue fifo gives all links one queue");
  return box::Queue::Fifo;
}

bool is_nominal(const box::RateReading& r) { return std::abs(r.error()) <= box::kRateTolerance; }

}  // namespace

Argument queue_argument() {
  return {"--queue", Argument::Kind::Text,
          "Queues of the links: fair (one for each pair of devices, acknowledgements first) or fifo (default: that of "
          "the links)"};
}

Argument scale_argument() {
  return {"--scale", Argument::Kind::Number,
          "Divide all rates and multiply all times by it, for links that are too fast to build", "1"};
}

box::NetworkOptions box_options(const Arguments& a, const Cluster& cluster) {
  const box::Queue queue = queue_of(a, cluster);
  const double scale = a.number("scale");
  if (scale < 1) throw InputError("--scale: a number below 1 would make links faster", "1 or more");
  return {queue, scale};
}

bool are_nominal(const std::vector<box::RateReading>& readings) {
  return std::all_of(readings.begin(), readings.end(), is_nominal);
}

std::string readings_text(const std::vector<box::RateReading>& readings) {
  if (readings.empty()) return {};
  std::vector<double> errors;
  for (const box::RateReading& r : readings) errors.push_back(std::abs(r.error()));
  const auto worst = std::max_element(errors.begin(), errors.end());
  if (are_nominal(readings))
    return fmt::format("the links: {} within {:.0f} % of their nominal rates, the worst {:+.1f} %\n",
                       pluralize(std::ssize(readings), "transfer"), 100 * box::kRateTolerance,
                       100 * readings[worst - errors.begin()].error());
  std::string text =
      fmt::format("this network cannot be trusted: not every link has its nominal rate within {:.0f} %\n",
                  100 * box::kRateTolerance);
  for (const box::RateReading& r : readings)
    if (!is_nominal(r))
      text += fmt::format("  {}: {} in place of {} ({:+.1f} %)\n", r.what, to_text(Bandwidth{r.measured}),
                          to_text(Bandwidth{r.nominal}), 100 * r.error());
  return text;
}

void require_namespaces() {
  if (const std::string why = box::why_no_namespaces(); !why.empty()) throw BackendError(why);
}

}  // namespace stagecraft
