// Writes files without losing what was there: a temporary file takes the place of the old one, and foreign files are
// refused.

#include "sim/core/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "Written by stagecraft";
constexpr std::string_view kBeforeHash = "; the rest has SHA-256 ";
constexpr std::size_t kHashDigits = 16;     // Enough to notice an accidental change.
constexpr std::size_t kHeaderWithin = 256;  // Bytes from the start of a file.
constexpr const char* kManifest = ".stagecraft-files";
constexpr const char* kManifestStart = "# {}, which may replace these files while they have this SHA-256.\n";

/// A temporary file, or a folder that was made. None goes away, since a handler of a signal may look at it at any time.
struct HalfWritten {
  const std::string path;
  const bool is_folder = false;
  std::atomic<bool> there = true;
  HalfWritten* next = nullptr;
};

std::atomic<HalfWritten*> half_written = nullptr;  // The newest first, so that a folder comes after what is in it.
std::atomic<int> finished = 0;

HalfWritten* note_half_written(std::string path, bool is_folder) {
  auto* entry = new HalfWritten{std::move(path), is_folder};
  entry->next = half_written;
  while (!half_written.compare_exchange_weak(entry->next, entry)) continue;
  return entry;
}

/// Whether the machine has failed. All other errors are of the name that is to be written.
bool is_of_machine(int error) {
  constexpr std::array kOfMachine{0, EIO, ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE, ENOBUFS};
  return std::find(kOfMachine.begin(), kOfMachine.end(), error) != kOfMachine.end();
}

[[noreturn]] void refuse(const std::string& what, int error) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error == 0 ? EIO : error));
  if (is_of_machine(error)) throw BackendError(text);
  throw InputError(text, "name another place, or allow to write there");
}

/// So that only one process at a time changes the files of a folder and its manifest. A file system without such locks
/// lets all of them.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : file_(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (file_.number() >= 0 && flock(file_.number(), LOCK_EX) != 0 && errno == EINTR) continue;
  }

 private:
  OpenFile file_;
};

std::string unguessable_name() {
  std::array<std::uint64_t, 2> words{};
  if (getrandom(words.data(), sizeof words, 0) != sizeof words) throw BackendError("the system has no random numbers");
  return fmt::format(".stagecraft-{:016x}{:016x}.tmp", words[0], words[1]);
}

/// A new file next to `target`, which takes its place with rename_to(), or else is removed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : target_(target),
        entry_(note_half_written((fs::path(target).parent_path() / unguessable_name()).string(), false)) {
    constexpr mode_t kUsual = 0666;  // Less what the umask of the process takes away.
    file_ = OpenFile(open(entry_->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kUsual));
    if (file_.number() >= 0) return;
    entry_->there = false;
    refuse_to_write(target, errno);
  }
  ~TemporaryFile() {
    if (entry_->there) unlink(entry_->path.c_str());
    entry_->there = false;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void append(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = write(file_.number(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse_to_write(target_, errno);
      text.remove_prefix(written);
    }
  }

  /// All of it is written.
  void close() {
    struct stat before = {};
    if (stat(target_.c_str(), &before) == 0) {
      // Only the administrator may give a file away, and only then is there something to keep.
      if (fchown(file_.number(), before.st_uid, before.st_gid) != 0 && geteuid() == 0) refuse_to_write(target_, errno);
      if (fchmod(file_.number(), before.st_mode & 07777U) != 0) refuse_to_write(target_, errno);
    }
    file_.close();
  }

  void take_place() {
    if (rename(entry_->path.c_str(), target_.c_str()) != 0) refuse_to_write(target_, errno);
    entry_->there = false;
    ++finished;
  }

 private:
  std::string target_;
  HalfWritten* entry_;
  OpenFile file_;
};

/// The file that a link stands for, so that the link stays. A link to nothing could point anywhere.
std::string behind_links(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
  const fs::path file = fs::canonical(path, error);
  if (error) throw InputError(fmt::format("'{}' is a link to a file that is not there", path), "name another file");
  return file.string();
}

/// The hashes of the files that Stagecraft wrote to a folder, by their names. A file that is being replaced has two.
class Manifest {
 public:
  explicit Manifest(const std::string& folder) {
    const std::string file = (fs::path(folder) / kManifest).string();
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(file, error))) return;
    for (const std::string& line : split(read_output(file), '\n'))
      if (const std::size_t space = line.find("  "); space != line.npos && !line.starts_with('#'))
        hashes_[line.substr(space + 2)].insert(line.substr(0, space));
  }

  bool names(const std::string& name) const { return hashes_.contains(name); }
  bool lists(const std::string& name, std::string_view content) const {
    const auto entry = hashes_.find(name);
    return entry != hashes_.end() && entry->second.contains(sha256(content));
  }
  /// The only hashes of a file from now on.
  void set(const std::string& name, std::set<std::string> hashes) { hashes_[name] = std::move(hashes); }

  std::string text() const {
    std::string text = fmt::format(fmt::runtime(kManifestStart), kHeader);
    for (const auto& [name, hashes] : hashes_)
      for (const std::string& hash : hashes) text += fmt::format("{}  {}\n", hash, name);
    return text;
  }

 private:
  std::map<std::string, std::set<std::string>> hashes_;
};

std::string short_hash(std::string_view content) { return sha256(content).substr(0, kHashDigits); }

/// A PDF has the header without a hash, since its parts are found by their places in the file.
bool is_pdf(std::string_view content) { return content.starts_with("%PDF-"); }

/// The content without the line of its header; nothing where its start has no header.
std::optional<std::string> without_header(const std::string& content, std::string_view hash) {
  for (const std::string& line : {fmt::format("# {}{}{}.\n", kHeader, kBeforeHash, hash),
                                  fmt::format("\n<!-- {}{}{}. -->", kHeader, kBeforeHash, hash),
                                  fmt::format("<!-- {}{}{}. -->\n", kHeader, kBeforeHash, hash)}) {
    const std::size_t at = content.find(line);
    if (at < kHeaderWithin) return content.substr(0, at) + content.substr(at + line.size());
  }
  return {};
}

/// Whether the content has our header, and nothing has changed it since it was written.
bool has_true_header(const std::string& content) {
  const std::string_view start = std::string_view(content).substr(0, kHeaderWithin);
  const std::size_t at = start.find(kHeader);
  if (at == start.npos || is_pdf(content)) return at != start.npos;
  std::string_view rest = start.substr(at + kHeader.size());
  if (!rest.starts_with(kBeforeHash)) return false;
  const std::string_view hash = rest.substr(kBeforeHash.size(), kHashDigits);
  const std::optional<std::string> text = without_header(content, hash);
  return text && short_hash(*text) == hash;
}

bool is_manifest(const std::string& file) {
  return fs::path(file).filename() == kManifest && read_output(file).starts_with(fmt::format("# {}, which", kHeader));
}

bool is_listed(const std::string& file) {
  const fs::path path(file);
  const Manifest manifest(path.parent_path().string());
  const std::string name = path.filename().string();
  return manifest.names(name) && manifest.lists(name, read_output(file));
}

void require_writable(const std::string& folder) {
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    refuse(fmt::format("in the folder '{}' nothing can be written", folder.empty() ? "." : folder), errno);
}

/// The file that the output really goes to. InputError if no output may ever replace it.
std::string checked_target(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.starts_with("/dev/") || (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)))
    throw InputError(fmt::format("'{}' is a device or a pipe, not a file", path), "name a file");
  if (fs::is_directory(status))
    throw InputError(fmt::format("'{}' is a folder, not a file", path), "name a file in it");
  const std::string target = behind_links(path);
  const fs::path folder = fs::path(target).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    throw InputError(fmt::format("there is no folder '{}'", folder.string()), "make it, or name another file");
  require_writable(folder.string());
  if (!input_at(target).empty())
    throw InputError(fmt::format("'{}' is read by this command, and would be lost", path), "name another file");
  // Another process may have taken the file away by now, to write its own.
  if (fs::exists(status) && access(target.c_str(), W_OK) != 0 && errno != ENOENT)
    throw InputError(fmt::format("'{}' is write-protected", path), "name another file, or allow to write it");
  return target;
}

[[noreturn]] void refuse_foreign(const std::string& path) {
  throw InputError(fmt::format("'{}' was not written by stagecraft, or was changed since", path),
                   "name another file, or replace it with --force");
}

bool may_replace(const std::string& target, Overwrite overwrite) {
  std::error_code error;
  return overwrite == Overwrite::Anything || !fs::exists(target, error) || is_ours(target);
}

/// The line with the header, and where in the content it goes: after a declaration, which has to be first.
std::pair<std::string, std::size_t> header_for(std::string_view content, CommentStyle style) {
  if (style == CommentStyle::None) return {};
  const std::string header = fmt::format("{}{}{}.", kHeader, kBeforeHash, short_hash(content));
  if (style == CommentStyle::Hash) return {fmt::format("# {}\n", header), 0};
  const bool declared = content.starts_with("<!") || content.starts_with("<?");
  const std::size_t at = declared ? content.find('>') + 1 : 0;
  return {fmt::format("{}<!-- {} -->{}", at > 0 ? "\n" : "", header, at > 0 ? "" : "\n"), at};
}

}  // namespace

bool is_ours(const std::string& path) {
  return has_true_header(read_output(path)) || is_listed(path) || is_manifest(path);
}

void check_output(const std::string& path, Overwrite overwrite) {
  if (!may_replace(checked_target(path), overwrite)) refuse_foreign(path);
}

void write_output(const std::string& path, std::string_view content, Overwrite overwrite, CommentStyle style) {
  const std::string target = checked_target(path);
  if (!may_replace(target, overwrite) && read_output(target) != content) refuse_foreign(path);
  const auto [header, at] = header_for(content, style);
  TemporaryFile file(target);
  file.append(content.substr(0, at));
  file.append(header);
  file.append(content.substr(at));
  file.close();
  file.take_place();
}

void refuse_to_write(const std::string& path, int error) { refuse(fmt::format("'{}' cannot be written", path), error); }

void make_output_folder(const std::string& folder) {
  fs::path part;
  for (const fs::path& step : fs::path(folder)) {
    part /= step;
    std::error_code error;
    if (fs::is_directory(part, error)) continue;
    HalfWritten* entry = note_half_written(part.string(), true);
    constexpr mode_t kUsual = 0777;  // Less what the umask of the process takes away.
    if (mkdir(part.c_str(), kUsual) == 0) continue;
    const int why = errno;
    entry->there = false;  // Another process has made it meanwhile, or it cannot be made.
    if (!fs::is_directory(part, error)) refuse(fmt::format("the folder '{}' cannot be made", folder), why);
  }
  if (folder.empty()) refuse("the folder '' cannot be made", ENOENT);
  require_writable(folder);
}

void check_listed(const std::string& folder, const std::string& name, Overwrite overwrite) {
  const FolderLock lock(folder);
  check_output((fs::path(folder) / name).string(), overwrite);
  check_output((fs::path(folder) / kManifest).string(), Overwrite::Ours);
}

struct FolderUpdate::Added {
  std::string name, path, target;
  std::string hash;
  TemporaryFile file;
};

FolderUpdate::FolderUpdate(std::string folder, Overwrite overwrite)
    : folder_(std::move(folder)), overwrite_(overwrite) {}
FolderUpdate::~FolderUpdate() = default;

void FolderUpdate::add(const std::string& name, std::string_view content) {
  const std::string path = (fs::path(folder_) / name).string(), target = checked_target(path);
  added_.push_back(std::unique_ptr<Added>(new Added{name, path, target, sha256(content), TemporaryFile(target)}));
  added_.back()->file.append(content);
  added_.back()->file.close();
}

void FolderUpdate::commit(std::span<const std::string> stale) {
  const FolderLock lock(folder_);
  const std::string manifest_file = (fs::path(folder_) / kManifest).string();
  check_output(manifest_file, Overwrite::Ours);
  Manifest manifest(folder_);
  std::error_code error;
  for (const auto& added : added_) {
    std::set<std::string> hashes{added->hash};
    if (fs::exists(added->target, error)) {
      const std::string before = read_output(added->target);
      const bool listed = manifest.lists(added->name, before);
      if (overwrite_ == Overwrite::Ours && !listed && !has_true_header(before)) refuse_foreign(added->path);
      if (listed) hashes.insert(sha256(before));
    }
    manifest.set(added->name, std::move(hashes));
  }
  std::vector<std::string> removed;  // The last of the files goes first: where it is, all are.
  if (!added_.empty()) removed.push_back(added_.back()->target);
  for (const std::string& name : stale) {
    const std::string path = (fs::path(folder_) / name).string();
    const bool is_added = std::any_of(added_.begin(), added_.end(), [&](const auto& a) { return a->name == name; });
    if (is_added || !fs::exists(fs::symlink_status(path, error))) continue;
    check_output(path, overwrite_);
    removed.push_back(path);
  }
  write_output(manifest_file, manifest.text(), Overwrite::Ours);
  for (const std::string& path : removed)
    if (unlink(path.c_str()) != 0 && errno != ENOENT) refuse_to_write(path, errno);
  for (const auto& added : added_) added->file.take_place();
}

void write_listed(const std::string& folder, std::span<const ListedFile> files, Overwrite overwrite) {
  FolderUpdate update(folder, overwrite);
  for (const ListedFile& file : files) update.add(file.name, file.content);
  update.commit();
}

void write_listed(const std::string& folder, const std::string& name, std::string_view content, Overwrite overwrite) {
  const ListedFile file{name, content};
  write_listed(folder, std::span(&file, 1), overwrite);
}

void remove_half_written() noexcept {
  for (const HalfWritten* h = half_written; h; h = h->next)
    if (h->there) h->is_folder ? rmdir(h->path.c_str()) : unlink(h->path.c_str());
}

int files_written() noexcept { return finished; }

}  // namespace stagecraft
