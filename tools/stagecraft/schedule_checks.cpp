#include "tools/stagecraft/schedule_checks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

template <class Value>
Value word_of(const Arguments& a, const std::string& name, const std::vector<std::string>& words,
              const std::vector<Value>& values) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (a.text(name) == words[i]) return values[i];
  throw InputError(fmt::format("--{}: '{}' is not known here", name, a.text(name)), suggest(a.text(name), words));
}

double number_or(const Arguments& a, const std::string& name, double fallback) {
  return a.has(name) ? a.number(name) : fallback;
}

RendezvousOptions rendezvous_options(const Arguments& a) {
  return {.streams = word_of<CommStreams>(a, "streams", {"single", "pair", "direction"},
                                          {CommStreams::Single, CommStreams::Pair, CommStreams::Direction}),
          .grouped = a.flag("grouped"),
          .message = number_or(a, "message-size", 0),
          .eager_below = number_or(a, "eager-below", 0)};
}

StashModel stash_model(const Arguments& a) {
  StashModel model;
  model.each_stash = number_or(a, "stash", 1);
  model.freed_at_input = number_or(a, "freed-at-input", 0);
  if (model.freed_at_input > 1) throw InputError("--freed-at-input is a share from 0 to 1");
  model.message = number_or(a, "message-size", 0);
  model.resident = number_or(a, "resident", 0);
  if (a.has("capacity")) model.capacity = a.number("capacity");
  return model;
}

[[noreturn]] void refuse_message_size() {
  throw InputError("--message-size changes nothing without --eager-below, or --capacity and a file with messages",
                   "leave --message-size out");
}

}  // namespace

std::vector<Argument> check_arguments() {
  using Kind = Argument::Kind;
  return {
      {"--torch", Kind::Text, "The order is for this PyTorch: 2.8 or 2.11"},
      {"--streams", Kind::Text,
       "Look for deadlocks with one queue of messages for: single, a rank; pair, each of its peers; direction, "
       "activations and gradients of each"},
      {"--grouped", Kind::Flag, "With --streams: neighbouring messages of a stage are one batch"},
      {"--messages", Kind::Text,
       "With --streams: where an order without messages gets them: lowered, just-in-time or prefetch (default: "
       "lowered)"},
      {"--message-size", Kind::Number,
       "With --eager-below, or --capacity and a file with messages: size of one (default: 0)"},
      {"--eager-below", Kind::Number,
       "With --streams: messages smaller than this leave without their receiver (default: 0)"},
      {"--capacity", Kind::Number, "Of a rank: refuse what needs more"},
      {"--stash", Kind::Number, "With --capacity: what a stage keeps of one micro-batch (default: 1)"},
      {"--resident", Kind::Number, "With --capacity: what stays on a rank, weights, gradients, optimizer (default: 0)"},
      {"--freed-at-input", Kind::Number, "Share of the stash that I gives back (default: 0)"},
      {"--slices", Kind::Count, "Of a file: slices of a micro-batch along the sequence (default: 1)"},
      {"--weights", Kind::Text, "Without a drain: compare the weights of forward and backward under this policy"},
      {"--update-every", Kind::Count, "With --weights: micro-batches in an update (default: 1)"},
      {"--lint", Kind::Flag, "Warn of what runs but may not be meant"}};
}

FileCheckOptions check_options(const Arguments& a) {
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  if (a.has("streams")) options.rendezvous = rendezvous_options(a);
  if (a.has("messages"))
    options.placement =
        word_of<CommsPlacement>(a, "messages", {"lowered", "just-in-time", "prefetch"},
                                {CommsPlacement::Lowered, CommsPlacement::JustInTime, CommsPlacement::Prefetch});
  options.memory = stash_model(a);
  if (a.has("slices")) options.slices = a.count("slices", 1, 1 << 20);
  if (a.has("weights")) get_from(weights::all(), "weights policy", a.text("weights"));
  options.lint = a.flag("lint");
  return options;
}

bool asks_for_checks(const Arguments& a) {
  const auto asked = {"torch", "streams", "capacity", "weights", "lint"};
  return std::any_of(asked.begin(), asked.end(), [&](const char* name) { return a.has(name); });
}

void refuse_idle(const Arguments& a) {
  if (a.has("file"))
    for (const char* name : {"ranks", "microbatches", "chunks", "set", "recompute"})
      if (a.has(name))
        throw InputError(fmt::format("--{} is for a schedule by NAME; the order in a file has its own", name),
                         fmt::format("leave --{} out", name));
  const std::pair<const char*, const char*> needs[] = {{"grouped", "streams"},     {"messages", "streams"},
                                                       {"eager-below", "streams"}, {"stash", "capacity"},
                                                       {"resident", "capacity"},   {"update-every", "weights"}};
  for (const auto& [name, other] : needs)
    if (a.has(name) && !a.has(other))
      throw InputError(fmt::format("--{} changes nothing without --{}", name, other), fmt::format("add --{}", other));
  if (a.has("message-size") && !a.has("eager-below") && !a.has("capacity")) refuse_message_size();
}

void refuse_idle(const Arguments& a, const CsvFile& order, const FileCheckOptions& options) {
  if (a.has("messages") && order.communicates)
    throw InputError("--messages is for an order without messages; this one has its own", "leave --messages out");
  if (a.has("message-size") && !a.has("eager-below") && !order.communicates) refuse_message_size();
  if (order.micro_batches % options.slices != 0)
    throw InputError(fmt::format("--slices: {} micro-batches are not whole sequences of {} slices", order.micro_batches,
                                 options.slices),
                     "a micro-batch of the file is one slice, and those of a sequence follow each other");
}

}  // namespace stagecraft
