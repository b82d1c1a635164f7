// Reading the table of libraries: the same keys as a machine's [library] and [[protocol]] have.
#include "topology/formats/libraries.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "topology/files/document.hpp"
#include "topology/files/fields.hpp"
#include "topology/formats/io_toml.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_channels = 64;  // NCCL device.h, MAXCHANNELS

Medium read_medium(const Member& member, Problems& problems) {
  Fields fields{member.value.front(), fmt::format("[medium.{}]", member.key), problems};
  Medium medium;
  read_share(fields, "efficiency", medium.efficiency);
  const std::size_t near = fields.count("switch_channels", 1, most_channels).value_or(0);
  medium.switch_channels = static_cast<double>(near);
  medium.far_switch_channels =
      static_cast<double>(fields.count("far_switch_channels", 1, most_channels).value_or(near));
  medium.most = fields.bandwidth("most").value_or(BytesPerSecond{});
  medium.pair = fields.bandwidth("pair").value_or(BytesPerSecond{});
  medium.latency = fields.time("latency").value_or(Time{});
  medium.one_at_a_time = fields.flag("one_at_a_time").value_or(false);
  fields.finish();
  return medium;
}

LibraryTable read_table(std::string_view text, const std::string& file) {
  const Value document = parse_toml_document(text, file);
  Problems problems;
  Fields fields{document, "the file", problems};
  Topology holder;
  read_protocols(fields, problems, holder);
  LibraryTable table;
  table.protocols = std::move(holder.protocols);
  table.common.issue = fields.time("issue").value_or(Time{});
  table.common.network_launch = fields.time("network_launch").value_or(Time{});
  if (fields.any("piece")) table.common.piece = fields.bytes("piece").value_or(Bytes{});
  read_share(fields, "ll_rate", table.ll_rate);
  table.switch_channel = fields.bandwidth("switch_channel").value_or(BytesPerSecond{});
  if (const Value* media = fields.table("medium"))
    for (const Member& member : *media->table())
      table.media.emplace(member.key, read_medium(member, problems));
  fields.finish();
  throw_if_any(std::move(problems));
  return table;
}

LibraryTable& table() {
  static LibraryTable instance =
      read_table(library_files().front().toml, "topology/formats/libraries.toml");
  return instance;
}

}  // namespace

const LibraryTable& library_table() { return table(); }

void replace_library_table(std::string_view text, const std::string& file) {
  table() = read_table(text, file);
}

}  // namespace rehearse
