// The distribution of errors has the predictions alone: no calibrated rows, identities, bounds or failed figures.

#include "sim/published/error_summary.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stagecraft::error_summary_test {
namespace {

using Verdict = Reproduced::Verdict;

PublishedTable table_with(const MatchRule& rule, int rows) {
  PublishedTable table;
  table.match_rule = rule;
  table.rows.resize(static_cast<std::size_t>(rows));
  return table;
}

Reproduced cell(std::size_t table, std::size_t row, double published, double ours, Verdict verdict) {
  return {
      .table = table, .row = row, .column = 0, .published = published, .ours = ours, .verdict = verdict, .problem = {}};
}

/// Predictions with errors of +10, -20 and +2 %, one calibrated, one failed; an identity and two bounds.
Reproduction small() {
  Reproduction r;
  r.published.name = "<b>paper</b>";
  r.published.tables = {table_with({.tolerance = 0.15}, 5), table_with({.decimals = 2}, 1),
                        table_with({.bound = MatchRule::Bound::AtLeast}, 2)};
  r.published.tables[0].rows[3].calibrated = true;
  r.cells = {cell(0, 0, 10, 11, Verdict::Met),  cell(0, 1, 10, 8, Verdict::Missed), cell(0, 2, 100, 102, Verdict::Met),
             cell(0, 3, 10, 10, Verdict::Met),  cell(0, 4, 10, 0, Verdict::Failed), cell(1, 0, 1, 1, Verdict::Met),
             cell(2, 0, 5, 4, Verdict::Missed), cell(2, 1, 5, 6, Verdict::Met)};
  return r;
}

}  // namespace

TEST_CASE("judged predictions have errors, and other claims are counted apart") {
  const Reproduction r = small();
  const ReproductionErrors s = error_summary({&r, 1});
  REQUIRE(s.errors.size() == 3);
  CHECK(s.errors[0] == doctest::Approx(-0.2));
  CHECK(s.errors[1] == doctest::Approx(0.02));
  CHECK(s.errors[2] == doctest::Approx(0.1));
  CHECK(s.met == 2);
  CHECK(s.identities == 1);
  CHECK(s.identities_met == 1);
  CHECK(s.directions == 2);
  CHECK(s.directions_met == 1);
  CHECK(s.quantile_of_size(0.5) == doctest::Approx(0.1));
  CHECK(s.quantile_of_size(1) == doctest::Approx(0.2));
  CHECK(s.share_within(0.05) == doctest::Approx(1.0 / 3));
}

TEST_CASE("the page has cards, each prediction in the histogram once, and names are no markup") {
  const Reproduction r = small();
  const std::string html = error_summary_html({&r, 1});
  for (const char* part : {"value\">10.0 %</div>", "of 3 predictions", "value\">2 of 3</div>", "value\">1 of 2</div>",
                           "&lt;b&gt;paper", "-20.0 % to -17.5 %: 1 outside of it"})
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  CHECK(html.find("<b>paper") == std::string::npos);
  CHECK(error_summary_html({}).empty());
}

}  // namespace stagecraft::error_summary_test
