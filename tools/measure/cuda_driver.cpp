// The driver's functions by name. Their signatures are CUDA's documented driver API, which does not
// change; results are 0 for success.
#include "tools/measure/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace rehearse {

namespace {

struct Close {
  void operator()(void* library) const { dlclose(library); }
};
using SharedLibrary = std::unique_ptr<void, Close>;

template <class... Arguments>
bool call(const SharedLibrary& library, const char* name, Arguments... arguments) {
  void* const symbol = dlsym(library.get(), name);
  return symbol != nullptr && reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...) == 0;
}

// Numbers of CUdevice_attribute (cuda.h).
constexpr int processor_count = 16, capability_major = 75, capability_minor = 76;

std::optional<int> numa_node_of(const std::string& pci) {
  std::ifstream file("/sys/bus/pci/devices/" + pci + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

GpuFacts gpu_facts(const SharedLibrary& driver, int device, int count) {
  GpuFacts facts;
  std::array<char, 256> text{};
  std::size_t memory = 0;
  if (call(driver, "cuDeviceGetName", text.data(), static_cast<int>(text.size()), device))
    facts.name = text.data();
  if (call(driver, "cuDeviceGetPCIBusId", text.data(), static_cast<int>(text.size()), device))
    facts.pci = text.data();
  for (char& letter : facts.pci)
    if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
  if (call(driver, "cuDeviceTotalMem_v2", &memory, device)) facts.memory = memory;
  call(driver, "cuDeviceGetAttribute", &facts.processors, processor_count, device);
  call(driver, "cuDeviceGetAttribute", &facts.major, capability_major, device);
  call(driver, "cuDeviceGetAttribute", &facts.minor, capability_minor, device);
  facts.numa_node = numa_node_of(facts.pci);
  for (int other = 0; other < count; ++other) {
    int can = 0;
    facts.reaches.push_back(other == device ||
                            (call(driver, "cuDeviceCanAccessPeer", &can, device, other) && can));
  }
  return facts;
}

}  // namespace

CudaFacts ask_cuda(const std::string& driver_library, const std::string& nccl_library) {
  CudaFacts facts;
  if (const SharedLibrary nccl{dlopen(nccl_library.c_str(), RTLD_NOW | RTLD_LOCAL)})
    call(nccl, "ncclGetVersion", &facts.nccl);
  const SharedLibrary driver{dlopen(driver_library.c_str(), RTLD_NOW | RTLD_LOCAL)};
  if (driver == nullptr) {
    facts.trouble = "no Nvidia driver on this machine (" + driver_library + " was not found)";
    return facts;
  }
  int count = 0;
  if (!call(driver, "cuInit", 0U)) {
    facts.trouble = "the Nvidia driver is there, but finds no device it can use";
    return facts;
  }
  call(driver, "cuDriverGetVersion", &facts.driver);
  if (!call(driver, "cuDeviceGetCount", &count) || count == 0) {
    facts.trouble = "the Nvidia driver sees no GPU";
    return facts;
  }
  for (int device = 0; device < count; ++device)
    facts.gpus.push_back(gpu_facts(driver, device, count));
  return facts;
}

namespace {

constexpr int least_driver = 13000;  // the toolkit that the kernels are built with
constexpr int least_capability = 8;  // sm_80; newer devices take its code or sm_90's

bool is_usable(const GpuFacts& gpu) { return gpu.major >= least_capability; }

std::string verdict(const GpuFacts& gpu) {
  return is_usable(gpu) ? "usable" : "too old: kernels are built for sm_80 and newer";
}

std::string trouble_of(const CudaFacts& facts) {
  if (!facts.trouble.empty()) return facts.trouble;
  if (facts.driver < least_driver) return "the driver is too old";
  if (std::ranges::none_of(facts.gpus, is_usable)) return "all of them are too old";
  return {};
}

bool all_reach_all(const CudaFacts& facts) {
  return std::ranges::all_of(facts.gpus, [](const GpuFacts& gpu) {
    return std::ranges::all_of(gpu.reaches, [](bool reaches) { return reaches; });
  });
}

std::string peers_text(const CudaFacts& facts) {
  std::string text = "peer access (row reaches column):\n";
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    text += fmt::format("  {:>3} ", i);
    for (const bool reaches : facts.gpus[i].reaches) text += reaches ? " x" : " .";
    text += '\n';
  }
  return text;
}

std::string in_path(const std::string& name, const std::string& more) {
  const char* path = std::getenv("PATH");
  std::istringstream folders((path == nullptr ? "" : std::string{path} + ":") + more);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0)
      return file;
  return {};
}

// A line for each thing that one may want: yes, or why not.
std::string works_text(const CudaFacts& facts, const ToolFacts& tools) {
  const std::string trouble = trouble_of(facts);
  const auto line = [](const char* what, std::string why_not) {
    return fmt::format("  {:<44} {}\n", what, why_not.empty() ? "yes" : "no: " + why_not);
  };
  const std::string no_run = !trouble.empty() ? trouble
                             : tools.program.empty()
                                 ? "there is no rehearse-cuda beside this program; build it where "
                                   "nvcc is (cmake --preset cuda)"
                                 : "";
  const std::string no_nccl = facts.nccl == 0 ? "NCCL was not found" : no_run;
  return "what will work:\n" + line("predict, sweep, --backend sim and host", "") +
         line("run, bench, calibrate --backend cuda", no_run) +
         line("--library nccl, and several nodes", no_nccl) +
         line("a process for each GPU", tools.mpirun.empty() ? "there is no mpirun" : no_nccl) +
         line("transfers between GPUs without the host",
              !trouble.empty()        ? trouble
              : facts.gpus.size() < 2 ? "there is one GPU"
              : !all_reach_all(facts) ? "not between all of them; copies go through the host"
                                      : "") +
         line("building the kernels (nvcc)", tools.nvcc.empty() ? "there is no nvcc" : "");
}

}  // namespace

ToolFacts find_tools() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return {.nvcc = in_path("nvcc", "/usr/local/cuda/bin"),
          .program = in_path("rehearse-cuda", self.parent_path().string()),
          .mpirun = in_path("mpirun", "")};
}

std::string doctor_text(const CudaFacts& facts, const ToolFacts& tools) {
  std::string text =
      facts.driver == 0
          ? std::string{"driver    none\n"}
          : fmt::format("driver    for CUDA {}.{}{}\n", facts.driver / 1000,
                        facts.driver % 1000 / 10,
                        facts.driver < least_driver ? ", too old: CUDA 13.0 is needed" : "");
  text += facts.nccl == 0 ? "NCCL      none\n"
                          : fmt::format("NCCL      {}.{}.{}\n", facts.nccl / 10000,
                                        facts.nccl % 10000 / 100, facts.nccl % 100);
  text += fmt::format("toolkit   {}\n", tools.nvcc.empty() ? "none" : tools.nvcc);
  text += fmt::format("mpirun    {}\n", tools.mpirun.empty() ? "none" : tools.mpirun);
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    const GpuFacts& gpu = facts.gpus[i];
    text += fmt::format("GPU {:<5} {}, sm_{}{}, {} SMs, {:.1f} GB, {}, NUMA node {}: {}\n", i,
                        gpu.name, gpu.major, gpu.minor, gpu.processors,
                        static_cast<double>(gpu.memory) * 1e-9, gpu.pci,
                        gpu.numa_node ? std::to_string(*gpu.numa_node) : "unknown", verdict(gpu));
  }
  if (facts.gpus.size() > 1) text += peers_text(facts);
  text += works_text(facts, tools);
  const std::string trouble = trouble_of(facts);
  return text + (trouble.empty()
                     ? "GPUs can be used: tools/gpu-day tests, calibrates and compares\n"
                     : "no usable GPU: " + trouble + "\n");
}

}  // namespace rehearse
