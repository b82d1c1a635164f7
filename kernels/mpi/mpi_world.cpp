// MPI's beginning and end, and the few collective calls that are not part of a Program.
#include "kernels/mpi/mpi_world.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "kernels/mpi/rest.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// At the very beginning there is nobody to watch over the others yet.
void wait_for(MPI_Request& request, MpiWatch* watch, bool shares_processors,
              const MpiWorld::Meanwhile& meanwhile = {}) {
  Rest rest(shares_processors);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
    if (meanwhile) meanwhile();
    if (watch != nullptr) watch->look();
    rest.once();
  }
}

}  // namespace

MpiWorld::MpiWorld(bool share_processors) : shares_processors_{share_processors} {
  int provided = 0, rank = 0, length = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_SERIALIZED)
    throw DeviceError("MPI cannot be started with threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  rank_ = static_cast<Rank>(rank);
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  MPI_Get_processor_name(name, &length);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hosts_.resize(static_cast<std::size_t>(size));
  hosts_ = gather(name);
  const MpiWatch::Peer own = peer_of_this_process();
  const std::vector<std::string> machines = gather(own.machine);
  const std::vector<std::string> processes = gather(std::to_string(own.process));
  const auto here = std::count(machines.begin(), machines.end(), own.machine);
  shares_processors_ = shares_processors_ || here > std::thread::hardware_concurrency();
  synchronise_clocks();
  std::vector<MpiWatch::Peer> peers;
  for (std::size_t r = 0; r < hosts_.size(); ++r)
    peers.push_back({this->name(static_cast<Rank>(r)), machines[r], std::stoll(processes[r])});
  watch_ = std::make_unique<MpiWatch>(rank_, std::move(peers));
}

// A rank that gives up leaves without a word to the others, which would wait for it: mpirun then
// ends them.
MpiWorld::~MpiWorld() {
  if (std::uncaught_exceptions() > 0) {
    if (watch_) watch_->say_that_it_is_told();
    return;
  }
  watch_.reset();
  MPI_Finalize();
}

std::size_t MpiWorld::local_number() const {
  const auto self = hosts_.begin() + static_cast<std::ptrdiff_t>(index(rank_));
  return static_cast<std::size_t>(std::count(hosts_.begin(), self, *self));
}

std::string MpiWorld::name(Rank rank) const {
  return fmt::format("rank {} ({})", index(rank), hosts_[index(rank)]);
}

void MpiWorld::barrier(const Meanwhile& meanwhile) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  wait_for(request, watch_.get(), shares_processors_, meanwhile);
}

std::vector<std::string> MpiWorld::gather(const std::string& mine) const {
  const std::size_t ranks = size();
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(ranks), offsets(ranks);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, &request);
  wait_for(request, watch_.get(), shares_processors_);
  int sum = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    offsets[r] = sum;
    sum += lengths[r];
  }
  std::string all(static_cast<std::size_t>(sum), '\0');
  MPI_Iallgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                  MPI_CHAR, MPI_COMM_WORLD, &request);
  wait_for(request, watch_.get(), shares_processors_);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r)
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
  return texts;
}

std::vector<std::string> MpiWorld::collect(const std::string& mine) const {
  const std::vector<std::string> lengths = gather(std::to_string(mine.size()));
  std::vector<std::string> texts;
  constexpr std::size_t part = 1u << 26;
  const auto pass = [&](std::string& text, int other, bool sends) {
    for (std::size_t at = 0; at < text.size(); at += part) {
      const int length = static_cast<int>(std::min(part, text.size() - at));
      MPI_Request request = MPI_REQUEST_NULL;
      if (sends)
        MPI_Isend(text.data() + at, length, MPI_CHAR, other, 2, MPI_COMM_WORLD, &request);
      else
        MPI_Irecv(text.data() + at, length, MPI_CHAR, other, 2, MPI_COMM_WORLD, &request);
      wait_for(request, watch_.get(), shares_processors_);
    }
  };
  std::string own = mine;
  if (index(rank_) != 0) {
    pass(own, 0, true);
    return texts;
  }
  texts.push_back(std::move(own));
  for (std::size_t r = 1; r < size(); ++r) {
    texts.emplace_back(std::stoull(lengths[r]), '\0');
    pass(texts.back(), static_cast<int>(r), false);
  }
  return texts;
}

std::string MpiWorld::share(std::string text) const {
  text.resize(std::stoull(gather(std::to_string(text.size())).front()));
  constexpr std::size_t part = 1u << 26;
  for (std::size_t at = 0; at < text.size(); at += part) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(text.data() + at, static_cast<int>(std::min(part, text.size() - at)), MPI_CHAR, 0,
               MPI_COMM_WORLD, &request);
    wait_for(request, watch_.get(), shares_processors_);
  }
  return text;
}

void MpiWorld::largest(std::vector<std::int64_t>& values, const Meanwhile& meanwhile) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MAX,
                 MPI_COMM_WORLD, &request);
  wait_for(request, watch_.get(), shares_processors_, meanwhile);
}

// Rank 0 asks each of the others for its time; the quickest of some answers errs by no more than
// half of its round trip.
void MpiWorld::synchronise_clocks() {
  // Processes with the same boot have the same monotonic clock, whatever their host is called.
  const std::vector<std::string> boots = gather(boot_of_this_machine());
  constexpr int rounds = 32, tag = 1;
  for (std::size_t r = 1; r < size(); ++r) {
    if (boots[r] == boots[0]) continue;
    const int other = index(rank_) == 0 ? static_cast<int>(r) : 0;
    if (index(rank_) != 0 && index(rank_) != r) continue;
    std::int64_t best = INT64_MAX, ahead = 0;
    for (int i = 0; i < rounds; ++i) {
      std::int64_t now = nanoseconds_now(), theirs = now;
      if (index(rank_) == 0) {
        MPI_Send(&now, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD);
        MPI_Recv(&theirs, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const std::int64_t after = nanoseconds_now();
        if (after - now < best) best = after - now, ahead = theirs - (now + after) / 2;
      } else {
        MPI_Recv(&theirs, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        now = nanoseconds_now();
        MPI_Send(&now, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD);
      }
    }
    if (index(rank_) == 0)
      MPI_Send(&ahead, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD);
    else
      MPI_Recv(&ahead, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (index(rank_) == r) clock_ahead_ = Time::picoseconds(1000 * ahead);
  }
}

}  // namespace rehearse
