#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/core/ids.hpp"

namespace stagecraft {

/// The ids before `end`: `for (const StageId s : plan.stages.ids())`.
template <class IdType>
class IdRange {
 public:
  struct Iterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using pointer = const IdType*;
    using reference = IdType;

    IdType id;
    constexpr IdType operator*() const { return id; }
    constexpr Iterator& operator++() { return ++id.value, *this; }
    constexpr Iterator operator++(int) { return {IdType{id.value++}}; }
    constexpr bool operator==(const Iterator& other) const { return id.value == other.id.value; }
  };
  explicit constexpr IdRange(std::size_t end) : end_(end) {}
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
  explicit IdVector(std::size_t size) : items_(size) {}
  IdVector(std::size_t size, const T& value) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  typename std::vector<T>::reference operator[](IdType id) { return items_[id.value]; }
  typename std::vector<T>::const_reference operator[](IdType id) const { return items_[id.value]; }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  IdRange<IdType> ids() const { return IdRange<IdType>(items_.size()); }
  /// The id that the next item will have.
  IdType next_id() const { return IdType{items_.size()}; }
  bool contains(IdType id) const { return id.valid() && id < next_id(); }

  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size) { items_.resize(size); }
  void resize(std::size_t size, const T& value) { items_.resize(size, value); }
  void assign(std::size_t size, const T& value) { items_.assign(size, value); }
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    items_.assign(first, last);
  }
  void clear() { items_.clear(); }
  /// The id of the new item.
  IdType push_back(T item) { return items_.push_back(std::move(item)), IdType{items_.size() - 1}; }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { items_.pop_back(); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }
  T& front() { return items_.front(); }
  const T& front() const { return items_.front(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }

  friend bool operator==(const IdVector&, const IdVector&) = default;
  /// Erases like std::erase_if(), which changes the ids of later items.
  template <class Predicate>
  friend std::size_t erase_if(IdVector& list, Predicate predicate) {
    return std::erase_if(list.items_, predicate);
  }

 private:
  std::vector<T> items_;
};

}  // namespace stagecraft
