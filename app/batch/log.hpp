// SPDX-License-Identifier: Apache-2.0
// log.hpp - how a batch reports its work. It prints a line for each file on standard output, or one JSON document a
// line (--json). On a terminal it draws a bar with rate and time left; in a log it prints plain lines now and then. At
// the end it writes a report as one JSON document (--report).
//
// Events of --json, each with "event": started, finished, failed, skipped, planned (of --dry-run), summary. Calls may
// come from any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/batch/conversion.hpp"
#include "app/batch/tasks.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {

struct BatchCounts {
  size_t inputs = 0, converted = 0, failed = 0, skipped = 0, not_started = 0;
  std::vector<std::string> failed_names;
};

// "malformed_input"
const char* code_name(ErrorCode code);
// "40 s", "3 min 05 s", "2 h 07 min"
std::string duration_text(double seconds);

class BatchLog {
 public:
  // `work` is each job's work in any unit, for the time left. `keep`: whether the events are kept for report().
  BatchLog(bool json, bool keep, std::vector<uint64_t> work);
  ~BatchLog();
  BatchLog(const BatchLog&) = delete;
  BatchLog& operator=(const BatchLog&) = delete;

  // `note`: what the user should know before the job takes its time; may be empty.
  void started(const ConversionJob& what, uint32_t threads, bool in_regions, const std::string& note);
  void finished(size_t job, const ConversionJob& what, const Conversion& done);
  void failed(size_t job, const ConversionJob& what, const Error& error, const Conversion& done);
  void skipped(size_t job, const ConversionJob& what, const std::filesystem::path& output, const std::string& why);
  void planned(const ConversionJob& what, const std::string& output, const BatchItem& estimate,
               const std::string& note);
  // The progress of a batch's only job.
  Progress progress_of_one(const std::string& subject, const std::atomic<bool>* cancel);

  // The last event and, unless --json, a sentence. `stopped` says why some jobs were not begun; "" if all were.
  void summary(const BatchCounts& counts, const std::string& stopped, int exit_code);
  // All file events in the order of the jobs, and the summary.
  nlohmann::json report() const;

 private:
  void event(size_t job, nlohmann::json what);
  void line(const std::string& text);
  void draw();
  void clear();
  void advance(size_t job);

  const bool json_, keep_;
  std::vector<uint64_t> work_;
  std::mutex mutex_;
  std::vector<nlohmann::json> events_;  // indexed by job; the last event of each
  nlohmann::json summary_;
  std::unique_ptr<ProgressLine> one_;
  bool terminal_, drawn_ = false;
  size_t ended_ = 0;
  uint64_t work_all_ = 0, work_done_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace quarry::app
