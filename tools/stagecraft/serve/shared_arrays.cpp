// Puts instructions, their times and memory samples of a run into a file in memory, which the asking program maps, so
// that results of `serve` need no JSON for them.

#include "tools/stagecraft/serve/shared_arrays.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::serve {
namespace {

/// A file in memory that grows at its end.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("stagecraft", MFD_CLOEXEC)) {
    if (file_.number() < 0) refuse();
  }

  /// Writes an array and returns its offset, which 64 divides.
  template <class T>
  std::size_t append(const T* data, std::size_t count) {
    const std::size_t offset = (size_ + 63) / 64 * 64;
    const char* bytes = reinterpret_cast<const char*>(data);
    for (std::size_t written = 0; written < count * sizeof(T);) {
      const ssize_t n =
          pwrite(file_.number(), bytes + written, count * sizeof(T) - written, static_cast<off_t>(offset + written));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) refuse();
      written += n;
    }
    size_ = offset + count * sizeof(T);
    return offset;
  }
  std::size_t size() const { return size_; }
  OpenFile take() { return std::move(file_); }

 private:
  [[noreturn]] static void refuse() {
    throw BackendError(fmt::format("results cannot be put into shared memory: {}", std::strerror(errno)));
  }

  OpenFile file_;
  std::size_t size_ = 0;
};

/// One member of an array of structs as a column.
struct MemberColumn {
  const char* name;
  const char* dtype;
  std::size_t member;
};

class ColumnList {
 public:
  void add(const char* table, const MemberColumn& c, std::size_t offset, std::size_t stride, std::size_t count) {
    list_.push_back(JsonObject{{"table", table},
                               {"name", c.name},
                               {"dtype", c.dtype},
                               {"offset", offset + c.member},
                               {"stride", stride},
                               {"count", count}});
  }
  JsonArray take() { return std::move(list_); }

 private:
  JsonArray list_;
};

void share_instructions(MemoryFile& file, ColumnList& columns, const Program& program, const Timeline& timeline) {
  const std::size_t count = program.size();
  const std::size_t offset = file.append(program.instructions.data(), count);
  const MemberColumn members[] = {
      {"kind", "u1", offsetof(Instruction, kind)},        {"device", "<i4", offsetof(Instruction, device)},
      {"stage", "<i4", offsetof(Instruction, stage)},     {"number", "<i4", offsetof(Instruction, number)},
      {"stream", "<i4", offsetof(Instruction, stream)},   {"payload", "<i4", offsetof(Instruction, payload)},
      {"planned", "<f8", offsetof(Instruction, duration)}};
  for (const MemberColumn& m : members) columns.add("instructions", m, offset, sizeof(Instruction), count);
  if (timeline.start.size() != count) return;
  columns.add("instructions", {"start", "<f8", 0}, file.append(timeline.start.data(), count), sizeof(double), count);
  columns.add("instructions", {"end", "<f8", 0}, file.append(timeline.end.data(), count), sizeof(double), count);
}

void share_memory(MemoryFile& file, ColumnList& columns, const Program& program, const Timeline& timeline) {
  const MemoryHistory history(program, timeline);
  std::vector<MemorySample> samples;
  std::vector<std::int64_t> first;
  for (int d = 0; d < program.devices; ++d) {
    first.push_back(std::ssize(samples));
    const MemoryCurve curve = history.curve(DeviceId{d});
    samples.insert(samples.end(), curve.begin(), curve.end());
  }
  first.push_back(std::ssize(samples));
  const std::size_t offset = file.append(samples.data(), samples.size());
  const MemberColumn members[] = {{"time", "<f8", offsetof(MemorySample, time)},
                                  {"stash", "<f8", offsetof(MemorySample, stash)},
                                  {"received", "<f8", offsetof(MemorySample, received)},
                                  {"outgoing", "<f8", offsetof(MemorySample, outgoing)},
                                  {"activations", "<i4", offsetof(MemorySample, activations)},
                                  {"cause", "<i4", offsetof(MemorySample, cause)}};
  for (const MemberColumn& m : members) columns.add("memory", m, offset, sizeof(MemorySample), samples.size());
  columns.add("memory_first", {"row", "<i8", 0}, file.append(first.data(), first.size()), sizeof(std::int64_t),
              first.size());
}

}  // namespace

SharedArrays share_arrays(const Program& program, const Timeline& timeline, bool memory) {
  MemoryFile file;
  ColumnList columns;
  share_instructions(file, columns, program, timeline);
  if (memory && timeline.instruction_times) share_memory(file, columns, program, timeline);
  const std::size_t bytes = file.size();
  OpenFile open = file.take();
  Json layout = JsonObject{
      {"path", fmt::format("/proc/{}/fd/{}", getpid(), open.number())}, {"bytes", bytes}, {"columns", columns.take()}};
  return {std::move(open), std::move(layout)};
}

}  // namespace stagecraft::serve
