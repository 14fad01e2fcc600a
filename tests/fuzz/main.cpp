// fuzz TARGET CORPUS RUNS [SEED]: passes RUNS inputs to one target. The first inputs are the files in the folder
// CORPUS. The next inputs are the target's own seeds. All others are changed copies of these inputs. The same SEED
// gives the same inputs. CORPUS contains an input of each shape, and each input that once showed a defect. CORPUS must
// not be empty.
//
// A child process runs the target. If the child crashes, or if one input takes more than 20 s of CPU time or 600 s by
// the clock, this program writes the input into the current folder. The exit status is then 1.
//
// fuzz TARGET CORPUS --write: writes the target's own seeds into the folder CORPUS.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "targets.hpp"

namespace forksight::fuzz {
namespace {

constexpr std::size_t kMaxInput = std::size_t{1} << 20U;
constexpr long kSecondsOfARun = 20;        // CPU time for one input
constexpr unsigned kSecondsOfAWait = 600;  // time by the clock: an input must not make the reader sleep for ever

// Memory that parent and child share. The child stores its current input there, so that the parent has it after a
// crash.
struct Shared {
  std::uint64_t runs;
  std::uint64_t accepted;
  std::uint64_t size;
  unsigned char input[kMaxInput];
};

using Json = nlohmann::json;

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& good, std::uint64_t seed, bool is_json) : good_(good), random_(seed) {
    if (!is_json) return;
    for (const Bytes& bytes : good) {
      Json tree = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
      if (!tree.is_discarded()) trees_.push_back(std::move(tree));
    }
  }

  Bytes next() {
    if (!trees_.empty() && below(8) != 0) return next_tree();
    Bytes bytes = good_[below(good_.size())];
    for (std::size_t left = 1 + below(4); left > 0; --left) change(bytes);
    if (bytes.size() > kMaxInput) bytes.resize(kMaxInput);
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound); }
  static std::ptrdiff_t offset(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }

  Bytes next_tree() {
    Json tree = trees_[below(trees_.size())];
    for (std::size_t left = 1 + below(3); left > 0; --left) change(pick(tree));
    const std::string text = tree.dump(-1, ' ', false, Json::error_handler_t::replace);
    return {text.begin(), text.end()};
  }

  // Returns a random node of the tree. Deep nodes are more likely than nodes near the root.
  Json& pick(Json& tree) {
    Json* node = &tree;
    while (node->is_structured() && !node->empty() && below(8) != 0) {
      auto child = node->begin();
      std::advance(child, offset(below(node->size())));
      node = &*child;
    }
    return *node;
  }

  void change(Json& node) {
    switch (below(10)) {
      case 0: node = nullptr; break;
      case 1: node = below(2) == 0; break;
      case 2: node = below(2) == 0 ? Json(std::int64_t{-1}) : Json(~std::uint64_t{0}); break;
      case 3: node = below(300); break;
      case 4: node = 1e300; break;
      case 5: node = std::string(below(3) * 40, 'x') + "\xe2\x80\xae\x01"; break;
      case 6: node = Json::array({node, node}); break;
      case 7: node = Json{{"pid", node}}; break;
      case 8:
        if (node.is_object() && !node.empty()) node.erase(node.begin());
        if (node.is_array() && !node.empty()) node.erase(node.size() - 1);
        break;
      default:
        if (node.is_array() && !node.empty()) node.push_back(Json(node[below(node.size())]));
        if (node.is_number_integer()) node = below(64);
        break;
    }
  }

  void change(Bytes& bytes) {
    static constexpr std::uint64_t kValues[] = {
        0, 1, 0xff, 0x7fff, 0xffff, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff, ~std::uint64_t{0} >> 1U, ~std::uint64_t{0}};
    static constexpr const char* kWords[] = {
        "-1", "18446744073709551615", "1e999", "null", "[", "{", "\"", "\\u0000", "\xff", " ", "\n", ":", "0"};
    if (bytes.empty()) return;
    // Half of the changes are near the beginning, where headers are.
    const std::size_t at = below(below(2) == 0 ? std::min<std::size_t>(bytes.size(), 512) : bytes.size());
    switch (below(8)) {
      case 0: bytes[at] = static_cast<unsigned char>(bytes[at] ^ (1U << below(8))); break;
      case 1: bytes[at] = static_cast<unsigned char>(below(256)); break;
      case 2:
      case 3: {
        const std::uint64_t value = kValues[below(std::size(kValues))];
        const std::size_t width = std::size_t{1} << below(4);
        const std::size_t aligned = at / width * width;
        if (aligned + width <= bytes.size()) std::memcpy(&bytes[aligned], &value, width);
        break;
      }
      case 4: {
        const std::string word = kWords[below(std::size(kWords))];
        bytes.insert(bytes.begin() + offset(at), word.begin(), word.end());
        break;
      }
      case 5:
        bytes.erase(bytes.begin() + offset(at), bytes.begin() + offset(std::min(bytes.size(), at + 1 + below(16))));
        break;
      case 6: {  // insert a piece of another good input
        const Bytes& other = good_[below(good_.size())];
        const std::size_t from = below(other.size());
        const std::size_t size = std::min(other.size() - from, 1 + below(64));
        bytes.insert(bytes.begin() + offset(at), other.begin() + offset(from), other.begin() + offset(from + size));
        break;
      }
      default:
        if (below(8) == 0) bytes.resize(at);
        break;
    }
  }

  const std::vector<Bytes>& good_;
  std::vector<Json> trees_;
  std::mt19937_64 random_;
};

void run_one(const Target& target, const Bytes& bytes, Shared& shared) {
  shared.size = std::min(bytes.size(), kMaxInput);
  std::copy_n(bytes.begin(), shared.size, shared.input);
  const itimerval limit{{0, 0}, {kSecondsOfARun, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(kSecondsOfAWait);
  if (target.run({shared.input, shared.size})) ++shared.accepted;
  ++shared.runs;
}

[[noreturn]] void run_all(const Target& target, const std::vector<Bytes>& good, std::uint64_t runs, std::uint64_t seed,
                          Shared& shared) {
  for (const Bytes& bytes : good) run_one(target, bytes, shared);
  Mutator mutator(good, seed, target.is_json);
  while (shared.runs < runs) run_one(target, mutator.next(), shared);
  std::fflush(nullptr);
  ::_exit(0);
}

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Bytes> all;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return all;
}

int fuzz(const Target& target, const std::filesystem::path& corpus, std::uint64_t runs, std::uint64_t seed) {
  std::vector<Bytes> good = read_corpus(corpus);
  if (good.empty()) {
    std::fprintf(stderr, "%s: there is no kept input in %s\n", target.name, corpus.c_str());
    return 1;
  }
  for (Bytes& bytes : target.seeds()) {
    if (bytes.empty() || !target.run(bytes)) {
      std::fprintf(stderr, "%s: the target refuses seed %zu, so this test would try too little\n", target.name,
                   good.size());
      return 1;
    }
    good.push_back(std::move(bytes));
  }
  void* const map = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 2;
  auto& shared = *static_cast<Shared*>(map);
  const pid_t child = ::fork();
  if (child == 0) run_all(target, good, runs, seed, shared);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 2;
  std::printf("%s: %llu inputs, %llu accepted\n", target.name, static_cast<unsigned long long>(shared.runs),
              static_cast<unsigned long long>(shared.accepted));
  if (status == 0) return 0;
  const std::string file = std::string(target.name) + ".failed";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(shared.input), static_cast<std::streamsize>(shared.size));
  std::printf("%s: wait status %d; the input is in %s\n", target.name, status, file.c_str());
  return 1;
}

int write_seeds(const Target& target, const std::filesystem::path& corpus) {
  std::filesystem::create_directories(corpus);
  int number = 0;
  for (const Bytes& bytes : target.seeds()) {
    const auto file = corpus / ("seed-" + std::to_string(++number));
    std::printf("%s: %zu bytes\n", file.c_str(), bytes.size());
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  return 0;
}

}  // namespace
}  // namespace forksight::fuzz

int main(int argc, char** argv) {
  const auto target = argc >= 4 ? forksight::fuzz::find_target(argv[1]) : std::nullopt;
  if (!target) {
    std::fputs("fuzz TARGET CORPUS RUNS [SEED], fuzz TARGET CORPUS --write\n", stderr);
    for (const auto& one : forksight::fuzz::targets()) std::fprintf(stderr, "  %-16s %s\n", one.name, one.what);
    return 2;
  }
  if (std::strcmp(argv[3], "--write") == 0) return forksight::fuzz::write_seeds(*target, argv[2]);
  return forksight::fuzz::fuzz(*target, argv[2], std::strtoull(argv[3], nullptr, 10),
                               argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
}
