/* spec/c/op_hash_test.c: the number that says which rows and structs a backend was built with. This
   file compiles it as such a backend does, and again after changes of what a backend reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/op.h"

#define lt_op_hash of_a_backend
static uint64_t of_a_backend(void);
#include "ops/abi_hash.c"
#undef lt_op_hash

/* A DIM became an INT: the same C type, another meaning. */
#undef LT_ARGS_softmax
#define LT_ARGS_softmax(A) A(INT, dim, -1)
#define lt_op_hash of_another_type
static uint64_t of_another_type(void);
#include "ops/abi_hash.c"
#undef lt_op_hash

#undef LT_ARGS_softmax
#define LT_ARGS_softmax(A)
#define lt_op_hash of_an_argument_less
static uint64_t of_an_argument_less(void);
#include "ops/abi_hash.c"
#undef lt_op_hash
#undef LT_ARGS_softmax
#define LT_ARGS_softmax(A) A(DIM, dim, REQUIRED)

/* The arguments of a kind in another order. */
typedef struct lt_args_turned {
  bool keepdim;
  lt_dims dims;
  char end_of_args;
} lt_args_turned;
#define lt_args_reduce lt_args_turned
#define lt_op_hash of_another_order
static uint64_t of_another_order(void);
#include "ops/abi_hash.c"
#undef lt_op_hash
#undef lt_args_reduce

#undef LT_CHOICES_reduction
#define LT_CHOICES_reduction "none|sum|mean"
#define lt_op_hash of_other_choices
static uint64_t of_other_choices(void);
#include "ops/abi_hash.c"
#undef lt_op_hash
#undef LT_CHOICES_reduction
#define LT_CHOICES_reduction "none|mean|sum"

typedef struct lt_view_grown {
  lt_view view;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
} lt_view_grown;
#define lt_view lt_view_grown
#define lt_op_hash of_another_view
static uint64_t of_another_view(void);
#include "ops/abi_hash.c"
#undef lt_op_hash
#undef lt_view

static void a_backend_built_from_the_same_source_has_the_number_of_the_library(void **state) {
  (void)state;
  assert_true(of_a_backend() == lt_op_hash());
}

static void every_change_of_what_it_reads_changes_the_number(void **state) {
  (void)state;
  const uint64_t changed[] = {of_another_type(), of_an_argument_less(), of_another_order(),
                              of_other_choices(), of_another_view()};
  for (size_t k = 0; k < sizeof changed / sizeof *changed; k++) {
    assert_true(changed[k] != lt_op_hash());
    for (size_t j = 0; j < k; j++) assert_true(changed[k] != changed[j]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_backend_built_from_the_same_source_has_the_number_of_the_library),
      cmocka_unit_test(every_change_of_what_it_reads_changes_the_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
