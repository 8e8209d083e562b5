// The file of results: stored rows, refusals, and merged parts.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <SQLiteCpp/SQLiteCpp.h>

#include "sim/core/file.hpp"
#include "sim/core/sha256.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/database.hpp"
#include "sim/sweep/store.hpp"
#include "tests/sim/sweep/files.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::store_test {
namespace {

const Origin kOrigin{"ideal", "1"};

PointResult result_of(const std::string& scenario, const std::string& status = "ok", double makespan = 1) {
  PointResult r;
  r.hash = sha256(scenario);
  r.scenario = scenario;
  r.status = status;
  r.message = r.ran() ? "" : "why";
  if (r.ran()) r.figures.assign(metrics().size(), makespan);
  return r;
}

struct Described {
  std::vector<Point> points;
  std::vector<std::string> hashes;
};

/// Describes points whose scenarios are "1", "2", ...
Described describe(Store& store, const test::Folder& folder, int count, const Origin& origin = kOrigin) {
  const Sweep sweep =
      load_sweep(test::write_sweep(folder, "axes: {run.seed: {from: 1, to: " + std::to_string(count) + ", by: 1}}\n"));
  std::vector<Diagnostic> none;
  Described d{points_of(sweep, none), {}};
  for (int i = 1; i <= count; ++i) d.hashes.push_back(sha256(std::to_string(i)));
  store.describe(sweep, d.points, d.hashes, origin);
  return d;
}

std::string refusal(const std::string& file) {
  return test::input_error_of([&] { Store store(file); });
}

std::string statuses(const SweepTable& table) {
  std::string text;
  for (const SweepRow& row : table.rows) text += row.status.empty() ? "-" : row.status.substr(0, 1);
  return text;
}

}  // namespace

TEST_CASE("added results are there after the file was closed, to the last bit") {
  const test::Folder folder;
  const std::string file = folder / "a.db";
  PointResult first = result_of("1", "ok", 0.1 + 0.2);
  first.figures[metric("final_loss")] = std::numeric_limits<double>::quiet_NaN();
  {
    Store store(file);
    describe(store, folder, 3);
    store.add(first, kOrigin);
    store.add(result_of("3", "infeasible"), kOrigin);
  }
  Store store(file);
  const SweepTable table = store.table();
  CHECK(statuses(table) == "o-i");
  CHECK(table.rows[0].figures[metric("makespan_s")] == 0.1 + 0.2);
  CHECK(std::isnan(table.rows[0].figures[metric("final_loss")]));
  CHECK(table.rows[0].label == "seed=1");
  CHECK(table.rows[0].settings == R"({"run.seed":1})");
  CHECK(table.rows[2].message == "why");
  CHECK(store.finished(kOrigin, false) == std::set{sha256("1"), sha256("3")});
}

/// Makes the table `result` and the view of a file as a version writes them that has no `goodput`, but `elegance`.
void write_as_another_version(const std::string& file) {
  SQLite::Database sql(file, SQLite::OPEN_READWRITE);
  const std::string view = sql.execAndGet("SELECT sql FROM sqlite_schema WHERE name = 'results'").getString();
  const auto without = [](std::string text, const std::string& part, const std::string& by) {
    return text.replace(text.find(part), part.size(), by);
  };
  sql.exec(
      "DROP VIEW results; ALTER TABLE result DROP COLUMN goodput; ALTER TABLE result ADD COLUMN elegance REAL; "
      "UPDATE result SET elegance = 3;" +
      without(without(view, "result.goodput, ", ""), ", result.wall_s", ", result.elegance, result.wall_s"));
}

TEST_CASE("a file of a version with other metrics is read, continued and merged by the names of its columns") {
  const test::Folder folder;
  const std::string file = folder / "a.db", other = folder / "b.db";
  for (const std::string& one : {file, other}) {
    Store store(one);
    describe(store, folder, 3);
    store.add(result_of(one == file ? "1" : "2", "ok", 7), kOrigin);
  }
  write_as_another_version(file);
  const auto value = [](const SweepTable& table, int row, const char* name) {
    return table.rows[row].figures[metric(name)];
  };
  const SweepTable before = results_in(file);
  CHECK(statuses(before) == "o--");
  CHECK(value(before, 0, "period_s") == 7);
  CHECK(value(before, 0, "instructions") == 7);
  CHECK(std::isnan(value(before, 0, "goodput")));
  {
    Store store(file);
    store.add(result_of("3", "ok", 5), kOrigin);
    store.merge(other);
    CHECK(statuses(store.table()) == "ooo");
    CHECK(std::isnan(value(store.table(), 0, "goodput")));
    CHECK(value(store.table(), 1, "goodput") == 7);
    CHECK(value(store.table(), 2, "goodput") == 5);
    CHECK(value(store.table(), 2, "bubble") == 5);
  }
  CHECK(SQLite::Database(file).execAndGet("SELECT elegance FROM results WHERE number = 1").getDouble() == 3);
  write_as_another_version(other);
  Store(file).merge(other);
  CHECK(value(results_in(file), 1, "goodput") == 7);  // What was there stays.
}

TEST_CASE("a column that no metric can be, and a metric of another type, are not read") {
  for (const char* column : {"elegance TEXT", "\"a b\" REAL", "elegance REAL NOT NULL DEFAULT 1",
                             "elegance REAL DEFAULT (abs(1))", "elegance INTEGER GENERATED ALWAYS AS (1)"}) {
    const test::Folder folder;
    const std::string file = folder / "a.db";
    { Store store(file); }
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec(std::string("ALTER TABLE result ADD COLUMN ") + column);
    CAPTURE(column);
    CHECK(refusal(file).find("is not as stagecraft sweep writes it") != std::string::npos);
  }
}

TEST_CASE("another backend or version is another result, and both are kept") {
  const test::Folder folder;
  Store store(folder / "a.db");
  describe(store, folder, 1);
  store.add(result_of("1", "ok", 1), kOrigin);
  for (const Origin& other : {Origin{"ideal", "2"}, Origin{"simgrid", "1"}}) {
    CHECK(store.finished(other, false).empty());
    describe(store, folder, 1, other);
    CHECK(statuses(store.table()) == "-");
    store.add(result_of("1", "ok", 2), other);
    CHECK(store.table().rows.front().figures.front() == 2);
  }
  describe(store, folder, 1);
  CHECK(store.table().rows.front().figures.front() == 1);
}

TEST_CASE("if asked, the newest result of another version that ran is reused and marked") {
  const test::Folder folder;
  Store store(folder / "a.db");
  const Origin now{"ideal", "3"};
  describe(store, folder, 3, now);
  store.add(result_of("1", "ok", 1), kOrigin);
  store.add(result_of("2", "crash"), kOrigin);
  store.add(result_of("3", "ok", 1), kOrigin);
  store.add(result_of("3", "ok", 5), now);
  store.add(result_of("2", "ok", 7), {"simgrid", "1"});
  CHECK(statuses(store.table()) == "--o");
  CHECK(store.take_over(now) == 1);
  CHECK(store.take_over(now) == 0);
  const SweepTable table = store.table();
  CHECK(statuses(table) == "o-o");
  CHECK(table.rows[0].figures.front() == 1);
  CHECK(table.rows[0].message == "from version 1");
  CHECK(table.rows[2].figures.front() == 5);
  CHECK(table.rows[2].message.empty());
  CHECK(store.take_over({"ideal", "4"}) == 2);
}

TEST_CASE("points that are removed and added again find their results") {
  const test::Folder folder;
  Store store(folder / "a.db");
  describe(store, folder, 3);
  for (const char* scenario : {"1", "2", "3"}) store.add(result_of(scenario), kOrigin);
  describe(store, folder, 1);
  CHECK(statuses(store.table()) == "o");
  describe(store, folder, 4);
  CHECK(statuses(store.table()) == "ooo-");
}

TEST_CASE("only failures that the machine may have caused are tried again, and only if asked") {
  const test::Folder folder;
  Store store(folder / "a.db");
  describe(store, folder, 6);
  const char* const statuses_of[] = {"ok", "input", "infeasible", "crash", "timeout", "backend"};
  for (int i = 0; i < 6; ++i) store.add(result_of(std::to_string(i + 1), statuses_of[i]), kOrigin);
  CHECK(store.finished(kOrigin, false).size() == 6);
  CHECK(store.finished(kOrigin, true) == std::set{sha256("1"), sha256("2"), sha256("3")});
  store.add(result_of("4"), kOrigin);
  CHECK(statuses(store.table()) == "oiiotb");
}

TEST_CASE("foreign files are refused and left as they are") {
  const test::Folder folder;
  const std::string text = folder / "notes.txt", other = folder / "other.db", newer = folder / "newer.db";
  test::write_file(text, "not a database, and longer than one hundred bytes, so that a header could be in it: " +
                             std::string(100, '.'));
  Database(other, Database::Open::Write).sql().exec("CREATE TABLE cats(name)");
  { Store store(newer); }
  Database(newer, Database::Open::Write).sql().exec("PRAGMA user_version = 7");
  const std::string help = " [name another file]\n";
  const std::string before = read_file(text) + read_file(other) + read_file(newer);
  CHECK(refusal(text) ==
        "0: : '" + text + "' cannot be read as results of a sweep: " + text + ": file is not a database" + help);
  CHECK(refusal(other) == "0: : '" + other + "' is a database of something else, not of sweep results" + help);
  CHECK(refusal(newer) ==
        "0: : '" + newer + "' has layout 7 of another stagecraft; this one reads and writes layout 6" + help);
  CHECK(read_file(text) + read_file(other) + read_file(newer) == before);
  CHECK(refusal(folder / "no/such/folder.db").starts_with("0: : there is no folder"));
  CHECK(refusal(folder / ".").ends_with("[name a file for the results, such as results.db]\n"));
}

TEST_CASE("views, triggers and indexes that stagecraft did not write are refused, and others are never run") {
  const std::string endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) ";
  for (const std::string& script :
       {"DROP VIEW results; CREATE VIEW results AS " + endless + "SELECT x AS number FROM c",
        "ALTER TABLE scenario RENAME TO s; CREATE VIEW scenario AS " + endless + "SELECT x AS hash, x AS text FROM c",
        "CREATE TRIGGER t BEFORE INSERT ON point BEGIN SELECT (" + endless + "SELECT count(*) FROM c); END",
        std::string("CREATE INDEX i ON result(status)"), std::string("DROP TABLE scenario"),
        std::string("ALTER TABLE point ADD COLUMN x TEXT")}) {
    CAPTURE(script);
    const test::Folder folder;
    const std::string file = folder / "a.db", other = folder / "b.db";
    {
      Store store(file);
      describe(store, folder, 2);
    }
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec(script);
    CHECK(refusal(file).find("stagecraft sweep") != std::string::npos);
    CHECK(test::input_error_of([&] { results_in(file); }).find("stagecraft sweep") != std::string::npos);
    Store merged(other);
    CHECK(test::input_error_of([&] { merged.merge(file); }).find("stagecraft sweep") != std::string::npos);
  }
  const test::Folder folder;
  const std::string file = folder / "a.db";
  { Store store(file); }
  SQLite::Database(file, SQLite::OPEN_READWRITE).exec("CREATE TABLE mine(x); CREATE VIEW v AS SELECT * FROM results");
  CHECK(refusal(file) == "nothing");
}

TEST_CASE("a statement ends after more steps than its file explains, and views are not read") {
  const test::Folder folder;
  const Database database(folder / "a.db", Database::Open::Write);
  database.sql().exec("CREATE TABLE t(x); CREATE VIEW v AS SELECT 1");
  const auto counted = [](const char* limit) {
    return "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c" + std::string(limit) +
           ") SELECT count(*) FROM c";
  };
  CHECK(test::input_error_of([&] { database.number(counted("")); }).find("more steps than the size") !=
        std::string::npos);
  CHECK(database.number(counted(" LIMIT 100000")) == 100000);
  CHECK(test::input_error_of([&] { database.number("SELECT * FROM v"); }).find("prohibited") != std::string::npos);
}

TEST_CASE("a damaged database is an error of the input") {
  const test::Folder folder;
  const std::string file = folder / "a.db";
  {
    Store store(file);
    describe(store, folder, 200);
  }
  SQLite::Database(file, SQLite::OPEN_READWRITE).exec("PRAGMA journal_mode = DELETE");
  const std::string whole = read_file(file);
  int refused = 0;
  for (std::size_t at = 100; at + 64 < whole.size(); at += 512) {
    std::string damaged = whole;
    damaged.replace(at, 64, std::string(64, static_cast<char>(at / 512)));
    test::write_file(file, damaged);
    refused += test::input_error_of([&] { results_in(file); }) != "nothing";  // Other exceptions end the test.
  }
  CHECK(refused > 10);
}

TEST_CASE("a row that claims gigabytes is damage, and not too little memory") {
  const test::Folder folder;
  const std::string file = folder / "a.db", name(1000, 'a');
  SQLite::Database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE t (name TEXT); INSERT INTO t VALUES ('" + name + "')");
  std::string damaged = read_file(file);
  // Before the name stand, in numbers of seven bits each, the size of the row, which is row 1, the size of its header
  // and the type of the text.
  damaged.replace(damaged.find(name) - 6, 9, "\xff\xff\xff\xff\xff\x63\x01\xa2\x64");
  test::write_file(file, damaged);
  const Database database(file, Database::Open::Read);
  CHECK(test::input_error_of([&] { database.number("SELECT length(name) FROM t"); }).find("a row claims gigabytes") !=
        std::string::npos);
}

TEST_CASE("damaged settings are refused with their point") {
  const test::Folder folder;
  const std::string file = folder / "a.db";
  {
    Store store(file);
    describe(store, folder, 2);
  }
  std::string many = "{";
  for (int i = 0; i < 2000; ++i) many += "\"a" + std::to_string(i) + "\":0,";
  many.back() = '}';
  for (const std::string& settings : {std::string("{\"run.seed\":"), std::string("[1]"), many}) {
    Database(file, Database::Open::Write).sql().exec("UPDATE point SET settings = '" + settings + "' WHERE number = 2");
    CHECK(test::input_error_of([&] { results_in(file); }).find("the settings of point 2 cannot be read") !=
          std::string::npos);
    // A file that it is merged into is whole, so it is not the one to name.
    Store whole(folder / "whole.db");
    CHECK(test::input_error_of([&] { whole.merge(file); }).find(file + "' is damaged") != std::string::npos);
  }
}

TEST_CASE("only one process can write to a file") {
  const test::Folder folder;
  const std::string file = folder / "a.db";
  {
    const Store store(file);
    CHECK(refusal(file) == "0: : another process is writing '" + file + "' [wait for it, or name another file]\n");
  }
  CHECK(refusal(file) == "nothing");
}

TEST_CASE("merged parts have all results, and results that ran replace those that did not") {
  const test::Folder folder;
  const std::string a = folder / "a.db", b = folder / "b.db", c = folder / "c.db", other = folder / "other.db";
  {
    Store store(a);
    describe(store, folder, 4);
    store.add(result_of("1", "ok", 1), kOrigin);
    store.add(result_of("2", "crash"), kOrigin);
    store.add(result_of("4", "ok", 4), kOrigin);
  }
  {
    Store store(b);
    describe(store, folder, 4);
    store.add(result_of("2", "ok", 2), kOrigin);
    store.add(result_of("3", "infeasible"), kOrigin);
    store.add(result_of("4", "timeout"), kOrigin);
  }
  {
    Store store(other);
    describe(store, folder, 5);
  }
  for (const auto& order : {std::vector{a, b}, std::vector{b, a}, std::vector{a, b, a}}) {
    std::filesystem::remove(c);
    Store store(c);
    for (const std::string& file : order) store.merge(file);
    CHECK(statuses(store.table()) == "ooio");
    CHECK(store.table().rows[1].figures.front() == 2);
    CHECK(store.table().rows[3].figures.front() == 4);
    CHECK(test::input_error_of([&] { store.merge(other); }).starts_with("0: : '" + other + "' has other points than"));
    CHECK(test::input_error_of([&] { store.merge(folder / "none.db"); })
              .ends_with("there is no such file [stagecraft sweep FILE writes its results to a file, by default the "
                         "sweep's name with .db]\n"));
    CHECK(statuses(store.table()) == "ooio");
  }
}

}  // namespace stagecraft::store_test
