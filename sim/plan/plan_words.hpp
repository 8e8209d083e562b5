#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The plan as arguments of training frameworks count it: "TP 4 · PP 8 x VPP 5 · DP 8 · MBS 1 x 128", with the
/// micro-batches that each replica runs in an iteration after the samples of each. Degrees of 1 stay out. What stages
/// do not share comes stage by stage, "DP 15-1", or as a range.
std::string plan_words(const Plan&);

/// plan_words() with the samples of an iteration: "PP 4 · MBS 2 x 8 = 16 samples of 1,024 tokens". `tokens`: of a
/// sample; 0: it has none.
std::string plan_line(const Plan&, int tokens);

}  // namespace stagecraft
