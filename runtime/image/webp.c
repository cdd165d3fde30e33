/* runtime/image/webp.c: WebP files, by libwebp. Of an animation only the frames are stored, which
   it does not put together: these are refused. */
#include <string.h>

#include "image/format.h"
#include "image/libraries.h"

static uint32_t riff_size(const uint8_t *d) {
  return d[4] | (uint32_t)d[5] << 8 | (uint32_t)d[6] << 16 | (uint32_t)d[7] << 24;
}

bool lt_webp_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                    lt_picture *out) {
  *out = (lt_picture){0};
  const lt_webp *lib = lt_webp_open(c, r->op);
  if (lib == NULL) return false;
  lt_webp_features f = {0};
  if (riff_size(data) > n - 8) return lt_image_fail(c, r, "the file is cut off");
  if (lib->features(data, n, &f, LT_WEBP_ABI) != 0)
    return lt_image_fail(c, r, "WebP: its header is damaged");
  if (f.has_animation) return lt_image_fail(c, r, "WebP: it is an animation");
  if (!lt_image_fits(c, r, f.width, f.height)) return false;
  bool alpha = r->mode == LT_MODE_RGBA || (r->mode == LT_MODE_AS_IS && f.has_alpha);
  int channels = alpha ? 4 : 3;
  if (!lt_picture_interleaved(c, out, LT_DEPTH_U8, channels, f.height, f.width)) return false;
  size_t row = (size_t)f.width * (size_t)channels, size = row * (size_t)f.height;
  uint8_t *(*decode)(const uint8_t *, size_t, uint8_t *, size_t, int) =
      alpha ? lib->decode_rgba : lib->decode_rgb;
  bool ok = decode(data, n, out->first, size, (int)row) != NULL ||
            lt_image_fail(c, r, "WebP: its data is damaged");
  ok = ok && lt_picture_channels(c, r->mode, out);
  if (!ok) lt_picture_free(c, out);
  return ok;
}
