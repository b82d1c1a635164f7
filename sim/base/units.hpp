// Physical quantities. No bare double or integer crosses a module boundary.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/base/assert.hpp"

namespace rehearse {

/// A number with a dimension. Only same-dimension arithmetic is built in; every mixed formula is a
/// named operator below, so a wrong one does not compile.
template <class Dimension, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep value) : value_{value} {}

  constexpr Rep count() const { return value_; }

  // == is spelled out: nvcc 13.0 drops the one a defaulted <=> implies (link error in .cu files).
  friend constexpr bool operator==(Quantity, Quantity) = default;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{a.value_ + b.value_};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{a.value_ - b.value_};
  }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity{k * a.value_}; }
  constexpr Quantity& operator+=(Quantity b) { return *this = *this + b; }
  constexpr Quantity& operator-=(Quantity b) { return *this = *this - b; }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesDimension, std::int64_t>;  // exact: 2^63 B
using Seconds = Quantity<struct SecondsDimension, double>;    // model output, not the clock
using Flops = Quantity<struct FlopsDimension, double>;        // 1e24 does not fit an int64
using BytesPerSecond = Quantity<struct BandwidthDimension, double>;
using FlopsPerSecond = Quantity<struct ThroughputDimension, double>;

constexpr Seconds operator/(Bytes b, BytesPerSecond rate) {
  return Seconds{static_cast<double>(b.count()) / rate.count()};
}
constexpr Seconds operator/(Flops f, FlopsPerSecond rate) {
  return Seconds{f.count() / rate.count()};
}
constexpr FlopsPerSecond operator/(Flops f, Seconds t) {
  return FlopsPerSecond{f.count() / t.count()};
}
constexpr BytesPerSecond operator/(Bytes b, Seconds t) {
  return BytesPerSecond{static_cast<double>(b.count()) / t.count()};
}
constexpr BytesPerSecond operator/(BytesPerSecond rate, double parts) {
  return BytesPerSecond{rate.count() / parts};
}

/// The virtual clock: whole picoseconds since the run began (106 days fit).
/// Integers, so two paths of equal length tie on every compiler, and a timeline hashes.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time picoseconds(std::int64_t ps) { return Time{ps}; }
  /// The only place where model seconds become clock ticks.
  static Time round(Seconds s) {
    ASSERT(s.count() >= 0 && s.count() < 9.2e6);
    return Time{std::llround(s.count() * 1e12)};
  }
  static constexpr Time never() { return Time{INT64_MAX}; }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr Seconds seconds() const { return Seconds{static_cast<double>(ps_) * 1e-12}; }

  friend constexpr bool operator==(Time, Time) = default;
  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time{a.ps_ + b.ps_}; }
  friend constexpr Time operator-(Time a, Time b) { return Time{a.ps_ - b.ps_}; }
  friend constexpr Time operator*(std::int64_t k, Time a) { return Time{k * a.ps_}; }
  constexpr Time& operator+=(Time b) { return *this = *this + b; }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_{ps} {}
  std::int64_t ps_ = 0;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v)}; }
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes{static_cast<std::int64_t>(v) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes{static_cast<std::int64_t>(v) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes{static_cast<std::int64_t>(v) << 30};
}
constexpr Time operator""_us(unsigned long long v) {
  return Time::picoseconds(static_cast<std::int64_t>(v) * 1'000'000);
}
constexpr Time operator""_ns(unsigned long long v) {
  return Time::picoseconds(static_cast<std::int64_t>(v) * 1'000);
}
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9};
}
constexpr BytesPerSecond operator""_Gbps(long double v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9 / 8};
}
}  // namespace literals

}  // namespace rehearse
