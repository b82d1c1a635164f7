// NCCL over the emulated devices: every call arrives on its stream and waits there for the others.
//
//   rank 0 stream  …[arrive]──[complete]…      the last to arrive makes the meeting whole, the
//   first rank 1 stream  …───[arrive]──[complete]…   to complete moves the numbers of all
//
// In a group all arrivals come before all completions, as in NCCL's one kernel for a group.
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "tests/emulated_cuda/nccl_meeting.hpp"
#include "tests/emulated_cuda/nccl_processes.hpp"
#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

struct Clique {
  std::vector<int> devices;  // by rank; -1: not joined yet
  std::map<std::uint64_t, std::shared_ptr<Meeting>> collectives;
  std::map<std::tuple<int, int, std::uint64_t>, std::shared_ptr<Meeting>> messages;
  // Where ranks joined one by one, and may be in other processes.
  std::optional<Post> post;
  std::vector<Post::Member> members;  // by rank, once all are there
  bool has_others = false;

  std::vector<int> devices_here() const {
    std::vector<int> here;
    for (std::size_t rank = 0; rank < devices.size(); ++rank)
      if (!has_others || members[rank].process == ::getpid()) here.push_back(devices[rank]);
    return here;
  }
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

std::shared_ptr<Meeting> meeting_of(ncclComm& comm, const Call& call) {
  Clique& clique = *comm.clique;
  const auto made = [](std::shared_ptr<Meeting>& at, std::string name) {
    if (at == nullptr) at = std::make_shared<Meeting>();
    at->name = std::move(name);
    return at;
  };
  if (call.kind != Call::Kind::p2p) {
    const std::uint64_t number = comm.collectives++;
    return made(clique.collectives[number], fmt::format("collective-{}", number));
  }
  const bool sends = call.input != nullptr;
  const int source = sends ? comm.rank : call.root, target = sends ? call.root : comm.rank;
  const std::uint64_t number = sends ? comm.sent[call.root]++ : comm.received[call.root]++;
  return made(clique.messages[{source, target, number}],
              fmt::format("message-{}-{}-{}", source, target, number));
}

std::string letter_of(const Meeting& meeting, int key) {
  return fmt::format("{}-{}", meeting.name, key);
}

// For ranks in other processes: the call and its input.
void post_arrival(const Clique& clique, const Meeting& meeting, int key, const Call& call) {
  const Extent input = input_of(call, clique.ranks());
  std::vector<std::byte> letter(sizeof(Call) + input.bytes);
  std::memcpy(letter.data(), &call, sizeof(Call));
  const std::vector<int> here = clique.devices_here();
  const Memory::Access open{state().memory, here};
  if (input.bytes > 0) std::memcpy(letter.data() + sizeof(Call), input.address, input.bytes);
  clique.post->put(letter_of(meeting, key), letter);
}

// Of the others whoever has come.
void receive_arrivals(const Clique& clique, Meeting& meeting, int keys, bool is_p2p) {
  Round& round = meeting.now();
  for (int key = 0; key < keys; ++key) {
    if (round.calls.contains(key)) continue;
    auto letter = clique.post->read(letter_of(meeting, key));
    if (!letter) continue;
    if (is_p2p) clique.post->remove(letter_of(meeting, key));  // nobody else reads it
    Call call;
    std::memcpy(&call, letter->data(), sizeof(Call));
    std::vector<std::byte>& kept = round.brought[key] = std::move(*letter);
    if (call.input != nullptr) call.input = kept.data() + sizeof(Call);
    call.output = nullptr;
    round.calls[key] = call;
  }
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
  const int needed = is_p2p ? 2 : clique->ranks();
  const ncclResult_t fault = fault_of(comm);
  const std::string what = fmt::format("{} of rank {}", name_of(each.call.kind), comm.rank);
  submit(stream, what, [=, &stream, call = each.call, error = comm.error] {
    if (fault != ncclSuccess) {
      if (fault != ncclInProgress) *error = fault;
      return;
    }
    if (clique->has_others) post_arrival(*clique, *meeting, key, call);
    const Call& there = meeting->now().calls[key] = call;
    const As turn{stream.actor};
    const Extent input = input_of(call, clique->ranks());
    reads(input.address, input.bytes);
    release(&there);
  });
  return [=, &stream, is_aborted = comm.is_aborted] {
    submit(
        stream, what + ", waiting for the others",
        [=, &stream, call = each.call] {
          Round& round = meeting->now();
          if (*is_aborted) return;
          if (!std::exchange(round.is_done, true)) run_meeting(clique->devices_here(), round);
          const As turn{stream.actor};
          see_arrivals(round, key, call, clique->ranks());
        },
        [=] {
          Round& round = meeting->now();
          if (clique->has_others && round.calls.contains(key))
            receive_arrivals(*clique, *meeting, needed, is_p2p);
          return *is_aborted || static_cast<int>(round.calls.size()) == needed;
        });
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
                         name_of(call.kind), comm->rank));
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

// As NCCL does, it waits for ranks that never come; but not when one that came is gone.
ncclResult_t wait_for_all(Clique& clique) {
  using namespace std::chrono_literals;
  for (int naps = 0; naps < 15000; ++naps) {
    if (auto members = clique.post->members(clique.ranks())) {
      const std::lock_guard guard{lock()};
      clique.members = std::move(*members);
      for (std::size_t rank = 0; rank < clique.members.size(); ++rank) {
        clique.devices[rank] = clique.members[rank].device;
        clique.has_others = clique.has_others || clique.members[rank].process != ::getpid();
      }
      state().has_others = state().has_others || clique.has_others;
      return ncclSuccess;
    }
    std::this_thread::sleep_for(2ms);
  }
  complain("ncclCommInitRank would wait forever");
  return ncclSystemError;
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
  const std::uint64_t number = Post::new_number();
  *id = {};
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
    if (!clique->post) clique->post.emplace(number);
    clique->post->join(rank, current_device());
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
  if (comm->clique->post) comm->clique->post->leave(comm->rank, comm->clique->members);
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
  for (const Post::Member& member : comm->clique->members)
    if (comm->clique->has_others && !lives(member.process)) *comm->error = ncclRemoteError;
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
