#pragma once

#include <cstddef>
#include <vector>

namespace stagecraft::real {

/// The processor of each of these threads, a different physical core for each as far as there are any. Empty if the
/// system is to place them: there are more threads than cores, other work runs now (two runs at once would else pin
/// their threads to the same processors), or STAGECRAFT_PIN is 0. With STAGECRAFT_PIN=1, other work does not matter.
std::vector<int> thread_places(std::size_t threads);

/// Keeps the calling thread on this processor.
void pin_thread(int processor);

}  // namespace stagecraft::real
