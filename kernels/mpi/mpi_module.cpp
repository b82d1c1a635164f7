// The module: all of this folder with MPI.
#include "kernels/mpi/mpi_module.hpp"

#include "kernels/mpi/mpi_executor.hpp"

namespace rehearse {

namespace {

using Texts = MpiFunctions::Texts;

MpiWorld* join(bool share_processors) {
  return std::make_unique<MpiWorld>(share_processors).release();
}
void leave(MpiWorld* world) { std::unique_ptr<MpiWorld>{world}.reset(); }

std::unique_ptr<Executor> executor(const MpiWorld& world, const Program& program,
                                   HostMemory& memory, HostOptions options) {
  return std::make_unique<MpiExecutor>(world, program, memory, std::move(options));
}

std::size_t local_number(const MpiWorld& world) { return world.local_number(); }
Texts gather(const MpiWorld& world, const std::string& mine) { return world.gather(mine); }
Texts collect(const MpiWorld& world, const std::string& mine) { return world.collect(mine); }
std::string share(const MpiWorld& world, const std::string& text) { return world.share(text); }
void barrier(const MpiWorld& world) { world.barrier({}); }

void watch(const MpiWorld& world, std::function<bool()> stop, std::chrono::seconds patience) {
  world.watch().stop_when(std::move(stop));
  world.watch().expect_words(patience);
}
void look(const MpiWorld& world) { world.watch().look(); }

constexpr MpiFunctions functions{join,    leave, executor, local_number, gather,
                                 collect, share, barrier,  watch,        look};

}  // namespace

}  // namespace rehearse

const rehearse::MpiFunctions* rehearse_mpi() { return &rehearse::functions; }
