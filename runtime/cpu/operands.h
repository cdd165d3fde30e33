/* runtime/cpu/operands.h: operands of products as matrices. */
#ifndef LT_CPU_OPERANDS_H
#define LT_CPU_OPERANDS_H

#include "cpu/onednn.h"
#include "cpu/simd_level.h"

/* The last two dims of a tensor, those before them broadcast to the batch of the product. */
lt_matrix LT_CPU(lt_matrix_of)(const lt_product *p, const lt_tensor *t);

/* An operand in a form that the product takes: in place, or a copy, which belongs to the open
   frame. */
bool LT_CPU(lt_take_operand)(lt_ctx *c, const lt_product *p, lt_tensor *t, lt_matrix *m);

/* Both of them, in p->a and p->b. Repeated along the same dim oneDNN wants one that has it. */
bool LT_CPU(lt_take_operands)(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b);

/* product_blocked.c: large thin products of halves through f32, for machines without bf16 products.
   In pieces a and b are matrices. */
bool LT_CPU(lt_goes_in_pieces)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                           const lt_tensor *out);
bool LT_CPU(lt_product_in_pieces)(lt_ctx *c, lt_product *p, lt_tensor *a, lt_tensor *b,
                                  const lt_tensor *out);

/* product_skinny.c: products of halves with few rows or few terms through f32, likewise. */
bool LT_CPU(lt_is_thin)(const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                        const lt_tensor *out);
bool LT_CPU(lt_product_thin)(lt_ctx *c, const lt_product *p, const lt_tensor *a, const lt_tensor *b,
                             const lt_tensor *out);

#endif
