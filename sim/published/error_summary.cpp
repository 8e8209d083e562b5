// How far reproduced figures are from published ones, in numbers and as HTML for the page.

#include "sim/published/error_summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/published/cards.hpp"
#include "sim/published/error_histogram.hpp"

namespace stagecraft {
namespace {

using Verdict = Reproduced::Verdict;

void add(ReproductionErrors& s, const Published& published, const Reproduced& c) {
  const PublishedTable& table = published.tables[c.table];
  if ((c.verdict != Verdict::Met && c.verdict != Verdict::Missed) || table.rows[c.row].calibrated) return;
  const bool met = c.verdict == Verdict::Met;
  const Claim claim = claim_of(table.match_rule);
  if (claim == Claim::Identity) ++s.identities, s.identities_met += met;
  if (claim == Claim::Direction) ++s.directions, s.directions_met += met;
  if (claim == Claim::Prediction && c.published != 0) s.errors.push_back(c.deviation()), s.met += met;
}

/// The predictions that are judged, and whether each is within the tolerance of its table.
std::vector<JudgedError> judged_errors(std::span<const Reproduction> reproductions) {
  std::vector<JudgedError> errors;
  for (const Reproduction& r : reproductions)
    for (const Reproduced& c : r.cells) {
      ReproductionErrors one;
      add(one, r.published, c);
      if (!one.errors.empty()) errors.push_back({one.errors.front(), one.met > 0});
    }
  return errors;
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
  return text +
         error_histogram(judged_errors(reproductions), {"within the tolerance of its table", "outside of it"},
                         "simulated over published, minus one") +
         by_publication(reproductions);
}

}  // namespace stagecraft
