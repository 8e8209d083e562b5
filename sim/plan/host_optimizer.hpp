#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/quantity.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Both moments of Adam of a parameter, in fp32, which a host keeps in place of a device.
inline constexpr double kMomentBytes = 8;

/// The update of parameters of a device by the CPU of its host, whose memory all of its devices share. Gradients go
/// down, the host updates, weights come up. Adam reads gradient, fp32 weight and two moments of each parameter and
/// writes the last three: 28 bytes. `beside`: buckets run next to each other, so the longest counts, and the other two
/// for one bucket of 25 MiB of gradients, as PyTorch has them; else all three count.
Seconds host_update_time(const Precision&, double parameters, double parameters_of_host, const Route& down,
                         const Route& up, Bandwidth host, bool beside);

}  // namespace stagecraft
