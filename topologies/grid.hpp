#pragma once

#include <vector>

#include "topologies/cluster_writer.hpp"

namespace stagecraft {

/// The fields of a grid beside its shape.
std::vector<config::Field> grid_fields();
/// A device on a router at every point of a grid, and a cable to the next point in each dimension; `wrap` joins the
/// ends too. Routes go along the first dimension first.
Cluster grid(const config::Value& map, const std::vector<int>& sizes, bool wrap);

}  // namespace stagecraft
