// SPDX-License-Identifier: Apache-2.0
// suggest.cpp - edit distance with swaps of neighbours (optimal string alignment), and the limit up to which a name is
// near.
#include "base/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace quarry {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

size_t edit_distance(std::string_view a_typed, std::string_view b_typed) {
  const std::string a = lower(a_typed), b = lower(b_typed);
  // Three rows of the table: swaps need the one before last.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest_name(std::string_view typed, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = ~size_t(0);
  const std::string wanted = lower(typed);
  for (const std::string& name : known) {
    const std::string candidate = lower(name);
    size_t distance = edit_distance(wanted, candidate);
    const size_t allowed = std::max<size_t>(2, wanted.size() / 3);
    // Shortened names ("gen" for "generate") count as one change, but only from three letters on.
    if (wanted.size() >= 3 && (candidate.starts_with(wanted) || wanted.starts_with(candidate)))
      distance = std::min<size_t>(distance, 1);
    // If every letter changes, the names are not alike.
    if (distance > allowed || distance >= std::max(wanted.size(), candidate.size())) continue;
    if (distance < best_distance) best = name, best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known) {
  const std::string best = nearest_name(typed, known);
  return best.empty() ? "" : " Did you mean '" + best + "'?";
}

}  // namespace quarry
