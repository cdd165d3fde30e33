/* runtime/image/boxes.h: non-maximum suppression of boxes (x1, y1, x2, y2). */
#ifndef LT_IMAGE_BOXES_H
#define LT_IMAGE_BOXES_H

#include <stdbool.h>
#include <stdint.h>

/* Of n boxes in falling order of importance those that overlap no kept one by more than `most`
   (intersection over union): keep[i]. Returns how many. */
int64_t lt_boxes_suppress(const float *boxes, int64_t n, float most, bool *keep);

#endif
