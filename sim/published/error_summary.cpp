#include "sim/published/error_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

constexpr int kBins = 32;
constexpr double kBin = 0.025, kEnd = kBins / 2 * kBin;  // The ends of the histogram hold what lies beyond.
constexpr double kHistogramWidth = 640, kHistogramHeight = 150, kHistogramLeft = 40, kHistogramTop = 22;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.0f} %", 100 * share); }

void add(ReproductionErrors& s, const Published& published, const Reproduced& c) {
  const PublishedTable& table = published.tables[c.table];
  if ((c.verdict != Verdict::Met && c.verdict != Verdict::Missed) || table.rows[c.row].calibrated) return;
  const bool met = c.verdict == Verdict::Met;
  const Claim claim = claim_of(table.match_rule);
  if (claim == Claim::Identity) ++s.identities, s.identities_met += met;
  if (claim == Claim::Direction) ++s.directions, s.directions_met += met;
  if (claim == Claim::Prediction && c.published != 0) s.errors.push_back(c.deviation()), s.met += met;
}

std::string card(const std::string& label, const std::string& value, const std::string& more) {
  return fmt::format(
      "<div class=\"card\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div "
      "class=\"more\">{}</div></div>",
      label, value, more);
}

struct Bin {
  int met = 0, missed = 0;
};

/// Counts of errors; those within the tolerance of their tables below, the others above them.
std::array<Bin, kBins> bins_of(std::span<const Reproduction> reproductions) {
  std::array<Bin, kBins> bins{};
  for (const Reproduction& r : reproductions)
    for (const Reproduced& c : r.cells) {
      ReproductionErrors one;
      add(one, r.published, c);
      if (one.errors.empty()) continue;
      const int at = std::clamp(static_cast<int>(std::floor(one.errors.front() / kBin)) + kBins / 2, 0, kBins - 1);
      Bin& bin = bins[static_cast<std::size_t>(at)];
      ++(one.met > 0 ? bin.met : bin.missed);
    }
  return bins;
}

std::string histogram(const std::array<Bin, kBins>& bins, std::size_t count) {
  int highest = 1;
  for (const Bin& b : bins) highest = std::max(highest, b.met + b.missed);
  const double bar = kHistogramWidth / kBins;
  std::string text = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"Histogram of {2} errors\">",
      kHistogramLeft + kHistogramWidth + 24, kHistogramTop + kHistogramHeight + 40, count);
  const auto box = [&](double x, int from, int number, const char* kind, const std::string& tip) {
    if (number == 0) return;
    const double tall = kHistogramHeight * number / highest,
                 y = kHistogramTop + kHistogramHeight - kHistogramHeight * (from + number) / highest;
    text += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}</title></rect>",
        kind, x, y, bar - 1, tall, tip);
  };
  for (std::size_t n = 0; n < bins.size(); ++n) {
    const double low = -kEnd + kBin * static_cast<double>(n), x = kHistogramLeft + bar * static_cast<double>(n);
    const std::string range = fmt::format("{:+.1f} % to {:+.1f} %", 100 * low, 100 * (low + kBin));
    box(x, 0, bins[n].met, "met", fmt::format("{}: {} within the tolerance of their tables", range, bins[n].met));
    box(x, bins[n].met, bins[n].missed, "off", fmt::format("{}: {} outside of it", range, bins[n].missed));
  }
  text +=
      fmt::format("<path class=\"axis\" d=\"M{} {}h{}M{} {}v{}\"/>", kHistogramLeft, kHistogramTop + kHistogramHeight,
                  kHistogramWidth, kHistogramLeft + kHistogramWidth / 2, kHistogramTop, kHistogramHeight);
  for (const double tick : {-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4})
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                        kHistogramLeft + kHistogramWidth * (tick + kEnd) / (2 * kEnd),
                        kHistogramTop + kHistogramHeight + 16, tick == 0 ? "0" : signed_percent(tick));
  text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kHistogramLeft - 6, kHistogramTop + 8,
                      highest);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">simulated over published, minus one</text>",
                      kHistogramLeft + kHistogramWidth / 2, kHistogramTop + kHistogramHeight + 34);
  return text + fmt::format(
                    "<rect class=\"met\" x=\"{0}\" y=\"3\" width=\"10\" height=\"10\"/><text x=\"{1}\" y=\"12\">within "
                    "tolerance</text><rect class=\"off\" x=\"{2}\" y=\"3\" width=\"10\" height=\"10\"/><text x=\"{3}\" "
                    "y=\"12\">outside</text></svg>",
                    kHistogramLeft, kHistogramLeft + 15, kHistogramLeft + 120, kHistogramLeft + 135);
}

std::string by_publication(std::span<const Reproduction> reproductions) {
  struct PublicationErrors {
    const Reproduction* reproduction;
    ReproductionErrors summary;
  };
  std::vector<PublicationErrors> lines;
  for (const Reproduction& r : reproductions)
    if (ReproductionErrors s = error_summary(std::span(&r, 1)); !s.errors.empty()) lines.push_back({&r, std::move(s)});
  std::sort(lines.begin(), lines.end(), [](const PublicationErrors& a, const PublicationErrors& b) {
    return a.summary.quantile_of_size(0.5) < b.summary.quantile_of_size(0.5);
  });
  std::string text =
      "<table><thead><tr><th scope=\"col\">publication</th><th scope=\"col\">predictions</th><th scope=\"col\">median "
      "error</th><th scope=\"col\">90 % within</th><th scope=\"col\">largest</th><th scope=\"col\">in "
      "tolerance</th></tr>"
      "</thead><tbody>";
  for (const PublicationErrors& line : lines)
    text += fmt::format(
        "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        xml_escape(line.reproduction->published.name), xml_escape(line.reproduction->published.name),
        line.summary.errors.size(), percent(line.summary.quantile_of_size(0.5)),
        percent(line.summary.quantile_of_size(0.9)), percent(line.summary.quantile_of_size(1)), line.summary.met);
  return text + "</tbody></table>";
}

}  // namespace

double ReproductionErrors::quantile_of_size(double share) const {
  if (errors.empty()) return 0;
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  return quantile(std::move(sizes), share);
}

double ReproductionErrors::share_within(double size) const {
  const auto near = std::count_if(errors.begin(), errors.end(), [&](double e) { return std::abs(e) <= size; });
  return errors.empty() ? 0 : static_cast<double>(near) / static_cast<double>(errors.size());
}

ReproductionErrors error_summary(std::span<const Reproduction> reproductions) {
  ReproductionErrors summary;
  for (const Reproduction& r : reproductions)
    for (const Reproduced& c : r.cells) add(summary, r.published, c);
  std::sort(summary.errors.begin(), summary.errors.end());
  return summary;
}

std::string error_summary_html(std::span<const Reproduction> reproductions) {
  const ReproductionErrors s = error_summary(reproductions);
  if (s.errors.empty()) return "";
  std::string text = "<div class=\"cards\">";
  text += card("Median error", percent(s.quantile_of_size(0.5)),
               fmt::format("of {}", pluralize(std::ssize(s.errors), "prediction")));
  text += card("90 % within", percent(s.quantile_of_size(0.9)), "largest " + percent(s.quantile_of_size(1)));
  text += card("Within 10 %", percent(s.share_within(0.1)), "within 5 %: " + percent(s.share_within(0.05)));
  text += card("In tolerance", fmt::format("{} of {}", s.met, s.errors.size()), "each table has its own");
  if (s.identities > 0)
    text += card("Identities", fmt::format("{} of {}", s.identities_met, s.identities), "equal to the published digit");
  if (s.directions > 0)
    text += card("Bounds and orders", fmt::format("{} of {}", s.directions_met, s.directions), "that hold");
  text += "</div>";
  return text + histogram(bins_of(reproductions), s.errors.size()) + by_publication(reproductions);
}

}  // namespace stagecraft
