/* runtime/image/decoder_checks.c: checks and errors that the decoders of all formats share; the
   channels of a colour mode. */
#include "image/format.h"

#include <stdarg.h>
#include <stdio.h>

bool lt_image_fail(lt_ctx *c, const lt_reading *r, const char *format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return lt_fail(c, LT_EIO, "%s: %s: %s", r->op, r->where, text);
}

bool lt_image_fits(lt_ctx *c, const lt_reading *r, int64_t width, int64_t height) {
  if (width > 0 && height > 0 && width <= LT_SIDE_MAX && height <= LT_SIDE_MAX &&
      width * height <= LT_PIXELS_MAX)
    return true;
  return lt_image_fail(c, r, "an image of %lld x %lld: sides are 1 to %d, pixels at most %lld",
                       (long long)width, (long long)height, LT_SIDE_MAX,
                       (long long)LT_PIXELS_MAX);
}

bool lt_picture_channels(lt_ctx *c, lt_image_mode mode, lt_picture *p) {
  static const int wanted_of[] = {[LT_MODE_RGB] = 3, [LT_MODE_GREY] = 1, [LT_MODE_RGBA] = 4};
  int wanted = mode == LT_MODE_AS_IS ? p->channels : wanted_of[mode], has = p->channels;
  if (wanted == has) return true;
  lt_picture q;
  if (!lt_picture_interleaved(c, &q, LT_DEPTH_U8, wanted, p->height, p->width)) return false;
  const uint8_t *in = p->first;
  uint8_t *out = q.first;
  int64_t n = (int64_t)p->height * p->width;
  for (int64_t i = 0; i < n; i++, in += has, out += wanted) {
    if (wanted == 1)
      out[0] = lt_luminance(in);
    else
      for (int k = 0; k < wanted; k++) out[k] = k == 3 ? 255 : in[has == 1 ? 0 : k];
  }
  lt_picture_replace(c, p, q);
  return true;
}
