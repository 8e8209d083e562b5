#pragma once

#include <string>

#include "sim/output/choice_table.hpp"

namespace stagecraft {

/// Everything on the page of a search that its result does not have.
struct ChoicePage {
  std::string command;  ///< What runs the scenario, without the options of a row: "stagecraft run FILE --set ...".
  std::string version;
};

/// One self-contained page: the answer, the Pareto front as a picture, each row with the reason why it is behind the
/// first, and what was proved and what was not tried.
std::string choices_html(const ChoiceTable&, const ChoicePage&);

}  // namespace stagecraft
