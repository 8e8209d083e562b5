#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/diagnostic.hpp"
#include "sim/core/enum_array.hpp"

namespace stagecraft {

/// What a device computes. Sends, receives and memory are added by lower(); a schedule never writes them.
///
/// Lists of actions (ActionKind) and programs (InstructionKind) have these kinds, with the same values, and then
/// theirs.
enum class OpKind : std::uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute,
  Update,
  Scores,         // The scores of the words that a rank has (VocabularyPasses).
  ScoresGradient  // The gradients of these scores that need the loss.
};
inline constexpr std::uint8_t kOpKindCount = 8;

/// The value of a kind, for the enumerations that continue this one.
constexpr std::uint8_t value_of(OpKind kind) { return static_cast<std::uint8_t>(kind); }

/// How people and files see a kind of work: the one place for it.
struct WorkLabel {
  char letter;               ///< 'I' of "0I3"; a space where it has none.
  std::string_view key;      ///< "input_gradient", in files and data of pages.
  std::string_view meaning;  ///< "input gradient", in legends.
  std::string_view color;    ///< In pictures and on light pages; people who do not see red and green can distinguish
                             ///< the colors. Empty where it is not drawn.
  bool is_dark;              ///< A label on the color is white.
  std::string_view trace_color;  ///< Name of a color of Chrome's trace viewer.
};

inline constexpr EnumArray<OpKind, WorkLabel, kOpKindCount> kOpLabels = {{{
    {'F', "forward", "forward", "#3a78bd", true, "thread_state_running"},
    {'B', "backward", "backward", "#e8a23a", false, "rail_animation"},
    {'I', "input_gradient", "input gradient", "#e8a23a", false, "rail_response"},
    {'W', "weight_gradient", "weight gradient", "#786d94", true, "rail_load"},
    {'R', "recompute", "recomputation", "#5ac7fb", false, "thread_state_iowait"},
    {'U', "update", "update", "#3b4552", true, "good"},
    {'S', "scores", "vocabulary scores", "#5f9e6e", true, "cq_build_passed"},
    {'T', "scores_gradient", "vocabulary gradient", "#a8cf8d", false, "olive"},
}}};

constexpr char letter(OpKind kind) { return kOpLabels[kind].letter; }

/// The member of a record with one member for each pass, and perhaps others, that belongs to a kind.
template <class Passes>
auto& pass_of(Passes& passes, OpKind kind) {
  switch (kind) {
    case OpKind::Forward:
      return passes.forward;
    case OpKind::Backward:
      return passes.backward;
    case OpKind::InputGradient:
      return passes.input_gradient;
    case OpKind::WeightGradient:
      return passes.weight_gradient;
    case OpKind::Recompute:
      return passes.recompute;
    case OpKind::Update:
      if constexpr (requires { passes.update; }) return passes.update;
      break;
    case OpKind::Scores:
      if constexpr (requires { passes.scores; }) return passes.scores;
      break;
    case OpKind::ScoresGradient:
      if constexpr (requires { passes.scores_gradient; }) return passes.scores_gradient;
      break;
  }
  throw InternalError("these passes have no such member");
}

}  // namespace stagecraft
