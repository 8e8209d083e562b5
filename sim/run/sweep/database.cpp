#include "sim/run/sweep/database.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <sqlite3.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr int kPatience = 5000;  // Milliseconds that a reader may hold us up.

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }

Statement::Statement(const Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) database.fail();
  statement_.reset(made);
}

Statement& Statement::set(int index, std::string_view text) {
  if (sqlite3_bind_text64(statement_.get(), index, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8) != SQLITE_OK)
    database_.fail();
  return *this;
}

Statement& Statement::set(int index, double number) {
  if (sqlite3_bind_double(statement_.get(), index, number) != SQLITE_OK) database_.fail();
  return *this;
}

Statement& Statement::set(int index, std::int64_t number) {
  if (sqlite3_bind_int64(statement_.get(), index, number) != SQLITE_OK) database_.fail();
  return *this;
}

bool Statement::step() {
  const int got = sqlite3_step(statement_.get());
  if (got == SQLITE_ROW) return true;
  if (got != SQLITE_DONE) database_.fail();
  sqlite3_reset(statement_.get());
  return false;
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))) : "";
}

double Statement::number(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::int64_t Statement::whole(int column) const { return sqlite3_column_int64(statement_.get(), column); }

ReadableFile::ReadableFile(const std::string& file) : path_(file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return;
  std::string made = std::filesystem::temp_directory_path() / "stagecraft-XXXXXX";
  if (!mkdtemp(made.data())) throw BackendError(fmt::format("{}: {}", made, std::strerror(errno)));
  copy_ = made;
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
  if (how == Open::Read) readable_ = std::make_unique<ReadableFile>(file);
  sqlite3* made = nullptr;
  const int flags = how == Open::Read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int got = sqlite3_open_v2((readable_ ? readable_->path() : file).c_str(), &made, flags, nullptr);
  handle_.reset(made);
  if (got != SQLITE_OK) fail();
  sqlite3_busy_timeout(made, kPatience);
}

void Database::run(const std::string& sql) const {
  if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

std::int64_t Database::number(const std::string& sql) const {
  Statement statement(*this, sql);
  return statement.step() ? statement.whole(0) : 0;
}

void Database::fail() const {
  if (!handle_) throw BackendError(file_ + ": out of memory");
  const int system = sqlite3_system_errno(handle());  // "disk I/O error" alone helps nobody.
  const bool says_why = sqlite3_errcode(handle()) == SQLITE_IOERR && system != 0;
  throw BackendError(fmt::format("{}: {}{}{}", file_, sqlite3_errmsg(handle()), says_why ? ": " : "",
                                 says_why ? std::strerror(system) : ""));
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace stagecraft
