#include "sim/core/sha256.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

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

}  // namespace

std::string sha256(std::string_view text) {
  static const RoundWords k = fractions_of_primes([](long double n) { return std::cbrt(n); });
  static const RoundWords start = fractions_of_primes([](long double n) { return std::sqrt(n); });
  std::string bytes(text);
  bytes += '\x80';
  while (bytes.size() % 64 != 56) bytes += '\0';
  const std::uint64_t bits = static_cast<std::uint64_t>(text.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift & 0xff);
  std::array<std::uint32_t, 8> state{};
  for (std::size_t i = 0; i < 8; ++i) state[i] = start[i];
  for (std::size_t at = 0; at < bytes.size(); at += 64)
    compress(state, reinterpret_cast<const unsigned char*>(bytes.data()) + at, k);
  std::string hex;
  for (const std::uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace stagecraft
