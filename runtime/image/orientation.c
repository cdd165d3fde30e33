/* runtime/image/orientation.c: rotates and flips a picture as the orientation tag of EXIF says.

   Cameras store pixels as the sensor reads them and note in tag 0x0112 how the picture is to be
   turned: 1 to 8, of which 2 4 5 7 are mirrored (CIPA DC-008). Decoders leave it to us. Anything
   odd in the tag's place counts as 1, upright: a damaged note must not lose an image. */
#include "image/format.h"

#include <string.h>

/* 16 bits of a TIFF folder, whose order of bytes the header says ("II" or "MM"). */
static unsigned word(const uint8_t *p, bool little) {
  return little ? p[0] | (unsigned)p[1] << 8 : p[1] | (unsigned)p[0] << 8;
}

/* The tag 0x0112 of the first folder of a TIFF header. */
static int tiff_orientation(const uint8_t *d, size_t n) {
  if (n < 8 || (d[0] != 'I' && d[0] != 'M')) return 1;
  bool little = d[0] == 'I';
  size_t low = word(d + (little ? 4 : 6), little), high = word(d + (little ? 6 : 4), little);
  size_t at = low | high << 16;
  if (at > n || n - at < 2) return 1;
  unsigned entries = word(d + at, little);
  for (at += 2; entries > 0 && at <= n && n - at >= 12; entries--, at += 12)
    if (word(d + at, little) == 0x0112) {
      unsigned value = word(d + at + 8, little);
      return value >= 1 && value <= 8 ? (int)value : 1;
    }
  return 1;
}

/* Walks the segments of a JPEG file up to the scan (0xda): each is 0xff, a kind, and a length that
   counts itself; EXIF is an APP1 (0xe1) that begins "Exif", followed by a TIFF header. */
int lt_exif_orientation(const uint8_t *d, size_t n) {
  for (size_t at = 2; at <= n && n - at >= 4 && d[at] == 0xff && d[at + 1] != 0xda;) {
    size_t length = word(d + at + 2, false);
    if (length < 2 || n - at - 2 < length) return 1;
    if (d[at + 1] == 0xe1 && length >= 8 && memcmp(d + at + 4, "Exif\0\0", 6) == 0)
      return tiff_orientation(d + at + 10, length - 8);
    at += 2 + length;
  }
  return 1;
}

/* Orientations 5 to 8 exchange rows and columns; all eight are then a transpose and flips, which
   change strides only: no pixel is moved. */
void lt_picture_orient(lt_picture *p, int orientation) {
  if (orientation >= 5) lt_picture_transpose(p); /* rows of the file are columns */
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
    lt_picture_mirror(p, false);
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
    lt_picture_mirror(p, true);
}
