// SPDX-License-Identifier: Apache-2.0
// suggest.hpp - "did you mean": the known name nearest to what was typed, for formats, generators, views, commands and
// options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quarry {

// Edit distance with insertions, deletions, substitutions and swaps of neighbours, each costing 1 (optimal string
// alignment; V. Levenshtein 1966, F. Damerau 1964). Letter case costs nothing.
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, the first among equals. "" if none is near: more than a third of the typed letters (at least
// 2) would have to change, unless one is a prefix of the other.
std::string nearest_name(std::string_view typed, const std::vector<std::string>& known);

// " Did you mean 'render'?" or "", to append to a sentence.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known);

}  // namespace quarry
