#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "sim/core/ids.hpp"

namespace stagecraft {

/// The ids before `end`: `for (const StageId s : plan.stages.ids())`.
template <class IdType>
class IdRange {
 public:
  struct Iterator {
    IdType id;
    constexpr IdType operator*() const { return id; }
    constexpr Iterator& operator++() { return ++id.value, *this; }
    constexpr bool operator==(const Iterator& other) const { return id.value == other.id.value; }
  };
  explicit constexpr IdRange(std::size_t end) : end_(static_cast<std::int64_t>(end)) {}
  constexpr Iterator begin() const { return {IdType{0}}; }
  constexpr Iterator end() const { return {end_}; }

 private:
  IdType end_;
};

/// A vector that one kind of id indexes. Another kind, and a plain integer too, does not compile.
template <class IdType, class T>
class IdVector {
 public:
  using value_type = T;

  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T{}) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}

  typename std::vector<T>::reference operator[](IdType id) { return items_[id.value]; }
  typename std::vector<T>::const_reference operator[](IdType id) const { return items_[id.value]; }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  IdRange<IdType> ids() const { return IdRange<IdType>(items_.size()); }

  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size, const T& value = T{}) { items_.resize(size, value); }
  void assign(std::size_t size, const T& value) { items_.assign(size, value); }
  void clear() { items_.clear(); }
  /// The id of the new item.
  IdType push_back(T item) { return items_.push_back(std::move(item)), IdType{std::ssize(items_) - 1}; }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { items_.pop_back(); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T& front() { return items_.front(); }
  const T& front() const { return items_.front(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace stagecraft
