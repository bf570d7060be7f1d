// SPDX-License-Identifier: Apache-2.0
// db.hpp - the small part of SQLite that the world file needs: one connection, prepared statements, values checked when
// read. A database file is untrusted input: every column is read with its required type and range, and SQLite's own
// errors about a damaged file become malformed_input.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace quarry::io {

constexpr size_t kMaxValueBytes = 64u << 20;  // any value of the database: texts, blobs

class Db {
 public:
  // `flags` are SQLITE_OPEN_*. The connection is hardened: no triggers, no views, no attached databases, no extensions,
  // nothing in the schema trusted. `vfs` is SQLite's name of the file system; null: the default one.
  static Result<Db> open(const std::string& name, int flags, const char* vfs = nullptr);
  sqlite3* handle() const { return db_.get(); }
  // Runs our own SQL that returns no rows (or whose rows do not matter). `what` is for the message: "begin an edit".
  Result<void> run(const char* sql, const char* what);
  // Returns the one integer that a PRAGMA or an aggregate yields.
  Result<int64_t> integer(const char* sql, const char* what);
  Error error(const std::string& what) const { return error_for(sqlite3_extended_errcode(db_.get()), what); }
  Error error_for(int code, const std::string& what) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// A prepared statement. `table` is for messages. Columns are numbered from 0, parameters from 1.
class Statement {
 public:
  static Result<Statement> prepare(Db& db, const char* sql, const char* table);

  Statement& bind(int parameter, int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::span<const uint8_t> blob);  // must live until the next step
  // True: there is a row. False: done. Errors include a bind that failed.
  Result<bool> step();
  // Executes once, without rows. The statement is ready to be bound again afterwards.
  Result<void> execute();
  void reset();

  // These read the current row. The first invalid value is recorded in `row_error`. The reads then return zeros.
  int64_t integer(int column, const char* name, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  int32_t int32(int column, const char* name, int32_t min = INT32_MIN, int32_t max = INT32_MAX) {
    return int32_t(integer(column, name, min, max));
  }
  double real(int column, const char* name);
  std::string text(int column, const char* name);
  std::span<const uint8_t> blob(int column, const char* name, size_t max_bytes);  // valid until the next step
  // Ok, or malformed_input naming the table, the row and the column.
  Result<void> row_check() const;
  void fail_row(const char* name, const std::string& why);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  Db* db_ = nullptr;
  const char* table_ = "";
  int bind_code_ = SQLITE_OK;
  int64_t row_ = 0;
  std::string row_error_;
};

// Calls `each` for every row, and then checks that the row's values were valid.
template <class Each>
Result<void> for_rows(Db& db, const char* sql, const char* table, const Each& each) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, sql, table));
  for (;;) {
    QRY_TRY_ASSIGN(const auto row, s.step());
    if (!row) return {};
    QRY_TRY(each(s));
    QRY_TRY(s.row_check());
  }
}

}  // namespace quarry::io
