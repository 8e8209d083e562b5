#pragma once

#include <span>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"

namespace stagecraft::real {

/// Measures the layers of a workload whose stages groups of devices divide, and the collectives of their passes: whole
/// groups run the model together, as many at the same time as request.threads has room for, but one in any case.
///
/// A collective takes as long as its members wait for each other and move numbers; its time is taken out of the
/// operation that it is part of. Times are means over the devices and the equal layers of a few runs, of which the
/// median counts, so that what a device waits for another is not lost.
void measure_group_layers(const ProfileRequest&, int samples, std::span<const double> weights, const KernelFactory&,
                          Profile&);

/// Measures what devices with equal parameters exchange around an update: sums of gradients, and gathers of weights
/// where the states of the optimizer are divided. In sizes up to the parameters of the model. Divided gradients and
/// weights, which each pass exchanges, and copies of experts are not measured.
void measure_parameter_collectives(const ProfileRequest&, const KernelFactory&, Profile&);

}  // namespace stagecraft::real
