// SHA-256 of a text, by instructions of the processor where it has them.

#include "sim/core/sha256.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

namespace stagecraft {
namespace {

using RoundWords = std::array<std::uint32_t, 64>;

/// First 32 bits of the fractional parts of the roots of the first primes, which is how the standard defines them.
template <class Root>
RoundWords fractions_of_primes(Root root) {
  RoundWords words{};
  int count = 0;
  for (int n = 2; count < 64; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    const long double r = root(static_cast<long double>(n));
    words[count++] = static_cast<std::uint32_t>((r - std::floor(r)) * 4294967296.0L);
  }
  return words;
}

void compress(std::array<std::uint32_t, 8>& state, const unsigned char* block, const RoundWords& k) {
  RoundWords w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 |
                                      block[4 * i + 3]);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
    const std::uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                             ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
}

#ifdef __x86_64__
/// Compresses by the SHA instructions of the processor, some five times as fast. In its terms (Intel, Software
/// Developer's Manual, SHA256RNDS2) one register holds a, b, e, f and another c, d, g, h; an instruction does two
/// rounds.
__attribute__((target("sha,sse4.1"))) void compress_by_instructions(std::array<std::uint32_t, 8>& state,
                                                                    const unsigned char* block, const RoundWords& k) {
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  const auto lane = [](std::uint32_t x) { return static_cast<int>(x); };
  __m128i w[4];
  for (int i = 0; i < 4; ++i)
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), big_endian);
  __m128i abef = _mm_set_epi32(lane(state[0]), lane(state[1]), lane(state[4]), lane(state[5]));
  __m128i cdgh = _mm_set_epi32(lane(state[2]), lane(state[3]), lane(state[6]), lane(state[7]));
  const __m128i abef_before = abef, cdgh_before = cdgh;
  for (int r = 0; r < 16; ++r) {
    __m128i& words = w[r % 4];
    if (r >= 4) {
      const __m128i w1 = w[(r + 1) % 4], w2 = w[(r + 2) % 4], w3 = w[(r + 3) % 4];
      words = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(words, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
    }
    __m128i sums = _mm_add_epi32(words, _mm_loadu_si128(reinterpret_cast<const __m128i*>(k.data()) + r));
    for (int half = 0; half < 2; ++half) {
      const __m128i next = _mm_sha256rnds2_epu32(cdgh, abef, sums);
      cdgh = abef;
      abef = next;
      sums = _mm_unpackhi_epi64(sums, sums);
    }
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  std::array<std::uint32_t, 4> first{}, second{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(first.data()), abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(second.data()), cdgh);
  state = {first[3], first[2], second[3], second[2], first[1], first[0], second[1], second[0]};
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b >> 29U & 1U) == 0) return false;
  return __builtin_cpu_supports("sse4.1") != 0;
}
#endif

using Compress = void (*)(std::array<std::uint32_t, 8>&, const unsigned char*, const RoundWords&);

Compress fastest_compress() {
#ifdef __x86_64__
  if (has_instructions()) return compress_by_instructions;
#endif
  return compress;
}

std::string digest(std::string_view text, Compress compress_block) {
  static const RoundWords k = fractions_of_primes([](long double n) { return std::cbrt(n); });
  static const RoundWords start = fractions_of_primes([](long double n) { return std::sqrt(n); });
  std::array<std::uint32_t, 8> state{};
  std::copy_n(start.begin(), state.size(), state.begin());
  const std::size_t whole = text.size() / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64)
    compress_block(state, reinterpret_cast<const unsigned char*>(text.data()) + at, k);
  std::string rest(text.substr(whole));
  rest += '\x80';
  while (rest.size() % 64 != 56) rest += '\0';
  const std::uint64_t bits = static_cast<std::uint64_t>(text.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) rest += static_cast<char>(bits >> shift & 0xff);
  for (std::size_t at = 0; at < rest.size(); at += 64)
    compress_block(state, reinterpret_cast<const unsigned char*>(rest.data()) + at, k);
  std::string hex;
  for (const std::uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace

std::string sha256(std::string_view text) {
  static const Compress compress_block = fastest_compress();
  return digest(text, compress_block);
}

std::string portable_sha256(std::string_view text) { return digest(text, compress); }

}  // namespace stagecraft
