// The structural half of sim/program/verify.hpp: what a Program built in memory has by
// construction, and one read from a file may not.
#include <fmt/format.h>

#include "sim/program/verify.hpp"

namespace rehearse {

namespace {

class Inspector {
 public:
  Inspector(const Program& program, const Surroundings& around, std::size_t most)
      : program_{program}, around_{around}, most_{most} {}

  std::vector<std::string> run() {
    for (std::size_t c = 0; c < program_.connections().size() && !full(); ++c) connection(c);
    folded();
    for (std::size_t i = 0; i < program_.size() && !full(); ++i) op(static_cast<OpId>(i));
    return std::move(problems_);
  }

 private:
  bool full() const { return problems_.size() >= most_; }

  void complain(std::string text) {
    if (!full()) problems_.push_back(std::move(text));
  }

  // Names are spelled only for what is wrong: millions of ops pass through here.
  void complain(OpId id, const std::string& text) {
    if (!full()) problems_.push_back(program_.describe(id) + ' ' + text);
  }

  void connection(std::size_t c) {
    const Connection& connection = program_.connections()[c];
    const auto rank = [&](Rank r) {
      if (index(r) >= around_.ranks)
        complain(fmt::format("connection c{} names rank {}, but there are {} ranks", c, index(r),
                             around_.ranks));
    };
    if (connection.shape != Connection::Shape::switch_reduce) rank(connection.source);
    if (connection.shape != Connection::Shape::multicast) rank(connection.target);
    if (connection.shape != Connection::Shape::point_to_point && connection.others.empty())
      complain(fmt::format("connection c{} has no other end", c));
    for (const Rank other : connection.others) rank(other);
    const std::size_t protocols = program_.protocols.empty() ? 1 : program_.protocols.size();
    if (connection.protocol >= protocols)
      complain(fmt::format("connection c{} uses protocol {}, but there are {}", c,
                           connection.protocol, protocols));
  }

  void folded() {
    if (program_.folded.empty()) return;
    if (program_.folded.size() != program_.connections().size())
      complain(fmt::format("{} of {} connections are folded; fold all or none",
                           program_.folded.size(), program_.connections().size()));
    for (std::size_t c = 0; c < program_.folded.size() && !full(); ++c) {
      const FoldedPath& path = program_.folded[c];
      if (path.bursts == 0) complain(fmt::format("connection c{} sends in 0 bursts", c));
      if (path.bursts > 1 && program_.connections()[c].posted)
        complain(fmt::format("connection c{} is posted, and sends in bursts", c));
      for (const FoldedPath::Crossing& crossing : path.crossings) {
        if (index(crossing.link) >= around_.links)
          complain(fmt::format("connection c{} crosses link {}, but there are {} links", c,
                               index(crossing.link), around_.links));
        if (crossing.weight == 0)
          complain(
              fmt::format("connection c{} crosses link {} with weight 0", c, index(crossing.link)));
      }
    }
  }

  void op(OpId id) {
    const Program::Op& op = program_[id];
    rank(id, op.rank);
    edges(id);
    if (op.kind == WorkKind::compute) compute(id, op);
    if (op.kind == WorkKind::transfer) transfer(id, program_.transfer(op));
    if (op.kind == WorkKind::collective) collective(id, program_.collective(op));
  }

  void rank(OpId id, Rank rank) {
    if (index(rank) >= around_.ranks)
      complain(id,
               fmt::format("is on rank {}, but there are {} ranks", index(rank), around_.ranks));
  }

  void edges(OpId id) {
    for (const OpId input : program_.after(id)) {
      if (index(input) >= program_.size())
        complain(id, fmt::format("waits for op {}, which does not exist", index(input)));
      else if (input == id)
        complain(id, "waits for itself");
      else if (input > id && !around_.forward_edges)
        complain(id, fmt::format("waits for op {}, which comes later", index(input)));
    }
  }

  void slice(OpId id, const Slice& slice) {
    if (slice.offset < Bytes{0} || slice.size < Bytes{0})
      complain(id, fmt::format("touches {} bytes at {} of buffer {}", slice.size.count(),
                               slice.offset.count(), index(slice.buffer)));
  }

  void compute(OpId id, const Program::Op& op) {
    const Compute& work = program_.compute(op);
    if (!(work.flops.count() >= 0) || work.traffic < Bytes{0} || work.fixed < Time{})
      complain(id, "has a negative amount of work");
    const Gemm& gemm = work.gemm;
    if (gemm != Gemm{} && (gemm.m <= 0 || gemm.n <= 0 || gemm.k <= 0 || gemm.batch <= 0))
      complain(id, fmt::format("multiplies {} x {} x {} matrices, {} times", gemm.m, gemm.n, gemm.k,
                               gemm.batch));
    for (const Access& access : program_.accesses(op)) slice(id, access.slice);
  }

  void transfer(OpId id, const Transfer& work) {
    if (index(work.connection) >= program_.connections().size())
      complain(id, fmt::format("uses connection c{}, but there are {}", index(work.connection),
                               program_.connections().size()));
    slice(id, work.source());
    slice(id, work.target());
    if (work.wire < work.size)
      complain(id, fmt::format("puts {} bytes on the wire for {} bytes of data", work.wire.count(),
                               work.size.count()));
  }

  void collective(OpId id, const Collective& work) {
    if (work.root >= work.group.size())
      complain(id, fmt::format("has root {} in a group of {}", work.root, work.group.size()));
    for (const Rank member : work.group) rank(id, member);
    if (work.protocol >= std::max<std::size_t>(1, program_.protocols.size()))
      complain(id, fmt::format("uses protocol {}, but there are {}", work.protocol,
                               std::max<std::size_t>(1, program_.protocols.size())));
    slice(id, work.data);
    slice(id, work.result);
  }

  const Program& program_;
  const Surroundings& around_;
  std::size_t most_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> structural_problems(const Program& program, const Surroundings& around,
                                             std::size_t most) {
  return Inspector{program, around, most}.run();
}

}  // namespace rehearse
