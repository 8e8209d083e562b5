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

/// An open SQLite file, which may come from others. Views and triggers of its schema never run, and a statement ends
/// with an error after more steps than reading the whole file takes. Code that uses sql() passes what SQLiteCpp throws
/// to fail().
class Database {
 public:
  enum class Open { Read, Write };  ///< Write creates a missing file.
  Database(const std::string& file, Open);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& file() const { return file_; }
  SQLite::Database& sql() const { return *sql_; }
  std::int64_t number(const std::string& query) const;  ///< The answer of a query for one number.
  /// Throws with the name of the file, or of the one that is attached, which others have made: BackendError where the
  /// machine is at fault, InputError where the file is.
  [[noreturn]] void fail(const SQLite::Exception&) const;

  /// Makes the tables of a second file available as `other`, and takes them away again.
  void attach(const std::string& file);
  void detach();

 private:
  void distrust_schema();
  void limit_steps();
  bool is_over_limit();

  std::string file_, attached_file_;
  std::unique_ptr<ReadableFile> readable_, attached_;
  std::unique_ptr<SQLite::Database> sql_;
  std::uint64_t steps_ = 0;  ///< Steps of the statement that runs.
};

}  // namespace stagecraft
