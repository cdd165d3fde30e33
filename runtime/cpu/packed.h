/* runtime/cpu/packed.h: sizes of the tiles of cpu/packed_type.h. */
#ifndef LT_CPU_PACKED_H
#define LT_CPU_PACKED_H

/* Bytes of a vector register, and the rows of a product that fill 16 or 32 of them. */
enum {
  LT_VECTOR = __BIGGEST_ALIGNMENT__ > 64 ? 64 : __BIGGEST_ALIGNMENT__,
  LT_TILE_ROWS = LT_VECTOR == 64 ? 8 : 6
};

#endif
