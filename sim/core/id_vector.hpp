#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stagecraft {

/// The ids from `first` up to, but not including, `last`. It is written by hand because clang 14 does not compile the
/// range views of libstdc++ 12.
template <class IdType>
class IdRange {
 public:
  struct Iterator {
    std::int32_t value;
    constexpr IdType operator*() const { return IdType{value}; }
    constexpr Iterator& operator++() { return ++value, *this; }
    friend constexpr bool operator==(Iterator, Iterator) = default;
  };
  constexpr IdRange(IdType first, IdType last) : first_(first), last_(last) {}
  constexpr Iterator begin() const { return {first_.value}; }
  constexpr Iterator end() const { return {last_.value}; }

 private:
  IdType first_, last_;
};

/// A vector that one kind of id indexes; any other index, a plain integer too, does not compile.
template <class IdType, class T>
class IdVector {
 public:
  using value_type = T;

  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T{}) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  decltype(auto) operator[](IdType id) { return items_[static_cast<std::size_t>(id.value)]; }
  decltype(auto) operator[](IdType id) const { return items_[static_cast<std::size_t>(id.value)]; }

  IdType push_back(T item) { return items_.push_back(std::move(item)), IdType{last_index()}; }
  template <class... Args>
  decltype(auto) emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void resize(std::size_t size, const T& value = T{}) { items_.resize(size, value); }
  void assign(std::size_t size, const T& value) { items_.assign(size, value); }
  void reserve(std::size_t size) { items_.reserve(size); }
  void clear() { items_.clear(); }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  IdType next_id() const { return IdType{static_cast<std::int64_t>(items_.size())}; }  ///< What push_back returns next.
  IdRange<IdType> ids() const { return {IdType{0}, next_id()}; }
  bool contains(IdType id) const { return id.valid() && static_cast<std::size_t>(id.value) < items_.size(); }

  decltype(auto) front() { return items_.front(); }
  decltype(auto) front() const { return items_.front(); }
  decltype(auto) back() { return items_.back(); }
  decltype(auto) back() const { return items_.back(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }

  std::vector<T>& items() { return items_; }  ///< For algorithms that do not care about ids.
  const std::vector<T>& items() const { return items_; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::int64_t last_index() const { return static_cast<std::int64_t>(items_.size()) - 1; }

  std::vector<T> items_;
};

/// An array with one element for each of the first N values of an enumeration.
template <class Enum, class T, std::size_t N>
struct EnumArray : std::array<T, N> {
  using std::array<T, N>::operator[];
  constexpr T& operator[](Enum value) { return std::array<T, N>::operator[](static_cast<std::size_t>(value)); }
  constexpr const T& operator[](Enum value) const {
    return std::array<T, N>::operator[](static_cast<std::size_t>(value));
  }
};

}  // namespace stagecraft
