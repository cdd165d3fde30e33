/* runtime/image/jpeg.c: JPEG files, by libturbojpeg. */
#include <string.h>

#include "image/format.h"
#include "image/libraries.h"

/* libjpeg gives grey for what is missing of a file, and a warning, in which we see it. Other
   warnings (rubbish between two markers) are of files that everybody reads. */
static bool check(lt_ctx *c, const lt_reading *r, const lt_turbojpeg *lib, void *handle,
                  int status) {
  if (status == 0) return true;
  const char *text = lib->error(handle);
  if (strstr(text, "remature end") != NULL) return lt_image_fail(c, r, "the file is cut off");
  if (strncmp(text, "Corrupt JPEG data: ", 19) == 0 && strstr(text, "extraneous bytes") != NULL)
    return true;
  return lt_image_fail(c, r, "JPEG: %s", text);
}

/* C M Y K to R G B. Adobe's files store the inks inverted, and all that are met are Adobe's: 255 is
   no ink. light = k - (255 - ink) k / 255 with PIL's rounded division by 255 (x + 128, then (x + x
   / 256) / 256). */
static void from_inks(const uint8_t *in, uint8_t *out, int64_t n) {
  for (int64_t i = 0; i < n; i++, in += 4, out += 3)
    for (int k = 0; k < 3; k++) {
      int ink = (255 - in[k]) * in[3] + 128, light = in[3] - (((ink >> 8) + ink) >> 8);
      out[k] = (uint8_t)(light < 0 ? 0 : light);
    }
}

/* The picture keeps what libturbojpeg could decode only if `check` accepts its warning; LIMIT_SCANS
   refuses progressive files of thousands of scans, which decode for minutes. */
static bool decode(lt_ctx *c, const lt_reading *r, const lt_turbojpeg *lib, void *handle,
                   const uint8_t *data, size_t n, int width, int height, int format,
                   lt_picture *out) {
  int channels = format == LT_TJ_GRAY ? 1 : format == LT_TJ_CMYK ? 4 : 3;
  if (!lt_picture_interleaved(c, out, LT_DEPTH_U8, channels, height, width)) return false;
  int status = lib->decode(handle, data, n, out->first, width, 0, height, format,
                           LT_TJ_LIMIT_SCANS);
  return check(c, r, lib, handle, status);
}

/* Of inks first R G B, then the channels that are wanted. */
static bool convert(lt_ctx *c, lt_image_mode mode, lt_picture *p) {
  lt_picture q;
  if (p->channels == 4) {
    if (!lt_picture_interleaved(c, &q, LT_DEPTH_U8, 3, p->height, p->width)) return false;
    from_inks(p->first, q.first, (int64_t)p->height * p->width);
    lt_picture_replace(c, p, q);
  }
  return lt_picture_channels(c, mode, p);
}

static bool read_with(lt_ctx *c, const lt_reading *r, const lt_turbojpeg *lib, void *handle,
                      const uint8_t *data, size_t n, lt_picture *out) {
  int width = 0, height = 0, sampling = -1, space = -1;
  int status = lib->read_header(handle, data, n, &width, &height, &sampling, &space);
  bool readable = width > 0 && height > 0 && space >= 0; /* odd sampling is decoded all the same */
  if (status != 0 && !readable) return check(c, r, lib, handle, status) && false;
  if (!lt_image_fits(c, r, width, height)) return false;
  int format = space == LT_TJ_SPACE_GRAY                                 ? LT_TJ_GRAY
               : space == LT_TJ_SPACE_CMYK || space == LT_TJ_SPACE_YCCK ? LT_TJ_CMYK
                                                                         : LT_TJ_RGB;
  return decode(c, r, lib, handle, data, n, width, height, format, out) &&
         convert(c, r->mode, out);
}

bool lt_jpeg_decode(lt_ctx *c, const lt_reading *r, const uint8_t *data, size_t n,
                    lt_picture *out) {
  *out = (lt_picture){0};
  const lt_turbojpeg *lib = lt_turbojpeg_open(c, r->op);
  void *handle = lib != NULL ? lib->open_decoder() : NULL;
  if (handle == NULL) return lt_fail(c, LT_EMEMORY, "%s: out of memory", r->op);
  bool ok = read_with(c, r, lib, handle, data, n, out);
  lib->close(handle);
  if (!ok)
    lt_picture_free(c, out);
  else if (r->orient)
    lt_picture_orient(out, lt_exif_orientation(data, n));
  return ok;
}

bool lt_jpeg_encode(lt_ctx *c, const char *op, lt_picture *p, int quality, lt_encoded *out) {
  const lt_turbojpeg *lib = lt_turbojpeg_open(c, op);
  if (lib == NULL) return false;
  bool grey = p->channels == 1;
  void *handle = lib->open_encoder();
  unsigned long size = 0;
  *out = (lt_encoded){.drop = lib->free};
  if (handle == NULL) return lt_fail(c, LT_EMEMORY, "%s: out of memory", op);
  int status = lib->encode(handle, p->first, p->width, (int)p->stride_y, p->height,
                           grey ? LT_TJ_GRAY : LT_TJ_RGB, &out->bytes, &size,
                           grey ? LT_TJ_SAMP_GRAY : LT_TJ_420, quality, 0);
  out->n = size;
  if (status != 0) lt_fail(c, LT_EIO, "%s: JPEG: %s", op, lib->error(handle));
  lib->close(handle);
  return status == 0;
}
