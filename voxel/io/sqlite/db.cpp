// SPDX-License-Identifier: Apache-2.0
// db.cpp - calls SQLite with defensive settings. A row's first wrong column is kept as the error.
#include "voxel/io/sqlite/db.hpp"

namespace quarry::io {

Result<Db> Db::open(const std::string& name, int flags, const char* vfs) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, vfs);
  Db db;
  db.db_.reset(raw);
  if (code != SQLITE_OK)
    return tl::unexpected(raw ? db.error("open the database")
                              : Error{ErrorCode::out_of_memory, "no memory for a database connection"});
  sqlite3_extended_result_codes(raw, 1);
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                      {SQLITE_DBCONFIG_DQS_DML, 0},
                                      {SQLITE_DBCONFIG_DQS_DDL, 0},
                                      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}})
    sqlite3_db_config(raw, option, value, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, int(kMaxValueBytes));
  sqlite3_limit(raw, SQLITE_LIMIT_SQL_LENGTH, 1 << 16);
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(raw, SQLITE_LIMIT_WORKER_THREADS, 0);
  // Cells are checked against their pages, and no page is read through a mapping. So a file that shrinks meanwhile
  // causes an error, not a signal.
  QRY_TRY(db.run("PRAGMA cell_size_check=ON", "set up the database"));
  QRY_TRY(db.run("PRAGMA mmap_size=0", "set up the database"));
  return db;
}

Error Db::error_for(int code, const std::string& what) const {
  const std::string message =
      "cannot " + what + ": " + sqlite3_errmsg(db_.get()) + " (SQLite " + std::to_string(code) + ")";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return {ErrorCode::conflict, "it is open in another program; close it there first"};
    case SQLITE_NOMEM: return {ErrorCode::out_of_memory, message};
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_SHORT_READ) return {ErrorCode::malformed_input, message};
      return {ErrorCode::io, message};
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: return {ErrorCode::io, message};
    case SQLITE_INTERRUPT: return {ErrorCode::cancelled, "stopped"};
    default: return {ErrorCode::malformed_input, message};
  }
}

Result<void> Db::run(const char* sql, const char* what) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return tl::unexpected(error(what));
  return {};
}

Result<int64_t> Db::integer(const char* sql, const char* what) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(*this, sql, what));
  QRY_TRY_ASSIGN(const auto row, s.step());
  if (!row) return fail(ErrorCode::malformed_input, std::string(what) + ": expected a number, found nothing");
  const int64_t value = s.integer(0, "value");
  QRY_TRY(s.row_check());
  return value;
}

Result<Statement> Statement::prepare(Db& db, const char* sql, const char* table) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db.handle(), sql, -1, &raw, nullptr) != SQLITE_OK)
    return tl::unexpected(db.error(std::string("use table ") + table));
  Statement s;
  s.statement_.reset(raw);
  s.db_ = &db;
  s.table_ = table;
  return s;
}

Statement& Statement::bind(int parameter, int64_t value) {
  if (bind_code_ == SQLITE_OK) bind_code_ = sqlite3_bind_int64(statement_.get(), parameter, value);
  return *this;
}
Statement& Statement::bind(int parameter, double value) {
  if (bind_code_ == SQLITE_OK) bind_code_ = sqlite3_bind_double(statement_.get(), parameter, value);
  return *this;
}
Statement& Statement::bind(int parameter, std::string_view text) {
  const char* data = text.data() ? text.data() : "";
  if (bind_code_ == SQLITE_OK)
    bind_code_ = sqlite3_bind_text64(statement_.get(), parameter, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind(int parameter, std::span<const uint8_t> blob) {
  const uint8_t nothing = 0;
  if (bind_code_ == SQLITE_OK)
    bind_code_ = sqlite3_bind_blob64(statement_.get(), parameter, blob.empty() ? &nothing : blob.data(), blob.size(),
                                     blob.empty() ? SQLITE_TRANSIENT : SQLITE_STATIC);
  return *this;
}

Result<bool> Statement::step() {
  const std::string what = std::string("use table ") + table_;
  if (bind_code_ != SQLITE_OK) return tl::unexpected(db_->error_for(bind_code_, what));
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW: ++row_; return true;
    case SQLITE_DONE: return false;
    default: return tl::unexpected(db_->error(what + " after its row " + std::to_string(row_)));
  }
}

Result<void> Statement::execute() {
  const auto row = step();
  reset();
  QRY_TRY(row);
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bind_code_ = SQLITE_OK;
  row_ = 0;
  row_error_.clear();
}

int64_t Statement::integer(int column, const char* name, int64_t min, int64_t max) {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) {
    fail_row(name, "expected a whole number");
    return min <= 0 && max >= 0 ? 0 : min;
  }
  const int64_t v = sqlite3_column_int64(statement_.get(), column);
  if (v < min || v > max) {
    fail_row(name, "expected " + std::to_string(min) + " to " + std::to_string(max) + ", found " + std::to_string(v));
    return min <= 0 && max >= 0 ? 0 : min;
  }
  return v;
}

double Statement::real(int column, const char* name) {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_FLOAT) {
    fail_row(name, "expected a number");
    return 0;
  }
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column, const char* name) {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) {
    fail_row(name, "expected a text");
    return {};
  }
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);  // before the length: it may convert
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  if (!data || bytes < 0) {
    fail_row(name, "no memory for the text");
    return {};
  }
  return {reinterpret_cast<const char*>(data), size_t(bytes)};
}

std::span<const uint8_t> Statement::blob(int column, const char* name, size_t max_bytes) {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_BLOB) {
    fail_row(name, "expected bytes");
    return {};
  }
  const size_t bytes = size_t(sqlite3_column_bytes(statement_.get(), column));
  if (bytes > max_bytes) {
    fail_row(name, "expected at most " + std::to_string(max_bytes) + " bytes, found " + std::to_string(bytes));
    return {};
  }
  const void* data = sqlite3_column_blob(statement_.get(), column);
  if (!data) {
    if (bytes) fail_row(name, "no memory for the bytes");
    return {};
  }
  return {static_cast<const uint8_t*>(data), bytes};
}

void Statement::fail_row(const char* name, const std::string& why) {
  if (row_error_.empty())
    row_error_ = "table " + std::string(table_) + ", row " + std::to_string(row_) + ", " + name + ": " + why;
}

Result<void> Statement::row_check() const {
  if (!row_error_.empty()) return fail(ErrorCode::malformed_input, row_error_);
  return {};
}

}  // namespace quarry::io
