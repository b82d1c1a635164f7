// Which keys an [accelerator] has, and what they may be.
#include "topology/formats/accelerator_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "sim/base/quantity_text.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_units = 65536, most_tiles = 16, longest_side = 4096;
constexpr std::size_t longest_dimension = std::size_t{1} << 31;

std::optional<double> read_number(Fields& fields, std::string_view key, double least, double most) {
  const std::optional<double> given = fields.number(key);
  if (!given || (*given >= least && *given <= most)) return given;
  fields.complain(key, fmt::format("'{}' must be from {} to {}, not {}", key, least, most, *given));
  return {};
}

// An efficiency of zero would take for ever; nothing reaches more than all.
std::optional<double> read_efficiency(Fields& fields, std::string_view key) {
  return read_number(fields, key, 0.001, 1);
}

std::optional<Bytes> read_memory_ramp(Fields& fields) {
  const std::optional<Bytes> given = fields.bytes("memory_ramp");
  if (!given || *given <= 1_GiB) return given;
  fields.complain("memory_ramp", "'memory_ramp' must be at most 1GiB");
  return {};
}

std::optional<Accelerator::Tile> tile_of(std::string_view text) {
  Accelerator::Tile tile;
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, tile.rows);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != 'x') return {};
  const auto columns = std::from_chars(rows.ptr + 1, end, tile.columns);
  if (columns.ec != std::errc{} || columns.ptr != end) return {};
  const bool is_small = tile.rows <= longest_side && tile.columns <= longest_side;
  return tile.rows > 0 && tile.columns > 0 && is_small ? std::optional{tile} : std::nullopt;
}

std::optional<std::vector<Accelerator::Tile>> read_tiles(Fields& fields) {
  const Value* given = fields.any("tiles");
  if (!given) return {};
  const Array* items = given->array();
  if (!items || items->empty() || items->size() > most_tiles) {
    fields.complain("tiles", fmt::format("'tiles' must be a list of 1 to {} sizes such as "
                                         "\"128x64\"",
                                         most_tiles));
    return {};
  }
  std::vector<Accelerator::Tile> tiles;
  for (const Value& item : *items) {
    const auto tile = item.text() ? tile_of(*item.text()) : std::nullopt;
    if (!tile) {
      fields.complain(
          "tiles", fmt::format("a tile is two sides up to {}, such as \"128x64\"", longest_side));
      return {};
    }
    tiles.push_back(*tile);
  }
  return tiles;
}

std::vector<AcceleratorChanges::Efficiency> read_efficiencies(const Value& table,
                                                              Problems& problems) {
  std::vector<AcceleratorChanges::Efficiency> all;
  Fields shares{table, "efficiency", problems};
  for (const Member& member : *table.table())
    if (const auto share = read_efficiency(shares, member.key)) all.push_back({member.key, *share});
  return all;
}

// What is no product has m = 0, n bytes and k operations.
std::optional<Accelerator::MeasuredGemm> read_measured(const Value& table, Problems& problems) {
  Fields fields{table, "[[accelerator.measured]]", problems};
  const std::size_t problems_before = problems.size();
  const bool is_gemm = !fields.any("traffic");
  fields.require("precision");
  fields.require("time");
  if (is_gemm)
    for (const char* key : {"m", "n", "k"}) fields.require(key);
  const auto side = [&](std::string_view key) {
    return static_cast<std::int64_t>(fields.count(key, 1, longest_dimension).value_or(1));
  };
  Accelerator::MeasuredGemm gemm;
  if (is_gemm) {
    gemm.shape = {.m = side("m"), .n = side("n"), .k = side("k"), .batch = side("batch")};
  } else {
    gemm.shape.n = static_cast<std::int64_t>(fields.count("traffic", 1).value_or(1));
    gemm.shape.k = static_cast<std::int64_t>(fields.count("flops").value_or(0));
  }
  if (const auto precision = fields.choice("precision", precision_words))
    gemm.shape.precision = static_cast<Precision>(*precision);
  gemm.time = fields.duration("time").value_or(Time{});
  fields.finish();
  return problems.size() == problems_before ? std::optional{gemm} : std::nullopt;
}

// Sorted, so that equal contents are equal values.
std::vector<Accelerator::MeasuredGemm> read_all_measured(Fields& fields, Problems& problems) {
  std::vector<std::pair<Accelerator::MeasuredGemm, Place>> found;
  for (const Value* table : fields.tables("measured"))
    if (const auto gemm = read_measured(*table, problems)) found.emplace_back(*gemm, table->place);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first.shape < b.first.shape; });
  std::vector<Accelerator::MeasuredGemm> all;
  for (const auto& [gemm, place] : found) {
    if (!all.empty() && all.back().shape == gemm.shape)
      problems.push_back({place, "this shape is listed twice"});
    else
      all.push_back(gemm);
  }
  return all;
}

void check_efficiencies(Fields& fields, const Accelerator& accelerator,
                        const AcceleratorChanges& changes, Problems& problems) {
  for (const AcceleratorChanges::Efficiency& efficiency : changes.efficiencies) {
    const bool is_known = std::any_of(
        accelerator.peaks.begin(), accelerator.peaks.end(),
        [&](const Accelerator::Peak& peak) { return peak.precision == efficiency.precision; });
    if (is_known) continue;
    const Value* share = fields.any("efficiency")->find(efficiency.precision);
    problems.push_back({share->place, fmt::format("an efficiency for '{}', which has no peak",
                                                  efficiency.precision)});
  }
}

}  // namespace

AcceleratorChanges read_changes(Fields& fields, Problems& problems) {
  AcceleratorChanges changes;
  if (const auto units = fields.count("compute_units", 1, most_units))
    changes.compute_units = static_cast<std::uint32_t>(*units);
  changes.launch_overhead = fields.time("launch_overhead");
  changes.memory_ramp = read_memory_ramp(fields);
  changes.memory_efficiency = read_efficiency(fields, "memory_efficiency");
  changes.fused_efficiency = read_efficiency(fields, "fused_efficiency");
  changes.flash_1_efficiency = read_efficiency(fields, "flash_1_efficiency");
  changes.flash_2_efficiency = read_efficiency(fields, "flash_2_efficiency");
  changes.sustained_share = read_efficiency(fields, "sustained_share");
  changes.winograd_share = read_efficiency(fields, "winograd_share");
  changes.elementwise_share = read_efficiency(fields, "elementwise_share");
  changes.elementwise_grad_share = read_efficiency(fields, "elementwise_grad_share");
  // A device that loses all its compute would never finish.
  changes.communication_share = read_number(fields, "communication_share", 0, 0.9);
  if (const Value* table = fields.table("efficiency"))
    changes.efficiencies = read_efficiencies(*table, problems);
  if (const Value* table = fields.table("gemm")) {
    Fields gemm{*table, "gemm", problems};
    changes.tiles = read_tiles(gemm);
    changes.k_ramp = read_number(gemm, "k_ramp", 0, 65536);
    changes.tile_ramp = read_number(gemm, "tile_ramp", 0, 65536);
    gemm.finish();
  }
  changes.measured = read_all_measured(fields, problems);
  return changes;
}

Accelerator read_accelerator(const Value& table, Problems& problems) {
  Fields fields{table, "[accelerator]", problems};
  Accelerator accelerator;
  fields.require("name");
  accelerator.name = fields.text("name").value_or("");
  accelerator.memory = fields.bytes("memory").value_or(Bytes{});
  accelerator.memory_bandwidth =
      fields.any("memory_bandwidth")
          ? fields.bandwidth("memory_bandwidth").value_or(BytesPerSecond{})
          : BytesPerSecond{};
  if (const Value* peaks = fields.table("peak")) {
    Fields rates{*peaks, "peak", problems};
    for (const Member& member : *peaks->table())
      if (const auto rate = rates.flops_rate(member.key))
        accelerator.peaks.push_back({member.key, *rate});
  }
  const AcceleratorChanges changes = read_changes(fields, problems);
  fields.finish();
  check_efficiencies(fields, accelerator, changes, problems);
  return problems.empty() ? changed(std::move(accelerator), changes) : accelerator;
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

namespace {

std::string write_gemm(const AcceleratorChanges& changes) {
  if (!changes.tiles && !changes.k_ramp && !changes.tile_ramp) return {};
  std::string out = "[accelerator.gemm]\n";
  if (changes.tiles) {
    std::vector<std::string> tiles;
    for (const Accelerator::Tile& tile : *changes.tiles)
      tiles.push_back(fmt::format("\"{}x{}\"", tile.rows, tile.columns));
    out += fmt::format("tiles = [{}]\n", fmt::join(tiles, ", "));
  }
  if (changes.k_ramp) out += fmt::format("k_ramp = {:#}\n", *changes.k_ramp);
  if (changes.tile_ramp) out += fmt::format("tile_ramp = {:#}\n", *changes.tile_ramp);
  return out;
}

// What of an accelerator is not as usual.
AcceleratorChanges changes_of(const Accelerator& accelerator) {
  const Accelerator usual;
  AcceleratorChanges changes{.measured = accelerator.measured};
  const auto note = [](auto& change, const auto& value, const auto& as_usual) {
    if (value != as_usual) change = value;
  };
  note(changes.compute_units, accelerator.compute_units, usual.compute_units);
  note(changes.launch_overhead, accelerator.launch_overhead, usual.launch_overhead);
  note(changes.memory_ramp, accelerator.memory_ramp, usual.memory_ramp);
  note(changes.memory_efficiency, accelerator.memory_efficiency, usual.memory_efficiency);
  note(changes.fused_efficiency, accelerator.fused_efficiency, usual.fused_efficiency);
  note(changes.flash_1_efficiency, accelerator.flash_1_efficiency, usual.flash_1_efficiency);
  note(changes.flash_2_efficiency, accelerator.flash_2_efficiency, usual.flash_2_efficiency);
  note(changes.sustained_share, accelerator.sustained_share, usual.sustained_share);
  note(changes.winograd_share, accelerator.winograd_share, usual.winograd_share);
  note(changes.elementwise_share, accelerator.elementwise_share, usual.elementwise_share);
  note(changes.elementwise_grad_share, accelerator.elementwise_grad_share,
       usual.elementwise_grad_share);
  note(changes.communication_share, accelerator.communication_share, usual.communication_share);
  note(changes.tiles, accelerator.tiles, usual.tiles);
  note(changes.k_ramp, accelerator.k_ramp, usual.k_ramp);
  note(changes.tile_ramp, accelerator.tile_ramp, usual.tile_ramp);
  for (const Accelerator::Peak& peak : accelerator.peaks)
    if (peak.efficiency != Accelerator::Peak{}.efficiency)
      changes.efficiencies.push_back({peak.precision, peak.efficiency});
  return changes;
}

std::string write_peaks(const Accelerator& accelerator) {
  std::string out = accelerator.peaks.empty() ? "" : "[accelerator.peak]\n";
  for (const Accelerator::Peak& peak : accelerator.peaks)
    out += fmt::format("{} = \"{}\"\n", toml_quoted(peak.precision), to_text(peak.rate));
  return out;
}

std::string write_keys(const AcceleratorChanges& changes) {
  std::string out;
  if (changes.compute_units) out += fmt::format("compute_units = {}\n", *changes.compute_units);
  if (changes.launch_overhead)
    out += fmt::format("launch_overhead = \"{}\"\n", to_text(*changes.launch_overhead));
  if (changes.memory_ramp)
    out += fmt::format("memory_ramp = \"{}\"\n", to_text(*changes.memory_ramp));
  const auto share = [&](const char* key, const std::optional<double>& value) {
    if (value) out += fmt::format("{} = {:#}\n", key, *value);
  };
  share("memory_efficiency", changes.memory_efficiency);
  share("fused_efficiency", changes.fused_efficiency);
  share("flash_1_efficiency", changes.flash_1_efficiency);
  share("flash_2_efficiency", changes.flash_2_efficiency);
  share("sustained_share", changes.sustained_share);
  share("winograd_share", changes.winograd_share);
  share("elementwise_share", changes.elementwise_share);
  share("elementwise_grad_share", changes.elementwise_grad_share);
  share("communication_share", changes.communication_share);
  return out;
}

std::string write_tables(const AcceleratorChanges& changes) {
  std::string out = changes.efficiencies.empty() ? "" : "[accelerator.efficiency]\n";
  for (const AcceleratorChanges::Efficiency& efficiency : changes.efficiencies)
    out += fmt::format("{} = {:#}\n", toml_quoted(efficiency.precision), efficiency.share);
  out += write_gemm(changes);
  for (const Accelerator::MeasuredGemm& gemm : changes.measured) {
    const auto& shape = gemm.shape;
    out +=
        fmt::format("[[accelerator.measured]]\nprecision = \"{}\"\n", to_string(shape.precision));
    out += shape.m == 0 ? fmt::format("traffic = {}\nflops = {}\n", shape.n, shape.k)
                        : fmt::format("m = {}\nn = {}\nk = {}\nbatch = {}\n", shape.m, shape.n,
                                      shape.k, shape.batch);
    out += fmt::format("time = \"{}\"\n", to_text(gemm.time));
  }
  return out;
}

}  // namespace

std::string write_changes(const AcceleratorChanges& changes) {
  return write_keys(changes) + write_tables(changes);
}

std::string write_accelerator(const Accelerator& accelerator) {
  std::string out = fmt::format("\n[[accelerator]]\nname = {}\nmemory = \"{}\"\n",
                                toml_quoted(accelerator.name), to_text(accelerator.memory));
  if (accelerator.memory_bandwidth.count() > 0)
    out += fmt::format("memory_bandwidth = \"{}\"\n", to_text(accelerator.memory_bandwidth));
  const AcceleratorChanges changes = changes_of(accelerator);
  return out + write_keys(changes) + write_peaks(accelerator) + write_tables(changes);
}

}  // namespace rehearse
