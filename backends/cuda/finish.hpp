#pragma once

#include "backends/cuda/enqueue.hpp"
#include "backends/cuda/ranks/crew.hpp"

namespace stagecraft::cuda {

/// Looks whether what was enqueued has ended, without ever waiting inside of the driver.
class Watch {
 public:
  Watch(const Program& program, const Marks& marks, double timeout);

  /// Asked whenever one waits, with whether anything has moved.
  void listen(std::function<News(bool moved)> beat) { beat_ = std::move(beat); }
  /// Of a process of several: only these devices are here.
  void only(std::function<bool(DeviceId)> here) { here_ = std::move(here); }

  /// Until no more than so many pieces of work are under way in the queue, or in all.
  void keep_up(int queue, std::size_t most);
  void finish();
  /// Until it is so; stuck when nothing has ended for too long.
  void until(const std::function<bool()>& done);

 private:
  bool look(std::size_t queue);  ///< Whether anything has ended.
  [[noreturn]] void stuck() const;
  std::string whereabouts() const;
  void hear(News) const;

  const Program& p_;
  const Marks& marks_;
  double timeout_;
  std::function<News(bool moved)> beat_ = [](bool) { return News::Alone; };
  std::function<bool(DeviceId)> here_ = [](DeviceId) { return true; };
  std::vector<std::size_t> next_;  ///< Of each queue: the first of its pieces that has not ended.
};

/// Seconds since the gate of each instruction's start and end.
void read_times(const Program&, const Marks&, IdVector<InstructionId, double>& start,
                IdVector<InstructionId, double>& end);
/// Where only iterations were timed, by barriers between them or by `ends`: seconds from the gate of its GPU to the end
/// of each instruction that was timed, and 0 of all others, which spread_over_iterations() fills in.
IdVector<InstructionId, double> read_iteration_ends(const Program&, const Marks&, const std::vector<EndEvent>& ends);

}  // namespace stagecraft::cuda
