// Reads an export of Nsight Systems, an SQLite file, for `import nsight`, and gives its NVTX ranges, launches, kernels
// and copies as a trace that read_kineto() understands.
//
// Names of tables and columns are as in the "SQLite Schema Reference" (docs.nvidia.com/nsight-systems) from 2022.4 on.
// Times are in nanoseconds. The upper bits of globalTid are the process, which kernels have as globalPid. Tables
// without rows are absent, unless the export was made with --lazy=false. A range that the program never ended has the
// end of the session as its end.

#include "tools/stagecraft/nsight_trace.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/layer_ranges.hpp"
#include "sim/sweep/database.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kThreads = 1 << 24;  ///< Identifiers of threads below one process.

/// N of "AddmmBackward0, seq = N, op_id = 7".
std::optional<std::int64_t> sequence_of(const std::string& text) {
  constexpr std::string_view kWord = "seq = ";
  const std::size_t at = text.find(kWord);
  if (at == std::string::npos) return {};
  std::int64_t number = 0;
  const std::size_t begin = at + kWord.size();
  std::size_t end = begin;
  constexpr std::size_t kMostDigits = 15;
  for (; end < text.size() && end < begin + kMostDigits && text[end] >= '0' && text[end] <= '9'; ++end)
    number = 10 * number + (text[end] - '0');
  return end == begin ? std::nullopt : std::optional(number);
}

class NsightReader {
 public:
  explicit NsightReader(const std::string& file) : db_(file, Database::Open::Read) {}

  NsightTrace read() try {
    if (!has_table("StringIds"))
      refuse("there is no table StringIds, so this is no export of Nsight Systems", kHowToProfile);
    trace_.has_kernels = has_rows(kKernels);
    if (!trace_.has_kernels) require_no_gpu();
    read_strings();
    if (has_table("NVTX_EVENTS")) read_ranges();
    if (trace_.has_kernels) read_gpu();
    if (has_table(kGraphs)) note_graphs();
    if (has_table(kDevices)) note_devices();
    add_notes();
    trace_.json = "{\"traceEvents\":[" + events_ + "]}";
    return std::move(trace_);
  } catch (const SQLite::Exception& e) {
    db_.fail(e);
  }

 private:
  /// Nsight Systems writes tables of values. A view, a virtual table or a computed column would run what a file says.
  bool has_table(const std::string& table) const {
    SQLite::Statement query(db_.sql(),
                            "SELECT type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE %', "
                            "(SELECT count(*) FROM pragma_table_xinfo(name) WHERE hidden > 0) "
                            "FROM sqlite_schema WHERE name = ?");
    query.bind(1, table);
    if (!query.executeStep()) return false;
    if (query.getColumn(0).getInt() == 0 || query.getColumn(1).getInt() > 0)
      refuse(fmt::format("'{}' is not a table of values, as Nsight Systems writes it", table), kHowToProfile);
    return true;
  }

  bool has_rows(const std::string& table) const {
    return has_table(table) && SQLite::Statement(db_.sql(), "SELECT 1 FROM " + table + " LIMIT 1").executeStep();
  }

  [[noreturn]] void refuse(std::string message, std::string help) const {
    throw InputError({{{db_.file(), 0, 0}, {}, std::move(message), std::move(help), "nsight"}});
  }

  /// On the CPU a range lasts as long as its work; on a GPU its work is in kernels.
  void require_no_gpu() const {
    if (has_rows(kGraphs))
      refuse("CUDA graphs were traced as a whole, so there are no kernels", "profile with --cuda-graph-trace=node");
    for (const char* table : {kRuntime, kDevices})
      if (has_rows(table))
        refuse(
            fmt::format("the profile is of a machine with a GPU, as {} shows, and {} has no kernels", table, kKernels),
            kHowToProfile);
  }

  bool has_column(const std::string& table, const std::string& column) const {
    SQLite::Statement query(db_.sql(), "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?");
    query.bind(1, table);
    query.bind(2, column);
    return query.executeStep() && query.getColumn(0).getInt() > 0;
  }

  void read_strings() {
    SQLite::Statement query(db_.sql(), "SELECT id, value FROM StringIds");
    while (query.executeStep()) strings_[query.getColumn(0).getInt64()] = query.getColumn(1).getString();
  }

  void add(const char* category, const std::string& name, const std::string& thread, std::int64_t start,
           std::int64_t end, const std::string& arguments) {
    const std::size_t slash = thread.find('/');
    events_ += fmt::format(
        "{}{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{{}}}"
        "}}",
        events_.empty() ? "" : ",\n", category, Json(name).dump(), thread.substr(0, slash), thread.substr(slash + 1),
        static_cast<double>(start) / 1e3, static_cast<double>(end - start) / 1e3, arguments);
  }

  static std::string thread_of(std::int64_t global) {
    return fmt::format("{}/{}", global / kThreads, global % kThreads);
  }

  /// A column of NVTX_EVENTS, or NULL in files that do not have it.
  std::string column_or_null(const std::string& column) const {
    return has_column("NVTX_EVENTS", column) ? column : "NULL";
  }

  /// Marks, categories and domains are events as well, but no ranges.
  void read_ranges() {
    constexpr const char* kIsRange =
        "eventType IN (59, 60, 70, 71)";  // Push and pop, start and end; of NVTX and NVTXT.
    const std::int64_t end_of_session = session_duration();
    SQLite::Statement query(
        db_.sql(),
        fmt::format("SELECT start, end, globalTid, text, {}, {} FROM NVTX_EVENTS {} ORDER BY start, end DESC",
                    column_or_null("textId"), column_or_null("endGlobalTid"),
                    has_column("NVTX_EVENTS", "eventType") ? fmt::format("WHERE {}", kIsRange) : ""));
    while (query.executeStep()) {
      const std::string name = name_of_range(query);
      const std::optional<LayerRange> layer = layer_of_range(name);
      const std::optional<std::int64_t> sequence = sequence_of(name);
      const std::int64_t start = query.getColumn(0).getInt64(), end = query.getColumn(1).getInt64();
      if (query.getColumn(1).isNull() || end < start || end == end_of_session) {
        ++unfinished_;
        continue;
      }
      if (!query.getColumn(5).isNull() && query.getColumn(5).getInt64() != query.getColumn(2).getInt64()) {
        ++crossing_;
        continue;
      }
      const std::string thread = thread_of(query.getColumn(2).getInt64());
      if (sequence) {
        const bool backward = name.find("Backward") < name.find(',');
        const std::string arguments = fmt::format("\"Sequence number\":{}", *sequence);
        add(backward ? "" : "cpu_op", (backward ? kAutograd : "") + name, thread, start, end, arguments);
      } else if (layer) {
        trace_.has_layers = true;
        add("user_annotation", layer->name + (layer->backward ? " backward" : ""), thread, start, end, "");
      } else {
        ++others_[name];
      }
    }
  }

  /// -1 if it is not known. Times of events begin with the session.
  std::int64_t session_duration() const {
    if (!has_table("ANALYSIS_DETAILS")) return -1;
    SQLite::Statement query(db_.sql(), "SELECT max(duration) FROM ANALYSIS_DETAILS");
    return query.executeStep() && !query.getColumn(0).isNull() ? query.getColumn(0).getInt64() : -1;
  }

  std::string name_of_range(SQLite::Statement& query) const {
    if (!query.getColumn(3).isNull()) return query.getColumn(3).getString();
    const auto entry = strings_.find(query.getColumn(4).getInt64());
    return query.getColumn(4).isNull() || entry == strings_.end() ? "" : entry->second;
  }

  /// Correlation identifiers are unique within a process only.
  std::int64_t correlation(std::int64_t process, std::int64_t id) {
    return static_cast<std::int64_t>(correlations_.try_emplace({process, id}, correlations_.size()).first->second);
  }

  void read_gpu() {
    if (!has_table(kRuntime)) refuse(fmt::format("there is no table {}", kRuntime), kHowToProfile);
    read_launches();
    read_device_work(kKernels, "kernel", "shortName");
    for (std::size_t t = 0; t < std::size(kTransfers); ++t)
      if (has_table(kTransfers[t])) read_device_work(kTransfers[t], t == 0 ? "gpu_memcpy" : "gpu_memset", "NULL");
  }

  /// Launches of kernels and of copies; other calls have no work on the GPU.
  void read_launches() {
    std::string launched = fmt::format("SELECT correlationId FROM {}", kKernels);
    for (const char* table : kTransfers)
      if (has_table(table)) launched += fmt::format(" UNION SELECT correlationId FROM {}", table);
    SQLite::Statement query(db_.sql(), fmt::format("SELECT start, end, globalTid, correlationId FROM {} "
                                                   "WHERE correlationId IN ({}) AND end >= start",
                                                   kRuntime, launched));
    while (query.executeStep()) {
      const std::int64_t global = query.getColumn(2).getInt64();
      add("cuda_runtime", "launch", thread_of(global), query.getColumn(0).getInt64(), query.getColumn(1).getInt64(),
          fmt::format("\"correlation\":{}", correlation(global / kThreads, query.getColumn(3).getInt64())));
    }
  }

  void read_device_work(const char* table, const char* category, const char* name_column) {
    SQLite::Statement query(db_.sql(),
                            fmt::format("SELECT start, end, deviceId, streamId, correlationId, globalPid, {} "
                                        "FROM {} WHERE end >= start",
                                        name_column, table));
    while (query.executeStep()) {
      const auto name = strings_.find(query.getColumn(6).getInt64());
      const bool has_name = !query.getColumn(6).isNull() && name != strings_.end();
      const std::string stream = fmt::format("{}/{}", query.getColumn(2).getInt64(), query.getColumn(3).getInt64());
      add(category, has_name ? name->second : category, stream, query.getColumn(0).getInt64(),
          query.getColumn(1).getInt64(),
          fmt::format("\"correlation\":{}",
                      correlation(query.getColumn(5).getInt64() / kThreads, query.getColumn(4).getInt64())));
    }
  }

  void note_graphs() {
    SQLite::Statement query(db_.sql(), fmt::format("SELECT count(*), sum(end - start) FROM {}", kGraphs));
    if (!query.executeStep() || query.getColumn(0).getInt64() == 0) return;
    trace_.notes.push_back(
        fmt::format("{} of CUDA graphs, {:.4g} ms, {} traced as a whole and left out; --cuda-graph-trace=node traces "
                    "their kernels",
                    pluralize(query.getColumn(0).getInt64(), "run"), query.getColumn(1).getDouble() / 1e6,
                    query.getColumn(0).getInt64() == 1 ? "is" : "are"));
  }

  void note_devices() {
    std::map<std::string, int> devices;
    SQLite::Statement query(db_.sql(), fmt::format("SELECT name FROM {} WHERE name IS NOT NULL", kDevices));
    while (query.executeStep()) ++devices[query.getColumn(0).getString()];
    for (const auto& [name, count] : devices)
      trace_.notes.push_back(fmt::format("profiled on a machine with {} {}", count, name));
  }

  void add_notes() {
    constexpr std::size_t kMostNamed = 5;
    if (unfinished_ > 0)
      trace_.notes.push_back(fmt::format("{} without an end {} left out", pluralize(unfinished_, "range"),
                                         unfinished_ == 1 ? "is" : "are"));
    if (crossing_ > 0)
      trace_.notes.push_back(fmt::format("{} that {} on another thread {} left out", pluralize(crossing_, "range"),
                                         crossing_ == 1 ? "ends" : "end", crossing_ == 1 ? "is" : "are"));
    std::string names;
    std::size_t count = 0;
    for (const auto& [name, times] : others_)
      if (count++ < kMostNamed) names += fmt::format("{}'{}' ({})", names.empty() ? "" : ", ", name, times);
    if (count > kMostNamed) names += fmt::format(" and {} more", count - kMostNamed);
    if (count > 0) trace_.notes.push_back("ranges without a number are no layers: " + names);
  }

  static constexpr const char* kAutograd = "autograd::engine::evaluate_function: ";
  static constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
  static constexpr const char* kRuntime = "CUPTI_ACTIVITY_KIND_RUNTIME";
  static constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
  static constexpr const char* kDevices = "TARGET_INFO_GPU";
  static constexpr const char* kTransfers[] = {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"};
  static constexpr const char* kHowToProfile =
      "profile with nsys profile --trace=cuda,nvtx, then nsys export --type sqlite";
  Database db_;
  NsightTrace trace_;
  std::string events_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> correlations_;
  std::map<std::string, int> others_;
  int unfinished_ = 0, crossing_ = 0;
};

/// SQLite waits for a pipe, and says of other files only that they are no database.
void require_database(const std::string& file) {
  constexpr std::string_view kMark = "SQLite format 3";
  const auto refuse = [&](const std::string& message) {
    throw InputError(fmt::format("'{}' {}", file, message), "nsys export --type sqlite REPORT.nsys-rep");
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::none) refuse("cannot be read: " + error.message());
  if (!std::filesystem::exists(status)) refuse("is not there");
  if (!std::filesystem::is_regular_file(status)) refuse("is no regular file");
  std::string begin(kMark.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  if (begin != kMark) refuse("is no SQLite database");
}

}  // namespace

NsightTrace read_nsight_trace(const std::string& file) {
  require_database(file);
  return NsightReader(file).read();
}

}  // namespace stagecraft
