// Reading the matrix: rows and columns of names, then cells X, NV#, PIX, PXB, PHB, NODE or SYS. The
// classes nest, so each level is a partition of the devices: PIX shares a switch, PXB a tree of
// switches, PHB and NODE a socket.
#include "topology/formats/io_nvidia_smi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"
#include "topology/assumed_latency.hpp"
#include "topology/files/text_file.hpp"
#include "topology/generators.hpp"

namespace rehearse {

namespace {

enum class Relation : std::uint8_t { self, nvlink, pix, pxb, phb, node, sys };
constexpr std::array<std::string_view, 7> relation_words{"X",   "NV",   "PIX", "PXB",
                                                         "PHB", "NODE", "SYS"};

struct Cell {
  Relation relation = Relation::sys;
  std::size_t links = 0;  // of NVLink
};

struct Matrix {
  std::vector<std::string> names;  // GPUs and NICs, as columns
  std::vector<bool> is_gpu;
  std::vector<std::vector<Cell>> cells;
};

// NVLinks 2 to 4 carry 25 GB/s each way (V100, A100 and H100 datasheets); PCIe goes by the
// generation that came with so many links.
constexpr BytesPerSecond one_nvlink{25e9};
constexpr Cable socket_cable{BytesPerSecond{62.4e9}, assumed_latency::socket};

struct Assumed {
  std::string_view pcie;
  BytesPerSecond rate;
};

Assumed assumed_pcie(std::size_t most_links) {
  if (most_links >= 18) return {"PCIe 5.0 x16", BytesPerSecond{63e9}};
  if (most_links >= 12 || most_links == 0) return {"PCIe 4.0 x16", BytesPerSecond{31.5e9}};
  return {"PCIe 3.0 x16", BytesPerSecond{15.75e9}};
}

struct Word {
  std::string text;
  std::uint32_t column;
};

// Words of a line; terminal escapes, with which nvidia-smi underlines its header, are left out.
std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  std::string word;
  std::uint32_t begin = 0;
  const auto finish = [&] {
    if (!word.empty()) words.push_back({std::exchange(word, {}), begin});
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i + 1 < line.size() && line[i] != 'm') ++i;
      continue;
    }
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      finish();
      continue;
    }
    if (word.empty()) begin = static_cast<std::uint32_t>(i + 1);
    word += line[i];
  }
  finish();
  return words;
}

bool is_numbered(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) && word.size() > prefix.size() &&
         word.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  Matrix read() {
    check_utf8(text_, file_);
    std::map<std::string, std::vector<Cell>> rows;
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      const std::vector<Word> words = words_of(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      if (words.empty()) continue;
      if (matrix_.names.empty()) {
        read_header(words);
      } else if (rows.size() < matrix_.names.size()) {
        const std::string& name = words.front().text;
        if (std::find(matrix_.names.begin(), matrix_.names.end(), name) == matrix_.names.end())
          fail(words.front().column, fmt::format("a row for '{}', which is no column", name));
        if (!rows.emplace(name, read_row(words)).second)
          fail(words.front().column, fmt::format("a second row for '{}'", name));
      }
    }
    for (const std::string& name : matrix_.names) {
      if (!rows.contains(name))
        throw InputError(Place{file_}, fmt::format("the matrix has no row for '{}'", name));
      matrix_.cells.push_back(rows[name]);
    }
    check_symmetry();
    return std::move(matrix_);
  }

 private:
  [[noreturn]] void fail(std::uint32_t column, std::string message) const {
    throw InputError(Place{file_, line_, column}, std::move(message));
  }

  void read_header(const std::vector<Word>& words) {
    if (!is_numbered(words.front().text, "GPU")) return;  // what people copy along with it
    for (const Word& word : words) {
      if (word.text == "CPU") break;  // "CPU Affinity" and what follows
      if (std::find(matrix_.names.begin(), matrix_.names.end(), word.text) != matrix_.names.end())
        fail(word.column, fmt::format("a second column '{}'", word.text));
      matrix_.names.push_back(word.text);
      matrix_.is_gpu.push_back(is_numbered(word.text, "GPU"));
    }
    if (matrix_.names.size() > 1024) fail(1, "more than 1024 columns");
  }

  std::vector<Cell> read_row(const std::vector<Word>& words) const {
    if (words.size() < matrix_.names.size() + 1)
      fail(words.front().column,
           fmt::format("the row of '{}' has {} cells for {} columns", words.front().text,
                       words.size() - 1, matrix_.names.size()));
    std::vector<Cell> row;
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) row.push_back(read_cell(words[i + 1]));
    return row;
  }

  Cell read_cell(const Word& word) const {
    Cell cell;
    if (is_numbered(word.text, "NV")) {
      cell.relation = Relation::nvlink;
      const char* digits = word.text.data() + 2;
      std::from_chars(digits, word.text.data() + word.text.size(), cell.links);
      if (cell.links == 0 || cell.links > 1024)
        fail(word.column, fmt::format("'{}' is no number of NVLinks", word.text));
      return cell;
    }
    const auto at = std::find(relation_words.begin(), relation_words.end(), word.text);
    if (at == relation_words.end() || word.text == "NV")
      fail(word.column,
           fmt::format("unknown connection '{}'; one of X, NV#, PIX, PXB, PHB, NODE, SYS",
                       word.text.substr(0, 40)));
    cell.relation = static_cast<Relation>(at - relation_words.begin());
    return cell;
  }

  void check_symmetry() const {
    const std::size_t size = matrix_.names.size();
    if (size == 0) throw InputError(Place{file_}, "has no line of GPU0, GPU1 … above a matrix");
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) {
        const Cell &a = matrix_.cells[i][j], &b = matrix_.cells[j][i];
        if ((a.relation == Relation::self) != (i == j) || a.relation != b.relation ||
            a.links != b.links)
          throw InputError(Place{file_}, fmt::format("the matrix is not symmetric at '{}' and '{}'",
                                                     matrix_.names[i], matrix_.names[j]));
      }
  }

  std::string_view text_;
  const std::string& file_;
  std::uint32_t line_ = 0;
  Matrix matrix_;
};

// Which devices are together when relations up to `most` join them; numbered by first member.
// NVLink hides the PCIe relation of a pair, which then follows from their relations to others.
std::vector<std::size_t> partition(const Matrix& matrix, Relation most) {
  const std::size_t size = matrix.names.size();
  std::vector<std::size_t> leader(size);
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = i + 1; j < size; ++j) {
      const Relation relation = matrix.cells[i][j].relation;
      if (relation < Relation::pix || relation > most) continue;
      const std::size_t a = find(i), b = find(j);
      leader[std::max(a, b)] = std::min(a, b);
    }
  for (std::size_t i = 0; i < size; ++i) leader[i] = find(i);
  return leader;
}

class MatrixBuilder {
 public:
  explicit MatrixBuilder(const Matrix& matrix) : matrix_{matrix} {}

  Topology build() {
    std::size_t most_links = 0;
    for (const auto& row : matrix_.cells)
      for (const Cell& cell : row) most_links = std::max(most_links, cell.links);
    const Assumed pcie = assumed_pcie(most_links);
    pcie_ = {pcie.rate, assumed_latency::pcie};
    topology_.name =
        fmt::format("nvidia-smi matrix (assumed: NVLink 25 GB/s a link, {})", pcie.pcie);
    topology_.accelerators.emplace_back().name = "GPU";
    for (const bool gpus : {true, false})
      for (std::size_t i = 0; i < matrix_.names.size(); ++i)
        if (matrix_.is_gpu[i] == gpus) add_endpoint(i);
    connect_nvlinks();
    connect_tree();
    return std::move(topology_);
  }

 private:
  void add_endpoint(std::size_t i) {
    const bool is_gpu = matrix_.is_gpu[i];
    ids_[i] = topology_.add(
        {.name = is_gpu ? fmt::format("gpu{}", gpus_++) : fmt::format("nic{}", nics_++),
         .kind = is_gpu ? DeviceKind::gpu : DeviceKind::nic,
         .node = NodeId{0}});
  }
  DeviceId add(std::string_view prefix, std::size_t number, DeviceKind kind) {
    return topology_.add(
        {.name = fmt::format("{}{}", prefix, number), .kind = kind, .node = NodeId{0}});
  }
  void join(DeviceId a, DeviceId b, Cable cable, LinkKind kind) {
    topology_.connect_both({.source = a,
                            .target = b,
                            .bandwidth = cable.bandwidth,
                            .latency = cable.latency,
                            .kind = kind});
  }

  // NVLinks of a GPU to a switch between all of them: equally many for all pairs, and together
  // more than any GPU has (18). 0 when there is no switch.
  std::size_t links_to_switch() const {
    std::size_t links = 0;
    for (std::size_t i = 0; i < matrix_.names.size(); ++i)
      for (std::size_t j = 0; j < matrix_.names.size(); ++j) {
        if (i == j || !matrix_.is_gpu[i] || !matrix_.is_gpu[j]) continue;
        if (links == 0) links = matrix_.cells[i][j].links;
        if (matrix_.cells[i][j].links != links || links == 0) return 0;
      }
    return links > 0 && (gpus_ - 1) * links > 18 ? links : 0;
  }

  void connect_nvlinks() {
    const auto rate = [](std::size_t links) { return static_cast<double>(links) * one_nvlink; };
    if (const std::size_t links = links_to_switch(); links > 0) {
      const DeviceId hub = add("nvswitch", 0, DeviceKind::network_switch);
      for (std::size_t i = 0; i < matrix_.names.size(); ++i)
        if (matrix_.is_gpu[i])
          join(ids_[i], hub, {rate(links), assumed_latency::nvswitch}, LinkKind::nvlink);
      return;
    }
    for (std::size_t i = 0; i < matrix_.names.size(); ++i)
      for (std::size_t j = i + 1; j < matrix_.names.size(); ++j)
        if (const std::size_t links = matrix_.cells[i][j].links; links > 0)
          join(ids_[i], ids_[j], {rate(links), assumed_latency::nvlink}, LinkKind::nvlink);
  }

  // One switch for each PIX group of several, one above it for each PXB group of several such.
  void connect_tree() {
    const std::size_t size = matrix_.names.size();
    const auto pix = partition(matrix_, Relation::pix), pxb = partition(matrix_, Relation::pxb);
    const auto socket = partition(matrix_, Relation::node);
    const auto members = [&](const std::vector<std::size_t>& of, std::size_t leader) {
      return std::count(of.begin(), of.end(), leader);
    };
    std::map<std::size_t, DeviceId> low, high, cpu;  // by the group's leader
    std::size_t switches = 0;
    for (std::size_t i = 0; i < size; ++i)
      if (pix[i] == i && members(pix, i) > 1)
        low[i] = add("pcie", switches++, DeviceKind::network_switch);
    for (std::size_t i = 0; i < size; ++i)
      if (pxb[i] == i && members(pxb, i) > members(pix, i))
        high[i] = add("pcie", switches++, DeviceKind::network_switch);
    for (std::size_t i = 0; i < size; ++i)
      if (socket[i] == i) cpu[i] = add("cpu", cpu.size(), DeviceKind::cpu);
    const auto above = [&](std::size_t i) {
      return high.contains(pxb[i]) ? high[pxb[i]] : cpu[socket[i]];
    };
    for (std::size_t i = 0; i < size; ++i)
      join(ids_[i], low.contains(pix[i]) ? low[pix[i]] : above(i), pcie_, LinkKind::pcie);
    for (const auto& [leader, id] : low) join(id, above(leader), pcie_, LinkKind::pcie);
    for (const auto& [leader, id] : high) join(id, cpu[socket[leader]], pcie_, LinkKind::pcie);
    for (auto a = cpu.begin(); a != cpu.end(); ++a)
      for (auto b = std::next(a); b != cpu.end(); ++b)
        join(a->second, b->second, socket_cable, LinkKind::socket);
  }

  const Matrix& matrix_;
  Topology topology_;
  std::map<std::size_t, DeviceId> ids_;
  std::size_t gpus_ = 0, nics_ = 0;
  Cable pcie_;
};

}  // namespace

Topology parse_nvidia_smi(std::string_view text, const std::string& file) {
  return MatrixBuilder{MatrixReader{text, file}.read()}.build();
}

}  // namespace rehearse
