#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

/// Emulated GPUs. The library behind this header defines the functions of the CUDA runtime that the project
/// uses, with the toolkit's own headers, and is linked in place of it.
///
/// Streams are queues: nothing runs until the host waits or asks, and then work is taken from the streams in an order
/// that depends on the seed and that the events allow. Memory is full of NaNs when it is given out and after it was
/// freed. So a missing dependency shows as a wrong number.
namespace stagecraft::emulated_gpu {

enum class Order : std::uint8_t {
  Random,  ///< Any stream that can go on, drawn each time.
  Rush,    ///< Streams in an order of importance: the first that can go on does.
  Starve,  ///< One stream goes on only when no other can.
};

struct Machine {
  int devices = 1;
  int multiprocessors = 132;
  int group = 8;                     ///< Smallest partition, and the step between sizes.
  int groups = 0;                    ///< Maximum number of partitions; 0: as many as fit.
  bool fine_partitions = true;       ///< Partitions may be cut through clusters of multiprocessors.
  bool green_contexts = true;        ///< Whether the driver knows them.
  bool green_streams = true;         ///< Whether it has cuGreenCtxStreamCreate, of CUDA 12.5.
  int driver = CUDART_VERSION;       ///< The newest CUDA that the driver is for: 12040 is too old for CUDA 13.
  std::size_t memory = 4ULL << 30U;  ///< Bytes of each device.
  Order order = Order::Random;
  std::uint64_t seed = 1;
  bool events_of_partitions = true;         ///< Whether they can be recorded and waited for, as in the primary context.
  std::vector<int> refused_products = {};   ///< Each a cublasComputeType_t without cuBLASLt algorithm.
  bool refuses_bias = false;                ///< No algorithm of cuBLASLt adds a bias or makes its gradient.
  bool refuses_gelu = false;                ///< No algorithm of cuBLASLt computes a GELU or its slope.
  bool refuses_attention = false;           ///< No engine of cuDNN supports an attention.
  bool refuses_attention_backward = false;  ///< None supports its backward.
  std::size_t cudnn_version = 91900;
  std::vector<double> product_seconds = {1e-6};  ///< Seconds of each algorithm of cuBLASLt, the first by heuristic
                                                 ///< first; negative: it is named, but not supported.
  double product_noise = 0;  ///< Each product takes up to this share longer or less, drawn; one in twenty five times.
  double clock_rise = 0;     ///< Until that many seconds of products are over, each takes four times as long.
  std::int64_t ignored_wait = -1;  ///< This wait for an event, counted from 0, is not done.
  bool peer_access = true;         ///< Whether devices reach the memory of each other.
  std::size_t queue = 1024;        ///< Entries of a stream's launch queue; a call that finds it full blocks.
  int connections = 0;             ///< Hardware queues, given to streams in turns; 0: each stream has its own.
  bool real_clock = false;         ///< Times come from this machine's clock, which processes share.
};

/// A fresh machine: everything that was made before is gone, and what was queued is never run.
void reset(const Machine& = {});

const Machine& machine();

/// Queues work, as a launch does. It takes `seconds` on the emulated clock.
void enqueue(cudaStream_t, std::function<void()>, double seconds = 1e-6);
/// Queues work that cannot start until `ready()`, which is called again and again.
void enqueue_when(cudaStream_t, std::function<bool()> ready, std::function<void()> work);
/// Captures work that waits for others: `begin` is called with each launch of the graph and returns what is then called
/// again and again, from the start of the work until it is over. A graph has at most one such work under way, whichever
/// of those that may start is drawn: a GPU may hold back all other branches for it.
void capture_when(cudaStream_t, std::function<std::function<bool()>()> begin);
int device_of(cudaStream_t);
/// The numbers of the multiprocessors that its kernels run on.
std::vector<unsigned> multiprocessors_of(cudaStream_t);
/// Queues work that never ends.
void hang(cudaStream_t);
/// Queues a kernel that reads outside of memory: when it is run, and from then on, every call fails.
void crash(cudaStream_t);

/// The capture that the stream is in, or null.
const void* capture_of(cudaStream_t);

/// The number of waits for events since the last reset that had something to wait for on another stream.
std::int64_t waits();
/// The number of calls since the last reset that found the queue of their stream full, and blocked.
std::int64_t blocked_calls();
/// The number of pieces of work put into streams since the last reset, with recordings of events and waits for them.
std::int64_t submitted_work();
/// The number of matrix products enqueued since the last reset with this algorithm, and the call that counts one and
/// returns its seconds.
std::int64_t products(std::size_t algorithm);
double count_product(std::size_t algorithm);
/// The number of forwards and backwards of attentions that cuDNN enqueued since the last reset, and the call that
/// counts one.
std::int64_t attentions();
void count_gelu();           ///< A product that computes a GELU or its slope, too, was enqueued.
std::int64_t fused_gelus();  ///< How many there were since the last reset.
void count_attention();
/// The number of events made since the last reset.
std::int64_t events_made();
/// The largest number of streams that there were at the same time since the last reset.
int most_streams();
/// The number of blocks of device memory given out since the last reset.
std::int64_t blocks();
/// Bytes of device memory in use: given out and not freed.
std::size_t device_bytes();
/// Whether all of these bytes are in device memory that is in use.
bool on_device(const void* data, std::size_t bytes);

/// Thrown where a real program would crash, hang or silently go wrong: use of memory after it was freed or beyond its
/// end, waiting for what never ends.
struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace stagecraft::emulated_gpu
