#include "hashgrid/compact_bulk.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "tests/hashgrid/backends.hpp"
#include "tests/hashgrid/compact_device.hpp"

namespace quarry::hashgrid::test {
namespace {

class DeviceTable final : public CompactDeviceTable {
 public:
  DeviceTable(Executor& executor, uint32_t pages)
      : executor_(executor), words_(executor, size_t{pages} * kQryPageWords), view_(compact_view(words_.data(), pages, 1)) {
    REQUIRE(compact_clear(stream(), view_).has_value());
  }
  BulkReport build(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values) override {
    const Array<uint32_t> k(executor_, keys), v(executor_, values);
    return checked(compact_build(stream(), view_, k.data(), v.data(), keys.size()));
  }
  BulkReport insert(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values) override {
    const Array<uint32_t> k(executor_, keys), v(executor_, values);
    return checked(compact_insert(stream(), view_, k.data(), v.data(), keys.size(), nullptr));
  }
  BulkReport erase(const std::vector<uint32_t>& keys) override {
    const Array<uint32_t> k(executor_, keys);
    return checked(compact_erase(stream(), view_, k.data(), keys.size(), nullptr));
  }
  std::vector<uint32_t> find(const std::vector<uint32_t>& keys, std::vector<uint8_t>& depths) override {
    const Array<uint32_t> k(executor_, keys), out(executor_, keys.size());
    const Array<uint8_t> d(executor_, keys.size());
    checked(compact_find(stream(), view_, k.data(), keys.size(), out.data(), d.data()));
    depths = d.get();
    return out.get();
  }
  void download(uint64_t* words, size_t count) override {
    REQUIRE(count == words_.size());
    REQUIRE(executor_.download(words, words_.data(), count * sizeof(uint64_t)).has_value());
  }

 private:
  cudaStream_t stream() const { return cuda_stream_of(executor_); }
  static BulkReport checked(const Result<BulkReport>& report) {
    if (!report) FAIL(report.error().message);
    return *report;
  }
  Executor& executor_;
  Array<uint64_t> words_;
  CompactView view_;
};

}  // namespace

bool with_compact_device_table(uint32_t pages, const std::function<void(CompactDeviceTable&)>& use) {
  auto executor = make_cuda_executor();
  if (!executor) return false;
  DeviceTable table(**executor, pages);
  use(table);
  return true;
}

}  // namespace quarry::hashgrid::test
