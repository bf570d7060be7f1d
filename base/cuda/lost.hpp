// SPDX-License-Identifier: Apache-2.0
// lost.hpp - which of CUDA's errors mean that a device is lost to this process: each later call answers with the same
// error, what was in the device's memory is gone, and only a new process can use the device again.
#pragma once

namespace quarry::gpu {

// `error`: a cudaError_t or a CUresult. Those that are here have the same number in both.
constexpr bool loses_device(int error) {
  switch (error) {
    case 214:  // an ECC error that could not be corrected
    case 220:  // the same of NVLink
    case 226:  // a fault that the device has contained
    case 700:  // a kernel's address is not there
    case 702:  // a kernel ran too long
    case 709:  // the context was destroyed, by someone else
    case 710:  // a device's assert
    case 714:  // a device's stack is broken
    case 715:  // an instruction that is none
    case 716:  // an address that is not aligned
    case 717:  // an address of another kind of memory
    case 718:  // a program counter that points nowhere
    case 719:  // a kernel failed in any other way
    case 721:  // a kernel left tensor memory behind
    case 810:  // the multi-process server has ended this client
    case 911:  // what another device was to deliver failed there
      return true;
    default: return false;
  }
}

}  // namespace quarry::gpu
