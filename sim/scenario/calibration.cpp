// Calibration profiles: read strictly, written back, laid over a machine.
#include "sim/scenario/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "sim/scenario/framework.hpp"
#include "topology/files/document.hpp"
#include "topology/files/fields.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/accelerator_file.hpp"
#include "topology/formats/io_toml.hpp"

namespace rehearse {

namespace {

Calibration::Device read_device(const Value& table, Problems& problems) {
  Fields fields{table, "[[accelerator]]", problems};
  const std::size_t problems_before = problems.size();
  Calibration::Device device;
  fields.require("name");
  device.accelerator = fields.text("name").value_or("");
  device.changes = read_changes(fields, problems);
  fields.finish();
  if (problems.size() == problems_before && device.changes == AcceleratorChanges{})
    problems.push_back(
        {fields.place(), fmt::format("nothing is said about '{}'", device.accelerator)});
  return device;
}

void read_devices(Fields& fields, Problems& problems, Calibration& calibration) {
  const Value* given = fields.any("accelerator");
  if (!given) return;
  const auto read = [&](const Value& table) {
    Calibration::Device device = read_device(table, problems);
    const bool is_known = std::any_of(
        calibration.devices.begin(), calibration.devices.end(),
        [&](const Calibration::Device& d) { return d.accelerator == device.accelerator; });
    if (is_known && !device.accelerator.empty())
      problems.push_back(
          {table.place, fmt::format("accelerator '{}' is listed twice", device.accelerator)});
    calibration.devices.push_back(std::move(device));
  };
  if (!given->array()) return read(*given);
  for (const Value& table : *given->array()) read(table);
}

void read_launches(Fields& fields, Problems& problems, Calibration& calibration) {
  for (const Value* table : fields.tables("framework")) {
    Fields one{*table, "[[framework]]", problems};
    for (const char* key : {"name", "launch_time"}) one.require(key);
    Calibration::Launch launch{one.text("name").value_or(""),
                               one.time("launch_time").value_or(Time{})};
    read_share(one, "exchange_share", launch.exchange_share);
    if (one.text("name") && !find_framework(launch.framework))
      one.complain("name", fmt::format("unknown framework '{}'", launch.framework));
    one.finish();
    calibration.launches.push_back(std::move(launch));
  }
}

constexpr std::array<std::string_view, 6> link_words{"nvlink", "pcie",   "network",
                                                     "socket", "memory", "other"};

Calibration::LinkClass read_link(const Value& table, Problems& problems) {
  Fields fields{table, "[[link]]", problems};
  Calibration::LinkClass link;
  fields.require("kind");
  link.kind = static_cast<LinkKind>(fields.choice("kind", link_words).value_or(0));
  link.bandwidth_share = fields.number("bandwidth_share").value_or(1);
  if (!(link.bandwidth_share > 0 && link.bandwidth_share <= 100))
    fields.complain("bandwidth_share",
                    fmt::format("'bandwidth_share' must be above 0 and at most 100, not {}",
                                link.bandwidth_share));
  link.latency = fields.time("latency");
  link.overhead = fields.time("overhead").value_or(Time{});
  link.piece = fields.bytes("piece");
  fields.finish();
  return link;
}

void read_links(Fields& fields, Problems& problems, Calibration& calibration) {
  for (const Value* table : fields.tables("link")) {
    const Calibration::LinkClass link = read_link(*table, problems);
    for (const Calibration::LinkClass& known : calibration.links)
      if (known.kind == link.kind)
        problems.push_back(
            {table->place, fmt::format("links of kind '{}' are listed twice",
                                       link_words[static_cast<std::size_t>(link.kind)])});
    calibration.links.push_back(link);
  }
}

const Calibration::LinkClass* find_class(const Calibration& calibration, LinkKind kind) {
  for (const Calibration::LinkClass& link : calibration.links)
    if (link.kind == kind) return &link;
  return nullptr;
}

// What messages cost at their ends, by whatever protocol: of a network only where they cross one.
void lay_over_messages(const Calibration::LinkClass& link, Topology& topology) {
  topology.library.piece = std::max(topology.library.piece, link.piece.value_or(Bytes{0}));
  if (link.overhead == Time{}) return;
  if (topology.protocols.empty()) topology.protocols.push_back({});
  for (Protocol& protocol : topology.protocols)
    (link.kind == LinkKind::network ? protocol.network_overhead : protocol.overhead) +=
        link.overhead;
}

// Links of a topology are added, not changed: the same devices, and links as measured.
void lay_over_links(const Calibration& calibration, Topology& topology) {
  if (calibration.links.empty()) return;
  Topology made;
  made.name = topology.name;
  made.accelerators = topology.accelerators;
  made.protocols = topology.protocols;
  made.library = topology.library;
  for (const Device& device : topology.devices()) made.add(device);
  std::set<LinkKind> found_kinds;
  for (Link link : topology.links()) {
    if (const Calibration::LinkClass* found = find_class(calibration, link.kind)) {
      link.bandwidth = BytesPerSecond{found->bandwidth_share * link.bandwidth.count()};
      link.latency = found->latency.value_or(link.latency);
      found_kinds.insert(link.kind);
    }
    made.connect(link);
  }
  for (const LinkKind kind : found_kinds) lay_over_messages(*find_class(calibration, kind), made);
  topology = std::move(made);
}

const Calibration::Device* find_device(const Calibration& calibration, const std::string& name) {
  for (const Calibration::Device& device : calibration.devices)
    if (device.accelerator == name) return &device;
  return nullptr;
}

}  // namespace

Calibration parse_calibration(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw InputError(Place{file}, "is empty");
  Problems problems;
  const Value document = parse_document(text, file);
  Fields fields{document, "a calibration", problems};
  for (const char* key : {"name", "source", "error"}) fields.require(key);
  if (!fields.any("link")) fields.require("accelerator");
  fields.count("schema", 1, 1);
  Calibration calibration;
  calibration.name = fields.text("name").value_or("");
  calibration.source = fields.text("source").value_or("");
  calibration.error = fields.number("error").value_or(0);
  if (!(calibration.error >= 0 && calibration.error <= 10))
    fields.complain("error", fmt::format("'error' must be from 0 to 10, as a share of the time, "
                                         "not {}",
                                         calibration.error));
  for (const char* key : {"name", "source"})
    if (fields.text(key) && fields.text(key)->empty())
      fields.complain(key, fmt::format("'{}' must say something", key));
  read_devices(fields, problems, calibration);
  read_launches(fields, problems, calibration);
  read_links(fields, problems, calibration);
  fields.finish();
  throw_if_any(std::move(problems));
  return calibration;
}

Calibration load_calibration(const std::string& file) {
  return parse_calibration(read_text_file(file), file);
}

std::string to_toml(const Calibration& calibration) {
  std::string out = fmt::format("schema = 1\nname = {}\nsource = {}\nerror = {:#}\n",
                                toml_quoted(calibration.name), toml_quoted(calibration.source),
                                calibration.error);
  for (const Calibration::Device& device : calibration.devices)
    out += fmt::format("\n[[accelerator]]\nname = {}\n{}", toml_quoted(device.accelerator),
                       write_changes(device.changes));
  for (const Calibration::Launch& launch : calibration.launches) {
    out += fmt::format("\n[[framework]]\nname = {}\nlaunch_time = \"{}\"\n",
                       toml_quoted(launch.framework), to_text(launch.time));
    if (launch.exchange_share > 0)
      out += fmt::format("exchange_share = {:#}\n", launch.exchange_share);
  }
  for (const Calibration::LinkClass& link : calibration.links) {
    out += fmt::format("\n[[link]]\nkind = \"{}\"\nbandwidth_share = {:#}\n", to_string(link.kind),
                       link.bandwidth_share);
    if (link.latency) out += fmt::format("latency = \"{}ps\"\n", link.latency->ps());
    if (link.overhead > Time{}) out += fmt::format("overhead = \"{}ps\"\n", link.overhead.ps());
    if (link.piece) out += fmt::format("piece = \"{}B\"\n", link.piece->count());
  }
  return out;
}

Topology apply_known(const Calibration& calibration, Topology topology) {
  for (Accelerator& accelerator : topology.accelerators)
    if (const Calibration::Device* device = find_device(calibration, accelerator.name))
      accelerator = changed(std::move(accelerator), device->changes);
  lay_over_links(calibration, topology);
  return topology;
}

Scenario apply(const Calibration& calibration, Scenario scenario) {
  Training& training = scenario.training;
  for (const Calibration::Launch& launch : calibration.launches) {
    if (frameworks()[training.framework].name != launch.framework) continue;
    if (training.launch_time == Time{}) training.launch_time = launch.time;
    if (training.exchange_share == 0) training.exchange_share = launch.exchange_share;
  }
  return scenario;
}

Topology apply(const Calibration& calibration, Topology topology) {
  const auto is_known = [&](const Accelerator& accelerator) {
    return find_device(calibration, accelerator.name) != nullptr;
  };
  const bool has_device =
      std::any_of(topology.accelerators.begin(), topology.accelerators.end(), is_known);
  const auto is_class = [&](const Link& link) {
    return find_class(calibration, link.kind) != nullptr;
  };
  const bool has_link = std::any_of(topology.links().begin(), topology.links().end(), is_class);
  if (has_device || has_link) return apply_known(calibration, std::move(topology));
  std::vector<std::string> measured, present;
  for (const Calibration::Device& device : calibration.devices)
    measured.push_back(fmt::format("'{}'", device.accelerator));
  for (const Accelerator& accelerator : topology.accelerators)
    present.push_back(fmt::format("'{}'", accelerator.name));
  throw InputError(fmt::format("calibration '{}' is of {}; the cluster has {}", calibration.name,
                               fmt::join(measured, ", "), fmt::join(present, ", ")));
}

std::string describe(const std::optional<Calibration>& calibration) {
  if (!calibration) return "catalog figures, not calibrated";
  return fmt::format("{} ({}; stated error {:g} %)", calibration->name, calibration->source,
                     100 * calibration->error);
}

}  // namespace rehearse
