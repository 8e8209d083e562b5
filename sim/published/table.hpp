#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/output/table.hpp"
#include "sim/published/reproduce.hpp"

namespace stagecraft {

/// Each table with published figures above ours, the reasons for missed figures, and the count.
std::string to_text(const Reproduction&, const TextLayout& = {});
/// The figures of all publications, a row for each.
Table figures_of(std::span<const Reproduction>);

/// One line for each publication.
std::string summary_text(std::span<const Reproduction>);

/// A line for each figure whose verdict is not the one that the file expects.
std::string unexpected_text(const Reproduction&);

/// A number with the digits that are judged, and the rule that judges it: "within 5 %".
std::string number_text(const PublishedTable&, double value);
std::string rule_text(const PublishedTable&);

std::string reproduced_csv(std::span<const Reproduction>);   ///< A line for each figure.
std::string reproduced_json(std::span<const Reproduction>);  ///< Schema reproduced/1.
std::vector<FileColumn> reproduced_columns();
const config::MapSpec& reproduced_fields();

/// A page without scripts: for each table its figures, a plot of ours against the published ones, and the reasons.
std::string reproduced_html(std::span<const Reproduction>);

}  // namespace stagecraft
