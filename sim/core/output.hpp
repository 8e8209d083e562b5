#pragma once

#include <memory>
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
/// the system fails, as refuse_to_write() says.
void write_output(const std::string& path, std::string_view content, Overwrite,
                  CommentStyle style = CommentStyle::None);

/// InputError where the system refuses to write this name, which another name or a permission mends; BackendError where
/// the machine has failed, as a full disk does. `error` is an errno.
[[noreturn]] void refuse_to_write(const std::string& path, int error);

/// Makes a folder for outputs, and those around it, where they are missing. Errors as refuse_to_write().
void make_output_folder(const std::string& folder);

/// InputError when write_listed() would refuse this name, checked before a long run.
void check_listed(const std::string& folder, const std::string& name, Overwrite);

/// Files of a folder that take their places together. Until then each has a temporary name, and the folder keeps what
/// it had. The manifest of the folder lists the hashes of all of them. Of several processes that write to one folder
/// each changes it alone, so what the last one wrote is there.
class FolderUpdate {
 public:
  FolderUpdate(std::string folder, Overwrite);
  ~FolderUpdate();
  FolderUpdate(const FolderUpdate&) = delete;
  FolderUpdate& operator=(const FolderUpdate&) = delete;

  void add(const std::string& name, std::string_view content);
  /// Removes the `stale` files of an earlier update and puts the added ones in their places, in the order in which they
  /// were added. InputError as check_listed(), for all of them, before anything changes.
  void commit(std::span<const std::string> stale = {});

 private:
  struct Added;
  std::string folder_;
  Overwrite overwrite_;
  std::vector<std::unique_ptr<Added>> added_;
};

/// A file in a folder of files.
struct ListedFile {
  std::string name;
  std::string_view content;
};

/// Writes files to a folder in one FolderUpdate.
void write_listed(const std::string& folder, std::span<const ListedFile> files, Overwrite);
void write_listed(const std::string& folder, const std::string& name, std::string_view content, Overwrite);

/// Whether stagecraft wrote this file, and nothing has changed it since.
bool is_ours(const std::string& path);

/// Removes the temporary files that are not renamed yet, and the folders of make_output_folder() that are empty; a
/// signal handler may call it in any thread.
void remove_half_written() noexcept;
/// Number of files that write_output() has finished.
int files_written() noexcept;

}  // namespace stagecraft
