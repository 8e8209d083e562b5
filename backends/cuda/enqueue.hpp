#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "backends/cuda/messages.hpp"
#include "backends/cuda/queue_kernels.hpp"
#include "backends/real/session.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// Events around each instruction, in the order in which their queues come to them.
struct Marks {
  std::deque<Event> events;
  std::vector<const Event*> gates;         ///< Before everything, on each GPU.
  std::vector<const Event*> start, end;    ///< Of each instruction; of those that go together the same.
  std::vector<int> gpu;                    ///< That these are on.
  std::vector<std::vector<int>> of_queue;  ///< Instructions, by the queue that their end is on.
};

struct EnqueueOptions {
  bool timed = true;
  std::function<void(int queue)> keep_up;  ///< Called before more is put into a queue.
};

/// Puts a whole program into the queues of the yard: each instruction behind all that it waits for. `devices` says
/// which virtual device each device of the program is.
class Enqueuer {
 public:
  Enqueuer(const Program&, Yard&, const std::vector<int>& devices, Messages&, EnqueueOptions);

  /// The first so many instructions; behind a run that has ended another one may follow.
  void run(real::Session&, Marks&, std::size_t count);

 private:
  int queue_of(const Instruction&, DeviceId peer);
  int device(DeviceId d) const { return devices_[static_cast<std::size_t>(d)]; }
  void open_queues();
  void open_gates();
  void compute(InstructionId);
  void rendezvous(int transfer);
  void send(int transfer);
  void receive(int transfer);
  void reduce(int collective);

  void behind(int queue, InstructionId);
  const Event* mark(int queue, bool timed);
  void begin(int queue, const std::vector<InstructionId>&);
  void end(int queue, const std::vector<InstructionId>&);
  void carry(int transfer, int queue);

  const Program& p_;
  Yard& yard_;
  const std::vector<int>& devices_;
  Messages& messages_;
  EnqueueOptions options_;
  real::Session* session_ = nullptr;
  Marks* marks_ = nullptr;
  std::vector<int> queue_of_stream_;
  std::map<std::pair<int, int>, int> free_queues_;  ///< Of messages in no stream, by device and peer.
  std::vector<Point> ended_;                        ///< Of each instruction.
};

}  // namespace stagecraft::cuda
