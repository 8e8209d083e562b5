// The one table of kinds of work, and those who use it.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule_file/actions.hpp"

namespace stagecraft::work_labels_test {

TEST_CASE("an op, its action and its instruction have the same word") {
  for (std::uint8_t k = 0; k < kOpKindCount; ++k) {
    const Op op{static_cast<OpKind>(k), false, StageId{3}, 7};
    CAPTURE(to_text(op));
    CHECK(parse_op(to_text(op)) == op);
    CHECK(to_text(action_of(op)) == to_text(op));
    CHECK(action_of(op).op() == op);
    CHECK(action_of(op).is_compute());
    CHECK(op_kind(instruction_kind(op.kind)) == op.kind);
    CHECK(letter(instruction_kind(op.kind)) == letter(op.kind));
    CHECK(label(instruction_kind(op.kind)).key == kOpLabels[op.kind].key);
  }
}

TEST_CASE("what is no op has no kind of op, and all labels differ") {
  std::set<std::string> keys, meanings;
  std::set<char> letters;
  for (std::size_t k = 0; k < kInstructionKindCount; ++k) {
    const auto kind = static_cast<InstructionKind>(k);
    CHECK(keys.insert(std::string(label(kind).key)).second);
    CHECK(meanings.insert(std::string(label(kind).meaning)).second);
    if (kind >= InstructionKind::Predict) CHECK_FALSE(op_kind(kind));
    if (kind < InstructionKind::Send) CHECK(letters.insert(letter(kind)).second);
  }
}

TEST_CASE("pages have the colors of pictures") {
  const std::string style = read_file("tools/report/common.css") + read_file("tools/report/page.css");
  for (InstructionKind kind{}; kind < InstructionKind::Send; kind = next_kind(kind)) {
    CAPTURE(label(kind).key);
    CHECK(style.find(fmt::format("--{}: {};", label(kind).key, label(kind).color)) != std::string::npos);
    CHECK(style.find(fmt::format(".{} {{ background: var(--{}); }}", label(kind).key, label(kind).key)) !=
          std::string::npos);
  }
}

TEST_CASE("the member of a record that belongs to a kind of op") {
  struct Passes {
    int forward = 1, input_gradient = 2, weight_gradient = 3, backward = 4, recompute = 5;
  } passes;
  CHECK(pass_of(passes, OpKind::Forward) == 1);
  CHECK(pass_of(passes, OpKind::Backward) == 4);
  CHECK(pass_of(passes, OpKind::InputGradient) == 2);
  CHECK(pass_of(passes, OpKind::WeightGradient) == 3);
  CHECK(pass_of(passes, OpKind::Recompute) == 5);
  CHECK_THROWS_AS(pass_of(passes, OpKind::Update), InternalError);
}

}  // namespace stagecraft::work_labels_test
