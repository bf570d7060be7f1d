// SPDX-License-Identifier: Apache-2.0
// bulk_test.cpp - the neighbours of bricks, compared with a map that does not use a grid; the same results from bulk
// calls, the functions for one brick, plain grids and grids of rows.
#include <random>
#include <unordered_map>

#include "tests/hashgrid/backends.hpp"
#include "voxel/neighbours/bulk.hpp"

namespace quarry::hashgrid::test::bulk_test {
namespace {

using World = std::unordered_map<uint64_t, uint32_t>;  // by place()
uint64_t place(int x, int y, int z) { return uint64_t(x + 2048) << 24 | uint64_t(y + 2048) << 12 | uint64_t(z + 2048); }
uint64_t place(uint32_t brick) { return place(qry_brick_x(brick), qry_brick_y(brick), qry_brick_z(brick)); }

struct Delta {
  int x, y, z;
};
// The orders that the text of one_brick.hpp describes, written independently.
std::vector<Delta> faces() { return {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}}; }
std::vector<Delta> all() {
  std::vector<Delta> deltas;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x)
        if (x != 0 || y != 0 || z != 0) deltas.push_back({x, y, z});
  return deltas;
}

uint32_t expected(const World& world, uint32_t brick, const Delta& delta) {
  const auto at =
      world.find(place(qry_brick_x(brick) + delta.x, qry_brick_y(brick) + delta.y, qry_brick_z(brick) + delta.z));
  return at == world.end() ? kQryReservedValue : at->second;
}

// Bricks at the corners and edges of the world and a dense lump across the origin, each present with probability 3/4.
std::vector<uint32_t> some_bricks(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> bricks;
  const auto add = [&](int x, int y, int z) {
    const uint32_t key = qry_pack_brick(x, y, z);
    if (key != kQryReservedKey && random() % 4 != 0) bricks.push_back(key);
  };
  for (const int x : {-1024, -1023, 1022, 1023})
    for (const int y : {-512, -511, 510, 511})
      for (const int z : {-1024, -1023, 1022, 1023}) add(x, y, z);
  for (int z = -12; z < 13; ++z)
    for (int y = -9; y < 10; ++y)
      for (int x = -17; x < 18; ++x) add(x, y, z);
  return bricks;
}

void check_answers(Executor& executor, const GridView& view, const World& world, const std::vector<uint32_t>& asked) {
  const Array<uint32_t> bricks(executor, asked);
  for (const Neighbourhood which : {Neighbourhood::faces, Neighbourhood::all}) {
    const std::vector<Delta> deltas = which == Neighbourhood::faces ? faces() : all();
    Array<uint32_t> values(executor, std::vector<uint32_t>(asked.size() * deltas.size(), 0xDDDDDDDDu));
    REQUIRE(find_neighbours(executor, view, bricks.data(), asked.size(), which, values.data()).has_value());
    const std::vector<uint32_t> got = values.get();
    size_t wrong = 0, there = 0;
    for (size_t d = 0; d < deltas.size(); ++d)
      for (size_t i = 0; i < asked.size(); ++i) {
        const uint32_t want = expected(world, asked[i], deltas[d]);
        wrong += got[d * asked.size() + i] != want;
        there += want != kQryReservedValue;
      }
    INFO(deltas.size() << " neighbours");
    REQUIRE(wrong == 0);
    REQUIRE(there > asked.size());
  }
}

TEST_CASE("neighbours: are what a map gives, also at the world's corners, in crowded pages and for absent bricks",
          "[quick][one-caller]") {
  on_each_executor([](Executor& executor) {
    for (const uint32_t pages : {3u, 4u, 40u}) {  // 3: a load of 1.03: keys in every kind of place, or refused
      INFO(pages << " pages");
      Table table(executor, pages);
      const std::vector<uint32_t> bricks = some_bricks(pages), values = values_of(bricks);
      std::vector<Outcome> outcomes;
      table.insert(bricks, values, &outcomes);
      World world;
      for (size_t i = 0; i < bricks.size(); ++i)
        if (outcomes[i] == Outcome::inserted) world[place(bricks[i])] = values[i];
      std::vector<uint32_t> asked = bricks;
      for (const uint32_t brick : bricks) asked.push_back(brick ^ 0x00200801u);  // other bricks, many of them absent
      for (const int x : {-1024, 1023})
        for (const int y : {-512, 511})
          for (const int z : {-1024, 1023})
            if (qry_pack_brick(x, y, z) != kQryReservedKey) asked.push_back(qry_pack_brick(x, y, z));
      check_answers(executor, table.view(), world, asked);

      // Half of them are erased; a sweep moves the rest.
      table.next_phase();
      std::vector<uint32_t> gone;
      for (size_t i = 0; i < bricks.size(); i += 2) gone.push_back(bricks[i]);
      table.erase(gone);
      for (const uint32_t brick : gone) world.erase(place(brick));
      check_answers(executor, table.view(), world, asked);
      REQUIRE(executor.pairs().sweep(table.view()).has_value());
      check_answers(executor, table.view(), world, asked);
    }
  });
}

TEST_CASE("neighbours: the functions for one brick answer as the bulk calls do") {
  const auto executor = make_host_executor(1);
  for (const Locality locality : {Locality::plain, Locality::rows}) {
    auto grid = Grid::create(*executor, {.capacity = 14000, .max_load_factor = 1.0, .locality = locality});
    REQUIRE(grid.has_value());
    const std::vector<uint32_t> bricks = some_bricks(8), values = values_of(bricks);
    REQUIRE(grid->insert(bricks, values).has_value());
    std::vector<uint32_t> six(bricks.size() * 6), all26(bricks.size() * 26);
    REQUIRE(find_neighbours(*executor, *grid, bricks, Neighbourhood::faces, six).has_value());
    REQUIRE(find_neighbours(*executor, *grid, bricks, Neighbourhood::all, all26).has_value());
    size_t wrong = 0;
    for (size_t i = 0; i < bricks.size(); ++i) {
      uint32_t near6[6], near26[26];
      find_neighbours6(grid->view(), bricks[i], near6);
      find_neighbours26(grid->view(), bricks[i], near26);
      for (size_t d = 0; d < 6; ++d) wrong += near6[d] != six[d * bricks.size() + i];
      for (size_t d = 0; d < 26; ++d) wrong += near26[d] != all26[d * bricks.size() + i];
    }
    REQUIRE(wrong == 0);
    REQUIRE(find_neighbours(*executor, *grid, bricks, Neighbourhood::all, six).error().code ==
            ErrorCode::invalid_argument);
  }
}

TEST_CASE("neighbours: a grid of rows grows, forgets and lists as a plain one does, and keeps its rows") {
  on_each_executor([](Executor& executor) {
    auto grid = Grid::create(executor, {.locality = test_locality()});
    REQUIRE(grid.has_value());
    const std::vector<uint32_t> bricks = some_bricks(2), values = values_of(bricks);
    const Array<uint32_t> k(executor, bricks), v(executor, values), out(executor, bricks.size());
    for (size_t first = 0; first < bricks.size(); first += 1000) {  // grows several times
      const size_t count = std::min<size_t>(1000, bricks.size() - first);
      REQUIRE(grid->insert(k.span().subspan(first, count), v.span().subspan(first, count)).has_value());
    }
    REQUIRE(grid->size() == bricks.size());
    REQUIRE(grid->find(k.span(), out.span()).has_value());
    REQUIRE(out.get() == values);
    REQUIRE(grid->view().locality == uint32_t(test_locality()));
    const auto pairs = grid->enumerate(true);
    REQUIRE(pairs.has_value());
    REQUIRE(pairs->keys == [&] {
      std::vector<uint32_t> sorted = bricks;
      std::sort(sorted.begin(), sorted.end());
      return sorted;
    }());
    REQUIRE(grid->erase(k.span().subspan(0, 500)).has_value());
    REQUIRE(grid->sweep().has_value());
    REQUIRE(grid->find(k.span(), out.span()).has_value());
    std::vector<uint32_t> left = values;
    std::fill(left.begin(), left.begin() + 500, kQryReservedValue);
    REQUIRE(out.get() == left);
  });
}

}  // namespace
}  // namespace quarry::hashgrid::test::bulk_test
