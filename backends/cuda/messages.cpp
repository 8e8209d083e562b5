// The three ways of a message within one process: a copy by the driver or by a kernel, also between GPUs, or NCCL
// within a GPU.

#include "backends/cuda/messages.hpp"

#include <map>
#include <tuple>

#include <fmt/core.h>

#include "backends/cuda/launch_limit.hpp"
#include "backends/cuda/libraries.hpp"

namespace stagecraft::cuda {
namespace {

class CopiedMessages final : public Messages {
 public:
  CopiedMessages(const Program& program, std::vector<int> gpus) : p_(program), gpus_(std::move(gpus)) {}
  void message(int transfer, cudaStream_t, const std::function<void()>& work) override {
    const Transfer& t = p_.transfers[transfer];
    from_ = gpus_[p_.at(t.send).device];
    to_ = gpus_[p_.at(t.receive).device];
    work();
  }
  void copy(const void* from, void* to, std::size_t bytes, cudaStream_t stream) override {
    check(from_ == to_ ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
                       : cudaMemcpyPeerAsync(to, to_, from, from_, bytes, stream),
          "a message");
    submitted(stream, "a message");
  }

 private:
  const Program& p_;
  IdVector<DeviceId, int> gpus_;
  int from_ = 0, to_ = 0;
};

class KernelMessages final : public Messages {
 public:
  explicit KernelMessages(CopyKernel copy) : copy_(std::move(copy)) {}
  void message(int, cudaStream_t, const std::function<void()>& work) override { work(); }
  void copy(const void* from, void* to, std::size_t bytes, cudaStream_t stream) override {
    copy_(from, to, bytes, stream);
  }

 private:
  CopyKernel copy_;
};

class NcclMessages final : public Messages {
 public:
  NcclMessages(const Program& program, const std::vector<int>& gpus, int max_ctas) {
    std::map<std::tuple<DeviceId, DeviceId, bool>, ncclComm_t> communicators;
    for (const Transfer& t : program.transfers) {
      const Instruction &send = program.at(t.send), &receive = program.at(t.receive);
      const int gpu = gpus[receive.device.value];
      if (gpu < 0 || gpu != gpus[send.device.value]) {
        of_.push_back(nullptr);
        continue;
      }
      check(cudaSetDevice(gpu), "cudaSetDevice");
      ncclComm_t& communicator = communicators[key(program, send, receive)];
      if (!communicator) communicator = new_communicator(max_ctas > 0 ? max_ctas : kMostBlocks);
      of_.push_back(communicator);
    }
    for (const auto& [unused, communicator] : communicators) all_.push_back(communicator);
  }
  NcclMessages(const NcclMessages&) = delete;
  NcclMessages& operator=(const NcclMessages&) = delete;
  ~NcclMessages() override {
    for (const ncclComm_t communicator : all_) nccl_.ncclCommDestroy(communicator);
  }

  void message(int transfer, cudaStream_t stream, const std::function<void()>& work) override {
    current_ = of_[transfer];
    require(nccl_.ncclGroupStart(), "ncclGroupStart");
    try {
      work();
    } catch (...) {
      nccl_.ncclGroupEnd();
      throw;
    }
    require(nccl_.ncclGroupEnd(), "ncclGroupEnd");
    submitted(stream, "a message by NCCL");
  }
  void copy(const void* from, void* to, std::size_t bytes, cudaStream_t stream) override {
    if (bytes == 0) return;
    require(nccl_.ncclSend(from, bytes, ncclInt8, 0, current_, stream), "ncclSend");
    require(nccl_.ncclRecv(to, bytes, ncclInt8, 0, current_, stream), "ncclRecv");
  }
  int communicators() const override { return static_cast<int>(all_.size()); }

 private:
  /// Messages of one key share a communicator, so they follow each other.
  static std::tuple<DeviceId, DeviceId, bool> key(const Program& p, const Instruction& send,
                                                  const Instruction& receive) {
    if (!send.stream.valid()) return {send.device, receive.device, true};
    const Stream& stream = p.streams[send.stream];
    const bool single = stream.kind == StreamKind::Compute || !stream.peer.valid();
    if (single) return {DeviceId{}, DeviceId{}, false};
    if (stream.kind != StreamKind::Communication) return {send.device, receive.device, true};
    return {std::min(send.device, receive.device), std::max(send.device, receive.device), false};
  }

  void require(ncclResult_t result, const char* what) const {
    if (result != ncclSuccess) throw CudaError(fmt::format("{}: {}", what, nccl_.ncclGetErrorString(result)));
  }

  static constexpr int kMostBlocks = 4;  // A copy within a GPU takes multiprocessors from the receiver.

  ncclComm_t new_communicator(int max_ctas) {
    ncclUniqueId id;
    require(nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = max_ctas;  // A power of two, or it becomes one.
    config.cgaClusterSize = 0;
    ncclComm_t communicator = nullptr;
    require(nccl_.ncclCommInitRankConfig(&communicator, 1, id, 0, &config), "ncclCommInitRankConfig");
    return communicator;
  }

  Nccl nccl_;
  std::vector<ncclComm_t> of_, all_;
  ncclComm_t current_ = nullptr;
};

}  // namespace

std::unique_ptr<Messages> copied_messages(const Program& program, std::vector<int> gpus) {
  return std::make_unique<CopiedMessages>(program, std::move(gpus));
}
std::unique_ptr<Messages> kernel_messages(CopyKernel copy) { return std::make_unique<KernelMessages>(std::move(copy)); }
std::unique_ptr<Messages> nccl_messages(const Program& program, const std::vector<int>& gpus, int max_ctas) {
  return std::make_unique<NcclMessages>(program, gpus, max_ctas);
}

std::unique_ptr<Messages> make_messages(const Program& program, const std::vector<int>& gpus, const GpuOptions& options,
                                        const CopyKernel& copy_kernel) {
  switch (options.messages) {
    case GpuMessages::Copy:
      return copied_messages(program, gpus);
    case GpuMessages::Kernel:
      return kernel_messages(copy_kernel);
    case GpuMessages::Nccl:
      return nccl_messages(program, gpus, options.nccl_ctas);
  }
  throw InternalError("no such messages");
}

}  // namespace stagecraft::cuda
