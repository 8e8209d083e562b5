// Ranks of NCCL that meet: through files, so that it is the same within a process and between several.
#include "tests/support/emulated_gpu/nccl_ranks.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/support/emulated_gpu/nccl_sums.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::emulated_gpu {
namespace {

namespace fs = std::filesystem;

constexpr int kNan = 0xff;

void write(const std::string& path, const void* data, std::size_t bytes) {
  const std::string draft = path + ".draft";
  std::ofstream(draft, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  fs::rename(draft, path);
}

bool there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// What ranks of this process left for each other.
std::map<std::string, std::string> left;

std::size_t hash(const void* data, std::size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), bytes});
}

std::string rank_file(const ncclComm& c, int rank) { return c.folder + "/rank." + std::to_string(rank); }

/// This send or sum of this process, counted from 0, never happens.
bool silent() {
  static std::atomic<long> sends{0};
  const char* const which = std::getenv("STAGECRAFT_EMULATED_NCCL_SILENT");
  return which && sends++ == std::atol(which);
}

struct Presence {
  pid_t process = 0;
  int device = 0;
};

struct PendingHalf {
  Half half;
  std::string file;
  std::size_t hash = 0;
  bool over = false;
};

struct Kernel {
  ncclComm* communicator;
  std::vector<PendingHalf> parts;
  std::vector<Sum> sums;
  bool started = false;

  void start() {
    for (Sum& s : sums) s.start(silent());
    for (PendingHalf& p : parts) {
      const bool sends = p.half.from;
      if (!on_device(sends ? p.half.from : p.half.to, p.half.bytes))
        throw Misuse("NCCL moves memory that is not in use");
      if (!sends) {
        std::memset(p.half.to, kNan, p.half.bytes);
        continue;
      }
      p.hash = hash(p.half.from, p.half.bytes);
      if (!silent()) put(*communicator, p.file, p.half.from, p.half.bytes);
    }
  }

  bool over() {
    if (communicator->aborted) return true;
    bool complete = true;
    for (Sum& s : sums) complete = s.over() && complete;
    for (PendingHalf& p : parts) {
      if (!p.over) p.over = p.half.from ? taken(p) : arrived(p);
      complete = complete && p.over;
    }
    return complete;
  }

  bool taken(const PendingHalf& p) const {
    if (!take(*communicator, p.file + ".taken")) return false;
    if (hash(p.half.from, p.half.bytes) != p.hash) throw Misuse("a message is changed while NCCL sends it");
    return true;
  }

  bool arrived(const PendingHalf& p) const {
    const std::optional<std::string> data = take(*communicator, p.file);
    if (!data) return false;
    if (data->size() != p.half.bytes) throw Misuse("the two ends of a message of NCCL differ in size");
    std::memcpy(p.half.to, data->data(), data->size());
    put(*communicator, p.file + ".taken", "", 0);
    return true;
  }
};

}  // namespace

void put(const ncclComm& c, const std::string& name, const void* data, std::size_t bytes) {
  c.alone ? static_cast<void>(left[name] = {static_cast<const char*>(data), bytes}) : write(name, data, bytes);
}

std::optional<std::string> take(const ncclComm& c, const std::string& name) {
  if (c.alone) {
    auto extracted = left.extract(name);
    return extracted ? std::optional(std::move(extracted.mapped())) : std::nullopt;
  }
  if (!there(name)) return {};
  std::ifstream file(name, std::ios::binary);
  std::string data(std::istreambuf_iterator<char>(file), {});
  fs::remove(name);
  return data;
}

std::string new_folder_name() {
  static std::atomic<long> count{0};
  // Numbers of processes come again, and one that was killed left its folders.
  static const auto begin = std::chrono::system_clock::now().time_since_epoch().count();
  return "stagecraft_nccl_" + std::to_string(getpid()) + "_" + std::to_string(begin) + "_" + std::to_string(count++);
}

std::string folder_of(const ncclUniqueId& id) {
  return fs::temp_directory_path() / std::string(id.internal, strnlen(id.internal, sizeof id.internal));
}

void announce(const ncclComm& c) {
  fs::create_directories(c.folder);
  const Presence presence{getpid(), c.device};
  write(rank_file(c, c.rank), &presence, sizeof presence);
}

ncclResult_t gathered(ncclComm& c) {
  std::set<int> devices;
  c.alone = true;
  for (int r = 0; r < c.ranks; ++r) {
    if (!there(rank_file(c, r))) return ncclInProgress;
    Presence p;
    std::ifstream(rank_file(c, r), std::ios::binary).read(reinterpret_cast<char*>(&p), sizeof p);
    if (!devices.insert(p.device).second) return ncclInvalidUsage;  // Two ranks on one GPU are refused.
    c.alone = c.alone && p.process == getpid();
  }
  c.met = true;
  return ncclSuccess;
}

namespace {

/// `tag`: work of a graph meets work of a graph only, because NCCL wants all ranks to capture alike.
std::shared_ptr<Kernel> new_kernel(ncclComm& c, const std::vector<Half>& halves, const std::string& tag) {
  const auto kernel = std::make_shared<Kernel>();
  kernel->communicator = &c;
  for (const Half& h : halves) {
    if (h.sum != Summed::None) {
      kernel->sums.emplace_back(c, h, c.folder + "/sum." + std::to_string(c.sums++) + tag);
      continue;
    }
    const bool sends = h.from;
    const int from = sends ? c.rank : h.peer, to = sends ? h.peer : c.rank;
    const long number = (sends ? c.sent : c.received)[h.peer]++;
    kernel->parts.push_back(
        {h, c.folder + "/" + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(number) + tag});
  }
  return kernel;
}

}  // namespace

void launch(ncclComm& c, const std::vector<Half>& halves, cudaStream_t stream) {
  if (capture_of(stream))
    return capture_when(stream, [&c, halves] {
      return [kernel = new_kernel(c, halves, ".graph")] {
        if (!std::exchange(kernel->started, true)) kernel->start();
        return kernel->over();
      };
    });
  const auto kernel = new_kernel(c, halves, "");
  enqueue(stream, [kernel] { kernel->start(); });
  enqueue_when(
      stream, [kernel] { return kernel->over(); }, [] {});
}

void leave(const ncclComm& c, bool aborted) {
  std::error_code ignored;
  if (aborted) std::ofstream(c.folder + "/aborted");  // Maybe by several at once.
  fs::remove(rank_file(c, c.rank), ignored);
  for (int r = 0; r < c.ranks; ++r)
    if (there(rank_file(c, r))) return;
  fs::remove_all(c.folder, ignored);  // The last.
}

bool others_aborted(const ncclComm& c) { return !c.alone && there(c.folder + "/aborted"); }

}  // namespace stagecraft::emulated_gpu
