#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/run/sweep/database.hpp"
#include "sim/run/sweep/result.hpp"
#include "sim/run/sweep/table.hpp"

namespace stagecraft {

/// Where a result comes from: one of another backend or version is another result.
struct Origin {
  std::string backend, version;  ///< `version`: ours and the backend's.
};

/// This process alone writes a file, from here to the end of this; SQLite's own locks last for a transaction only.
class FileLock {
 public:
  explicit FileLock(const std::string& file);  ///< InputError when another process has it.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// The file of a sweep's results, SQLite with a write-ahead log. One process writes it; others may read meanwhile.
///
/// Tables: `sweep` (one row: the file, and the origin that was run last), `point` (the points of that file as it was
/// last: number, label, settings as JSON, hash), `scenario` (hash, resolved text: the hash is the text's SHA-256) and
/// `result` (one row for each hash, backend and version). The view `results` has the points with their results of the
/// last origin, by number. Results are never deleted, so that points that come back find theirs.
class Store {
 public:
  static constexpr int kApplication = 0x53435357;  ///< "SCSW", as `file` and SQLite's application_id have it.
  static constexpr int kLayout = 2;                ///< user_version.

  /// Opens the file, or makes it. InputError when it is not a file of ours, is of another layout, or is being written
  /// by another process.
  explicit Store(const std::string& file);

  /// The sweep as it is now takes the place of what was there of it; results stay. InputError when another sweep's are
  /// there.
  void describe(const Sweep&, const std::vector<Point>&, const std::vector<std::string>& hashes, const Origin&);

  /// Hashes with a result of this origin; `retry`: without those that may pass another time.
  std::set<std::string> finished(const Origin&, bool retry) const;

  /// Scenarios without a result of this origin take the newest that ran of another version on the same backend; its
  /// message says which. How many.
  int take_over(const Origin&);

  /// One result, in the file when this returns; it takes the place of an earlier one.
  void add(const PointResult&, const Origin&);

  /// Points by number with their results of the last origin.
  SweepTable table() const;

  /// Takes over the results of another file of the same sweep and origin; InputError when it is of others. Where both
  /// have a result, one that ran goes before one that did not, and else the one that was there stays.
  void merge(const std::string& file);

 private:
  FileLock lock_;
  Database database_;
};

/// False where the file, or its folder, which SQLite writes to as well, may not be written.
bool may_be_written(const std::string& file);

/// InputError unless there are results of a sweep in this file.
void check_results(const std::string& file);

/// Its points by number with their results of the last origin, also while another process writes it. InputError as
/// check_results().
SweepTable results_in(const std::string& file);

}  // namespace stagecraft
