// SPDX-License-Identifier: Apache-2.0
// schema.cpp - the schema of the .quarry file, and the check that a file has exactly this schema.
#include <array>
#include <map>

#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {
namespace {

struct Table {
  const char* name;
  const char* sql;
};
// STRICT: SQLite rejects a row with a value that has not its column's type. The file's text of each table is compared
// with this one.
constexpr std::array<Table, 9> kTables{{
    {"meta", "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID"},
    {"state", "CREATE TABLE state (key TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT, WITHOUT ROWID"},
    {"palette",
     "CREATE TABLE palette (id INTEGER PRIMARY KEY, name TEXT NOT NULL, rgba INTEGER NOT NULL, roughness REAL NOT "
     "NULL, metalness REAL NOT NULL, "
     "emission REAL NOT NULL, transparency REAL NOT NULL, ior REAL NOT NULL, reserved0 REAL NOT NULL, reserved1 REAL "
     "NOT NULL) STRICT"},
    {"volumes",
     "CREATE TABLE volumes (id INTEGER PRIMARY KEY, name TEXT NOT NULL, size_x INTEGER NOT NULL, size_y INTEGER NOT "
     "NULL, size_z INTEGER NOT NULL, "
     "chunks INTEGER NOT NULL, bricks INTEGER NOT NULL, chunk_sum INTEGER NOT NULL) STRICT"},
    {"layers", "CREATE TABLE layers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, hidden INTEGER NOT NULL) STRICT"},
    {"instances",
     "CREATE TABLE instances (id INTEGER PRIMARY KEY, volume INTEGER NOT NULL, rotation INTEGER NOT NULL, x INTEGER "
     "NOT NULL, y INTEGER NOT NULL, "
     "z INTEGER NOT NULL, layer INTEGER NOT NULL, hidden INTEGER NOT NULL, name TEXT NOT NULL, group_path TEXT NOT "
     "NULL) STRICT"},
    {"cameras",
     "CREATE TABLE cameras (id INTEGER PRIMARY KEY, name TEXT NOT NULL, position_x REAL NOT NULL, position_y REAL "
     "NOT NULL, position_z REAL NOT NULL, "
     "target_x REAL NOT NULL, target_y REAL NOT NULL, target_z REAL NOT NULL, vertical_fov REAL NOT NULL) STRICT"},
    {"chunks",
     "CREATE TABLE chunks (volume INTEGER NOT NULL, x INTEGER NOT NULL, y INTEGER NOT NULL, z INTEGER NOT NULL, "
     "bricks INTEGER NOT NULL, "
     "bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (volume, x, y, z)) STRICT"},
    {"journal",
     "CREATE TABLE journal (record INTEGER NOT NULL, part INTEGER NOT NULL, volume INTEGER NOT NULL, label TEXT NOT "
     "NULL, voxels INTEGER NOT NULL, "
     "changes INTEGER NOT NULL, bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY "
     "(record, part)) STRICT"},
}};

}  // namespace

Result<void> create_schema(Db& db) {
  const std::string ids = "PRAGMA application_id=" + std::to_string(kApplicationId) +
                          "; PRAGMA user_version=" + std::to_string(kPlainHistory);
  QRY_TRY(db.run(ids.c_str(), "mark the new database"));
  for (const Table& t : kTables) QRY_TRY(db.run(t.sql, "make the tables"));
  return {};
}

Result<void> check_schema(Db& db) {
  QRY_TRY_ASSIGN(const auto id, db.integer("PRAGMA application_id", "read the database's header"));
  if (id != kApplicationId)
    return fail(ErrorCode::malformed_input,
                "it is an SQLite database, but not a Quarry world (its application id is " + std::to_string(id) + ")");
  QRY_TRY_ASSIGN(const auto version, db.integer("PRAGMA user_version", "read the database's header"));
  if (version > kSchemaVersion)
    return fail(ErrorCode::unsupported, "it was written by a newer Quarry (world file version " +
                                            std::to_string(version) + ", this program reads up to " +
                                            std::to_string(kSchemaVersion) + "); use that one");
  if (version < 1)
    return fail(ErrorCode::malformed_input, "its world file version is " + std::to_string(version) +
                                                ", expected 1 to " + std::to_string(kSchemaVersion));
  std::map<std::string, std::string, std::less<>> wanted;
  for (const Table& t : kTables) wanted.emplace(t.name, t.sql);
  QRY_TRY_ASSIGN(
      auto rows,
      Statement::prepare(db, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                         "sqlite_schema"));
  for (;;) {
    QRY_TRY_ASSIGN(const auto row, rows.step());
    if (!row) break;
    const std::string type = rows.text(0, "type"), name = rows.text(1, "name"), sql = rows.text(2, "sql");
    QRY_TRY(rows.row_check());
    const auto it = wanted.find(name);
    if (type != "table" || it == wanted.end())
      return fail(ErrorCode::malformed_input, "the database has a " + type.substr(0, 20) + " '" + name.substr(0, 60) +
                                                  "', which no Quarry world has");
    if (sql != it->second)
      return fail(ErrorCode::malformed_input, "table " + name + " is not made as in a Quarry world");
    wanted.erase(it);
  }
  if (!wanted.empty()) return fail(ErrorCode::malformed_input, "table " + wanted.begin()->first + " is missing");
  return {};
}

}  // namespace quarry::io
