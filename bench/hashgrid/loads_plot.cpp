// SPDX-License-Identifier: Apache-2.0
// loads_plot.cpp - reads the columns, and writes the Markdown table and the SVG.
#include "bench/hashgrid/loads_plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace quarry::bench {
namespace {

using Columns = std::map<std::string, std::vector<double>>;

Result<Columns> read_columns(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(ErrorCode::not_found, path + ": cannot be read");
  std::vector<std::string> names;
  Columns columns;
  size_t number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    std::istringstream cells(line);
    size_t column = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++column) {
      if (number == 0) {
        names.push_back(cell);
        continue;
      }
      char* end = nullptr;
      const double value = std::strtod(cell.c_str(), &end);
      if (column >= names.size() || end == cell.c_str())
        return fail(ErrorCode::malformed_input,
                    path + ": line " + std::to_string(number + 1) + ": '" + cell + "' is no number of a known column");
      columns[names[column]].push_back(value);
    }
  }
  for (const char* needed : {"load", "pairs_rate", "pairs_mean", "pairs_max", "pairs_refused", "compact_rate",
                             "compact_mean", "compact_max", "simple_rate", "simple_mean", "simple_max"}) {
    if (columns[needed].empty() || columns[needed].size() != columns["load"].size())
      return fail(ErrorCode::malformed_input, path + ": no full column '" + std::string(needed) + "'");
  }
  return columns;
}

std::string text_of(const char* format, double a, double b = 0, double c = 0) {
  char buffer[128];
  std::snprintf(buffer, sizeof(buffer), format, a, b, c);
  return buffer;
}

std::string table_of(Columns& c) {
  std::string text =
      "| load | pairs: rate, mean, max | refused | compact: rate, mean, max | simple: rate, mean, max |\n"
      "|---|---|---|---|---|\n";
  for (size_t i = 0; i < c["load"].size(); ++i) {
    text += text_of("| %.2f", c["load"][i]);
    text += text_of(" | %.1f, %.3f, %.0f", c["pairs_rate"][i], c["pairs_mean"][i], c["pairs_max"][i]);
    text += text_of(" | %.0f", c["pairs_refused"][i]);
    text += text_of(" | %.1f, %.3f, %.0f", c["compact_rate"][i], c["compact_mean"][i], c["compact_max"][i]);
    text += text_of(" | %.1f, %.2f, %.0f |\n", c["simple_rate"][i], c["simple_mean"][i], c["simple_max"][i]);
  }
  return text;
}

constexpr double kWidth = 460, kHeight = 300, kLeft = 60, kTop = 40, kGap = 90;
struct Table {
  const char* stem;
  const char* colour;
};
constexpr Table kTables[] = {{"pairs", "#1f77b4"}, {"compact", "#2ca02c"}, {"simple", "#d62728"}};

// One panel: curves over the load factor, 0 to 1. y(value) -> 0..1 upwards.
template <class Y>
std::string curve(const std::vector<double>& loads, const std::vector<double>& values, double left, const char* colour,
                  const char* dash, const Y& y) {
  std::string points;
  for (size_t i = 0; i < loads.size(); ++i)
    points +=
        text_of("%.1f,%.1f ", left + loads[i] * kWidth, kTop + (1 - std::clamp(y(values[i]), 0.0, 1.0)) * kHeight);
  return "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(colour) + "\"" + dash + " points=\"" +
         points + "\"/>\n";
}

std::string label(double x, double y, const std::string& text, const char* anchor = "middle",
                  const char* colour = "#222") {
  return text_of("<text x=\"%.1f\" y=\"%.1f\"", x, y) + " text-anchor=\"" + anchor + "\" fill=\"" + colour + "\">" +
         text + "</text>\n";
}
std::string line(double x0, double y0, double x1, double y1) {
  return text_of("<line stroke=\"#ddd\" x1=\"%.1f\" y1=\"%.1f\"", x0, y0) +
         text_of(" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y1);
}

std::string picture_of(Columns& c) {
  double fastest = 0, deepest = 1;
  for (const Table& t : kTables)
    for (size_t i = 0; i < c["load"].size(); ++i) {
      fastest = std::max(fastest, c[std::string(t.stem) + "_rate"][i]);
      deepest = std::max(deepest, c[std::string(t.stem) + "_max"][i]);
    }
  const double top_rate = std::ceil(fastest / 10) * 10, decades = std::ceil(std::log10(deepest)) + 1,
               right = kLeft + kWidth + kGap;
  const auto rate_y = [&](double v) { return v / top_rate; };
  const auto depth_y = [&](double v) { return (std::log10(std::max(v, 0.1)) + 1) / decades; };
  std::string svg = text_of(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n",
      right + kWidth + 30, kTop + kHeight + 90);
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  for (const double left : {kLeft, right})
    for (int i = 0; i <= 10; i += 2) {
      svg += line(left + kWidth * i / 10, kTop, left + kWidth * i / 10, kTop + kHeight);
      svg += label(left + kWidth * i / 10, kTop + kHeight + 18, text_of("%.1f", i / 10.0));
    }
  for (double rate = 0; rate <= top_rate; rate += 10) {
    svg += line(kLeft, kTop + (1 - rate_y(rate)) * kHeight, kLeft + kWidth, kTop + (1 - rate_y(rate)) * kHeight);
    svg += label(kLeft - 6, kTop + (1 - rate_y(rate)) * kHeight + 4, text_of("%.0f", rate), "end");
  }
  for (double depth = 0.1; depth_y(depth) <= 1.0001; depth *= 10) {
    svg += line(right, kTop + (1 - depth_y(depth)) * kHeight, right + kWidth, kTop + (1 - depth_y(depth)) * kHeight);
    svg += label(right - 6, kTop + (1 - depth_y(depth)) * kHeight + 4, text_of("%g", depth), "end");
  }
  svg += label(kLeft + kWidth / 2, 22, "Insert, 10^9 keys a second") +
         label(right + kWidth / 2, 22, "Probe depth: mean (line), most (dashes)");
  svg += label(kLeft + kWidth / 2, kTop + kHeight + 38, "load factor") +
         label(right + kWidth / 2, kTop + kHeight + 38, "load factor");
  double x = kLeft;
  for (const Table& t : kTables) {
    const std::string stem = t.stem;
    svg += curve(c["load"], c[stem + "_rate"], kLeft, t.colour, "", rate_y);
    svg += curve(c["load"], c[stem + "_mean"], right, t.colour, "", depth_y);
    svg += curve(c["load"], c[stem + "_max"], right, t.colour, " stroke-dasharray=\"5 4\"", depth_y);
    svg += label(x, kTop + kHeight + 66,
                 stem == "simple" ? "simple (linear probing; slots beyond the first)" : stem + " (sectors read)",
                 "start", t.colour);
    x += 180;
  }
  return svg + "</svg>\n";
}

Result<void> write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) return fail(ErrorCode::io, path + ": cannot be written");
  return {};
}

}  // namespace

Result<void> plot_loads(const std::string& csv_path) {
  QRY_TRY_ASSIGN(auto columns, read_columns(csv_path));
  const std::string stem = csv_path.ends_with(".csv") ? csv_path.substr(0, csv_path.size() - 4) : csv_path;
  QRY_TRY(write(stem + ".md", table_of(columns)));
  return write(stem + ".svg", picture_of(columns));
}

}  // namespace quarry::bench
