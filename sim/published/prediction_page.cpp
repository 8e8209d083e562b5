// The page of predictions: errors as cards, a histogram, a picture and a table, and the publications.

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/html_page.hpp"
#include "sim/published/cards.hpp"
#include "sim/published/error_histogram.hpp"
#include "sim/published/prediction_errors.hpp"

namespace stagecraft {
namespace {

constexpr const char* kPredictionsRemark =
    "<p class=\"remark\">Measured iterations of publications next to simulations, with times from the shapes of their "
    "operations. An error is predicted over measured, minus one. The last columns have the errors of one rate for each "
    "device type and number format, fitted to these runs.</p>";

std::string cards(const ErrorSummary& errors, const ErrorSummary& one_constant) {
  return "<div class=\"cards\">" +
         card("Median error", percent(errors.median), "of " + pluralize(errors.count, "run")) +
         card("90 % within", percent(errors.p90), "largest " + percent(errors.worst)) +
         card("Within 10 %", fmt::format("{} of {}", errors.within_tenth, errors.count), "runs") +
         card("Mean error", percent(errors.mape), "of one constant: " + percent(one_constant.mape)) + "</div>";
}

constexpr double kNear = 0.1;

std::string histogram(std::span<const double> errors) {
  std::vector<JudgedError> judged;
  for (const double e : errors) judged.push_back({e, std::abs(e) <= kNear});
  return error_histogram(judged, {"within 10 %", "more than 10 %"}, "predicted over measured, minus one");
}

std::string row(const std::string& name, const ErrorSummary& errors, const ErrorSummary& one_constant) {
  std::string text = fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", xml_escape(name), errors.count);
  for (const double share : {errors.median, errors.p90, errors.worst, errors.mape})
    text += fmt::format("<td>{:.1f}</td>", 100 * share);
  return text + fmt::format("<td>{:+.1f}</td><td>{}</td><td>{:.1f}</td><td>{:.1f}</td></tr>", 100 * errors.mean,
                            errors.within_tenth, 100 * one_constant.median, 100 * one_constant.mape);
}

std::string sources(std::span<const PredictionSet> sets) {
  std::string text = "<h2>Publications</h2>";
  for (const PredictionSet& set : sets) {
    text += fmt::format("<h3>{}</h3><p class=\"remark\">{}</p><p class=\"why\">{}</p>", xml_escape(set.name),
                        xml_escape(set.source), xml_escape(set.calibration));
    if (!set.peers.empty()) text += fmt::format("<p class=\"why\">{}</p>", xml_escape(set.peers));
  }
  return text;
}

}  // namespace

std::string prediction_html(std::span<const PredictionSet> sets) {
  const OneConstantFormula formula(sets);
  std::string rows =
      "<table><thead><tr><th scope=\"col\">errors in %</th><th scope=\"col\">runs</th><th scope=\"col\">median</th>"
      "<th scope=\"col\">p90</th><th scope=\"col\">largest</th><th scope=\"col\">MAPE</th><th scope=\"col\">mean</th>"
      "<th scope=\"col\">within 10 %</th><th scope=\"col\">one constant: median</th><th scope=\"col\">its "
      "MAPE</th></tr>"
      "</thead><tbody>";
  std::vector<double> errors, one_constant;
  for (const PredictionSet& set : sets) {
    const std::vector<double> ours = time_errors(set), theirs = formula.errors(set);
    rows += row(set.name, summarize(ours), summarize(theirs));
    errors.insert(errors.end(), ours.begin(), ours.end());
    one_constant.insert(one_constant.end(), theirs.begin(), theirs.end());
  }
  const ErrorSummary total = summarize(errors), total_of_one = summarize(one_constant);
  rows += row("all", total, total_of_one) + "</tbody></table>";
  return html_content_page(html::reproduced, "Predicted and measured iterations",
                           kPredictionsRemark + cards(total, total_of_one) + histogram(errors) +
                               "<div class=\"picture\">" + to_svg(prediction_picture(sets, kScreenPicture)) + "</div>" +
                               rows + sources(sets));
}

}  // namespace stagecraft
