#pragma once

#include <cstdint>

// Numbers that a thread reads and writes at once.

namespace stagecraft::cuda {

/// Numbers next to each other, moved by 16 bytes where they are so aligned.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T numbers[kCount];
};

template <int kCount, class T>
__device__ Pack<T, kCount> load(const T* from) {
  return *reinterpret_cast<const Pack<T, kCount>*>(from);
}
template <int kCount, class T>
__device__ void store(T* to, const Pack<T, kCount>& pack) {
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

/// Numbers that 16 bytes hold.
template <class T>
constexpr int kPacked = 16 / static_cast<int>(sizeof(T));

/// Whether packs of 16 bytes can be there.
inline bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

}  // namespace stagecraft::cuda
