// mpirun tells its processes by their environment who they are.
#include "tools/measure/host_ranks.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "sim/base/error.hpp"
#ifdef REHEARSE_HAS_MPI
#include "kernels/mpi/mpi_executor.hpp"
#endif

namespace rehearse {

namespace {

constexpr const char* size_variable = "OMPI_COMM_WORLD_SIZE";

bool has_processes() {
  const char* size = std::getenv(size_variable);
  return size != nullptr && std::string_view{size} != "1";
}

// What mpirun --mca mpi_yield_when_idle 1 tells: others need the processors of who waits.
[[maybe_unused]] bool shares_processors() {
  const char* yields = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  return yields != nullptr && std::string_view{yields} == "1";
}

}  // namespace

bool is_a_process() { return std::getenv(size_variable) != nullptr; }

bool is_another_process() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return has_processes() && rank != nullptr && std::string_view{rank} != "0";
}

#ifdef REHEARSE_HAS_MPI

HostRanks::HostRanks() {
  if (has_processes()) world_ = std::make_unique<MpiWorld>(shares_processors());
}
HostRanks::~HostRanks() = default;

std::size_t HostRanks::processes() const { return world_ ? world_->size() : 0; }
std::size_t HostRanks::number() const { return world_ ? index(world_->rank()) : 0; }
bool HostRanks::is_first() const { return number() == 0; }
bool HostRanks::is_here(Rank rank) const { return !world_ || world_->rank() == rank; }

std::string HostRanks::describe(std::size_t ranks) const {
  return world_ ? fmt::format("{} processes", ranks) : fmt::format("{} threads", ranks);
}

HostMemory HostRanks::memory(const Program& program) const {
  return world_ ? HostMemory(program, world_->rank()) : HostMemory(program);
}

std::unique_ptr<Executor> HostRanks::executor(const Program& program, HostMemory& memory,
                                              HostOptions options) const {
  if (world_) return std::make_unique<MpiExecutor>(*world_, program, memory, std::move(options));
  return std::make_unique<HostExecutor>(memory, std::move(options));
}

std::vector<std::string> HostRanks::gather(const std::string& mine) const {
  return world_ ? world_->gather(mine) : std::vector{mine};
}
std::vector<std::string> HostRanks::collect(const std::string& mine) const {
  return world_ ? world_->collect(mine) : std::vector{mine};
}
std::string HostRanks::share(std::string text) const {
  return world_ ? world_->share(std::move(text)) : text;
}
std::size_t HostRanks::local_number() const { return world_ ? world_->local_number() : 0; }
Time HostRanks::clock_ahead() const { return world_ ? world_->clock_ahead() : Time{}; }
void HostRanks::look_after_others(std::function<bool()> stop) const {
  if (!world_) return;
  world_->watch().stop_when(std::move(stop));
  // Longer than an executor of this class: a GPU's first kernels are loaded meanwhile.
  world_->watch().expect_words(std::chrono::seconds{15});
}
void HostRanks::look() const {
  if (world_) world_->watch().look();
}
void HostRanks::finish() const {
  if (world_) world_->barrier({});
}

#else

class MpiWorld {};

HostRanks::HostRanks() {
  if (has_processes())
    throw NothingToRunOn(
        "this build has no MPI; install libopenmpi-dev and build again, or start one process "
        "without mpirun");
}
HostRanks::~HostRanks() = default;

std::size_t HostRanks::processes() const { return 0; }
std::size_t HostRanks::number() const { return 0; }
bool HostRanks::is_first() const { return true; }
bool HostRanks::is_here(Rank) const { return true; }
std::string HostRanks::describe(std::size_t ranks) const {
  return fmt::format("{} threads", ranks);
}
HostMemory HostRanks::memory(const Program& program) const { return HostMemory(program); }
std::unique_ptr<Executor> HostRanks::executor(const Program&, HostMemory& memory,
                                              HostOptions options) const {
  return std::make_unique<HostExecutor>(memory, std::move(options));
}
std::vector<std::string> HostRanks::gather(const std::string& mine) const { return {mine}; }
std::vector<std::string> HostRanks::collect(const std::string& mine) const { return {mine}; }
std::string HostRanks::share(std::string text) const { return text; }
std::size_t HostRanks::local_number() const { return 0; }
Time HostRanks::clock_ahead() const { return {}; }
void HostRanks::look_after_others(std::function<bool()>) const {}
void HostRanks::look() const {}
void HostRanks::finish() const {}

#endif

void need_processes(const HostRanks& ranks) {
  if (!ranks.are_processes())
    throw InputError(
        "--library mpi is between processes, and ranks are threads here: start it with mpirun -n");
}

std::int64_t HostRanks::sum(std::int64_t mine) const {
  std::int64_t total = 0;
  for (const std::string& text : gather(std::to_string(mine))) total += std::stoll(text);
  return total;
}

}  // namespace rehearse
