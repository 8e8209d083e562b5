#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// A figure of a run that publications give: those of sweeps (sim/sweep/result.cpp), and some more.
struct NamedFigure {
  std::string_view name;
  bool more_is_better = false;
  double (*of)(const CompiledExperiment&, const Outcome&) = nullptr;
};

std::vector<std::string> figure_names();
NamedFigure named_figure(std::string_view name);

}  // namespace stagecraft
