// The op graph that every strategy produces and every executor consumes.
//
//   rank 0  comm   ──[ring 0]────────[ring 1]──▶     ops of one (rank, stream) run in program
//                        ╲ edge    ╱                 order, as on a CUDA stream; `after` edges
//   rank 1  comm   ──[ring 0]──╳─────[ring 1]──▶     order the rest, also across ranks
//   rank 2  queue  ──[push 7][push 2]────[push 4]──▶ ops of a queue: in the order in which they
//                                                    become ready, one at a time
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/large_vector.hpp"
#include "sim/base/precision.hpp"
#include "sim/base/units.hpp"
#include "sim/program/kernel_call.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// Part of a buffer. The simulators read its size; the real executors read its bytes.
struct Slice {
  Buffer buffer{};
  Bytes offset, size;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// Cuts a slice into parts that cover it exactly, in whole elements of `unit` bytes; the first ones
/// take what does not divide. Bytes have no operator/ on purpose: truncation loses the tail.
class Cut {
 public:
  Cut(Slice whole, std::size_t parts, Bytes unit = Bytes{4});
  std::size_t size() const { return static_cast<std::size_t>(parts_); }
  Slice operator[](std::size_t part) const {
    const auto i = static_cast<std::int64_t>(part);
    const Bytes begin{unit_ * (i * each_ + (i < larger_ ? i : larger_))};
    // Bytes beyond the last whole element travel with the last part.
    const Bytes size =
        i == parts_ - 1 ? whole_.size - begin : Bytes{unit_ * (each_ + (i < larger_ ? 1 : 0))};
    return {whole_.buffer, whole_.offset + begin, size};
  }
  Bytes longest() const;

 private:
  Slice whole_;
  std::int64_t parts_, unit_, each_, larger_;  // elements in each part, and parts with one more
};

enum class Combine : std::uint8_t { overwrite, sum, max };

/// One way for bytes between ranks, made once and used by many transfers, as NCCL's channels do.
/// A multicast leaves the source once and the switch copies it; a switch_reduce enters the target
/// once because the switch has added it up (NVLS, SHARP). Its source may be among the others.
/// A posted one leaves its stream free for the next op once its last byte has left: the latency
/// passes on the way, as in NCCL's FIFO, and those who name the transfer wait for its arrival.
/// Transfers of one posted connection on one stream arrive in order.
/// One by kernels, as NCCL's collectives are, takes a share of the compute rate at all its ends
/// while it is under way (Accelerator::communication_share).
struct Connection {
  enum class Shape : std::uint8_t { point_to_point, multicast, switch_reduce };
  Rank source{}, target{};     // multicast: the source; switch_reduce: the target
  std::uint16_t channel = 0;   // chooses among equal routes
  std::uint16_t protocol = 0;  // index into Program::protocols
  Shape shape = Shape::point_to_point;
  bool posted = false;
  bool by_kernels = false;
  BytesPerSecond limit{};    // its lane's share of what it crosses; zero: none
  Time latency;              // in place of its route's where a ring evens it out; zero: the route's
  double network = 0;        // with such a latency: share of a network's overhead that it pays
  std::vector<Rank> others;  // multicast: the targets; switch_reduce: the sources
  friend bool operator==(const Connection&, const Connection&) = default;
};

/// The shape of a matrix product C[m,n] = A[m,k] B[k,n], `batch` times over: it tells how well
/// tiles fill a device. m = 0: the kernel is none.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

/// A kernel: what it does in all, and the HBM bytes it touches (the roofline's other axis).
struct Compute {
  Flops flops;
  Bytes traffic;
  Time fixed;  // known duration, added to what the cost model says (a pause, a measured kernel)
  Gemm gemm{};
  std::optional<Precision> math{};  // whose peak bounds the flops; none: the device's best
  friend bool operator==(const Compute&, const Compute&) = default;
};

/// Bytes from a slice of the connection's source to an equally long slice of its target.
struct Transfer {
  ConnectionId connection{};
  Buffer source_buffer{}, target_buffer{};
  Combine combine = Combine::overwrite;
  Precision numbers = Precision::fp32;  // what is combined, if not just bytes
  Bytes source_offset, target_offset, size;
  Bytes wire;  // what the links carry: size, protocol lines and padding
  Slice source() const { return {source_buffer, source_offset, size}; }
  Slice target() const { return {target_buffer, target_offset, size}; }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  send_recv
};

/// The whole of a collective, expanded into transfers by a pass or handed to NCCL as it is.
/// In place on `data`, but for all_to_all and send_recv, which fill `result`.
struct Collective {
  CollectiveKind kind{};
  std::vector<Rank> group;
  Slice data, result;
  std::uint32_t root = 0;          // position in the group
  Combine combine = Combine::sum;  // of those that reduce
  Precision numbers = Precision::fp32;
  std::string algorithm{};     // that was chosen for it (strategies/collectives/); empty: none yet
  std::uint16_t protocol = 0;  // of Program::protocols, with an algorithm
  friend bool operator==(const Collective&, const Collective&) = default;
};

enum class WorkKind : std::uint8_t { marker, compute, transfer, collective };

/// What the trace shows: a name and a running number, "ring_all_reduce 17".
struct Label {
  static constexpr std::uint32_t no_number = UINT32_MAX;
  std::uint32_t name = 0;  // index into Program::names
  std::uint32_t number = no_number;
  friend bool operator==(const Label&, const Label&) = default;
};

/// A slice that an op reads or writes on its own rank, for verify() and the real executors.
struct Access {
  Slice slice;
  bool writes = false;
  friend bool operator==(const Access&, const Access&) = default;
};

/// One connection standing for many alike (see strategies/collectives/fold.hpp): the links it
/// crosses that may be short, and how many of its kind cross each of them at the same time. What
/// the others allow is in the connection's limit. One that stands for a whole collective sends its
/// bytes in bursts, as the steps of a ring do: equal ones, each a gap after the one before.
struct FoldedPath {
  struct Crossing {
    LinkId link{};
    std::uint32_t weight = 1;
    friend bool operator==(const Crossing&, const Crossing&) = default;
  };
  std::vector<Crossing> crossings;
  Time latency;
  std::uint32_t stands_for = 1;
  std::uint32_t bursts = 1;
  Time gap{};
  double network = 0;  // share of a network's overhead that it pays
  friend bool operator==(const FoldedPath&, const FoldedPath&) = default;
};

/// Ops, their streams and edges. An op may name only ops added before it, so a Program is acyclic
/// by construction and is its own topological order. (A program read from a file may break that;
/// the engines then name the cycle.)
class Program {
 public:
  struct Op {
    Rank rank{};
    Stream stream{};
    WorkKind kind{};
    std::uint32_t work = 0;  // index among the ops of its kind
    Label label;
    friend bool operator==(const Op&, const Op&) = default;
  };

  std::vector<Protocol> protocols;  // index 0 is plain unless a lowering says otherwise
  std::vector<FoldedPath> folded;   // by connection; empty when nothing is folded

  std::uint32_t name(std::string_view text);  // interned
  ConnectionId connect(Connection connection);

  OpId add_marker(Rank rank, Stream stream, Label label, std::span<const OpId> after);
  OpId add_compute(Rank rank, Stream stream, Label label, const Compute& work,
                   std::span<const OpId> after, std::span<const Access> accesses = {},
                   std::span<const KernelCall> calls = {});
  /// On the stream of the connection's source (of its target for a switch_reduce).
  OpId add_transfer(Stream stream, Label label, const Transfer& work, std::span<const OpId> after);
  /// On the given stream of every rank of the group, which is no queue.
  OpId add_collective(Stream stream, Label label, const Collective& work,
                      std::span<const OpId> after);

  std::size_t size() const { return ops_.size(); }
  std::size_t transfer_count() const { return transfers_.size(); }
  /// Whether any op is on a queue: then the order on it is known only by running the program.
  bool has_queues() const { return has_queues_; }
  std::span<const Op> ops() const { return ops_; }
  const Op& operator[](OpId id) const { return ops_[index(id)]; }
  std::span<const OpId> after(OpId id) const {
    const std::size_t begin = after_begin_[index(id)], end = after_begin_[index(id) + 1];
    return {after_.data() + begin, end - begin};
  }
  const Compute& compute(const Op& op) const { return kernels_[kernel_number(op)]; }
  /// Kernels of one number are equal; most programs have few that differ.
  std::uint32_t kernel_number(const Op& op) const { return computes_[op.work].kernel; }
  std::size_t kernel_count() const { return kernels_.size(); }
  std::span<const Access> accesses(const Op& op) const;
  /// The kernels of a compute op, whose operands are its accesses in order; none where an op is
  /// only priced.
  std::span<const KernelCall> calls(const Op& op) const;
  const Transfer& transfer(const Op& op) const { return transfers_[op.work]; }
  const Collective& collective(const Op& op) const { return collectives_[op.work]; }
  std::span<const Connection> connections() const { return connections_; }
  const Connection& operator[](ConnectionId id) const { return connections_[index(id)]; }
  std::span<const std::string> names() const { return names_; }
  /// "ring_all_reduce 17"
  std::string label(OpId id) const;
  /// "op 12 'ring_all_reduce 17' (rank 3, comm 0)", for messages.
  std::string describe(OpId id) const;

  void reserve(std::size_t ops, std::size_t edges);
  /// Replaces the edges of an op, forward ones too: to break a program on purpose.
  void set_after(OpId id, std::span<const OpId> after);
  /// The same for all at once: every name, and the edges of op i at [begin[i], begin[i + 1]).
  void adopt(std::vector<std::string> names, std::span<const std::uint32_t> after_begin,
             std::span<const OpId> after);

  // What real devices need and simulators do not, for ops that were added without it; in the order
  // of the program, so that the same program has the same bytes.
  void bind_compute(OpId id, std::span<const Access> accesses, std::span<const KernelCall> calls);
  void bind_transfer(OpId id, const Slice& source, const Slice& target);
  void bind_collective(OpId id, const Slice& data, const Slice& result);
  /// Another price for a compute op, in place of the one that it was added with.
  void set_compute(OpId id, const Compute& work);
  /// Another transfer in place of one, or of a whole collective; the op stays on its rank and
  /// stream.
  void set_transfer(OpId id, const Transfer& work);
  /// Another way for all transfers of a connection.
  void set_connection(ConnectionId id, Connection connection);
  /// Those that were changed, or became transfers, leave what nobody has any more.
  void drop_unused_collectives();
  /// Decides how a collective is carried out.
  void set_algorithm(OpId id, std::string_view algorithm, std::uint16_t protocol);
  /// How the numbers of a transfer or a collective are stored, and combined where they are.
  void set_numbers(OpId id, Combine combine, Precision numbers);

  friend bool operator==(const Program&, const Program&) = default;

 private:
  struct CallRange {
    std::uint32_t begin = 0, end = 0;
    friend bool operator==(const CallRange&, const CallRange&) = default;
  };
  struct ComputeWork {
    std::uint32_t kernel = 0;
    std::uint32_t accesses_begin = 0, accesses_end = 0;
    friend bool operator==(const ComputeWork&, const ComputeWork&) = default;
  };
  OpId add(Op op, std::span<const OpId> after);
  void set_calls(std::uint32_t work, std::span<const KernelCall> calls);
  std::uint32_t kernel(const Compute& work);
  std::uint32_t collective_number(const Collective& work);
  void change_collective(OpId id, const Collective& work);

  LargeVector<Op> ops_;
  LargeVector<std::uint32_t> after_begin_{0};  // edges of op i: [after_begin_[i], [i + 1])
  LargeVector<OpId> after_;
  LargeVector<ComputeWork> computes_;
  // A million ops repeat some hundred kernels: each is kept once, as long as few others came
  // between.
  LargeVector<Compute> kernels_;
  std::array<std::uint32_t, 256> recent_kernels_{};  // by hash
  std::vector<Access> accesses_;
  // By compute, as far as the last one that has any: a program that is only simulated has none.
  std::vector<CallRange> call_ranges_;
  std::vector<KernelCall> calls_;
  LargeVector<Transfer> transfers_;
  // A step repeats some collectives, too.
  std::vector<Collective> collectives_;
  std::array<std::uint32_t, 256> recent_collectives_{};  // by hash
  std::vector<Connection> connections_;
  std::vector<std::string> names_;
  bool has_queues_ = false;
};

std::string_view to_string(CollectiveKind);
std::string stream_name(Stream);

}  // namespace rehearse
