// Runs the readers on their seeds and on random changes of them from fixed seeds: what libFuzzer does for hours, for a
// second each, with any compiler.
//
//   fuzz_replay CORPORA DICTIONARIES COUNT [READER...]
//
// reads CORPORA/READER_corpus and DICTIONARIES/READER.dict. Most changes are the reader's own, where it has some.
// An input that ends it, takes more than 20 s of computing time or more than 2 GiB is left as READER.crash.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

#define READER(name)                                            \
  extern "C" int fuzz_##name(const std::uint8_t*, std::size_t); \
  extern "C" __attribute__((weak)) std::size_t change_##name(std::uint8_t*, std::size_t, std::size_t, unsigned);
STAGECRAFT_READERS
#undef READER

using namespace stagecraft;

namespace {

using Random = std::mt19937_64;  // The standard fixes its numbers, but not the numbers of distributions.

constexpr std::size_t kLongest = 4000;  // Bytes, or the longest seed if larger: a truncated database is not a database.
constexpr std::uint64_t kShown = 100'000;
constexpr int kPatience = 20;  // Seconds for one input.
#if !defined(__SANITIZE_ADDRESS__)
constexpr rlim_t kMostMemory = rlim_t{2} << 30;  // The sanitizer reserves more than that for itself.
#endif

struct Reader {
  const char* name;
  int (*body)(const std::uint8_t*, std::size_t);
  std::size_t (*own_change)(std::uint8_t*, std::size_t, std::size_t, unsigned);  ///< Or null.
};
constexpr Reader kReaders[] = {
#define READER(name) {#name, fuzz_##name, change_##name},
    STAGECRAFT_READERS
#undef READER
};

std::string input;
char crash_file[256];

/// Saves the input that ended the program, using only async-signal-safe functions.
void leave(int signal) {
  const int file = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const bool written = file >= 0 && write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size());
  const char text[] = "this input ended it, or took too long; it is left as ", bare[] = "; it could not be left\n";
  for (const auto& [words, length] :
       {std::pair{text, sizeof text - 1}, {crash_file, std::char_traits<char>::length(crash_file)}})
    if (write(STDERR_FILENO, words, length) < 0) _exit(128 + signal);
  if (write(STDERR_FILENO, written ? "\n" : bare, written ? 1 : sizeof bare - 1) < 0) _exit(128 + signal);
  _exit(128 + signal);
}

void try_one(const Reader& reader) {
  const itimerval once{{}, {kPatience, 0}};
  setitimer(ITIMER_PROF, &once, nullptr);  // CPU time, so that a busy machine does not matter.
  reader.body(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::size_t below(Random& random, std::size_t end) { return static_cast<std::size_t>(random() % end); }

/// Words of a dictionary in libFuzzer's format: "..." on a line, with \xAB, \\ and \".
std::vector<std::string> words_of(const std::string& file) {
  std::vector<std::string> words;
  for (const std::string& line : split(read_file(file), '\n')) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (begin >= end || end == line.npos) continue;
    std::string word;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (line[i] == '\\' && line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        word += line[i] == '\\' ? line[++i] : line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

/// Makes one change: removes, repeats or moves a piece, flips a bit, inserts a byte, inserts or overwrites with a word
/// of the format, or takes a piece of another seed.
void change(std::string& text, const std::vector<std::string>& seeds, const std::vector<std::string>& words,
            Random& random) {
  const std::size_t at = below(random, text.size() + 1),
                    length = below(random, std::min<std::size_t>(64, text.size() - at) + 1);
  const std::string piece = text.substr(at, length);
  switch (below(random, words.empty() ? 5 : 8)) {
    case 0:
      text.erase(at, length);
      return;
    case 1:
      text.insert(below(random, text.size() + 1), piece);
      return;
    case 2:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
      return;
    case 3:
      text.insert(at, 1, static_cast<char>(below(random, 256)));
      return;
    case 4: {
      const std::string& other = seeds[below(random, seeds.size())];
      const std::size_t from = below(random, other.size() + 1);
      text.replace(at, length, other.substr(from, below(random, 128)));
      return;
    }
    case 5:
      text.replace(at, length, words[below(random, words.size())]);
      return;
    default:
      text.insert(at, words[below(random, words.size())]);
  }
}

/// Changes the input with the reader's own function, called as libFuzzer calls it.
void change_own_way(const Reader& reader, std::size_t longest, Random& random) {
  const std::size_t size = std::min(input.size(), longest);
  input.resize(longest);
  const auto seed = static_cast<unsigned>(random());
  input.resize(reader.own_change(reinterpret_cast<std::uint8_t*>(input.data()), size, longest, seed));
}

std::vector<std::string> seeds_in(const std::string& folder) {
  std::vector<std::string> files, seeds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) seeds.push_back(read_file(file));
  return seeds;
}

void replay(const Reader& reader, const std::string& corpora, const std::string& dictionaries, std::uint64_t count) {
  const std::vector<std::string> seeds = seeds_in(fmt::format("{}/{}_corpus", corpora, reader.name));
  const std::vector<std::string> words = words_of(fmt::format("{}/{}.dict", dictionaries, reader.name));
  fmt::format_to_n(crash_file, sizeof crash_file - 1, "{}.crash", reader.name);
  std::size_t longest = kLongest;
  for (const std::string& seed : seeds) longest = std::max(longest, seed.size());
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& seed : seeds) {
    input = seed;
    try_one(reader);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    Random random(i);
    input = seeds[below(random, seeds.size())];
    const bool structured = reader.own_change && below(random, 4) > 0;
    if (structured) change_own_way(reader, longest, random);
    if (!structured || below(random, 4) == 0)
      for (std::size_t left = 1 + below(random, 4); left > 0; --left) change(input, seeds, words, random);
    if (input.size() > longest) input.resize(longest);
    try_one(reader);
    if ((i + 1) % kShown == 0) fmt::print(stderr, "{}: {} changes\n", reader.name, i + 1);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  fmt::print("{}: {} seeds, {} changes, {:.1f} s\n", reader.name, seeds.size(), count, taken.count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGPROF}) std::signal(signal, leave);
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit memory{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  const std::vector<std::string> wanted(argv + 4, argv + argc);
  for (const Reader& reader : kReaders)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), reader.name) != wanted.end())
      replay(reader, argv[1], argv[2], std::stoull(argv[3]));
}
