// bench_hashgrid.cpp - the row of `quarry bench` that measures the hash grid; the measuring is bench/hashgrid_host_bench.cpp.
#include <algorithm>
#include <string>
#include <vector>

#include "app/bench.hpp"
#include "app/terminal.hpp"
#include "bench/hashgrid_host_bench.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_hashgrid(const BenchOptions& options) {
  const std::vector<std::string> names = bench::hashgrid_host_rows();
  if (std::ranges::none_of(names, [&](const std::string& name) { return name.find(options.only) != std::string::npos; })) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
    return fail(ErrorCode::bad_usage, "no row of the benchmark has '" + options.only + "' in its name. Rows: " + known + ".");
  }
  bench::HostBenchOptions wanted;
  wanted.interrupted = [] { return interrupt_flag().load(); };
  wanted.rounds = options.repeats;
  wanted.only = options.only;
  if (options.keys != 0) wanted.sizes = {options.keys};
  auto host = bench::bench_hashgrid_host(wanted);
  if (!host) return host;
  return nlohmann::json{{"table", bench::hashgrid_host_table(*host)}, {"host", std::move(*host)}};
}

}  // namespace quarry::app
