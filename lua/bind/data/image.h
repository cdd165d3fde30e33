/* lua/bind/data/image.h: declarations that the files of `c.runtime.image` share. */
#ifndef LT_BIND_DATA_IMAGE_H
#define LT_BIND_DATA_IMAGE_H

#include "bind/core/state.h"
#include "image/chain.h"
#include "image/format.h"

/* "rgb", "grey", "rgba" or "as_is" at `index`. */
lt_image_mode lt_check_image_mode(lua_State *L, int index);

/* The chain of transforms at `index`. */
lt_chain *lt_check_chain(lua_State *L, int index);

void lt_bind_image(lua_State *L, lt_bind *b);
void lt_bind_image_chain(lua_State *L, lt_bind *b); /* adds to the table on top */

#endif
