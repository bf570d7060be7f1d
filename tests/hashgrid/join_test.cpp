// SPDX-License-Identifier: Apache-2.0
// join_test.cpp - joins against nested loops over std::multimap, on every executor.
#include "hashgrid/join.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::join_test {
namespace {

using quarry::test::kSanitized;

using Column = std::vector<uint32_t>;
using RowPairs = std::vector<std::pair<uint32_t, uint32_t>>;

struct Joined {
  RowPairs inner, left;
  Column semi, anti;
};
Joined nested(const Column& left, const Column& right) {
  std::multimap<uint32_t, uint32_t> rows;
  for (uint32_t row = 0; row < right.size(); ++row) rows.emplace(right[row], row);
  Joined joined;
  for (uint32_t row = 0; row < left.size(); ++row) {
    const auto [begin, end] = rows.equal_range(left[row]);
    for (auto at = begin; at != end; ++at) joined.inner.emplace_back(row, at->second);
    (begin == end ? joined.anti : joined.semi).push_back(row);
    if (begin == end) joined.left.emplace_back(row, kNoRow);
  }
  joined.left.insert(joined.left.end(), joined.inner.begin(), joined.inner.end());
  std::sort(joined.inner.begin(), joined.inner.end());
  std::sort(joined.left.begin(), joined.left.end());
  return joined;
}

Column some_column(std::mt19937& random, size_t rows, size_t each) {
  Column column(rows);
  const size_t keys = std::max<size_t>(1, rows / each);
  for (uint32_t& key : column) key = uint32_t(random() % keys) * 0x9E3779B1u & 0x7FFFFFFFu;
  return column;
}

// Each join gives what the loops give, in outputs of just the size; and counts as many without outputs.
void check(Executor& executor, const Column& left_keys, const Column& right_keys) {
  INFO(left_keys.size() << " rows with " << right_keys.size());
  const Joined expected = nested(left_keys, right_keys);
  const Array<uint32_t> left(executor, left_keys), right(executor, right_keys);
  const auto check_pairs = [&](auto join, const RowPairs& pairs) {
    const Array<uint32_t> left_rows(executor, pairs.size()), right_rows(executor, pairs.size());
    REQUIRE(*join(executor, left.span(), right.span(), Span<uint32_t>(), Span<uint32_t>()) == pairs.size());
    const Result<uint64_t> number = join(executor, left.span(), right.span(), left_rows.span(), right_rows.span());
    REQUIRE(number.has_value());
    REQUIRE(*number == pairs.size());
    const auto l = left_rows.get(), r = right_rows.get();
    RowPairs got;
    size_t apart = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      got.emplace_back(l[i], r[i]);
      apart += i != 0 && l[i] != l[i - 1];
    }
    std::sort(got.begin(), got.end());
    REQUIRE(got == pairs);
    size_t rows = 0;
    for (size_t i = 0; i < pairs.size(); ++i) rows += i != 0 && pairs[i].first != pairs[i - 1].first;
    REQUIRE(apart == rows);  // a left row's pairs stand side by side
  };
  check_pairs(inner_join, expected.inner);
  check_pairs(left_join, expected.left);
  const auto check_rows = [&](auto join, const Column& rows) {
    const Array<uint32_t> out(executor, rows.size());
    REQUIRE(*join(executor, left.span(), right.span(), Span<uint32_t>()) == rows.size());
    REQUIRE(*join(executor, left.span(), right.span(), out.span()) == rows.size());
    REQUIRE(out.get() == rows);
  };
  check_rows(semi_join, expected.semi);
  check_rows(anti_join, expected.anti);
}

// Inner and left join of more rows than loops are fast for: all results are pairs, none is there twice, those of a left
// row stand side by side, and they are as many as there are pairs.
void check_large(Executor& executor, const Column& left_keys, const Column& right_keys) {
  const Array<uint32_t> left(executor, left_keys), right(executor, right_keys);
  Column sorted = right_keys;
  std::sort(sorted.begin(), sorted.end());
  uint64_t partners = 0, without = 0;
  for (const uint32_t key : left_keys) {
    const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), key);
    partners += uint64_t(end - begin);
    without += begin == end;
  }
  for (const bool outer : {false, true}) {
    const uint64_t results = partners + (outer ? without : 0);
    const Array<uint32_t> left_rows(executor, results), right_rows(executor, results);
    const auto join = outer ? left_join : inner_join;
    REQUIRE(*join(executor, left.span(), right.span(), Span<uint32_t>(), Span<uint32_t>()) == results);
    REQUIRE(*join(executor, left.span(), right.span(), left_rows.span(), right_rows.span()) == results);
    const auto l = left_rows.get(), r = right_rows.get();
    std::vector<uint64_t> pairs(results);
    std::vector<bool> seen(left_keys.size());
    size_t wrong = 0, apart = 0;
    for (size_t i = 0; i < results; ++i) {
      wrong += r[i] == kNoRow ? !outer || std::binary_search(sorted.begin(), sorted.end(), left_keys[l[i]])
                              : left_keys[l[i]] != right_keys[r[i]];
      apart += (i == 0 || l[i] != l[i - 1]) && seen[l[i]];
      seen[l[i]] = true;
      pairs[i] = uint64_t{l[i]} << 32 | r[i];
    }
    CHECK(wrong == 0);
    CHECK(apart == 0);
    std::sort(pairs.begin(), pairs.end());
    CHECK(std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end());
  }
}

}  // namespace

TEST_CASE("join: rows of any number on both sides, and of any number to a key", "[quick]") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(1);
    const size_t sizes[] = {0, 1, 2, 31, 32, 33, 1024, 1025, 3000};
    for (const size_t left : sizes)
      for (const size_t right : sizes) {
        const size_t each = size_t{1} << random() % 5;
        check(executor, some_column(random, left, each), some_column(random, right, each));
      }
  });
}

TEST_CASE("join: sorted, reversed, equal and disjoint keys") {
  on_each_plain([](Executor& executor) {
    const uint32_t rows = kSanitized ? 2000 : 8'000;
    Column rising(rows), falling(rows), other(rows);
    for (uint32_t i = 0; i < rows; ++i) {
      rising[i] = i / 2;
      falling[i] = rows - i;
      other[i] = rows * 2 + i;
    }
    check(executor, rising, falling);
    check(executor, falling, rising);
    check(executor, rising, other);
    check(executor, Column(rows / 50, 9), Column(rows / 40, 9));
    check(executor, rising, Column(rows, 77));
    check(executor, Column(rows, 77), rising);
    check(executor, Column(rows, 77), other);
  });
}

TEST_CASE("join: tables larger than a cache, whose rows are divided first") {
  on_each_plain([](Executor& executor) {
    if (kSanitized || (executor.kind() == ExecutorKind::host && executor.parallelism() != 2)) return;
    const uint32_t rows = 850'000;
    Column right(rows), left(rows);
    {
      INFO("each key in one row of the right side; the left side's in another order, some twice, some without");
      for (uint32_t i = 0; i < rows; ++i) {
        right[i] = i * 0x9E3779B1u & 0x7FFFFFFFu;
        left[i] = i % 16 == 0 ? 0x80000000u + i : right[i * 611953ull % (rows / 2)];
      }
      right[5] = right[6] = right[7];
      check_large(executor, left, right);
    }
    std::mt19937 random(7);
    {
      INFO("one to fifty rows to a key on the right side, some of them in the left side's few");
      for (uint32_t& key : right) key = uint32_t(random() % 100'000 * (random() % 2 + 1));
      left.resize(100'000);
      for (uint32_t& key : left) key = uint32_t(random() % 220'000);
      check_large(executor, left, right);
    }
    {
      INFO("and one key in five thousand rows of the right side");
      for (uint32_t i = 0; i < 5000; ++i) right[i * 100] = 77;
      left[3] = left[99'999] = 77;
      check_large(executor, left, right);
    }
    {
      INFO("one key in most rows of the left side");
      for (uint32_t i = 0; i < rows; ++i) right[i] = i;
      for (uint32_t i = 0; i < 90'000; ++i) left[i] = 77;
      check_large(executor, left, right);
    }
  });
}

TEST_CASE("join: bad input is found in large tables, too, and nothing is written") {
  on_each_plain([](Executor& executor) {
    if (kSanitized || (executor.kind() == ExecutorKind::host && executor.parallelism() != 2)) return;
    Column keys(850'000);
    for (uint32_t i = 0; i < keys.size(); ++i) keys[i] = i / 2;
    const Array<uint32_t> good(executor, keys);
    keys[800'123] = keys[700'000] = kQryReservedKey;
    const Array<uint32_t> bad(executor, keys), out(executor, Column(1'699'999, 5));
    const auto refused = [&](const Array<uint32_t>& left, const Array<uint32_t>& right, ErrorCode code,
                             const std::string& part) {
      const auto result = inner_join(executor, left.span(), right.span(), out.span(), Span<uint32_t>());
      REQUIRE(!result.has_value());
      CHECK(result.error().code == code);
      INFO(result.error().message);
      CHECK(result.error().message.find(part) != std::string::npos);
      CHECK(out.get() == Column(1'699'999, 5));
    };
    refused(bad, good, ErrorCode::invalid_argument, "left row 700000 of 850000");
    refused(good, bad, ErrorCode::invalid_argument, "right row 700000 of 850000");
    refused(good, good, ErrorCode::full, "1700000");
  });
}

TEST_CASE("join: bad input is an error that says what is wrong, and nothing is written", "[quick]") {
  on_each_plain([](Executor& executor) {
    const Column seven(300, 7);
    const Array<uint32_t> keys(executor, seven), same(executor, seven);
    const Array<uint32_t> left_rows(executor, Column(89'999, 5)), right_rows(executor, Column(89'999, 5));
    const auto refused = [&](const Result<uint64_t>& result, ErrorCode code, const std::string& part) {
      REQUIRE(!result.has_value());
      CHECK(result.error().code == code);
      INFO(result.error().message);
      CHECK(result.error().message.find(part) != std::string::npos);
      CHECK(left_rows.get() == Column(89'999, 5));
      CHECK(right_rows.get() == Column(89'999, 5));
      CHECK(keys.get() == seven);
    };
    refused(inner_join(executor, keys.span(), same.span(), left_rows.span(), right_rows.span()), ErrorCode::full,
            "90000");
    refused(left_join(executor, keys.span(), same.span(), {}, right_rows.span()), ErrorCode::full, "90000");
    refused(semi_join(executor, keys.span(), same.span(), {left_rows.data(), 299}), ErrorCode::full, "300");
    refused(anti_join(executor, keys.span(), Span<uint32_t>(), {left_rows.data(), 299}), ErrorCode::full, "300");
    refused(inner_join(executor, keys.span(), same.span(), left_rows.span(), left_rows.span()),
            ErrorCode::invalid_argument, "overlap");
    refused(semi_join(executor, keys.span(), same.span(), {keys.data() + 299, 1}), ErrorCode::invalid_argument,
            "overlap");
    Column bad = seven;
    bad[123] = kQryReservedKey;
    const Array<uint32_t> reserved(executor, bad);
    refused(inner_join(executor, reserved.span(), keys.span(), left_rows.span(), right_rows.span()),
            ErrorCode::invalid_argument, "left row 123 of 300");
    refused(anti_join(executor, keys.span(), reserved.span(), left_rows.span()), ErrorCode::invalid_argument,
            "right row 123 of 300");
  });
}

}  // namespace quarry::hashgrid::test::join_test
