// A profiler of a few lines, loaded by NVTX as Nsight is (NVTX_INJECTION64_PATH): it writes what it
// is told into the file that REHEARSE_NVTX_LOG names.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::FILE* log_file() {
  static std::FILE* const file = std::fopen(std::getenv("REHEARSE_NVTX_LOG"), "w");
  return file;
}

void tell(const char* what, const std::string& words) {
  std::fprintf(log_file(), "%s %s\n", what, words.c_str());
  std::fflush(log_file());
}

std::string name_of_domain;
int depth = 0;

nvtxDomainHandle_t create(const char* name) {
  name_of_domain = name;
  tell("domain", name);
  return reinterpret_cast<nvtxDomainHandle_t>(&name_of_domain);
}
void destroy(nvtxDomainHandle_t) { tell("end", std::to_string(depth)); }
int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* what) {
  tell("range", std::to_string(what->payload.ullValue) + " " + what->message.ascii);
  return depth++;
}
int pop(nvtxDomainHandle_t) { return --depth; }
void name_stream(cudaStream_t, const char* name) { tell("stream", name); }

template <class Function>
void put(NvtxFunctionTable table, int place, Function function) {
  *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  put(table, NVTX_CBID_CORE2_DomainCreateA, create);
  put(table, NVTX_CBID_CORE2_DomainDestroy, destroy);
  put(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  put(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDART, &table, &size) == 0) return 0;
  put(table, NVTX_CBID_CUDART_NameCudaStreamA, name_stream);
  return 1;
}
