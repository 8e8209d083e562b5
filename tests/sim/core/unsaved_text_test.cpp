#include "sim/core/unsaved_text.hpp"
#include "tests/support/files.hpp"

#include <doctest/doctest.h>
#include <filesystem>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::unsaved_text_test {
namespace {

/// A file with this text, until the end of the test.
struct SavedFile {
  explicit SavedFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() / ("unsaved_text_" + text)).string()) {
    test::write_file(path, text);
  }
  ~SavedFile() { std::filesystem::remove(path); }
  const std::string path;
};

}  // namespace

TEST_CASE("a text that is not saved stands for its file as long as it lives, and for no other") {
  const SavedFile file("saved"), other("other");
  {
    const UnsavedText edited(file.path, "edited");
    CHECK(read_file(file.path) == "edited");
    CHECK(read_file(other.path) == "other");
    CHECK(read_output(file.path) == "saved");
  }
  CHECK(read_file(file.path) == "saved");
}

TEST_CASE("its file is no input until it is read itself, so that it can be saved") {
  const SavedFile file("mine");
  {
    const UnsavedText edited(file.path, "edited");
    CHECK(read_file(file.path) == "edited");
  }
  CHECK(input_at(file.path).empty());
  note_input(file.path);
  CHECK_FALSE(input_at(file.path).empty());
  allow_saving(file.path);
  CHECK(input_at(file.path).empty());
}

}  // namespace stagecraft::unsaved_text_test
