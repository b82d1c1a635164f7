// Sums in the order of ranks; memory of all ranks that are here is open meanwhile.
#include "tests/emulated_cuda/nccl_meeting.hpp"

#include <fmt/format.h>

#include <cstring>

#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

constexpr const char* names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
                                 "ncclBroadcast", "ncclReduce",        "ncclSend and ncclRecv"};

using Bytes = std::vector<std::byte>;

Bytes read(const void* address, std::size_t bytes) {
  Bytes result(bytes);
  if (bytes > 0) std::memcpy(result.data(), address, bytes);
  return result;
}

Bytes sum_of(const Round& meeting, std::size_t count) {
  const Call& first = meeting.calls.begin()->second;
  Bytes total = read(first.input, count * bytes_of(first.type));
  for (auto at = std::next(meeting.calls.begin()); at != meeting.calls.end(); ++at)
    combine(first.type, first.operation, at->second.input, total.data(), count);
  if (first.operation == ncclAvg) divide(first.type, total.data(), count, meeting.calls.size());
  return total;
}

void run_collective(const Round& meeting) {
  const Call& first = meeting.calls.begin()->second;
  const std::size_t ranks = meeting.calls.size(), bytes = first.bytes();
  Bytes all;
  switch (first.kind) {
    case Call::Kind::all_reduce:
    case Call::Kind::reduce:
      all = sum_of(meeting, first.count);
      break;
    case Call::Kind::reduce_scatter:
      all = sum_of(meeting, first.count * ranks);
      break;
    case Call::Kind::broadcast:
      all = read(meeting.calls.at(first.root).input, bytes);
      break;
    case Call::Kind::all_gather:
      for (const auto& [rank, call] : meeting.calls) {
        const Bytes part = read(call.input, bytes);
        all.insert(all.end(), part.begin(), part.end());
      }
      break;
    case Call::Kind::p2p:
      break;
  }
  for (const auto& [rank, call] : meeting.calls) {
    if (first.kind == Call::Kind::reduce && rank != first.root) continue;
    if (call.output == nullptr) continue;  // of another process
    const std::size_t begin =
        first.kind == Call::Kind::reduce_scatter ? static_cast<std::size_t>(rank) * bytes : 0;
    std::memcpy(call.output, all.data() + begin,
                first.kind == Call::Kind::all_gather ? all.size() : bytes);
  }
}

// Whether what rank `from` brought is in what rank `to` gets. A send may end before the other side
// has begun to receive.
bool flows(Call::Kind kind, int root, int from, int to) {
  if (kind == Call::Kind::broadcast) return from == root;
  if (kind == Call::Kind::reduce) return to == root;
  if (kind == Call::Kind::p2p) return from == 0;
  return true;
}

}  // namespace

const char* name_of(Call::Kind kind) { return names[static_cast<int>(kind)]; }

Extent input_of(const Call& call, int ranks) {
  const bool is_whole = call.kind == Call::Kind::reduce_scatter;
  return {call.input, call.input == nullptr
                          ? 0
                          : call.bytes() * (is_whole ? static_cast<std::size_t>(ranks) : 1)};
}
Extent output_of(const Call& call, int ranks, int rank) {
  const bool is_whole = call.kind == Call::Kind::all_gather;
  if (call.output == nullptr || (call.kind == Call::Kind::reduce && rank != call.root))
    return {nullptr, 0};
  return {call.output, call.bytes() * (is_whole ? static_cast<std::size_t>(ranks) : 1)};
}

void see_arrivals(const Round& meeting, int key, const Call& call, int ranks) {
  for (const auto& [from, other] : meeting.calls)
    if (flows(call.kind, call.root, from, key)) acquire(&other);
  const Extent output = output_of(call, ranks, key);
  writes(output.address, output.bytes);
}

void run_meeting(std::span<const int> devices, const Round& meeting) {
  const Call& first = meeting.calls.begin()->second;
  for (const auto& [rank, call] : meeting.calls) {
    const bool agrees = first.kind == Call::Kind::p2p
                            ? call.count == first.count && call.type == first.type
                            : call.is_like(first);
    if (!agrees) {
      fail(cudaErrorLaunchFailure,
           fmt::format(
               "{}: ranks disagree, {} and {} numbers (real NCCL would hang or give rubbish)",
               name_of(first.kind), first.count, call.count));
      return;
    }
  }
  const Memory::Access open{state().memory, devices};
  const Unseen moved;  // arrivals and completions say who touches what
  pass_time(first.bytes());
  if (first.kind != Call::Kind::p2p) return run_collective(meeting);
  void* const output = meeting.calls.at(1).output;
  if (output != nullptr) std::memcpy(output, meeting.calls.at(0).input, first.bytes());
}

}  // namespace emulated_cuda
