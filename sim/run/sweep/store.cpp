#include "sim/run/sweep/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/text.hpp"
#include "sim/run/version.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

/// As a new file, or one whose disk was full before its first table was there.
bool has_nothing(const Database& database) { return database.number("SELECT count(*) FROM sqlite_schema") == 0; }

/// Refuses what is there and not ours, before SQLite changes anything in it.
const std::string& checked_file(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError(fmt::format("'{}' is a folder", file), "name a file for the results, such as results.db");
  if (const auto folder = std::filesystem::path(file).parent_path();
      !folder.empty() && !std::filesystem::is_directory(folder, error))
    throw InputError(fmt::format("there is no folder '{}'", folder.string()), "make it, or name another file");
  if (!std::filesystem::exists(file, error) || std::filesystem::file_size(file, error) == 0) return file;
  const std::string help = "name another file";
  std::int64_t application = 0, layout = 0;
  try {
    const Database there(file, Database::Open::Read);
    if (has_nothing(there)) return file;
    application = there.number("PRAGMA application_id");
    layout = there.number("PRAGMA user_version");
  } catch (const BackendError& e) {
    throw InputError(fmt::format("'{}' cannot be read as results of a sweep: {}", file, e.what()), help);
  }
  if (application != Store::kApplication)
    throw InputError(fmt::format("'{}' is a database of something else, not of sweep results", file), help);
  if (layout != Store::kLayout)
    throw InputError(fmt::format("'{}' has layout {} of another stagecraft; this one reads and writes layout {}", file,
                                 layout, Store::kLayout),
                     help);
  return file;
}

std::string figure_columns(const std::string& before, bool with_type) {
  std::string text;
  for (const Figure& f : figures())
    text += fmt::format(", {}{}{}", before, f.name, !with_type ? "" : f.whole ? " INTEGER" : " REAL");
  return text;
}

std::string layout() {
  return fmt::format(R"sql(
CREATE TABLE IF NOT EXISTS sweep(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
  backend TEXT NOT NULL, version TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS point(
  number INTEGER PRIMARY KEY, label TEXT NOT NULL, settings TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS scenario(hash TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS result(
  hash TEXT NOT NULL, backend TEXT NOT NULL, version TEXT NOT NULL,
  status TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
  wall_s REAL NOT NULL, finished TEXT NOT NULL, machine TEXT NOT NULL{0},
  PRIMARY KEY (hash, backend, version)) STRICT, WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS results AS
  SELECT point.number, point.label, point.settings, result.status, result.code, result.message{1},
         result.wall_s, result.finished, result.backend, result.version, result.machine, point.hash
  FROM point JOIN sweep LEFT JOIN result
    ON result.hash = point.hash AND result.backend = sweep.backend AND result.version = sweep.version
  ORDER BY point.number;
PRAGMA application_id = {2};
PRAGMA user_version = {3};
)sql",
                     figure_columns("", true), figure_columns("result.", false), Store::kApplication, Store::kLayout);
}

std::string settings_json(const Point& point) {
  Json json = Json::object();
  for (const config::Member& m : point.settings) json[m.key] = Json::parse(config::to_json(m.value));
  return json.dump();
}

std::string result_columns() {
  return "hash, backend, version, status, code, message, wall_s, finished, machine" + figure_columns("", false);
}

SweepTable table_of(const Database& database) {
  SweepTable table;
  Statement sweep(database, "SELECT title, name, backend, version, text FROM sweep");
  if (!sweep.step()) return table;
  table.title = sweep.text(0).empty() ? sweep.text(1) : sweep.text(0);
  table.name = sweep.text(1), table.backend = sweep.text(2), table.version = sweep.text(3), table.text = sweep.text(4);
  Statement select(database, "SELECT number, label, settings, status, code, message, hash" + figure_columns("", false) +
                                 " FROM results ORDER BY number");
  while (select.step()) {
    SweepRow row{.number = static_cast<int>(select.whole(0)),
                 .label = select.text(1),
                 .settings = select.text(2),
                 .status = select.text(3),
                 .code = select.text(4),
                 .message = select.text(5),
                 .hash = select.text(6),
                 .figures = {}};
    if (!Json::parse(row.settings, nullptr, false).is_object())
      throw InputError(
          fmt::format("'{}' is damaged: the settings of point {} cannot be read", database.file(), row.number),
          "stagecraft sweep FILE with --out of another file runs it again");
    for (int i = 0; i < static_cast<int>(figures().size()); ++i) row.figures.push_back(select.number(7 + i));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// A second file, called `other`, for as long as this lives.
class Attached {
 public:
  Attached(const Database& database, const std::string& file) : database_(database), file_(file) {
    Statement(database, "ATTACH ? AS other").set(1, file_.path()).step();
  }
  ~Attached() {
    try {
      Statement(database_, "DETACH other").step();
    } catch (const BackendError&) {
      return;  // It goes with the database.
    }
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  const Database& database_;
  ReadableFile file_;
};

}  // namespace

FileLock::FileLock(const std::string& file) : descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0)
    throw InputError(fmt::format("'{}' cannot be written: {}", file, std::strerror(errno)), "name another file");
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  close(descriptor_);
  throw InputError(fmt::format("another process is writing '{}'", file), "wait for it, or name another file");
}

FileLock::~FileLock() { close(descriptor_); }

Store::Store(const std::string& file) : lock_(checked_file(file)), database_(file, Database::Open::Write) {
  // A process that is killed loses nothing that was committed; only a power cut could lose the last moments.
  database_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  if (database_.number("PRAGMA user_version") == kLayout) return;
  Transaction whole(database_);
  database_.run(layout());
  whole.commit();
}

void Store::describe(const Sweep& sweep, const std::vector<Point>& points, const std::vector<std::string>& hashes,
                     const Origin& origin) {
  Transaction whole(database_);
  Statement others(database_, "SELECT name FROM sweep WHERE name <> ?");
  if (others.set(1, sweep.name); others.step())
    throw InputError(fmt::format("'{}' has the results of another sweep, '{}'", database_.file(), others.text(0)),
                     "name another file with --out");
  database_.run("DELETE FROM sweep; DELETE FROM point");
  Statement(database_, "INSERT INTO sweep VALUES (1, ?, ?, ?, ?, ?)")
      .set(1, sweep.name)
      .set(2, sweep.title)
      .set(3, sweep.text)
      .set(4, origin.backend)
      .set(5, origin.version)
      .step();
  Statement insert(database_, "INSERT INTO point VALUES (?, ?, ?, ?)");
  for (std::size_t i = 0; i < points.size(); ++i)
    insert.set(1, std::int64_t{points[i].number})
        .set(2, points[i].label)
        .set(3, settings_json(points[i]))
        .set(4, hashes[i])
        .step();
  whole.commit();
}

std::set<std::string> Store::finished(const Origin& origin, bool retry) const {
  Statement select(database_, "SELECT hash, status FROM result WHERE backend = ? AND version = ?");
  select.set(1, origin.backend).set(2, origin.version);
  std::set<std::string> hashes;
  while (select.step())
    if (!retry || !may_pass_another_time(select.text(1))) hashes.insert(select.text(0));
  return hashes;
}

int Store::take_over(const Origin& origin) {
  const std::string figures = figure_columns("", false);
  Transaction whole(database_);
  const std::int64_t before = database_.number("SELECT count(*) FROM result");
  Statement(database_, fmt::format(R"sql(
INSERT OR IGNORE INTO result ({0})
  SELECT hash, backend, ?2, status, code, CASE WHEN message = '' THEN 'from version ' || version ELSE message END,
         wall_s, finished, machine{1}
  FROM result WHERE backend = ?1 AND version <> ?2 AND status = 'ok' ORDER BY finished DESC)sql",
                                   result_columns(), figures))
      .set(1, origin.backend)
      .set(2, origin.version)
      .step();
  const std::int64_t after = database_.number("SELECT count(*) FROM result");
  whole.commit();
  return static_cast<int>(after - before);
}

void Store::add(const PointResult& r, const Origin& origin) {
  Transaction whole(database_);
  Statement(database_, "INSERT OR IGNORE INTO scenario VALUES (?, ?)").set(1, r.hash).set(2, r.scenario).step();
  std::string marks;
  for (std::size_t i = 0; i < figures().size(); ++i) marks += ", ?";
  Statement insert(database_, "INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?" + marks + ")");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  insert.set(1, r.hash).set(2, origin.backend).set(3, origin.version).set(4, r.status).set(5, r.code).set(6, r.message);
  insert.set(7, r.seconds).set(8, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now));
  insert.set(9, r.machine);
  for (std::size_t i = 0; i < r.figures.size(); ++i) {
    const int index = static_cast<int>(i) + 10;
    if (figures()[i].whole)
      insert.set(index, static_cast<std::int64_t>(r.figures[i]));
    else
      insert.set(index, r.figures[i]);
  }
  insert.step();
  whole.commit();
}

SweepTable Store::table() const { return table_of(database_); }

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
  // Who may only read leaves SQLite's files for the log behind.
  return table_of(Database(file, may_be_written(file) ? Database::Open::Write : Database::Open::Read));
}

void Store::merge(const std::string& file) {
  check_results(file);
  std::error_code error;
  if (std::filesystem::equivalent(file, database_.file(), error))
    throw InputError(fmt::format("'{}' is to be merged into itself", file), "name another file");
  const Attached other(database_, file);
  Transaction whole(database_);
  if (database_.number("SELECT count(*) FROM main.sweep") == 0)
    database_.run("INSERT INTO main.sweep SELECT * FROM other.sweep; INSERT INTO main.point SELECT * FROM other.point");
  if (database_.number(
          "SELECT EXISTS (SELECT number, hash FROM main.point EXCEPT SELECT number, hash FROM other.point) OR "
          "EXISTS (SELECT number, hash FROM other.point EXCEPT SELECT number, hash FROM main.point)") != 0)
    throw InputError(fmt::format("'{}' has other points than '{}'", file, database_.file()),
                     "what can be merged are results of one sweep, as its file is now");
  if (database_.number("SELECT EXISTS (SELECT 1 FROM main.sweep AS a, other.sweep AS b WHERE a.backend <> b.backend OR "
                       "a.version <> b.version)") != 0)
    throw InputError(fmt::format("'{}' has results of another backend or version than '{}'", file, database_.file()),
                     "run all parts on one backend of one version; what is there already is kept");
  const std::string columns = result_columns();
  database_.run("INSERT OR IGNORE INTO main.scenario SELECT * FROM other.scenario");
  database_.run(
      "DELETE FROM main.result WHERE status <> 'ok' AND EXISTS (SELECT 1 FROM other.result AS o WHERE o.hash = "
      "main.result.hash AND o.backend = main.result.backend AND o.version = main.result.version AND o.status = 'ok')");
  database_.run(fmt::format("INSERT OR IGNORE INTO main.result ({0}) SELECT {0} FROM other.result", columns));
  whole.commit();
}

}  // namespace stagecraft
