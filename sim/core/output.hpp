#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// Which files an output may replace. Inputs of this process, devices and folders it never replaces.
enum class Overwrite {
  Ours,  ///< Unchanged files: with the header of write_output(), or listed by the manifest of their folder.
  Anything,
};

/// How a file format writes comments: "# header", "<!-- header -->", or not at all.
enum class CommentStyle { None, Hash, Markup };

/// InputError when write_output() would refuse this name, checked before a long run.
void check_output(const std::string& path, Overwrite);

/// The only function that opens a file for writing, apart from SQLite. It writes to a temporary file in the same
/// folder, with an unguessable name, and renames it, so that a reader never sees half of it. The file keeps its
/// permissions, and a link to a file stays a link. The content begins with a header in a comment, where the format has
/// comments, with a hash by which a change of the rest is noticed; content that is already there may always be written
/// again. InputError as check_output(); BackendError when
/// the system fails.
void write_output(const std::string& path, std::string_view content, Overwrite,
                  CommentStyle style = CommentStyle::None);

/// InputError when write_listed() would refuse this name, checked before a long run.
void check_listed(const std::string& folder, const std::string& name, Overwrite);

/// A file in a folder of files.
struct ListedFile {
  std::string name;
  std::string_view content;
};

/// Writes files of a folder like write_output(), but without a header: the manifest of the folder lists the hashes of
/// all of them before the first is written, once for all.
void write_listed(const std::string& folder, std::span<const ListedFile> files, Overwrite);
void write_listed(const std::string& folder, const std::string& name, std::string_view content, Overwrite);

/// Whether stagecraft wrote this file, and nothing has changed it since.
bool is_ours(const std::string& path);

/// Removes the temporary files that are not renamed yet; a signal handler may call it in any thread.
void remove_half_written() noexcept;
/// Number of files that write_output() has finished.
int files_written() noexcept;

}  // namespace stagecraft
