// What processes of a run say to each other: the bytes of transfers, and word that an op has ended.
// Nothing here waits.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/mpi/mpi_world.hpp"

namespace rehearse {

class MpiMessages {
 public:
  MpiMessages(const MpiWorld& world, const Program& program, HostMemory& memory);
  ~MpiMessages();
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  /// Sends the bytes of one of this rank's transfers, which must stay as they are until it is among
  /// those that left.
  void send(OpId transfer);
  /// Tells another rank that an op has ended.
  void tell(Rank other, OpId op);

  /// What happened since the last call.
  struct News {
    std::vector<OpId> left;     // own transfers whose source may be written again
    std::vector<OpId> arrived;  // transfers to this rank; each source's in its order
    std::vector<OpId> told;     // ended elsewhere
    bool is_empty() const { return left.empty() && arrived.empty() && told.empty(); }
  };
  News poll();
  bool is_idle() const { return sending_.empty() && receiving_count_ == 0; }

 private:
  struct Sending {
    MPI_Request request = MPI_REQUEST_NULL;
    OpId op{};
  };
  struct Receiving {
    MPI_Request request = MPI_REQUEST_NULL;
    OpId op{};
    std::vector<std::byte> beside;  // where it is combined, not laid down
  };
  struct Word {
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint32_t text = 0;
  };
  void begin_receiving(MPI_Message message, const MPI_Status& status);
  void receive_word(MPI_Message message, const MPI_Status& status, News& news);
  void finish_receiving(News& news);
  void say(Rank other, std::uint32_t text);

  const MpiWorld& world_;
  const Program& program_;
  HostMemory& memory_;
  MPI_Comm data_ = MPI_COMM_NULL, words_ = MPI_COMM_NULL;
  std::list<Sending> sending_;
  std::vector<std::deque<Receiving>> receiving_;  // by source
  std::size_t receiving_count_ = 0;
  std::list<Word> said_;
};

}  // namespace rehearse
