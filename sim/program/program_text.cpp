// Writes a Program as text. The reader is sim/program/program_reader.cpp; the grammar is in the
// header.
#include "sim/program/program_text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "sim/program/kernel_list.hpp"

namespace rehearse {

namespace {

class Writer {
 public:
  explicit Writer(const Program& program) : program_{program} {}

  std::string run() {
    put("rehearse program 1\n");
    for (const Protocol& p : program_.protocols) protocol(p);
    for (const std::string& name : program_.names()) put("name {}\n", quoted(name));
    for (std::size_t c = 0; c < program_.connections().size(); ++c) connection(c);
    for (std::size_t c = 0; c < program_.folded.size(); ++c) folded(c);
    for (std::size_t i = 0; i < program_.size(); ++i) op(static_cast<OpId>(i));
    return std::move(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  static std::string quoted(std::string_view name) {
    std::string out = "\"";
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  void protocol(const Protocol& protocol) {
    put("protocol {}", quoted(protocol.name));
    if (protocol.overhead != Time{}) put(" overhead {}", to_text(protocol.overhead));
    if (protocol.network_overhead != Time{})
      put(" network_overhead {}", to_text(protocol.network_overhead));
    if (protocol.launch != Time{}) put(" launch {}", to_text(protocol.launch));
    if (protocol.payload != 1) put(" payload {}", protocol.payload);
    if (protocol.limit.count() != 0) put(" limit {}", to_text(protocol.limit));
    put("\n");
  }

  template <class Ids>
  void list(const Ids& ids) {
    const char* separator = "";
    for (const auto id : ids) {
      put("{}{}", separator, index(id));
      separator = ",";
    }
  }

  // The end that a shape does not use is written only when it is not zero: == compares it.
  void connection(std::size_t c) {
    const Connection& connection = program_.connections()[c];
    put("connection c{}: ", c);
    switch (connection.shape) {
      case Connection::Shape::point_to_point:
        put("{} -> {}", index(connection.source), index(connection.target));
        if (!connection.others.empty()) {
          put(" others ");
          list(connection.others);
        }
        break;
      case Connection::Shape::multicast:
        put("multicast {} -> ", index(connection.source));
        list(connection.others);
        if (connection.target != Rank{}) put(" unused {}", index(connection.target));
        break;
      case Connection::Shape::switch_reduce:
        put("switch_reduce ");
        list(connection.others);
        put(" -> {}", index(connection.target));
        if (connection.source != Rank{}) put(" unused {}", index(connection.source));
        break;
    }
    if (connection.channel != 0) put(" channel {}", connection.channel);
    if (connection.protocol != 0) put(" protocol {}", connection.protocol);
    if (connection.limit.count() != 0) put(" limit {}", to_text(connection.limit));
    if (connection.latency != Time{}) put(" latency {}", to_text(connection.latency));
    if (connection.network != 0) put(" network {}", connection.network);
    put("{}{}\n", connection.posted ? " posted" : "", connection.by_kernels ? " by_kernels" : "");
  }

  void folded(std::size_t c) {
    const FoldedPath& path = program_.folded[c];
    put("fold c{}:", c);
    if (path.latency != Time{}) put(" latency {}", to_text(path.latency));
    if (path.stands_for != 1) put(" stands_for {}", path.stands_for);
    if (path.bursts != 1) put(" bursts {} gap {}", path.bursts, to_text(path.gap));
    if (path.network != 0) put(" network {}", path.network);
    const char* separator = " links ";
    for (const FoldedPath::Crossing& crossing : path.crossings) {
      put("{}{}*{}", separator, index(crossing.link), crossing.weight);
      separator = ",";
    }
    put("\n");
  }

  void slice(std::string_view before, const Slice& slice) {
    put("{}{}[{},+{}]", before, index(slice.buffer), slice.offset.count(), slice.size.count());
  }

  void op(OpId id) {
    const Program::Op& op = program_[id];
    put("op {}: rank {} {} ", index(id), index(op.rank), stream_name(op.stream));
    switch (op.kind) {
      case WorkKind::marker:
        put("marker");
        break;
      case WorkKind::compute:
        compute(op);
        break;
      case WorkKind::transfer:
        transfer(program_.transfer(op));
        break;
      case WorkKind::collective:
        collective(program_.collective(op));
        break;
    }
    if (!program_.after(id).empty()) {
      put(" after ");
      list(program_.after(id));
    }
    label(op.label);
    put("\n");
  }

  void compute(const Program::Op& op) {
    const Compute& work = program_.compute(op);
    put("compute");
    if (work.flops != Flops{}) put(" flops {}", work.flops.count());
    if (work.traffic != Bytes{}) put(" traffic {}", work.traffic.count());
    const Gemm& gemm = work.gemm;
    if (gemm != Gemm{}) put(" gemm {} {} {}", gemm.m, gemm.n, gemm.k);
    if (gemm.batch != 1) put(" batch {}", gemm.batch);
    if (work.math) put(" math {}", to_string(*work.math));
    if (work.fixed != Time{}) put(" fixed {}", to_text(work.fixed));
    for (const Access& access : program_.accesses(op))
      slice(access.writes ? " writes " : " reads ", access.slice);
    for (const KernelCall& each : program_.calls(op)) call(each);
  }

  // Zeros at the end of sizes and numbers are left out.
  template <class Numbers>
  void trimmed(std::string_view word, const Numbers& numbers) {
    std::size_t count = numbers.size();
    while (count > 0 && numbers[count - 1] == 0) --count;
    for (std::size_t i = 0; i < count; ++i) put("{}{}", i == 0 ? word : ",", numbers[i]);
  }

  void call(const KernelCall& call) {
    put(" runs {} takes {}", entry_of(call.kernel).name, call.operands);
    trimmed(" sizes ", call.sizes);
    trimmed(" numbers ", call.numbers);
    if (call.narrow != Precision::fp32 || call.narrow_operands != 0)
      put(" narrow {} {}", to_string(call.narrow), call.narrow_operands);
  }

  void transfer(const Transfer& work) {
    constexpr std::string_view words[] = {"", " sum", " max"};
    put("transfer c{}{}", index(work.connection), words[static_cast<std::size_t>(work.combine)]);
    if (work.numbers != Precision::fp32) put(" of {}", to_string(work.numbers));
    slice(" ", work.source());
    slice(" -> ", work.target());
    put(" wire {}", work.wire.count());
  }

  void collective(const Collective& work) {
    put("collective {} group ", to_string(work.kind));
    list(work.group);
    slice(" data ", work.data);
    if (work.result != Slice{}) slice(" result ", work.result);
    if (work.root != 0) put(" root {}", work.root);
    if (work.combine == Combine::overwrite) put(" overwrite");
    if (work.combine == Combine::max) put(" max");
    if (work.numbers != Precision::fp32) put(" of {}", to_string(work.numbers));
    if (!work.algorithm.empty()) put(" by {}", work.algorithm);
    if (work.protocol != 0) put(" protocol {}", work.protocol);
  }

  void label(const Label& label) {
    if (program_.names().empty()) {
      ASSERT(label == Label{});
      return;
    }
    put(" {}", quoted(program_.names()[label.name]));
    if (label.number != Label::no_number) put(" {}", label.number);
  }

  const Program& program_;
  std::string text_;
};

}  // namespace

std::string to_text(const Program& program) { return Writer{program}.run(); }

}  // namespace rehearse
