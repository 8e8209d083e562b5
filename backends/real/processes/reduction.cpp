// Combines a few numbers of all processes, such as the progress in a heartbeat: the first process computes the result
// and sends it to all.

#include "backends/real/processes/reduction.hpp"

#include <string>

#include "backends/real/byte_text.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

/// A result, or why there is none.
std::string result_text(const Reduction::Numbers& numbers, const std::string& loss) {
  ByteWriter out;
  out.put(numbers);
  return out.take() + loss;
}

}  // namespace

std::optional<Reduction::Numbers> Reduction::reduce(const Numbers& local) {
  if (!under_way_) {
    under_way_ = true;
    result_ = local;
    heard_.assign(world().size, false);
    if (world().rank > 0) wire().post(0, kind_, result_text(local, {}));
  }
  const std::optional<Numbers> result = world().rank > 0 ? ask() : collect();
  if (result) under_way_ = false;
  return result;
}

std::optional<Reduction::Numbers> Reduction::collect() {
  std::string loss;
  bool all_heard = true, fails = false;
  for (int r = 1; r < world().size; ++r) {
    if (heard_[r]) continue;
    const std::string lost_before = wire().loss(r);  // What came before the loss or the failure counts.
    const bool failed_before = is_failing(r);
    if (const auto text = wire().take(r, kind_)) {
      heard_[r] = true;
      const auto numbers = ByteReader(*text).get<Numbers>();
      for (std::size_t n = 0; n < numbers.size(); ++n) result_[n] = combine_(result_[n], numbers[n]);
      continue;
    }
    all_heard = false;
    if (loss.empty()) loss = lost_before;
    fails = fails || failed_before;
  }
  if (!all_heard && loss.empty() && fails) throw FailedElsewhere();
  if (!all_heard && loss.empty()) return {};
  for (int r = 1; r < world().size; ++r) wire().post(r, kind_, result_text(result_, loss));
  if (!loss.empty()) throw BackendError(loss);
  return result_;
}

std::optional<Reduction::Numbers> Reduction::ask() {
  const std::string lost_before = wire().loss(0);
  const bool failed_before = is_failing(0);
  const auto text = wire().take(0, kind_);
  if (!text && failed_before) {
    const std::string headline = wire().take(0, WordKind::Failure).value_or("");
    headline.empty() ? throw FailedElsewhere() : throw BackendError(headline);
  }
  if (!text && !lost_before.empty()) throw BackendError(lost_before);
  if (!text) return {};
  ByteReader in(*text);
  const auto numbers = in.get<Numbers>();
  if (!in.rest().empty()) throw BackendError(std::string(in.rest()));
  return numbers;
}

Reduction pulse_reduction() {
  return {WordKind::Pulse, [](std::uint64_t a, std::uint64_t b) { return a + b; }};
}

std::optional<Transport::Pulse> reduce_pulse(Reduction& sums, const Transport::Pulse& local) {
  const auto number = [](int n) { return static_cast<std::uint64_t>(n); };
  const auto total =
      sums.reduce({number(local.moving), number(local.failed), number(local.stuck), number(local.unfinished)});
  if (!total) return {};
  const auto count = [&](std::size_t n) { return static_cast<int>((*total)[n]); };
  return Transport::Pulse{count(0), count(1), count(2), count(3)};
}

}  // namespace stagecraft::real
