// All files are written through these functions.

#include "sim/core/output.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/sha256.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::output_test {
namespace {

namespace fs = std::filesystem;

using test::Folder;

auto count(const Folder& folder) { return std::distance(fs::directory_iterator(folder.path()), {}); }

std::string refusal(const std::string& path, Overwrite overwrite = Overwrite::Ours) {
  for (const bool only_check : {true, false}) try {
      only_check ? check_output(path, overwrite) : write_output(path, "new", overwrite);
    } catch (const InputError& e) {
      return e.problems().front().message.substr(path.size() + 3);
    }
  return "";
}

}  // namespace

TEST_CASE("a file is written whole and read back, and nothing else is left") {
  const Folder folder;
  const int before = files_written();
  write_output(folder / "a", std::string("se\0cond", 7), Overwrite::Ours);
  CHECK(read_output(folder / "a") == std::string("se\0cond", 7));
  CHECK(count(folder) == 1);
  CHECK(files_written() == before + 1);
  remove_half_written();  // There is none.
  CHECK(fs::exists(folder / "a"));
  CHECK_THROWS_WITH_AS(write_output(folder / "no/a", "x", Overwrite::Ours), doctest::Contains("there is no folder"),
                       InputError);
}

TEST_CASE("files without our header are foreign unless their content is the same") {
  const Folder folder;
  test::write_file(folder / "mine", "precious");
  CHECK(refusal(folder / "mine") == "was not written by stagecraft, or was changed since");
  CHECK(read_output(folder / "mine") == "precious");
  CHECK_NOTHROW(write_output(folder / "mine", "precious", Overwrite::Ours));
  CHECK(refusal(folder / "mine", Overwrite::Anything).empty());
  CHECK(read_output(folder / "mine") == "new");
}

TEST_CASE("the header has a hash of the rest, and a file that was changed since is foreign") {
  const Folder folder;
  for (const auto& [content, style, before, after] :
       {std::tuple("a: 1\n", CommentStyle::Hash, "# ", "\na: 1\n"),
        std::tuple("<!doctype html>\n<p>\n", CommentStyle::Markup, "<!doctype html>\n<!-- ", " -->\n<p>\n"),
        std::tuple("<svg>\n", CommentStyle::Markup, "<!-- ", " -->\n<svg>\n")}) {
    write_output(folder / "ours", content, Overwrite::Ours, style);
    const std::string written = read_output(folder / "ours");
    CHECK(written == std::string(before) + "Written by stagecraft; the rest has SHA-256 " +
                         sha256(content).substr(0, 16) + "." + after);
    CHECK(is_ours(folder / "ours"));
    for (const std::string& changed : {written + " ", written.substr(0, written.size() - 1), " " + written}) {
      test::write_file(folder / "ours", changed);
      CHECK_FALSE(is_ours(folder / "ours"));
      CHECK(refusal(folder / "ours") == "was not written by stagecraft, or was changed since");
      CHECK(read_output(folder / "ours") == changed);
    }
    test::write_file(folder / "ours", written);
  }
  test::write_file(folder / "ours", "# Written by stagecraft.\n");
  CHECK_FALSE(is_ours(folder / "ours"));
}

TEST_CASE("listed files are ours until someone changes them") {
  const Folder folder;
  write_listed(folder.path(), "a.json", "{}", Overwrite::Ours);
  write_listed(folder.path(), "b.json", "[]", Overwrite::Ours);
  write_listed(folder.path(), "a.json", "{1}", Overwrite::Ours);
  CHECK(is_ours(folder / "a.json"));
  CHECK(is_ours(folder / "b.json"));
  test::write_file(folder / "a.json", "{2}");
  CHECK_FALSE(is_ours(folder / "a.json"));
  CHECK_THROWS_AS(write_listed(folder.path(), "a.json", "{}", Overwrite::Ours), InputError);
  CHECK(read_output(folder / "a.json") == "{2}");
  write_listed(folder.path(), "a.json", "{}", Overwrite::Anything);
  CHECK(is_ours(folder / "a.json"));
  test::write_file(folder / ".stagecraft-files", "mine");
  CHECK_THROWS_AS(write_listed(folder.path(), "c.json", "{}", Overwrite::Anything), InputError);
  CHECK(read_output(folder / ".stagecraft-files") == "mine");
}

TEST_CASE("the manifest of many files is written once, and knows all of them") {
  const Folder folder;
  std::vector<ListedFile> files;
  for (int i = 0; i < 200; ++i) files.push_back({"file." + std::to_string(i), i < 100 ? "first" : "second"});
  const int before = files_written();
  write_listed(folder.path(), files, Overwrite::Ours);
  CHECK(files_written() - before == 201);
  CHECK(count(folder) == 201);
  for (const ListedFile& file : files) CHECK(is_ours(folder / file.name.c_str()));
  test::write_file(folder / "file.199", "changed");
  CHECK_THROWS_AS(write_listed(folder.path(), files, Overwrite::Ours), InputError);
  CHECK(read_output(folder / "file.199") == "changed");
  write_listed(folder.path(), std::span(files).first(199), Overwrite::Ours);
  CHECK(read_output(folder / "file.199") == "changed");
  write_listed(folder.path(), files, Overwrite::Anything);
  CHECK(is_ours(folder / "file.199"));
}

TEST_CASE("an input is not replaced by whatever name, not even by force") {
  const Folder folder;
  test::write_file(folder / "in", "# Written by stagecraft.\n");
  read_file(folder / "in");
  fs::create_hard_link(folder / "in", folder / "hard");
  fs::create_symlink("in", folder / "soft");
  for (const char* name : {"in", "hard", "soft", "./in"})
    CHECK(refusal(folder / name, Overwrite::Anything) == "is read by this command, and would be lost");
  CHECK(read_output(folder / "in") == "# Written by stagecraft.\n");
}

TEST_CASE("devices, pipes, folders and links to nothing are no outputs") {
  const Folder folder;
  fs::create_symlink("/dev/full", folder / "full");
  fs::create_symlink("nothing", folder / "nowhere");
  fs::create_symlink("round", folder / "round");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {std::string("/dev/full"), std::string("/dev/stdout"), std::string("/dev/fd/1"),
                                  folder / "full", folder / "pipe"})
    CHECK(refusal(path, Overwrite::Anything) == "is a device or a pipe, not a file");
  CHECK(refusal(folder.path(), Overwrite::Anything) == "is a folder, not a file");
  for (const char* name : {"nowhere", "round"})
    CHECK(refusal(folder / name, Overwrite::Anything) == "is a link to a file that is not there");
  CHECK_FALSE(fs::exists(folder / "nothing"));
}

TEST_CASE("a link stays a link, and a file keeps its permissions") {
  const Folder folder;
  fs::create_directories(folder / "far");
  write_output(folder / "far/a", "", Overwrite::Ours, CommentStyle::Hash);
  fs::permissions(folder / "far/a", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("far/a", folder / "link");
  write_output(folder / "link", "b", Overwrite::Ours, CommentStyle::Hash);
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_output(folder / "far/a").ends_with(".\nb"));
  CHECK(fs::status(folder / "far/a").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

}  // namespace stagecraft::output_test
