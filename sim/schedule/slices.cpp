// The options of schedules whose micro-batches are slices of sequences.

#include "sim/schedule/slices.hpp"

#include "sim/schedule/options.hpp"

namespace stagecraft {

std::vector<config::Field> slice_fields() {
  return {config::integer("slices", 1, 1 << 16).fallback("2").doc("Slices of a sequence, one after the other."),
          config::boolean("cut").fallback("false").doc(
              "true: each sequence, or pack of `data`, comes in slices of equal tokens, of which a later one attends "
              "to all earlier ones; run.micro_batches and run.global_batch count whole sequences. false: "
              "run.micro_batches counts slices, and each costs what a sample of the model costs."),
          config::boolean("exchange")
              .fallback("false")
              .doc("With `cut`: ranks share the attention of the slices that they have in progress, so that each slice "
                   "costs the mean (SlimPipe). The messages of this exchange count as hidden.")};
}

Slices read_slices(const config::Value& schedule) {
  return {.slices = option_or(schedule, "slices", 1),
          .cut = option_is(schedule, "cut", "true"),
          .exchange = option_is(schedule, "exchange", "true")};
}

}  // namespace stagecraft
