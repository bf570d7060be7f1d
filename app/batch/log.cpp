// SPDX-License-Identifier: Apache-2.0
// log.cpp - the batch's lines: text, JSON, the progress bar with its estimate of the time left, the final report.
#include "app/batch/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace quarry::app {
namespace {

using nlohmann::json;

json inputs_json(const ConversionJob& job) {
  json list = json::array();
  for (const Input& input : job.inputs) list.push_back(shown(input.file));
  return list;
}
json start_of(const char* event, const ConversionJob& job) {
  json out{{"event", event}, {"index", job.values.index}};
  if (job.inputs.size() == 1) out["input"] = shown(job.inputs[0].file);
  else out["inputs"] = inputs_json(job);
  return out;
}
std::string subject(const ConversionJob& job) {
  const std::string first = shown(job.inputs[0].file);
  return job.inputs.size() == 1 ? first : fmt::format("{} and {} more", first, job.inputs.size() - 1);
}
void add_lost(json& out, const Conversion& done) {
  out["warnings"] = done.warnings;
  out["losses"] = json::array();
  for (const io::ExportLoss& loss : done.losses)
    out["losses"].push_back({{"kind", loss.kind}, {"count", loss.count}, {"text", loss.text}});
}
std::string text_of(const json& event) { return event.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::bad_usage: return "bad_usage";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::malformed_input: return "malformed_input";
    case ErrorCode::out_of_bounds: return "out_of_bounds";
    case ErrorCode::full: return "full";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
    case ErrorCode::device: return "device";
    case ErrorCode::device_lost: return "device_lost";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::conflict: return "conflict";
  }
  return "";
}

std::string duration_text(double seconds) {
  const auto whole = uint64_t(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

BatchLog::BatchLog(bool as_json, bool keep, std::vector<uint64_t> work)
    : json_(as_json),
      keep_(keep),
      work_(std::move(work)),
      events_(keep ? work_.size() : 0),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {
  for (uint64_t& w : work_) work_all_ += w = std::max<uint64_t>(1, w);
}
BatchLog::~BatchLog() { clear(); }

void BatchLog::clear() {
  if (one_) one_->clear();
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void BatchLog::line(const std::string& text) {
  fmt::print("{}\n", text);
  // A batch's lines are read while it runs.
  std::fflush(stdout);
}

void BatchLog::event(size_t job, json what) {
  if (json_) line(text_of(what));
  if (keep_ && job < events_.size()) events_[job] = std::move(what);
}

void BatchLog::draw() {
  if (work_.size() < 2) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (now - last_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000))) return;
  last_ = now;
  const double fraction = double(work_done_) / double(std::max<uint64_t>(1, work_all_));
  const std::string left = work_done_ > 0 && seconds > 0.5
                               ? fmt::format(", {} left", duration_text(seconds / fraction * (1 - fraction)))
                               : std::string();
  const std::string text = fmt::format("{} of {} files, {:.1f} a second{}", ended_, work_.size(),
                                       double(ended_) / std::max(1e-3, seconds), left);
  if (!terminal_) {
    fmt::print(stderr, "quarry: {}\n", text);
    return;
  }
  constexpr int kBar = 24;
  const int full = int(std::clamp(fraction, 0.0, 1.0) * kBar);
  fmt::print(stderr, "\r[{:=<{}}{: <{}}] {}\x1b[K", "", full, "", kBar - full, text);
  drawn_ = true;
}

void BatchLog::advance(size_t job) {
  ++ended_;
  work_done_ += work_[job];
  draw();
}

void BatchLog::started(const ConversionJob& what, uint32_t threads, bool in_regions, const std::string& note) {
  const std::scoped_lock lock(mutex_);
  if (!note.empty()) {
    clear();
    say_warning(subject(what), note);
  }
  if (!json_) return;
  json out = start_of("started", what);
  out["threads"] = threads;
  out["in_regions"] = in_regions;
  if (!note.empty()) out["note"] = note;
  line(text_of(out));
}

void BatchLog::finished(size_t job, const ConversionJob& what, const Conversion& done) {
  const std::scoped_lock lock(mutex_);
  clear();
  json out = start_of("finished", what);
  out["outputs"] = json::array();
  for (const auto& file : done.outputs) out["outputs"].push_back(shown(file));
  out.update({{"voxels", done.voxels}, {"bytes", done.bytes}, {"seconds", done.seconds}, {"regions", done.regions}});
  add_lost(out, done);
  event(job, std::move(out));
  for (const std::string& warning : done.warnings) say_warning(subject(what), warning);
  if (!done.losses.empty()) {
    std::string lost;
    for (const io::ExportLoss& loss : done.losses) lost += (lost.empty() ? "" : "; ") + loss.text;
    say_warning(subject(what), "not kept: " + lost);
  }
  if (!json_)
    line(fmt::format("{} -> {}: {} voxels, {}, {:.2f} s{}", subject(what),
                     done.outputs.size() == 1
                         ? shown(done.outputs[0])
                         : fmt::format("{} files, {} first", done.outputs.size(), shown(done.outputs[0])),
                     with_commas(done.voxels), bytes_text(done.bytes), done.seconds,
                     done.regions > 0 ? fmt::format(", in {} regions", done.regions) : ""));
  advance(job);
}

void BatchLog::failed(size_t job, const ConversionJob& what, const Error& error, const Conversion& done) {
  const std::scoped_lock lock(mutex_);
  clear();
  json out = start_of("failed", what);
  out.update({{"error", error.message}, {"code", code_name(error.code)}, {"seconds", done.seconds}});
  out["outputs"] = json::array();
  for (const auto& file : done.outputs) out["outputs"].push_back(shown(file));
  add_lost(out, done);
  event(job, std::move(out));
  for (const std::string& warning : done.warnings) say_warning(subject(what), warning);
  say_error(shown(what.inputs[0].file), error);
  advance(job);
}

void BatchLog::skipped(size_t job, const ConversionJob& what, const std::filesystem::path& output,
                       const std::string& why) {
  const std::scoped_lock lock(mutex_);
  json out = start_of("skipped", what);
  out.update({{"outputs", json::array({shown(output)})}, {"reason", why}});
  event(job, std::move(out));
  advance(job);
}

void BatchLog::planned(const ConversionJob& what, const std::string& output, const BatchItem& estimate,
                       const std::string& note) {
  json out = start_of("planned", what);
  out.update({{"output", output},
              {"memory_bytes", estimate.memory_bytes},
              {"in_regions", estimate.saves_memory},
              {"note", note}});
  event(what.values.index - 1, std::move(out));
  std::string message = note;
  if (estimate.saves_memory)
    message += fmt::format("{}region by region: as a whole it may need {}", message.empty() ? "" : "; ",
                           bytes_text(estimate.memory_bytes));
  if (!json_) line(fmt::format("{} -> {}{}", subject(what), output, message.empty() ? "" : " (" + message + ")"));
}

Progress BatchLog::progress_of_one(const std::string& subject_name, const std::atomic<bool>* cancel) {
  one_ = std::make_unique<ProgressLine>(subject_name);
  Progress progress = one_->progress();
  progress.cancel = cancel;
  return progress;
}

void BatchLog::summary(const BatchCounts& counts, const std::string& stopped, int exit_code) {
  const std::scoped_lock lock(mutex_);
  clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  summary_ = {{"event", "summary"},      {"inputs", counts.inputs},   {"converted", counts.converted},
              {"failed", counts.failed}, {"skipped", counts.skipped}, {"not_started", counts.not_started},
              {"seconds", seconds},      {"exit_code", exit_code}};
  if (!stopped.empty()) summary_["stopped"] = stopped;
  summary_["failed_inputs"] = counts.failed_names;
  if (json_) line(text_of(summary_));
  if (work_.size() < 2) return;
  std::string text = fmt::format("{} of {} inputs converted", counts.converted, counts.inputs);
  if (counts.failed > 0) text += fmt::format(", {} of {} inputs failed", counts.failed, counts.inputs);
  if (counts.skipped > 0) text += fmt::format(", {} unchanged and skipped", counts.skipped);
  if (counts.not_started > 0) text += fmt::format(", {} not begun", counts.not_started);
  text += fmt::format(" in {:.2f} s ({:.1f} a second)", seconds, double(ended_) / std::max(1e-3, seconds));
  if (!stopped.empty()) text += "; " + stopped;
  // Failures were reported when they happened, which in a long batch is far up.
  constexpr size_t kNamed = 20;
  for (size_t i = 0; i < std::min(counts.failed_names.size(), kNamed); ++i)
    text += (i == 0 ? ". Failed: " : ", ") + counts.failed_names[i];
  if (counts.failed_names.size() > kNamed) text += fmt::format(" and {} more", counts.failed_names.size() - kNamed);
  if (exit_code != kExitDone) say_error("", text);
  else if (!json_) line(text);
}

json BatchLog::report() const {
  json files = json::array();
  for (const json& e : events_)
    if (!e.is_null()) files.push_back(e);
  return {{"files", std::move(files)}, {"summary", summary_}};
}

}  // namespace quarry::app
