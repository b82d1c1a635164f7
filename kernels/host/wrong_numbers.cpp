// Filled, run, counted.
#include "kernels/host/wrong_numbers.hpp"

#include "kernels/host/host_executor.hpp"

namespace rehearse {

std::size_t wrong_numbers(const Program& program, const CollectiveCheck& check) {
  HostMemory memory(program);
  const auto part = [&](std::size_t rank, Buffer buffer) {
    return memory.buffer(static_cast<Rank>(rank), buffer);
  };
  for (std::size_t rank = 0; rank < check.ranks; ++rank) {
    for (const Buffer buffer : {Buffer{0}, Buffer{1}})
      memory.cover(static_cast<Rank>(rank), {buffer, Bytes{0}, check.room()});
    check.fill(rank, part(rank, Buffer{0}), part(rank, Buffer{1}));
  }
  HostExecutor(memory).run(program);
  std::size_t wrong = 0;
  for (std::size_t rank = 0; rank < check.ranks; ++rank)
    wrong += check.wrong(rank, part(rank, Buffer{0}), part(rank, Buffer{1}));
  return wrong;
}

}  // namespace rehearse
