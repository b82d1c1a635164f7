// Asks the driver before CUDA is needed, then becomes the program that has it.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/error.hpp"
#include "tools/measure/cuda_backend.hpp"
#include "tools/measure/cuda_driver.hpp"

namespace rehearse {

namespace {

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string each; std::getline(file, each, '\0');) arguments.push_back(each);
  return arguments;
}

}  // namespace

CudaChoice nccl_choice(const std::string& library, const std::vector<std::string>& algorithms,
                       const std::vector<std::string>& protocols) {
  if (library != "own" && library != "nccl")
    throw InputError(fmt::format("--library {} is neither 'own' nor 'nccl'", library));
  const auto one = [](const std::vector<std::string>& names) {
    if (names.size() > 1)
      throw InputError("NCCL is told one algorithm and one protocol for a process: give one each");
    return names.empty() || names.front() == "auto" ? std::string{} : names.front();
  };
  if (library == "nccl") return {one(algorithms), one(protocols)};
  if (!one(protocols).empty()) throw InputError("--protocol is for --library nccl");
  return {};
}

const CudaBackend& need_cuda() {
  if (const CudaBackend* backend = cuda_backend()) return *backend;
  if (const CudaFacts facts = ask_cuda(); !facts.trouble.empty())
    throw NothingToRunOn(fmt::format("--backend cuda: {}", facts.trouble));
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string other = (self.parent_path() / "rehearse-cuda").string();
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  execv(other.c_str(), pointers.data());
  throw NothingToRunOn(
      fmt::format("--backend cuda: there is a GPU, but no {} (build with the preset cuda)", other));
}

}  // namespace rehearse
