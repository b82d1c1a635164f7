// mpirun tells its processes by their environment who they are.
#include "tools/measure/host_ranks.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "kernels/math/gemm.hpp"
#include "kernels/mpi/mpi_module.hpp"
#include "kernels/mpi/mpi_world.hpp"
#include "sim/base/error.hpp"
#include "sim/base/module.hpp"

namespace rehearse {

namespace {

constexpr const char* size_variable = "OMPI_COMM_WORLD_SIZE";

bool has_processes() {
  const char* size = std::getenv(size_variable);
  return size != nullptr && std::string_view{size} != "1";
}

// What mpirun --mca mpi_yield_when_idle 1 tells: others need the processors of who waits.
bool shares_processors() {
  const char* yields = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  return yields != nullptr && std::string_view{yields} == "1";
}

}  // namespace

bool is_a_process() { return std::getenv(size_variable) != nullptr; }

bool is_another_process() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return has_processes() && rank != nullptr && std::string_view{rank} != "0";
}

HostRanks::HostRanks() {
  if (!has_processes()) return;
  const auto load = module_function<decltype(rehearse_mpi)>(
      {.name = "mpi", .package = "libopenmpi-dev", .has_plugins = true});
  if (load == nullptr)
    throw NothingToRunOn(
        "this build has no MPI; install libopenmpi-dev and build again, or start one process "
        "without mpirun");
  mpi_ = load();
  world_ = {mpi_->join(shares_processors()), mpi_->leave};
}

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
  if (options.compute == HostCompute::calls) gemm_library();  // loaded before anything is timed
  if (world_) return mpi_->executor(*world_, program, memory, std::move(options));
  return std::make_unique<HostExecutor>(memory, std::move(options));
}

std::vector<std::string> HostRanks::gather(const std::string& mine) const {
  return world_ ? mpi_->gather(*world_, mine) : std::vector{mine};
}
std::vector<std::string> HostRanks::collect(const std::string& mine) const {
  return world_ ? mpi_->collect(*world_, mine) : std::vector{mine};
}
std::string HostRanks::share(std::string text) const {
  return world_ ? mpi_->share(*world_, text) : text;
}
std::size_t HostRanks::local_number() const { return world_ ? mpi_->local_number(*world_) : 0; }
Time HostRanks::clock_ahead() const { return world_ ? world_->clock_ahead() : Time{}; }
void HostRanks::look_after_others(std::function<bool()> stop) const {
  // Longer than an executor of this class: a GPU's first kernels are loaded meanwhile.
  if (world_) mpi_->watch(*world_, std::move(stop), std::chrono::seconds{15});
}
void HostRanks::look() const {
  if (world_) mpi_->look(*world_);
}
void HostRanks::finish() const {
  if (world_) mpi_->barrier(*world_);
}

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
