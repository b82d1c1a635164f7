// How long each buffer must be is read off the program before anything is allocated.
#include "kernels/host/host_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/host/program_slices.hpp"

namespace rehearse {

std::size_t rank_count(const Program& program) {
  std::size_t count = 0;
  const auto see = [&](Rank rank, const Slice&) { count = std::max(count, index(rank) + 1); };
  for (const Program::Op& op : program.ops()) {
    see(op.rank, {});
    for_each_slice(program, op, see);
  }
  return count;
}

HostMemory::HostMemory(const Program& program, std::optional<Rank> only) : only_{only} {
  std::map<std::pair<Rank, Buffer>, std::int64_t> longest;
  for (const Program::Op& op : program.ops())
    for_each_slice(program, op, [&](Rank rank, const Slice& slice) {
      if (only && rank != *only) return;
      std::int64_t& end = longest[{rank, slice.buffer}];
      end = std::max(end, (slice.offset + slice.size).count());
    });
  rooms_.resize(rank_count(program));
  for (const auto& [where, size] : longest)
    rooms_[index(where.first)].push_back(
        {where.second, LargeVector<std::byte>(static_cast<std::size_t>(size))});
}

void HostMemory::cover(Rank rank, const Slice& slice) {
  if (only_ && rank != *only_) return;
  if (index(rank) >= rooms_.size()) rooms_.resize(index(rank) + 1);
  const auto end = static_cast<std::size_t>((slice.offset + slice.size).count());
  if (Room* room = find(rank, slice.buffer)) {
    if (room->bytes.size() < end) room->bytes.resize(end);
    return;
  }
  std::vector<Room>& rooms = rooms_[index(rank)];
  const auto after = std::lower_bound(rooms.begin(), rooms.end(), slice.buffer,
                                      [](const Room& r, Buffer b) { return r.buffer < b; });
  rooms.insert(after, {slice.buffer, LargeVector<std::byte>(end)});
}

HostMemory::Room* HostMemory::find(Rank rank, Buffer buffer) {
  if (index(rank) >= rooms_.size()) return nullptr;
  std::vector<Room>& rooms = rooms_[index(rank)];
  const auto found = std::lower_bound(rooms.begin(), rooms.end(), buffer,
                                      [](const Room& r, Buffer b) { return r.buffer < b; });
  return found != rooms.end() && found->buffer == buffer ? &*found : nullptr;
}

std::span<std::byte> HostMemory::buffer(Rank rank, Buffer buffer) {
  Room* room = find(rank, buffer);
  return room ? std::span<std::byte>{room->bytes} : std::span<std::byte>{};
}

std::span<std::byte> HostMemory::at(Rank rank, const Slice& slice) {
  if (slice.size == Bytes{0}) return {};
  const std::span<std::byte> whole = buffer(rank, slice.buffer);
  const auto begin = static_cast<std::size_t>(slice.offset.count());
  const auto size = static_cast<std::size_t>(slice.size.count());
  ASSERT(begin <= whole.size() && size <= whole.size() - begin);
  return whole.subspan(begin, size);
}

std::size_t HostMemory::bytes() const {
  std::size_t sum = 0;
  for (const std::vector<Room>& rooms : rooms_)
    for (const Room& room : rooms) sum += room.bytes.size();
  return sum;
}

}  // namespace rehearse
