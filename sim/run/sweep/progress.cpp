#include "sim/run/sweep/progress.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr int kWidth = 30;

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_text(const SweepProgress& p, bool bar) {
  const int with_result = p.there + p.done;
  std::string text;
  if (bar) {
    const int full = p.all > 0 ? static_cast<int>(static_cast<long>(kWidth) * with_result / p.all) : kWidth;
    text = '[' + std::string(static_cast<std::size_t>(full), '#') +
           std::string(static_cast<std::size_t>(kWidth - full), '.') + "] ";
  }
  text += fmt::format("{} of {} points", with_result, p.all);
  if (p.done > 0 && p.seconds > 0) {
    const double rate = p.done / p.seconds;
    text += rate < 100 ? fmt::format(", {:.3g}/s", rate) : fmt::format(", {:.0f}/s", rate);
    text += fmt::format(", {} left", duration_text((p.all - with_result) / rate));
  }
  return p.failed > 0 ? text + fmt::format(", {} failed", p.failed) : text;
}

}  // namespace stagecraft
