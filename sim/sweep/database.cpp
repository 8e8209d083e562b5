// Opens SQLite files that others may have written (results of sweeps, exports of Nsight Systems), with views and
// triggers switched off and a limit on steps.

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
namespace {

constexpr int kStepsBetweenLooks = 10'000;
constexpr int kLongestValue = 64 << 20;  // Bytes; the longest that is stored is the text of a scenario.

/// Errors that another machine, or this one later, would not have with the same file.
bool is_fault_of_machine(int code) {
  switch (code) {
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
      return true;
    default:
      return false;
  }
}

/// If so, a lack of memory is the fault of the file: of damaged bytes by which a row has gigabytes.
bool has_memory_for_a_value() {
  void* const memory = sqlite3_malloc(kLongestValue);
  sqlite3_free(memory);
  return memory != nullptr;
}

std::uint64_t bytes_of(const std::string& file) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file, none);
  return none ? 0 : size;
}

}  // namespace

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
    distrust_schema();
    limit_steps();
  } catch (const SQLite::Exception& e) {
    throw BackendError(fmt::format("{}: {}", file, e.what()));
  }
}

Database::~Database() = default;

/// No statement of Stagecraft needs a view, a trigger, or a function that a schema calls.
void Database::distrust_schema() {
  sqlite3* const handle = sql_->getHandle();
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  for (const int feature :
       {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW})
    sqlite3_db_config(handle, feature, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestValue);
}

void Database::limit_steps() {
  sqlite3* const handle = sql_->getHandle();
  const auto starts = [](unsigned, void* database, void*, void*) {
    static_cast<Database*>(database)->steps_ = 0;
    return 0;
  };
  sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, starts, this);
  const auto goes_on = [](void* database) { return static_cast<Database*>(database)->is_over_limit() ? 1 : 0; };
  sqlite3_progress_handler(handle, kStepsBetweenLooks, goes_on, this);
}

/// A row of 400 bytes takes some 200 steps of SQLite's virtual machine to read or to copy.
bool Database::is_over_limit() {
  constexpr std::uint64_t kAlways = 10'000'000, kForEachByte = 100;
  steps_ += kStepsBetweenLooks;
  if (steps_ <= kAlways) return false;
  std::uint64_t bytes = 0;
  for (const std::string& file : {file_, attached_ ? attached_->path() : std::string()})
    if (!file.empty()) bytes += bytes_of(file) + bytes_of(file + "-wal");
  return steps_ > kAlways + kForEachByte * bytes;
}

void Database::attach(const std::string& file) {
  attached_ = std::make_unique<ReadableFile>(file);
  attached_file_ = file;
  SQLite::Statement attach(*sql_, "ATTACH ? AS other");
  attach.bind(1, attached_->path());
  attach.exec();
}

void Database::detach() {
  sql_->tryExec("DETACH other");  // A failure is harmless: it goes with the database.
  attached_.reset();
  attached_file_.clear();
}

std::int64_t Database::number(const std::string& query) const try {
  return sql_->execAndGet(query).getInt64();
} catch (const SQLite::Exception& e) {
  fail(e);
}

void Database::fail(const SQLite::Exception& e) const {
  const int code = e.getErrorCode();
  if (!is_fault_of_machine(code) || (code == SQLITE_NOMEM && has_memory_for_a_value()))
    throw InputError({{{attached_file_.empty() ? file_ : attached_file_, 0, 0},
                       {},
                       code == SQLITE_INTERRUPT ? "reading takes more steps than the size of the file explains"
                       : code == SQLITE_NOMEM   ? "a row claims gigabytes"
                                                : e.what(),
                       "the file is damaged: take a copy of it, or make it again",
                       "database"}});
  const int system = sqlite3_system_errno(sql_->getHandle());  // "disk I/O error" alone does not say why.
  const bool says_why = code == SQLITE_IOERR && system != 0;
  throw BackendError(
      fmt::format("{}: {}{}{}", file_, e.what(), says_why ? ": " : "", says_why ? std::strerror(system) : ""));
}

}  // namespace stagecraft
