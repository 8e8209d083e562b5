#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace stagecraft {

class Database;

/// A prepared statement; values are numbered from 1, columns from 0. A NaN is a NULL, both ways.
class Statement {
 public:
  Statement(const Database&, const std::string& sql);

  Statement& set(int index, std::string_view text);
  Statement& set(int index, double number);
  Statement& set(int index, std::int64_t number);

  bool step();  ///< Whether there is a row. Behind the last one, the statement can be used again.
  std::string text(int column) const;
  double number(int column) const;
  std::int64_t whole(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt*) const;
  };
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// A file to read from, for as long as this lives: SQLite wants to write beside it, so where its folder may not be
/// written this is a copy, with what its log has.
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

/// An open SQLite file. What goes wrong is a BackendError that names the file.
class Database {
 public:
  enum class Open { Read, Write };  ///< Write: made when it is not there.
  Database(const std::string& file, Open);

  void run(const std::string& sql) const;
  std::int64_t number(const std::string& sql) const;  ///< The one that a query has for an answer.
  const std::string& file() const { return file_; }
  sqlite3* handle() const { return handle_.get(); }
  [[noreturn]] void fail() const;  ///< With SQLite's last words.

 private:
  struct Close {
    void operator()(sqlite3*) const;
  };
  std::string file_;
  std::unique_ptr<ReadableFile> readable_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// Everything until commit() or nothing.
class Transaction {
 public:
  explicit Transaction(const Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() { database_.run("COMMIT"), open_ = false; }

 private:
  const Database& database_;
  bool open_ = true;
};

}  // namespace stagecraft
