// SPDX-License-Identifier: Apache-2.0
// loads_plot.hpp - the load-factor sweep of the hash grid as a Markdown table and an SVG plot, from comma-separated
// values.
#pragma once

#include <string>

#include "base/result.hpp"

namespace quarry::bench {

// Reads CSV_PATH (written by --sweep), writes the same name ending in .svg and in .md. Errors: not_found,
// malformed_input, io.
Result<void> plot_loads(const std::string& csv_path);

}  // namespace quarry::bench
