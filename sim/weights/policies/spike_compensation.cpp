#include "sim/weights/policy.hpp"

namespace stagecraft::weights {

extern const WeightsDef spike_compensation{
    .name = "spike-compensation",
    .summary = "One version; each update brings in at once what the delay kept from the momentum",
    .source = "Kosson et al., Pipelined Backpropagation at Scale, MLSys 2021",
    .paper = {.spike_compensation = true},
};

}  // namespace stagecraft::weights
