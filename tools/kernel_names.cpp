// Labels to kernel names: the collective's word is cut out, what is left is the algorithm.
#include "tools/kernel_names.hpp"

#include <array>

namespace rehearse {

namespace {

struct Words {
  std::string_view ours, nccl, kineto;
};

// "reduce" is part of others, so it comes last.
constexpr std::array<Words, 7> words{{
    {"all_reduce", "AllReduce", "allreduce"},
    {"reduce_scatter", "ReduceScatter", "reduce_scatter"},
    {"all_gather", "AllGather", "allgather"},
    {"broadcast", "Broadcast", "broadcast"},
    {"all_to_all", "SendRecv", "all_to_all"},
    {"send_recv", "SendRecv", "send"},
    {"reduce", "Reduce", "reduce"},
}};

// Upper case, anything but letters and digits as one underscore between words.
std::string algorithm(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool other = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (lower || other)
      out += lower ? static_cast<char>(c - 'a' + 'A') : c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

}  // namespace

KernelName kernel_name(std::string_view label) {
  std::string rest{label};
  const Words* found = nullptr;
  for (const Words& candidate : words) {
    const std::size_t at = rest.find(candidate.ours);
    if (at == std::string::npos) continue;
    rest.replace(at, candidate.ours.size(), "_");
    found = &candidate;
    break;
  }
  KernelName name{"ncclDevKernel_", found ? std::string{found->kineto} : "send"};
  name.kernel += found ? found->nccl : "SendRecv";
  const std::string suffix = algorithm(rest);
  if (!suffix.empty()) name.kernel += '_' + suffix;
  return name;
}

}  // namespace rehearse
