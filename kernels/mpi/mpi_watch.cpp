// Signs of life over a communicator of their own, and a look at the machine's processes.
#include "kernels/mpi/mpi_watch.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <list>
#include <thread>

#include "kernels/host/processes.hpp"
#include "sim/base/error.hpp"
#include "sim/base/told_elsewhere.hpp"

namespace rehearse {

namespace {

// What ranks say: that they live, or that they have told the user of a culprit.
constexpr std::uint32_t alive = 1, culprit_is_told = 2;
constexpr const char* ended = "is gone: its process has ended";
constexpr auto beat = std::chrono::seconds(1);

}  // namespace

std::string boot_of_this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

MpiWatch::Peer peer_of_this_process() {
  std::error_code none;
  const std::string machine =
      boot_of_this_machine() + std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
  return {.name = {}, .machine = machine, .process = ::getpid()};
}

struct MpiWatch::Words {
  struct Word {
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint32_t text = 0;
  };
  MPI_Comm communicator = MPI_COMM_NULL;
  std::list<Word> said;
};

MpiWatch::MpiWatch(Rank self, std::vector<Peer> peers)
    : self_{self},
      peers_{std::move(peers)},
      words_{std::make_unique<Words>()},
      heard_(peers_.size(), Clock::now()),
      last_look_{Clock::now()},
      last_beat_{Clock::now()} {
  MPI_Comm_dup(MPI_COMM_WORLD, &words_->communicator);
}

// After a failure the job is ended as a whole, and its communicators with it.
MpiWatch::~MpiWatch() {
  if (std::uncaught_exceptions() > 0) return;
  for (Words::Word& word : words_->said) MPI_Wait(&word.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&words_->communicator);
}

void MpiWatch::expect_words(Clock::duration patience) {
  patience_ = patience;
  heard_.assign(heard_.size(), Clock::now());
}

void MpiWatch::hear() {
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  while (MPI_Improbe(MPI_ANY_SOURCE, 0, words_->communicator, &there, &message, &status),
         there != 0) {
    std::uint32_t text = 0;
    MPI_Mrecv(&text, 1, MPI_UINT32_T, &message, MPI_STATUS_IGNORE);
    heard(static_cast<Rank>(status.MPI_SOURCE));
    told_elsewhere_ = told_elsewhere_ || text == culprit_is_told;
  }
}

void MpiWatch::say(std::uint32_t text) {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (static_cast<Rank>(r) == self_) continue;
    Words::Word& word = words_->said.emplace_back();
    word.text = text;
    MPI_Isend(&word.text, 1, MPI_UINT32_T, static_cast<int>(r), 0, words_->communicator,
              &word.request);
  }
  for (auto at = words_->said.begin(); at != words_->said.end();) {
    int done = 0;
    MPI_Test(&at->request, &done, MPI_STATUS_IGNORE);
    at = done != 0 ? words_->said.erase(at) : std::next(at);
  }
}

void MpiWatch::say_that_it_is_told() { say(culprit_is_told); }

void MpiWatch::look() {
  const auto now = Clock::now();
  if (now - last_look_ < std::chrono::milliseconds(100)) return;
  // Whoever was away for long (asleep with the whole job, or at work elsewhere) has heard nobody
  // through no fault of theirs.
  if (now - last_look_ > 2 * beat) heard_.assign(heard_.size(), now);
  last_look_ = now;
  hear();
  if (told_elsewhere_) throw ToldElsewhere();
  if (stop_ && stop_()) end_stopped();
  if (now - last_beat_ < beat) return;
  last_beat_ = now;
  say(alive);
  if (const std::optional<Rank> culprit = gone()) accuse(*culprit, ended);
  if (const std::optional<Rank> culprit = stopped())
    accuse(*culprit, fmt::format("is stopped, and not heard of for {} s", in_a_run.count()));
  if (const std::optional<Rank> culprit = silent())
    accuse(*culprit,
           fmt::format("has not been heard of for {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(patience_).count()));
}

std::optional<Rank> MpiWatch::gone() const {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const char state = state_here(r);
    if (state == '\0' || state == 'Z' || state == 'X') return static_cast<Rank>(r);
  }
  return std::nullopt;
}

// A rank may lower a program for a minute, but not while it is stopped.
std::optional<Rank> MpiWatch::stopped() const {
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (is_silent(r, in_a_run) && state_here(r) == 'T') return static_cast<Rank>(r);
  return std::nullopt;
}

std::optional<Rank> MpiWatch::silent() const {
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (is_silent(r, patience_)) return static_cast<Rank>(r);
  return std::nullopt;
}

bool MpiWatch::is_silent(std::size_t rank, Clock::duration patience) const {
  return static_cast<Rank>(rank) != self_ && Clock::now() - heard_[rank] > patience;
}

// Of another rank's process, as far as this machine knows; 'R' of one that is elsewhere.
char MpiWatch::state_here(std::size_t rank) const {
  const bool is_here = peers_[rank].machine == peers_[index(self_)].machine;
  return is_here && static_cast<Rank>(rank) != self_ ? state_of(peers_[rank].process) : 'R';
}

// mpirun tells all ranks to stop when one was killed: is one gone? Those on its machine know.
void MpiWatch::end_stopped() {
  if (const std::optional<Rank> culprit = gone()) accuse(*culprit, ended);
  const bool are_elsewhere = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.machine != peers_[index(self_)].machine;
  });
  if (are_elsewhere) wait_for_word();
  if (told_elsewhere_) throw ToldElsewhere();
  if (self_ == Rank{0}) throw DeviceError("stopped before the end");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  throw ToldElsewhere();
}

// Less than the second that mpirun gives before it kills.
void MpiWatch::wait_for_word() {
  for (int i = 0; i < 40 && !told_elsewhere_; ++i) {
    hear();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void MpiWatch::accuse(Rank culprit, const std::string& what) {
  // Who tells: the first of whom something was heard lately.
  const auto lately = Clock::now() - patience_ / 2;
  if (what == ended) wait_for_word();  // a rank that ends by itself says why, and leaves word
  if (told_elsewhere_) throw ToldElsewhere();
  std::size_t teller = 0;
  while (teller < index(self_) && (static_cast<Rank>(teller) == culprit || heard_[teller] < lately))
    ++teller;
  if (static_cast<Rank>(teller) == self_) {
    throw DeviceError(fmt::format("{} {}", peers_[index(culprit)].name, what));
  }
  std::this_thread::sleep_for(2 * beat);  // mpirun ends this one meanwhile, or it follows
  throw ToldElsewhere();
}

}  // namespace rehearse
