/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - the small test framework that the C tests of the plugin interface share: checks that count, and handles
 * made with a check. It shows that the interface needs only C. */
#ifndef QUARRY_C_API_CHECK_H
#define QUARRY_C_API_CHECK_H

#include <quarry/quarry.h>
#include <stddef.h>

void check_at(const char* file, int line, int good, const char* what);
void check_result_at(const char* file, int line, qry_result got, qry_result wanted, const char* message_part,
                     const char* what);
#define CHECK(condition) check_at(__FILE__, __LINE__, (condition) != 0, #condition)
#define OK(call) check_result_at(__FILE__, __LINE__, (call), QRY_OK, NULL, #call)
/* The call must return this code and set a message that contains this part (NULL: any). */
#define REFUSED(call, code, message_part) check_result_at(__FILE__, __LINE__, (call), (code), (message_part), #call)
int failures_so_far(void);
void skip(const char* why);
/* Prints the totals and returns the result of main. */
int finish_checks(void);

/* Files are in the folder given to main. The path is valid until the next call. */
void use_folder(const char* folder);
const char* path_of(const char* name);
int file_exists(const char* name);
void write_file(const char* name, const void* bytes, size_t size);

qry_context* new_context(uint32_t device);
qry_world* new_world(qry_context* context);
qry_world* new_world_at(qry_context* context, uint32_t home); /* NULL: this machine has no such home, which is said */
qry_world_state state_of(qry_world* world);
uint8_t voxel_at(const qry_world* world, int32_t x, int32_t y, int32_t z);
/* Makes a floor of 32 x 1 x 32 of material 3 and a ball of material 40 about (15, 10, 15), radius 7.5, in two steps. */
void fill_example(qry_world* world);

/* The parts of the test; `context` was made with QRY_DEVICE_NEVER. */
void check_voxels(qry_context* context);   /* api/voxels_test.c */
void check_algebra(qry_context* context);  /* api/algebra_test.c */
void check_files(qry_context* context);    /* api/files_test.c */
void check_attached(qry_context* context); /* api/files/attached_test.c */
void check_packed(qry_context* context);   /* api/packed_test.c */
void check_pictures(qry_context* context); /* api/pictures_test.c */
void check_paths(qry_context* context);    /* api/paths_test.c */

#endif
