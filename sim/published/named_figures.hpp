#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// Updates between the weights that a forward reads and the weights that its gradient changes, on the first stage, once
/// the pipeline is full.
int delay_of_first_stage(const Program&);

/// The largest learning rate times curvature with which plain gradient descent on a parabola does not grow, when
/// gradients are as late as they are on the first stage. In theory 2 sin(pi / (4 delay + 2)).
double stable_rate(const CompiledExperiment&, const Outcome&);

/// Updates until the loss of the evaluations is half of the first one; not a number where it never is.
double updates_to_half_loss(const CompiledExperiment&, const Outcome&);

/// The mean of the last four evaluations, of the weights themselves; not a number where the run diverged or has fewer.
double evaluated_loss(const CompiledExperiment&, const Outcome&);

/// A figure of a run that publications give: any metric, and some more.
struct NamedFigure {
  std::string_view name;
  bool more_is_better = false;
  std::function<double(const CompiledExperiment&, const Outcome&)> value_of = {};
};

std::vector<std::string> figure_names();
NamedFigure named_figure(std::string_view name);

}  // namespace stagecraft
