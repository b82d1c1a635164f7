// Labels to kernel names: the collective's word is cut out, what is left is the algorithm.
#include "tools/output/kernel_names.hpp"

#include <fmt/format.h>

#include <algorithm>
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
std::string upper_words(std::string_view text) {
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

const Words* words_in(std::string_view label) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const Words& candidate) {
    return label.find(candidate.ours) != label.npos;
  });
  return found == words.end() ? nullptr : &*found;
}

}  // namespace

KernelName nccl_kernel_name(std::string_view label, std::string_view type) {
  const Words* const found = words_in(label);
  if (found == nullptr) return {"ncclDevKernel_SendRecv", "send"};
  const bool reduces = found->nccl.find("Reduce") != std::string_view::npos;
  return {
      fmt::format("ncclDevKernel_{}{}", found->nccl, reduces ? fmt::format("_Sum_{}", type) : ""),
      std::string{found->kineto}};
}

KernelName kernel_name(std::string_view label) {
  std::string rest{label};
  const Words* const found = words_in(label);
  if (found != nullptr) rest.replace(rest.find(found->ours), found->ours.size(), "_");
  KernelName name{"ncclDevKernel_", found ? std::string{found->kineto} : "send"};
  name.kernel += found ? found->nccl : "SendRecv";
  const std::string suffix = upper_words(rest);
  if (!suffix.empty()) name.kernel += '_' + suffix;
  return name;
}

}  // namespace rehearse
