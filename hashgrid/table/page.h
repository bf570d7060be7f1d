// SPDX-License-Identifier: Apache-2.0
// page.h - the parts common to tables of every layout: pages of sectors, 32-bit keys and values. One text for C++, CUDA
// and GLSL, with the macros that make the three agree.
//
// What it is not: the content of a page (pairs/layout.h, compact/layout.h), the hash of a key (key_hash.h).
// A shader defines QRY_GLSL before it includes this file and enables GL_EXT_shader_explicit_arithmetic_types_int64.
#ifndef QRY_HASHGRID_TABLE_PAGE_H
#define QRY_HASHGRID_TABLE_PAGE_H

#if defined(QRY_GLSL)
#define QRY_FN
#define QRY_U32 uint
#define QRY_U64 uint64_t
#define QRY_CONST const uint
#else
#include <stdint.h>
#if defined(__CUDACC__)
#define QRY_FN __host__ __device__ inline
#else
#define QRY_FN static inline
#endif
#define QRY_U32 uint32_t
#define QRY_U64 uint64_t
#if defined(__cplusplus)
#define QRY_CONST constexpr uint32_t
#else
#define QRY_CONST static const uint32_t
#endif
#endif

// Reserved: no key and no value may be all ones.
QRY_CONST kQryReservedKey = 0xFFFFFFFFu;
QRY_CONST kQryReservedValue = 0xFFFFFFFFu;

QRY_CONST kQrySlotBytes = 8u;
QRY_CONST kQrySlotsPerSector = 4u;
QRY_CONST kQrySectorsPerPage = 1024u;
QRY_CONST kQryPageBytes = 32768u;

#endif
