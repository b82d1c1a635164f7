// Two communicators: bytes, with the op's number as their tag, and words of four bytes. Receives
// are made when a message is seen: the sender has waited for all inputs, so its target may be
// written.
#include "kernels/mpi/mpi_messages.hpp"

#include <climits>
#include <exception>

#include "kernels/host/combine.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

int length_of(const Transfer& work) {
  if (work.size.count() > INT_MAX)
    throw InputError("a message of more than 2 GiB; take more ranks or smaller buckets");
  return static_cast<int>(work.size.count());
}

bool is_done(MPI_Request& request) {
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

}  // namespace

MpiMessages::MpiMessages(const MpiWorld& world, const Program& program, HostMemory& memory)
    : world_{world}, program_{program}, memory_{memory}, receiving_(world.size()) {
  MPI_Comm_dup(MPI_COMM_WORLD, &data_);
  MPI_Comm_dup(MPI_COMM_WORLD, &words_);
}

// After a failure the job is ended as a whole, and its communicators with it.
MpiMessages::~MpiMessages() {
  if (std::uncaught_exceptions() > 0) return;
  for (Word& word : said_) MPI_Wait(&word.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&data_);
  MPI_Comm_free(&words_);
}

void MpiMessages::send(OpId transfer) {
  const Transfer& work = program_.transfer(program_[transfer]);
  const std::span<const std::byte> bytes = memory_.at(world_.rank(), work.source());
  Sending& made = sending_.emplace_back();
  made.op = transfer;
  MPI_Isend(bytes.data(), length_of(work), MPI_BYTE,
            static_cast<int>(index(program_[work.connection].target)),
            static_cast<int>(index(transfer)), data_, &made.request);
}

void MpiMessages::say(Rank other, std::uint32_t text) {
  Word& word = said_.emplace_back();
  word.text = text;
  MPI_Isend(&word.text, 1, MPI_UINT32_T, static_cast<int>(index(other)), 0, words_, &word.request);
}

void MpiMessages::tell(Rank other, OpId op) { say(other, static_cast<std::uint32_t>(index(op))); }

void MpiMessages::begin_receiving(MPI_Message message, const MPI_Status& status) {
  const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
  world_.watch().heard(static_cast<Rank>(source));
  const auto op = static_cast<OpId>(status.MPI_TAG);
  ASSERT(index(op) < program_.size());
  const Transfer& work = program_.transfer(program_[op]);
  Receiving& made = receiving_[source].emplace_back();
  ++receiving_count_;
  made.op = op;
  std::span<std::byte> target = memory_.at(world_.rank(), work.target());
  if (work.combine != Combine::overwrite) {
    made.beside.resize(target.size());
    target = made.beside;
  }
  MPI_Imrecv(target.data(), length_of(work), MPI_BYTE, &message, &made.request);
}

void MpiMessages::receive_word(MPI_Message message, const MPI_Status& status, News& news) {
  std::uint32_t text = 0;
  MPI_Mrecv(&text, 1, MPI_UINT32_T, &message, MPI_STATUS_IGNORE);
  world_.watch().heard(static_cast<Rank>(status.MPI_SOURCE));
  news.told.push_back(static_cast<OpId>(text));
}

// A short message may be there before a long one that was sent ahead of it; who names it counts on
// both.
void MpiMessages::finish_receiving(News& news) {
  for (std::deque<Receiving>& from : receiving_)
    while (!from.empty() && is_done(from.front().request)) {
      const Receiving& done = from.front();
      const Transfer& work = program_.transfer(program_[done.op]);
      if (work.combine != Combine::overwrite)
        combine(work.combine, work.numbers, done.beside, memory_.at(world_.rank(), work.target()));
      news.arrived.push_back(done.op);
      from.pop_front();
      --receiving_count_;
    }
}

MpiMessages::News MpiMessages::poll() {
  News news;
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  while (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, data_, &there, &message, &status), there != 0)
    begin_receiving(message, status);
  while (MPI_Improbe(MPI_ANY_SOURCE, 0, words_, &there, &message, &status), there != 0)
    receive_word(message, status, news);
  if (receiving_count_ > 0) finish_receiving(news);
  for (auto at = sending_.begin(); at != sending_.end();) {
    if (!is_done(at->request)) {
      ++at;
      continue;
    }
    news.left.push_back(at->op);
    at = sending_.erase(at);
  }
  while (!said_.empty() && is_done(said_.front().request)) said_.pop_front();
  return news;
}

}  // namespace rehearse
