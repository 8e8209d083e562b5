#pragma once

#include <cstdint>
#include <string>

#include <SQLiteCpp/SQLiteCpp.h>

namespace stagecraft {

/// A file that SQLite can read. SQLite writes next to each file that it reads, so this is a copy, with what is in the
/// file's log, if the file's folder may not be written. The destructor deletes the copy.
class ReadableFile {
 public:
  explicit ReadableFile(const std::string& file);
  ~ReadableFile();
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_, copy_;
};

/// An open SQLite file. Code that uses sql() passes what SQLiteCpp throws to fail().
class Database {
 public:
  enum class Open { Read, Write };  ///< Write creates a missing file.
  Database(const std::string& file, Open);

  const std::string& file() const { return file_; }
  SQLite::Database& sql() const { return *sql_; }
  std::int64_t number(const std::string& query) const;     ///< The answer of a query for one number.
  [[noreturn]] void fail(const SQLite::Exception&) const;  ///< Throws BackendError with the name of the file.

 private:
  std::string file_;
  std::unique_ptr<ReadableFile> readable_;
  std::unique_ptr<SQLite::Database> sql_;
};

}  // namespace stagecraft
