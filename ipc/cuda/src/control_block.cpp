#include "control_block.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "crc32c.hpp"
#include "driver.hpp"
#include "failure.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t size_for(std::uint32_t buffers) { return control_block::offset_of(buffers); }
std::uint32_t crc_of(const facts& of) { return ipc::detail::crc32c(&of, offsetof(facts, crc)); }

bool can_be(const facts& of) {
  if (of.magic != kControlMagic || of.crc != crc_of(of)) return false;
  if (of.kind != memory::vmm_fd && of.kind != memory::legacy) return false;
  if (of.buffers == 0 || of.buffers > kMaxBuffers || of.bytes == 0 || of.bytes > of.stride) return false;
  // All buffers must be within the allocation. A difference is compared with a quotient, because a sum or a product
  // could overflow.
  return of.offset <= of.total && of.stride <= (of.total - of.offset) / of.buffers;
}

error of_system(const char* what) {
  return from_queue(ipc::detail::failed_call(errno, "CUDA: a pool's control block: %s", what));
}

}  // namespace

control_block::control_block(control_block&& other) noexcept { *this = std::move(other); }
control_block& control_block::operator=(control_block&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  std::swap(mapped_, other.mapped_);
  std::swap(about_, other.about_);
  return *this;
}
control_block::~control_block() {
  if (page_ != nullptr) munmap(page_, mapped_);
}

result<void> control_block::map(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED) return of_system("mmap");
  page_ = static_cast<control_page*>(at);
  mapped_ = bytes;
  return {};
}

result<control_block> control_block::create(std::uint32_t buffers) {
  control_block made;
  made.fd_ = ipc::detail::descriptor(memfd_create("forksight-gpu-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd_) return of_system("memfd_create");
  const std::size_t bytes = size_for(buffers);
  if (ftruncate(made.fd_.get(), static_cast<off_t>(bytes)) != 0) return of_system("ftruncate");
  if (fcntl(made.fd_.get(), F_ADD_SEALS, kSeals) != 0) return of_system("sealing");
  if (auto mapped = made.map(bytes); !mapped) return mapped.error();
  return made;
}

void control_block::publish(facts about) {
  about.magic = kControlMagic;
  about.crc = crc_of(about);
  about_ = about;
  std::memcpy(&page_->about, &about, sizeof about);
}

result<control_block> control_block::open(ipc::detail::descriptor fd) {
  control_block made;
  made.fd_ = std::move(fd);
  struct stat about {};
  if (fstat(made.fd_.get(), &about) != 0) return of_system("fstat");
  const int seals = fcntl(made.fd_.get(), F_GET_SEALS);
  const auto bytes = static_cast<std::size_t>(about.st_size);
  // Without seals, another process could shorten the file while this one reads it.
  if (seals < 0 || (seals & kSeals) != kSeals || about.st_uid != geteuid() || bytes < size_for(1) ||
      bytes > size_for(kMaxBuffers)) {
    return failure(
        errc::untrusted,
        "CUDA: the file that came with the pool is not a pool's control block: %zu bytes, seals 0x%x, of user %u",
        bytes, static_cast<unsigned>(seals), about.st_uid);
  }
  if (auto mapped = made.map(bytes); !mapped) return mapped.error();
  std::memcpy(&made.about_, &made.page_->about, sizeof(facts));
  const facts& its = made.about_;
  if (!can_be(its) || bytes != size_for(its.buffers)) {
    return failure(errc::untrusted,
                   "CUDA: the pool's control block contradicts itself: %u buffers of %llu bytes in %llu", its.buffers,
                   static_cast<unsigned long long>(its.bytes), static_cast<unsigned long long>(its.total));
  }
  return made;
}

}  // namespace forksight::ipc_cuda::detail
