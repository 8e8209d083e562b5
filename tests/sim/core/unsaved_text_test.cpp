#include "tests/support/files.hpp"

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::unsaved_text_test {
namespace {

/// A file with this text.
std::string saved_file(const std::string& text) { return test::own_file(text, text); }

}  // namespace

TEST_CASE("a text that is not saved stands for its file as long as it lives, and for no other") {
  const std::string file = saved_file("saved"), other = saved_file("other");
  {
    const UnsavedText edited(file, "edited");
    CHECK(read_file(file) == "edited");
    CHECK(read_file(other) == "other");
    CHECK(read_output(file) == "saved");
  }
  CHECK(read_file(file) == "saved");
}

TEST_CASE("its file is no input until it is read itself, so that it can be saved") {
  const std::string file = saved_file("mine");
  {
    const UnsavedText edited(file, "edited");
    CHECK(read_file(file) == "edited");
  }
  CHECK(input_at(file).empty());
  note_input(file);
  CHECK_FALSE(input_at(file).empty());
  allow_saving(file);
  CHECK(input_at(file).empty());
}

}  // namespace stagecraft::unsaved_text_test
