#include "sim/sweep/database.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>
#include <sqlite3.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

ReadableFile::ReadableFile(const std::string& file) : path_(file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return;
  std::string temporary = std::filesystem::temp_directory_path() / "stagecraft-XXXXXX";
  if (!mkdtemp(temporary.data())) throw BackendError(fmt::format("{}: {}", temporary, std::strerror(errno)));
  copy_ = temporary;
  path_ = copy_ + "/results.db";
  std::error_code none, wrong;
  std::filesystem::copy_file(file + "-wal", path_ + "-wal", none);  // Mostly there is none.
  std::filesystem::copy_file(file, path_, wrong);
  if (!wrong) return;
  std::filesystem::remove_all(copy_, none);
  throw BackendError(fmt::format("{}: {}", file, wrong.message()));
}

ReadableFile::~ReadableFile() {
  std::error_code none;
  if (!copy_.empty()) std::filesystem::remove_all(copy_, none);
}

Database::Database(const std::string& file, Open how) : file_(file) {
  constexpr int kTimeout = 5000;  // Milliseconds for which a reader may block a writer.
  if (how == Open::Read) readable_ = std::make_unique<ReadableFile>(file);
  const int flags = how == Open::Read ? SQLite::OPEN_READONLY : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE;
  try {
    sql_ = std::make_unique<SQLite::Database>(readable_ ? readable_->path() : file, flags, kTimeout);
  } catch (const SQLite::Exception& e) {
    throw BackendError(fmt::format("{}: {}", file, e.what()));
  }
}

std::int64_t Database::number(const std::string& query) const try {
  return sql_->execAndGet(query).getInt64();
} catch (const SQLite::Exception& e) {
  fail(e);
}

void Database::fail(const SQLite::Exception& e) const {
  const int system = sqlite3_system_errno(sql_->getHandle());  // "disk I/O error" alone does not say why.
  const bool says_why = e.getErrorCode() == SQLITE_IOERR && system != 0;
  throw BackendError(
      fmt::format("{}: {}{}{}", file_, e.what(), says_why ? ": " : "", says_why ? std::strerror(system) : ""));
}

}  // namespace stagecraft
