// In place where the Program's are. Parts of a slice may be unequal, so those that cut it up take
// the call of MPI that has a count for each rank.
#include "kernels/mpi/mpi_collectives.hpp"

#include <climits>
#include <exception>

#include "kernels/host/combine.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

int as_int(std::size_t count) {
  if (count > INT_MAX)
    throw InputError("a collective of more than 2^31 numbers; take more ranks or smaller buckets");
  return static_cast<int>(count);
}

template <Precision numbers, Combine how>
void combine_numbers(void* source, void* target, int* count, MPI_Datatype*) {
  const auto bytes =
      static_cast<std::size_t>(*count) * static_cast<std::size_t>(bytes_of(numbers).count());
  combine(how, numbers, {static_cast<const std::byte*>(source), bytes},
          {static_cast<std::byte*>(target), bytes});
}

template <Precision numbers>
MPI_User_function* of_numbers(Combine how) {
  return how == Combine::sum ? combine_numbers<numbers, Combine::sum>
                             : combine_numbers<numbers, Combine::max>;
}

MPI_User_function* narrow_sum(Precision numbers, Combine how) {
  if (numbers == Precision::fp16) return of_numbers<Precision::fp16>(how);
  if (numbers == Precision::bf16) return of_numbers<Precision::bf16>(how);
  if (numbers == Precision::int8) return of_numbers<Precision::int8>(how);
  return of_numbers<Precision::fp8>(how);
}

bool is_narrow(Precision numbers) {
  return numbers != Precision::fp32 && numbers != Precision::tf32;
}

}  // namespace

// One rank's call: where its parts are, and what MPI is asked to do.
class MpiCollectives::Call {
 public:
  Call(const CollectivePart& part, MPI_Comm communicator, const Sums& sums, HostMemory& memory,
       UnderWay& under_way)
      : work_{part.work},
        member_{part.member},
        ranks_{part.work.group.size()},
        communicator_{communicator},
        sums_{sums},
        unit_{static_cast<std::size_t>(bytes_of(work_.numbers).count())},
        parts_{work_.data, ranks_},  // at multiples of 4 bytes, as algorithms cut it
        data_{memory.at(work_.group[member_], work_.data)},
        result_{has_result(work_) ? memory.at(work_.group[member_], reached(work_))
                                  : std::span<std::byte>{}},
        under_way_{under_way} {}

  void start() {
    const int root = static_cast<int>(work_.root);
    const bool is_root = member_ == work_.root;
    switch (work_.kind) {
      case CollectiveKind::all_reduce:
        MPI_Iallreduce(MPI_IN_PLACE, data_.data(), numbers(data_.size()), sums_.type, sums_.how,
                       communicator_, request());
        return;
      case CollectiveKind::reduce:
        MPI_Ireduce(is_root ? MPI_IN_PLACE : data_.data(), is_root ? data_.data() : nullptr,
                    numbers(data_.size()), sums_.type, sums_.how, root, communicator_, request());
        return;
      case CollectiveKind::broadcast:
        MPI_Ibcast(data_.data(), as_int(data_.size()), MPI_BYTE, root, communicator_, request());
        return;
      case CollectiveKind::reduce_scatter:
        return reduce_scatter();
      case CollectiveKind::all_gather:
        return all_gather();
      case CollectiveKind::all_to_all:
        return exchange();
      case CollectiveKind::send_recv:
        return hand_on();
    }
  }

 private:
  MPI_Request* request() { return &under_way_.requests.emplace_back(MPI_REQUEST_NULL); }
  int numbers(std::size_t bytes) const {
    if (bytes % unit_ != 0)
      throw InputError("a collective of MPI over a part of a number: choose other sizes");
    return as_int(bytes / unit_);
  }
  std::size_t size_of(std::size_t part) const {
    return static_cast<std::size_t>(parts_[part].size.count());
  }
  std::size_t place_of(std::size_t part) const {
    return static_cast<std::size_t>((parts_[part].offset - work_.data.offset).count());
  }

  // The sum comes to the beginning of another place: its own is among what is being added.
  void reduce_scatter() {
    for (std::size_t i = 0; i < ranks_; ++i) under_way_.counts.push_back(numbers(size_of(i)));
    under_way_.beside.resize(size_of(member_));
    under_way_.target = data_.subspan(place_of(member_), size_of(member_));
    MPI_Ireduce_scatter(data_.data(), under_way_.beside.data(), under_way_.counts.data(),
                        sums_.type, sums_.how, communicator_, request());
  }

  void all_gather() {
    for (std::size_t i = 0; i < ranks_; ++i) {
      under_way_.counts.push_back(as_int(size_of(i)));
      under_way_.places.push_back(as_int(place_of(i)));
    }
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data_.data(), under_way_.counts.data(),
                    under_way_.places.data(), MPI_BYTE, communicator_, request());
  }

  // As the lowered one: block j goes to rank j, which puts it where the sender's blocks belong.
  // What a rank keeps is nobody's transfer.
  void exchange() {
    const std::size_t step = size_of(member_);
    for (std::size_t i = 0; i < ranks_; ++i) {
      under_way_.counts.push_back(i == member_ ? 0 : as_int(size_of(i)));
      under_way_.places.push_back(as_int(place_of(i)));
      under_way_.other_counts.push_back(i == member_ ? 0 : as_int(step));
      under_way_.other_places.push_back(as_int(i * step));
    }
    MPI_Ialltoallv(data_.data(), under_way_.counts.data(), under_way_.places.data(), MPI_BYTE,
                   result_.data(), under_way_.other_counts.data(), under_way_.other_places.data(),
                   MPI_BYTE, communicator_, request());
  }

  // Each rank to the next of the group; MPI has messages for that.
  void hand_on() {
    const int next = static_cast<int>((member_ + 1) % ranks_);
    const int before = static_cast<int>((member_ + ranks_ - 1) % ranks_);
    under_way_.requests.reserve(2);
    MPI_Irecv(result_.data(), as_int(data_.size()), MPI_BYTE, before, 0, communicator_, request());
    MPI_Isend(data_.data(), as_int(data_.size()), MPI_BYTE, next, 0, communicator_, request());
  }

  const Collective& work_;
  std::size_t member_, ranks_;
  MPI_Comm communicator_;
  const Sums& sums_;
  std::size_t unit_;
  Cut parts_;
  std::span<std::byte> data_, result_;
  UnderWay& under_way_;
};

// All processes go through all parts in the same order, so those of a group meet.
MpiCollectives::MpiCollectives(const MpiWorld& world, const Program& program,
                               std::span<const CollectivePart> parts, HostMemory& memory)
    : world_{world}, memory_{memory} {
  MPI_Group everybody = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  for (const CollectivePart& part : parts) {
    if (part.work.group[part.member] != world.rank()) continue;
    const auto [known, is_new] =
        communicators_.try_emplace({part.work.group, program[part.op].stream}, MPI_COMM_NULL);
    if (is_new) {
      std::vector<int> numbers;
      for (const Rank rank : part.work.group) numbers.push_back(static_cast<int>(index(rank)));
      MPI_Group members = MPI_GROUP_NULL;
      MPI_Group_incl(everybody, as_int(numbers.size()), numbers.data(), &members);
      MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &known->second);
      MPI_Group_free(&members);
    }
    parts_[part.op] = {&part, known->second};
  }
  MPI_Group_free(&everybody);
}

// After a failure the job is ended as a whole, and its communicators with it.
MpiCollectives::~MpiCollectives() {
  if (std::uncaught_exceptions() > 0) return;
  for (auto& [group, communicator] : communicators_) MPI_Comm_free(&communicator);
  for (auto& [what, sums] : sums_) {
    if (!is_narrow(what.first)) continue;
    MPI_Op_free(&sums.how);
    MPI_Type_free(&sums.type);
  }
}

const MpiCollectives::Sums& MpiCollectives::sums_of(const Collective& work) {
  const auto [known, is_new] = sums_.try_emplace({work.numbers, work.combine});
  if (!is_new) return known->second;
  if (!is_narrow(work.numbers)) {
    known->second = {MPI_FLOAT, work.combine == Combine::max ? MPI_MAX : MPI_SUM};
    return known->second;
  }
  Sums& made = known->second;
  MPI_Type_contiguous(static_cast<int>(bytes_of(work.numbers).count()), MPI_BYTE, &made.type);
  MPI_Type_commit(&made.type);
  MPI_Op_create(narrow_sum(work.numbers, work.combine), 1, &made.how);
  return made;
}

void MpiCollectives::begin(OpId op) {
  const auto& [part, communicator] = parts_.at(op);
  UnderWay& made = under_way_.emplace_back();
  made.op = op;
  if (part->work.group.size() < 2 || part->work.data.size == Bytes{0}) return;
  Call(*part, communicator, sums_of(part->work), memory_, made).start();
}

std::vector<OpId> MpiCollectives::poll() {
  std::vector<OpId> ended;
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    int done = 0;
    MPI_Testall(as_int(at->requests.size()), at->requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) {
      ++at;
      continue;
    }
    std::copy(at->beside.begin(), at->beside.end(), at->target.begin());
    ended.push_back(at->op);
    at = under_way_.erase(at);
  }
  return ended;
}

}  // namespace rehearse
