/* runtime/image/boxes.c: non-maximum suppression.

   Greedy, as torchvision's: boxes come with the best first, and each that is kept removes those
   after it which overlap it too much (intersection over union).

   O(N^2) comparisons at worst, without a matrix of all pairs: N is some thousands after a
   detector's threshold, and each box that is removed saves a row. */
#include "image/boxes.h"

static float least(float a, float b) { return a < b ? a : b; }
static float most_of(float a, float b) { return a > b ? a : b; }

static float area(const float *b) { return (b[2] - b[0]) * (b[3] - b[1]); }

/* Of two boxes without area 0 / 0 is NaN, and nothing is removed, as in torchvision. */
static bool overlaps(const float *a, const float *b, float most) {
  float w = least(a[2], b[2]) - most_of(a[0], b[0]), h = least(a[3], b[3]) - most_of(a[1], b[1]);
  float shared = most_of(w, 0) * most_of(h, 0);
  return shared / (area(a) + area(b) - shared) > most;
}

int64_t lt_boxes_suppress(const float *boxes, int64_t n, float most, bool *keep) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) keep[i] = true;
  for (int64_t i = 0; i < n; i++) {
    if (!keep[i]) continue;
    kept++;
    for (int64_t j = i + 1; j < n; j++)
      if (keep[j] && overlaps(boxes + 4 * i, boxes + 4 * j, most)) keep[j] = false;
  }
  return kept;
}
