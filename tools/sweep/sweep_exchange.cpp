// JSON: it writes the shortest digits that read back as the same number.
#include "tools/sweep/sweep_exchange.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

nlohmann::json json_of(const SweepPoint& p) {
  std::vector<std::int64_t> exposed;
  for (const Time time : p.mean.exposed) exposed.push_back(time.ps());
  return {static_cast<int>(p.status),
          p.reason,
          p.step.ps(),
          p.world,
          p.tensor,
          p.pipeline,
          p.context,
          p.expert,
          p.data,
          p.microbatches,
          p.samples,
          p.samples_per_second,
          p.tokens_per_second,
          p.tflops_per_gpu,
          p.mfu,
          p.bubble_fraction,
          p.mean.compute.ps(),
          exposed,
          p.mean.bubble.ps(),
          p.peak.count(),
          p.capacity.count(),
          p.fits};
}

class Reader {
 public:
  explicit Reader(const nlohmann::json& list) : list_{list} {}
  template <class T>
  void operator()(T& value) {
    value = list_.at(at_++).get<T>();
  }
  void operator()(Time& time) { time = Time::picoseconds(list_.at(at_++).get<std::int64_t>()); }
  void operator()(Bytes& bytes) { bytes = Bytes{list_.at(at_++).get<std::int64_t>()}; }

 private:
  const nlohmann::json& list_;
  std::size_t at_ = 0;
};

SweepPoint point_of(const nlohmann::json& list) {
  SweepPoint p;
  Reader read(list);
  int status = 0;
  read(status);
  p.status = static_cast<SweepPoint::Status>(status);
  read(p.reason);
  read(p.step);
  for (std::size_t* number :
       {&p.world, &p.tensor, &p.pipeline, &p.context, &p.expert, &p.data, &p.microbatches})
    read(*number);
  for (double* number : {&p.samples, &p.samples_per_second, &p.tokens_per_second, &p.tflops_per_gpu,
                         &p.mfu, &p.bubble_fraction})
    read(*number);
  read(p.mean.compute);
  std::vector<std::int64_t> exposed;
  read(exposed);
  ASSERT(exposed.size() == p.mean.exposed.size());
  for (std::size_t d = 0; d < exposed.size(); ++d)
    p.mean.exposed[d] = Time::picoseconds(exposed[d]);
  read(p.mean.bubble);
  read(p.peak);
  read(p.capacity);
  read(p.fits);
  return p;
}

}  // namespace

std::string points_text(const std::vector<SweepPoint>& points) {
  nlohmann::json list = nlohmann::json::array();
  for (const SweepPoint& point : points)
    list.push_back(point.status == SweepPoint::Status::not_run ? nlohmann::json{} : json_of(point));
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<SweepPoint> joined_points(const std::vector<std::string>& texts) {
  std::vector<SweepPoint> points;
  for (const std::string& text : texts) {
    const nlohmann::json list = nlohmann::json::parse(text);
    points.resize(std::max(points.size(), list.size()));
    for (std::size_t p = 0; p < list.size(); ++p)
      if (!list[p].is_null()) points[p] = point_of(list[p]);
  }
  return points;
}

}  // namespace rehearse
