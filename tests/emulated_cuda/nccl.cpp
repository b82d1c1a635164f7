// NCCL over the emulated devices: every call arrives on its stream and waits there for the others.
//
//   rank 0 stream  …[arrive]──[complete]…      the last to arrive makes the meeting whole, the
//   first rank 1 stream  …───[arrive]──[complete]…   to complete moves the numbers of all
//
// In a group all arrivals come before all completions, as in NCCL's one kernel for a group.
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "tests/emulated_cuda/nccl_numbers.hpp"
#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

struct Call {
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce, p2p };
  Kind kind{};
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t operation = ncclSum;
  int root = 0;  // of p2p: the peer

  std::size_t bytes() const { return count * bytes_of(type); }
  bool is_like(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type &&
           operation == other.operation && root == other.root;
  }
};

constexpr const char* names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
                                 "ncclBroadcast", "ncclReduce",        "ncclSend and ncclRecv"};

struct Meeting {
  std::map<int, Call> calls;  // by rank; of p2p: 0 sends, 1 receives
  bool is_done = false;
};

struct Clique {
  std::vector<int> devices;  // by rank; -1: not joined yet
  std::map<std::uint64_t, std::shared_ptr<Meeting>> collectives;
  std::map<std::tuple<int, int, std::uint64_t>, std::shared_ptr<Meeting>> messages;

  int ranks() const { return static_cast<int>(devices.size()); }
};

}  // namespace
}  // namespace emulated_cuda

struct ncclComm {
  std::shared_ptr<emulated_cuda::Clique> clique;
  int rank = 0;
  std::uint64_t collectives = 0;
  std::map<int, std::uint64_t> sent, received;  // by peer
  // Shared with work that outlives the communicator.
  std::shared_ptr<ncclResult_t> error = std::make_shared<ncclResult_t>(ncclSuccess);
  std::shared_ptr<bool> is_aborted = std::make_shared<bool>(false);

  int device() const { return clique->devices[static_cast<std::size_t>(rank)]; }
};

namespace emulated_cuda {

namespace {

struct Pending {
  ncclComm* comm;
  Call call;
  cudaStream_t stream;
};
thread_local int group_depth = 0;
thread_local std::vector<Pending> pending;
thread_local std::vector<std::shared_ptr<Clique>> joining;

std::map<std::uint64_t, std::shared_ptr<Clique>>& cliques() {
  static std::map<std::uint64_t, std::shared_ptr<Clique>> all;
  return all;
}

using Bytes = std::vector<std::byte>;

Bytes read(const void* address, std::size_t bytes) {
  Bytes result(bytes);
  if (bytes > 0) std::memcpy(result.data(), address, bytes);
  return result;
}

Bytes sum_of(const Meeting& meeting, std::size_t count) {
  const Call& first = meeting.calls.begin()->second;
  Bytes total = read(first.input, count * bytes_of(first.type));
  for (auto at = std::next(meeting.calls.begin()); at != meeting.calls.end(); ++at)
    combine(first.type, first.operation, at->second.input, total.data(), count);
  if (first.operation == ncclAvg) divide(first.type, total.data(), count, meeting.calls.size());
  return total;
}

void run_collective(const Meeting& meeting) {
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
    const std::size_t begin =
        first.kind == Call::Kind::reduce_scatter ? static_cast<std::size_t>(rank) * bytes : 0;
    std::memcpy(call.output, all.data() + begin,
                first.kind == Call::Kind::all_gather ? all.size() : bytes);
  }
}

void run_meeting(const Clique& clique, const Meeting& meeting) {
  const Call& first = meeting.calls.begin()->second;
  for (const auto& [rank, call] : meeting.calls) {
    const bool agrees = first.kind == Call::Kind::p2p
                            ? call.count == first.count && call.type == first.type
                            : call.is_like(first);
    if (!agrees) {
      fail(cudaErrorLaunchFailure,
           fmt::format(
               "{}: ranks disagree, {} and {} numbers (real NCCL would hang or give rubbish)",
               names[static_cast<int>(first.kind)], first.count, call.count));
      return;
    }
  }
  const Memory::Access open{state().memory, clique.devices};
  pass_time(first.bytes());
  if (first.kind == Call::Kind::p2p)
    std::memcpy(meeting.calls.at(1).output, meeting.calls.at(0).input, first.bytes());
  else
    run_collective(meeting);
}

std::shared_ptr<Meeting> meeting_of(ncclComm& comm, const Call& call) {
  Clique& clique = *comm.clique;
  std::shared_ptr<Meeting>* at = nullptr;
  if (call.kind != Call::Kind::p2p)
    at = &clique.collectives[comm.collectives++];
  else if (call.input != nullptr)
    at = &clique.messages[{comm.rank, call.root, comm.sent[call.root]++}];
  else
    at = &clique.messages[{call.root, comm.rank, comm.received[call.root]++}];
  if (*at == nullptr) *at = std::make_shared<Meeting>();
  return *at;
}

// What goes wrong on purpose with this call; success: nothing; in progress: it is lost.
ncclResult_t fault_of(const ncclComm& comm) {
  const Faults& faults = state().options.faults;
  if (++state().nccl_calls == faults.nccl_error) return ncclSystemError;
  if (comm.device() == faults.vanished_device) return ncclInProgress;
  for (const int device : comm.clique->devices)
    if (device == faults.vanished_device) return ncclRemoteError;
  return ncclSuccess;
}

// Puts the arrival on the stream; what it returns puts the completion there.
std::function<void()> arrive(const Pending& each) {
  ncclComm& comm = *each.comm;
  CUstream_st& stream = *resolve(each.stream);
  const std::shared_ptr<Clique> clique = comm.clique;
  const std::shared_ptr<Meeting> meeting = meeting_of(comm, each.call);
  const bool is_p2p = each.call.kind == Call::Kind::p2p;
  const int key = is_p2p ? (each.call.input != nullptr ? 0 : 1) : comm.rank;
  const std::size_t needed = is_p2p ? 2 : static_cast<std::size_t>(clique->ranks());
  const ncclResult_t fault = fault_of(comm);
  const std::string what =
      fmt::format("{} of rank {}", names[static_cast<int>(each.call.kind)], comm.rank);
  submit(stream, what, [=, call = each.call, error = comm.error] {
    if (fault == ncclSuccess)
      meeting->calls[key] = call;
    else if (fault != ncclInProgress)
      *error = fault;
  });
  return [=, &stream, is_aborted = comm.is_aborted] {
    submit(
        stream, what + ", waiting for the others",
        [=] {
          if (*is_aborted || meeting->is_done) return;
          meeting->is_done = true;
          run_meeting(*clique, *meeting);
        },
        [=] { return *is_aborted || meeting->calls.size() == needed; });
  };
}

void flush() {
  std::vector<std::function<void()>> completions;
  for (const Pending& each : std::exchange(pending, {})) completions.push_back(arrive(each));
  for (const auto& complete : completions) complete();
}

ncclResult_t post(ncclComm_t comm, const Call& call, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  if (comm == nullptr) return ncclInvalidArgument;
  const std::size_t ranks = static_cast<std::size_t>(comm->clique->ranks());
  const std::size_t in_bytes = call.bytes() * (call.kind == Call::Kind::reduce_scatter ? ranks : 1);
  const std::size_t out_bytes = call.bytes() * (call.kind == Call::Kind::all_gather ? ranks : 1);
  const auto is_right = [&](const void* address, std::size_t bytes) {
    return address == nullptr || bytes == 0 ||
           (state().memory.owner(address) == comm->device() &&
            state().memory.holds(address, bytes));
  };
  if (!is_right(call.input, in_bytes) || !is_right(call.output, out_bytes) ||
      resolve(stream)->device != comm->device()) {
    complain(fmt::format("{}: a buffer or stream of another device than rank {}'s, or too short",
                         names[static_cast<int>(call.kind)], comm->rank));
    return ncclInvalidArgument;
  }
  pending.push_back({comm, call, stream});
  if (group_depth == 0) flush();
  return ncclSuccess;
}

ncclComm_t make_comm(std::shared_ptr<Clique> clique, int rank) {
  auto* comm = new ncclComm;
  comm->clique = std::move(clique);
  comm->rank = rank;
  state().other_handles.insert(comm);
  return comm;
}

ncclResult_t wait_for_all(const Clique& clique) {
  const cudaError_t result =
      run_until([&] { return std::ranges::find(clique.devices, -1) == clique.devices.end(); },
                "ncclCommInitRank");
  return result == cudaSuccess ? ncclSuccess : ncclSystemError;
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclSystemError:
      return "unhandled system error";
    default:
      return "error";
  }
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard guard{lock()};
  static std::uint64_t number = 0;
  *id = {};
  ++number;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  const std::lock_guard guard{lock()};
  const auto clique = std::make_shared<Clique>();
  for (int rank = 0; rank < count; ++rank) {
    clique->devices.push_back(devices != nullptr ? devices[rank] : rank);
    comms[rank] = make_comm(clique, rank);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard guard{lock()};
    std::shared_ptr<Clique>& shared = cliques()[number];
    if (shared == nullptr) {
      shared = std::make_shared<Clique>();
      shared->devices.assign(static_cast<std::size_t>(ranks), -1);
    }
    clique = shared;
    if (rank < 0 || rank >= clique->ranks() || ranks != clique->ranks()) return ncclInvalidArgument;
    clique->devices[static_cast<std::size_t>(rank)] = current_device();
    *comm = make_comm(clique, rank);
  }
  if (group_depth > 0) {
    joining.push_back(clique);
    return ncclSuccess;
  }
  return wait_for_all(*clique);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(comm) == 0) return ncclInvalidArgument;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard guard{lock()};
  *comm->is_aborted = true;
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard guard{lock()};
  *error = *comm->error;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  for (const auto& clique : std::exchange(joining, {}))
    if (const ncclResult_t result = wait_for_all(*clique); result != ncclSuccess) return result;
  const std::lock_guard guard{lock()};
  flush();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::all_reduce, input, output, count, type, operation, 0}, stream);
}
ncclResult_t ncclReduceScatter(const void* input, void* output, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                               cudaStream_t stream) {
  return post(comm, {Call::Kind::reduce_scatter, input, output, count, type, operation, 0}, stream);
}
ncclResult_t ncclAllGather(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::all_gather, input, output, count, type, ncclSum, 0}, stream);
}
ncclResult_t ncclBroadcast(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::broadcast, input, output, count, type, ncclSum, root}, stream);
}
ncclResult_t ncclReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::reduce, input, output, count, type, operation, root}, stream);
}
ncclResult_t ncclSend(const void* input, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::p2p, input, nullptr, count, type, ncclSum, peer}, stream);
}
ncclResult_t ncclRecv(void* output, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Call::Kind::p2p, nullptr, output, count, type, ncclSum, peer}, stream);
}

}  // extern "C"
