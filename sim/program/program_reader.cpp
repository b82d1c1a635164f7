// Reads the text form of a Program (grammar: sim/program/program_text.hpp). Two passes over the
// lines: the first learns all names, so that the second may meet them in any order. Nothing is
// reserved from a number in the file, so a small file stays small.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/base/quantity_text.hpp"
#include "sim/base/text_line.hpp"
#include "sim/program/program_text.hpp"
#include "sim/program/program_words.hpp"

namespace rehearse {

namespace {

// Sums over the whole program stay well inside 63 bits.
constexpr double most_in_all = 4e18;

using namespace program_words;

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  Program run() {
    if (text_.size() >= UINT32_MAX) throw InputError({file_}, "longer than 4 GiB");
    cut_lines();
    check_header();
    for (const Numbered& line : lines_) attempt([&] { declare(line); });
    for (const Pending& connection : connections_) attempt([&] { read_connection(connection); });
    // Ops count on all connections being there, so mistakes so far are reported first.
    give_up_if_wrong();
    for (const Pending& fold : folds_) attempt([&] { read_fold(fold); });
    for (const Pending& op : ops_) attempt([&] { read_op(op); });
    check_folds();
    give_up_if_wrong();
    program_.adopt(std::move(names_), std::move(after_begin_), std::move(after_));
    return std::move(program_);
  }

 private:
  struct Numbered {
    std::string_view text;
    std::uint32_t number;
  };
  using Pending = TextLine;  // a statement whose name has been read and whose rest has not

  template <class Action>
  void attempt(Action action) {
    constexpr std::size_t most_problems = 20;
    if (problems_.size() >= most_problems) return;
    try {
      action();
    } catch (const InputError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
    }
  }

  void give_up_if_wrong() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

  void cut_lines() {
    std::uint32_t number = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      ++number;
      if (!line({text_.substr(at, end - at), number}).at_end())
        lines_.push_back({text_.substr(at, end - at), number});
      at = end + 1;
    }
  }

  TextLine line(const Numbered& line) const { return {line.text, file_, line.number}; }

  void check_header() {
    if (lines_.empty()) throw InputError({file_, 1, 1}, "an empty file is not a program");
    TextLine header = line(lines_.front());
    for (const std::string_view word : {"rehearse", "program", "1"}) header.expect(word);
    header.expect_end();
    lines_.erase(lines_.begin());
  }

  void declare(const Numbered& numbered) {
    TextLine line = this->line(numbered);
    if (line.accept("op")) return declare(line, op_ids_, ops_, "op");
    if (line.accept("connection"))
      return declare(line, connection_ids_, connections_, "connection");
    if (line.accept("fold")) return folds_.push_back(line);
    if (line.accept("name")) return read_name(line);
    if (line.accept("protocol")) return read_protocol(line);
    const std::vector<std::string> known{"op", "connection", "fold", "name", "protocol"};
    const std::string_view word = line.word("a statement");
    line.fail(fmt::format("unknown statement '{}'{}", word, did_you_mean(word, known)));
  }

  using Ids = std::unordered_map<std::string_view, std::uint32_t>;

  static void declare(TextLine& line, Ids& ids, std::vector<Pending>& statements,
                      std::string_view what) {
    const std::string_view id = line.word(fmt::format("the {}'s name", what));
    if (!ids.emplace(id, ids.size()).second)
      line.fail(fmt::format("{} '{}' is defined twice", what, id));
    line.expect(":");
    statements.push_back(line);
  }

  static std::uint32_t find(TextLine& line, const Ids& ids, std::string_view what) {
    const std::string_view id = line.word(fmt::format("the name of a {}", what));
    const auto found = ids.find(id);
    if (found == ids.end()) line.fail(fmt::format("there is no {} '{}'", what, id));
    return found->second;
  }

  void read_name(TextLine& line) {
    std::string name = line.quoted("a name");
    if (name_ids_.contains(name)) line.fail("this name is listed twice");
    line.expect_end();
    intern(std::move(name));
  }

  std::uint32_t intern(std::string name) {
    const auto [at, is_new] =
        name_ids_.emplace(std::move(name), static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(at->first);
    return at->second;
  }

  void read_protocol(TextLine& line) {
    Protocol protocol;
    protocol.name = line.quoted("a name");
    if (line.accept("overhead")) protocol.overhead = time(line);
    if (line.accept("network_overhead")) protocol.network_overhead = time(line);
    if (line.accept("launch")) protocol.launch = time(line);
    if (line.accept("payload")) {
      protocol.payload = line.number("a share of the wire");
      if (protocol.payload <= 0 || protocol.payload > 1) line.fail("payload is in (0, 1]");
    }
    if (line.accept("limit")) protocol.limit = quantity(line, "a bandwidth", parse_bandwidth);
    line.expect_end();
    if (program_.protocols.size() > UINT16_MAX) line.fail("more than 65536 protocols");
    program_.protocols.push_back(std::move(protocol));
  }

  double share(TextLine& line) {
    const double share = line.number("a share of a network's overhead");
    if (share < 0 || share > 1) line.fail("a share is in [0, 1]");
    return share;
  }

  Time time(TextLine& line) {
    const Time value = quantity(line, "a time", parse_time);
    add_to(time_in_all_, static_cast<double>(value.ps()), line, "the times of this program");
    return value;
  }

  static void add_to(double& sum, double value, TextLine& line, std::string_view what) {
    sum += value;
    if (!(sum <= most_in_all)) line.fail(fmt::format("{} add up to too much", what));
  }

  void read_connection(TextLine line) {
    Connection connection;
    using Shape = Connection::Shape;
    if (line.accept("multicast")) connection.shape = Shape::multicast;
    if (line.accept("switch_reduce")) connection.shape = Shape::switch_reduce;
    const bool spreads = connection.shape == Shape::multicast;
    const bool gathers = connection.shape == Shape::switch_reduce;
    if (gathers) connection.others = ranks(line);
    if (!gathers) connection.source = rank(line);
    line.expect("->");
    if (spreads) connection.others = ranks(line);
    if (!spreads) connection.target = rank(line);
    if (!spreads && !gathers && line.accept("others")) connection.others = ranks(line);
    if ((spreads || gathers) && line.accept("unused"))
      (spreads ? connection.target : connection.source) = rank(line);
    if (line.accept("channel"))
      connection.channel = static_cast<std::uint16_t>(line.integer("a channel", UINT16_MAX));
    if (line.accept("protocol")) connection.protocol = protocol_number(line);
    if (line.accept("limit")) connection.limit = quantity(line, "a bandwidth", parse_bandwidth);
    if (line.accept("latency")) connection.latency = time(line);
    if (line.accept("network")) connection.network = share(line);
    connection.posted = line.accept("posted");
    connection.by_kernels = line.accept("by_kernels");
    line.expect_end();
    program_.connect(std::move(connection));
  }

  void read_fold(TextLine line) {
    const std::uint32_t which = find(line, connection_ids_, "connection");
    line.expect(":");
    if (program_.folded.empty()) program_.folded.resize(program_.connections().size());
    if (is_folded_.empty()) is_folded_.resize(program_.connections().size());
    if (is_folded_[which]) line.fail("this connection is folded twice");
    is_folded_[which] = true;
    FoldedPath& path = program_.folded[which];
    if (line.accept("latency")) path.latency = time(line);
    if (line.accept("stands_for")) path.stands_for = copies(line);
    if (line.accept("bursts")) {
      path.bursts = static_cast<std::uint32_t>(line.integer("a number of bursts", 1000));
      if (path.bursts == 0) line.fail("the number of bursts must be at least 1");
      line.expect("gap");
      path.gap = time(line);
    }
    if (line.accept("network")) path.network = share(line);
    if (line.accept("links")) {
      do {
        FoldedPath::Crossing crossing;
        crossing.link = static_cast<LinkId>(line.integer("a link", UINT32_MAX - 1));
        line.expect("*");
        crossing.weight = copies(line);
        path.crossings.push_back(crossing);
      } while (line.accept(","));
    }
    line.expect_end();
  }

  void check_folds() {
    const auto missing = std::find(is_folded_.begin(), is_folded_.end(), false);
    if (missing == is_folded_.end()) return;
    problems_.push_back(
        {{file_},
         fmt::format("{} of {} connections have no 'fold'; fold all or none",
                     std::count(missing, is_folded_.end(), false), is_folded_.size())});
  }

  void read_op(TextLine line) {
    line.expect("rank");
    const Rank where = rank(line);
    const Stream queue = stream(line);
    if (line.accept("marker")) {
      edges(line);
      program_.add_marker(where, queue, label(line), {});
    } else if (line.accept("compute")) {
      read_compute(line, where, queue);
    } else if (line.accept("transfer")) {
      read_transfer(line, where, queue);
    } else if (line.accept("collective")) {
      read_collective(line, where, queue);
    } else {
      const std::vector<std::string> known{"marker", "compute", "transfer", "collective"};
      const std::string_view word = line.word("a kind of op");
      line.fail(fmt::format("unknown kind of op '{}'{}", word, did_you_mean(word, known)));
    }
  }

  // Edges, label and the end of the line come last in every op; nothing is added before all is
  // read.
  void edges(TextLine& line) {
    if (line.accept("after")) {
      do after_.push_back(static_cast<OpId>(find(line, op_ids_, "op")));
      while (line.accept(","));
    }
    after_begin_.push_back(static_cast<std::uint32_t>(after_.size()));
  }

  Label label(TextLine& line) {
    Label label;
    if (line.next_is_quote()) {
      label.name = intern(line.quoted("a label"));
      if (!line.at_end())
        label.number = static_cast<std::uint32_t>(line.integer("a number", UINT32_MAX - 1));
    }
    line.expect_end();
    return label;
  }

  void read_compute(TextLine& line, Rank where, Stream queue) {
    Compute work = kernel(line);
    if (line.accept("fixed")) work.fixed = time(line);
    std::vector<Access> accesses;
    for (bool writes = false; (writes = line.accept("writes")) || line.accept("reads");)
      accesses.push_back({slice(line), writes});
    std::vector<KernelCall> calls;
    while (line.accept("runs")) calls.push_back(call(line));
    check_operands(line, accesses, calls);
    edges(line);
    program_.add_compute(where, queue, label(line), work, {}, accesses, calls);
  }

  void read_transfer(TextLine& line, Rank where, Stream queue) {
    Transfer work;
    work.connection = static_cast<ConnectionId>(find(line, connection_ids_, "connection"));
    const Connection& connection = program_[work.connection];
    const bool gathers = connection.shape == Connection::Shape::switch_reduce;
    const Rank runs_on = gathers ? connection.target : connection.source;
    if (where != runs_on)
      line.fail(fmt::format("this connection's transfers run on rank {}, not on rank {}",
                            index(runs_on), index(where)));
    if (line.accept("sum")) work.combine = Combine::sum;
    if (line.accept("max")) work.combine = Combine::max;
    if (line.accept("of")) work.numbers = precision(line);
    const Slice source = slice(line);
    line.expect("->");
    const Slice target = slice(line);
    if (source.size != target.size) line.fail("source and target differ in size");
    work.source_buffer = source.buffer, work.source_offset = source.offset;
    work.target_buffer = target.buffer, work.target_offset = target.offset;
    work.size = work.wire = source.size;
    if (line.accept("wire")) work.wire = bytes(line, "bytes on the wire");
    if (work.wire < work.size) line.fail("fewer bytes on the wire than in the slice");
    add_to(bytes_in_all_, static_cast<double>(work.wire.count()) * weight(work.connection), line,
           "the bytes of this program");
    edges(line);
    program_.add_transfer(queue, label(line), work, {});
  }

  double weight(ConnectionId connection) const {
    double most = 1;
    if (program_.folded.empty()) return most;
    for (const FoldedPath::Crossing& crossing : program_.folded[index(connection)].crossings)
      most = std::max(most, static_cast<double>(crossing.weight));
    return most;
  }

  std::uint16_t protocol_number(TextLine& line) const {
    const std::size_t known = std::max<std::size_t>(1, program_.protocols.size());
    return static_cast<std::uint16_t>(line.integer("a protocol", known - 1));
  }

  void read_collective(TextLine& line, Rank where, Stream queue) {
    if (is_queue(queue)) line.fail("a collective has all its ranks at once; it cannot be queued");
    Collective work;
    work.kind = collective_kind(line);
    line.expect("group");
    work.group = ranks(line);
    if (work.group.front() != where) line.fail("the op is on the first rank of its group");
    line.expect("data");
    work.data = slice(line);
    if (line.accept("result")) work.result = slice(line);
    if (line.accept("root"))
      work.root = static_cast<std::uint32_t>(line.integer("a root", work.group.size() - 1));
    if (line.accept("overwrite")) work.combine = Combine::overwrite;
    if (line.accept("max")) work.combine = Combine::max;
    if (line.accept("of")) work.numbers = precision(line);
    if (line.accept("by")) work.algorithm = line.word("an algorithm");
    if (line.accept("protocol")) work.protocol = protocol_number(line);
    edges(line);
    program_.add_collective(queue, label(line), std::move(work), {});
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Numbered> lines_;
  std::vector<Problem> problems_;
  Program program_;
  Ids op_ids_, connection_ids_;
  std::vector<Pending> ops_, connections_, folds_;
  std::vector<bool> is_folded_;
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> after_begin_{0};
  std::vector<OpId> after_;
  double time_in_all_ = 0, bytes_in_all_ = 0;
};

}  // namespace

Program parse_program(std::string_view text, const std::string& file) {
  return Reader{text, file}.run();
}

}  // namespace rehearse
