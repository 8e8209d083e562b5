// The SQLite file with the results of a sweep: which points are finished, adding results, merging another such file,
// and reading the table of all.

#include "sim/sweep/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>

#include <SQLiteCpp/VariadicBind.h>
#include <fmt/chrono.h>
#include <fmt/core.h>

#include "sim/core/json.hpp"
#include "sim/core/output.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/database.hpp"

namespace stagecraft {
namespace {

using SQLite::Statement;
using SQLite::Transaction;
constexpr auto kImmediate = SQLite::TransactionBehavior::IMMEDIATE;

/// The time as ISO 8601 has it: 2026-01-02T03:04:05Z.
std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// True of a new file and of one whose disk was full before its first table existed.
bool has_nothing(const Database& database) { return database.number("SELECT count(*) FROM sqlite_schema") == 0; }

/// Columns of the table `result` before its metrics.
constexpr const char* kResultColumns = "hash, backend, version, status, code, message, wall_s, finished, machine, plan";

/// Refuses a file that is not one of sweep results, before SQLite changes anything in it.
const std::string& checked_file(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError(fmt::format("'{}' is a folder", file), "name a file for the results, such as results.db");
  if (const auto folder = std::filesystem::path(file).parent_path();
      !folder.empty() && !std::filesystem::is_directory(folder, error))
    throw InputError(fmt::format("there is no folder '{}'", folder.string()), "make it, or name another file");
  if (!std::filesystem::exists(file, error) || std::filesystem::file_size(file, error) == 0) return file;
  const std::string help = "name another file";
  std::unique_ptr<Database> there;
  std::int64_t application = 0, layout = 0;
  try {
    there = std::make_unique<Database>(file, Database::Open::Read);
    if (has_nothing(*there)) return file;
    application = there->number("PRAGMA application_id");
    layout = there->number("PRAGMA user_version");
  } catch (const BackendError& e) {
    throw InputError(fmt::format("'{}' cannot be read as results of a sweep: {}", file, e.what()), help);
  } catch (const InputError& e) {
    throw InputError(
        fmt::format("'{0}' cannot be read as results of a sweep: {0}: {1}", file, e.problems().front().message), help);
  }
  if (application != Store::kApplication)
    throw InputError(fmt::format("'{}' is a database of something else, not of sweep results", file), help);
  if (layout != Store::kLayout)
    throw InputError(fmt::format("'{}' has layout {} of another stagecraft; this one reads and writes layout {}", file,
                                 layout, Store::kLayout),
                     help);
  require_schema(*there);
  return file;
}

/// SQLite stores a NaN as NULL.
double number_or_nan(const Statement& row, int column) {
  return row.isColumnNull(column) ? std::numeric_limits<double>::quiet_NaN() : row.getColumn(column).getDouble();
}

/// InputError where the file has no settings of a point there.
void check_settings(const std::string& file, std::int64_t point, const std::string& text) {
  const auto settings = Json::parse(text);
  if (!settings || !settings->is_object() || settings->members().size() > kMostPaths)
    throw InputError(fmt::format("'{}' is damaged: the settings of point {} cannot be read", file, point),
                     "stagecraft sweep FILE with --out of another file runs it again");
}

SweepTable table_of(const Database& database) try {
  SweepTable table;
  Statement sweep(database.sql(), "SELECT title, name, backend, version, text FROM sweep");
  if (!sweep.executeStep()) return table;
  table.name = sweep.getColumn(1).getString();
  table.title = sweep.getColumn(0).size() == 0 ? table.name : sweep.getColumn(0).getString();
  table.backend = sweep.getColumn(2).getString();
  table.version = sweep.getColumn(3).getString();
  table.text = sweep.getColumn(4).getString();
  Statement select(database.sql(), "SELECT number, label, settings, status, code, message, hash, plan" +
                                       selected_metrics(database) + " FROM (" + points_with_results(database) + ")");
  while (select.executeStep()) {
    const auto text = [&](int column) { return select.getColumn(column).getString(); };
    SweepRow row{.number = static_cast<int>(select.getColumn(0).getInt64()),
                 .label = text(1),
                 .settings = text(2),
                 .status = text(3),
                 .code = text(4),
                 .message = text(5),
                 .hash = text(6),
                 .plan = text(7),
                 .figures = {}};
    check_settings(database.file(), row.number, row.settings);
    for (int i = 0; i < static_cast<int>(metrics().size()); ++i) row.figures.push_back(number_or_nan(select, 8 + i));
    table.rows.push_back(std::move(row));
  }
  return table;
} catch (const SQLite::Exception& e) {
  database.fail(e);
}

/// Attaches a second file as `other` for the lifetime of this object.
class Attached {
 public:
  Attached(Database& database, const std::string& file) : database_(database) { database.attach(file); }
  ~Attached() { database_.detach(); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  Database& database_;
};

/// InputError if another process has the lock.
OpenFile locked(const std::string& file) {
  check_output(file, Overwrite::Anything);  // What is there already is one of ours by now.
  OpenFile lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.number() < 0) refuse_to_write(file, errno);
  if (flock(lock.number(), LOCK_EX | LOCK_NB) != 0)
    throw InputError(fmt::format("another process is writing '{}'", file), "wait for it, or name another file");
  return lock;
}

}  // namespace

Store::Store(const std::string& file)
    : lock_(locked(checked_file(file))), database_(std::make_unique<Database>(file, Database::Open::Write)) {
  try {
    SQLite::Database& sql = database_->sql();
    // A process that is killed loses nothing that was committed; only a power cut could lose the last moments.
    sql.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    Transaction transaction(sql, kImmediate);
    if (database_->number("PRAGMA user_version") == kLayout)
      add_missing_metrics(*database_);
    else
      sql.exec(tables_and_view());
    transaction.commit();
  } catch (const SQLite::Exception& e) {
    database_->fail(e);
  }
}

Store::~Store() = default;

void Store::describe(const Sweep& sweep, const std::vector<Point>& points, const std::vector<std::string>& hashes,
                     const Origin& origin) try {
  SQLite::Database& sql = database_->sql();
  Transaction transaction(sql, kImmediate);
  Statement others(sql, "SELECT name FROM sweep WHERE name <> ?");
  others.bind(1, sweep.name);
  if (others.executeStep())
    throw InputError(
        fmt::format("'{}' has the results of another sweep, '{}'", database_->file(), others.getColumn(0).getString()),
        "name another file with --out");
  sql.exec("DELETE FROM sweep; DELETE FROM point");
  Statement insert_sweep(sql, "INSERT INTO sweep VALUES (1, ?, ?, ?, ?, ?)");
  SQLite::bind(insert_sweep, sweep.name, sweep.title, sweep.text, origin.backend, origin.version);
  insert_sweep.exec();
  Statement insert(sql, "INSERT INTO point VALUES (?, ?, ?, ?)");
  for (int i = 0; i < std::ssize(points); ++i) {
    SQLite::bind(insert, points[i].number, points[i].label, settings_json(points[i]), hashes[i]);
    insert.exec();
    insert.reset();
  }
  transaction.commit();
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

std::set<std::string> Store::finished(const Origin& origin, bool retry) const try {
  Statement select(database_->sql(), "SELECT hash, status FROM result WHERE backend = ? AND version = ?");
  SQLite::bind(select, origin.backend, origin.version);
  std::set<std::string> hashes;
  while (select.executeStep())
    if (!retry || !may_pass_another_time(select.getColumn(1).getString()))
      hashes.insert(select.getColumn(0).getString());
  return hashes;
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

int Store::take_over(const Origin& origin) try {
  Transaction transaction(database_->sql(), kImmediate);
  Statement insert(database_->sql(), fmt::format(R"sql(
INSERT OR IGNORE INTO result ({0}{1})
  SELECT hash, backend, ?2, status, code, CASE WHEN message = '' THEN 'from version ' || version ELSE message END,
         wall_s, finished, machine, plan{1}
  FROM result WHERE backend = ?1 AND version <> ?2 AND status = 'ok' ORDER BY finished DESC)sql",
                                                 kResultColumns, metric_names()));
  SQLite::bind(insert, origin.backend, origin.version);
  const int count = insert.exec();
  transaction.commit();
  return count;
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

void Store::add(const PointResult& r, const Origin& origin) try {
  SQLite::Database& sql = database_->sql();
  Transaction transaction(sql, kImmediate);
  Statement scenario(sql, "INSERT OR IGNORE INTO scenario VALUES (?, ?)");
  SQLite::bind(scenario, r.hash, r.scenario);
  scenario.exec();
  std::string marks;
  for (std::size_t i = 0; i < metrics().size(); ++i) marks += ", ?";
  Statement insert(sql, fmt::format("INSERT OR REPLACE INTO result ({}{}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?{})",
                                    kResultColumns, metric_names(), marks));
  SQLite::bind(insert, r.hash, origin.backend, origin.version, r.status, r.code, r.message, r.seconds, utc_now(),
               r.machine, r.plan);
  for (int i = 0; i < std::ssize(r.figures); ++i) {
    if (is_whole(metrics()[i].unit))
      insert.bind(i + 11, static_cast<std::int64_t>(r.figures[i]));
    else
      insert.bind(i + 11, r.figures[i]);
  }
  insert.exec();
  transaction.commit();
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

SweepTable Store::table() const { return table_of(*database_); }

bool may_be_written(const std::string& file) {
  const auto refused = [](const std::string& path) {
    return access(path.c_str(), W_OK) != 0 && (errno == EACCES || errno == EROFS || errno == EPERM);
  };
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return !refused(file) && !refused(folder.empty() ? "." : folder);
}

void check_results(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw InputError({{{file, 0, 0},
                       {},
                       "there is no such file",
                       "stagecraft sweep FILE writes its results to a file, by default the sweep's name with .db",
                       ""}});
  checked_file(file);
  if (std::filesystem::file_size(file, error) == 0 || has_nothing(Database(file, Database::Open::Read)))
    throw InputError(fmt::format("'{}' is empty, and has no results", file), "name a file that sweep --out wrote");
}

SweepTable results_in(const std::string& file) {
  check_results(file);
  // A read-only connection cannot remove the log files of SQLite, so a writable file is opened for writing.
  return table_of(Database(file, may_be_written(file) ? Database::Open::Write : Database::Open::Read));
}

void Store::merge(const std::string& file) try {
  check_results(file);
  std::error_code error;
  if (std::filesystem::equivalent(file, database_->file(), error))
    throw InputError(fmt::format("'{}' is to be merged into itself", file), "name another file");
  const Attached other(*database_, file);
  merge_attached(file);
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

void Store::merge_attached(const std::string& file) try {
  SQLite::Database& sql = database_->sql();
  Transaction transaction(sql, kImmediate);
  Statement points(sql, "SELECT number, settings FROM other.point");
  while (points.executeStep()) check_settings(file, points.getColumn(0).getInt64(), points.getColumn(1).getString());
  points.reset();
  if (database_->number("SELECT count(*) FROM main.sweep") == 0)
    sql.exec("INSERT INTO main.sweep SELECT * FROM other.sweep; INSERT INTO main.point SELECT * FROM other.point");
  if (database_->number(
          "SELECT EXISTS (SELECT number, hash FROM main.point EXCEPT SELECT number, hash FROM other.point) OR "
          "EXISTS (SELECT number, hash FROM other.point EXCEPT SELECT number, hash FROM main.point)") != 0)
    throw InputError(fmt::format("'{}' has other points than '{}'", file, database_->file()),
                     "what can be merged are results of one sweep, as its file is now");
  if (database_->number(
          "SELECT EXISTS (SELECT 1 FROM main.sweep AS a, other.sweep AS b WHERE a.backend <> b.backend OR "
          "a.version <> b.version)") != 0)
    throw InputError(fmt::format("'{}' has results of another backend or version than '{}'", file, database_->file()),
                     "run all parts on one backend of one version; what is there already is kept");
  sql.exec("INSERT OR IGNORE INTO main.scenario SELECT * FROM other.scenario");
  sql.exec(
      "DELETE FROM main.result WHERE status <> 'ok' AND EXISTS (SELECT 1 FROM other.result AS o WHERE o.hash = "
      "main.result.hash AND o.backend = main.result.backend AND o.version = main.result.version AND o.status = 'ok')");
  sql.exec(fmt::format("INSERT OR IGNORE INTO main.result ({0}{1}) SELECT {0}{2} FROM other.result", kResultColumns,
                       metric_names(), selected_metrics(*database_, "other")));
  transaction.commit();
} catch (const SQLite::Exception& e) {
  database_->fail(e);
}

std::string settings_json(const Point& point) {
  JsonObject settings;
  for (const config::Member& m : point.settings)
    settings.push_back({m.key, Json::parse(config::to_json(m.value)).value()});
  return Json(std::move(settings)).dump();
}

}  // namespace stagecraft
