// The HTML page of `search --html`: the rows as JSON with what only the page needs, and the Pareto front as SVG.

#include "sim/output/choice_table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/output/html_page.hpp"

namespace stagecraft {
namespace {

/// A narrow screen gets a second picture, with text as large.
const PictureSize kWidePlot{760, 11}, kNarrowPlot{300, 9};

/// The front as SVG in HTML, for both widths; empty where nothing fits. The page has a heading besides.
std::string front_svg(const ChoiceTable& table) {
  if (table.front.empty()) return {};
  std::string text;
  for (const auto& [name, size] : {std::pair("at-wide", kWidePlot), std::pair("at-narrow", kNarrowPlot)}) {
    Picture picture = front_picture(table, {}, size);
    picture.title = "Period and peak memory of each choice on the Pareto front";
    text += fmt::format("<div class=\"{}\">{}</div>", name, replace_unprintable(to_svg(picture)));
  }
  return text;
}

Json types_of(const ChoiceTable& table) {
  Json types = JsonArray();
  for (const Choice& c : table.front) types.push_back(c.device_types);
  return types;
}

Json stands_out(const ChoiceTable& table) {
  Json rows = JsonArray();
  for (const bool out : stand_out(table.front)) rows.push_back(out);
  return rows;
}

}  // namespace

std::string choices_html(const ChoiceTable& table, const std::string& command, const std::string& version) {
  const Json json = JsonObject{{"schema", "search-page/1"},
                               {"command", command},
                               {"version", version},
                               {"device_types", types_of(table)},
                               {"stand_out", stands_out(table)},
                               {"search", choices_value(table)}};
  return html_page(html::search, table.title, json.dump(), {}, front_svg(table));
}

}  // namespace stagecraft
