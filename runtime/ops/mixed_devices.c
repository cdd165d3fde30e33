/* runtime/ops/mixed_devices.c: moves tensors without dims from the CPU to the device of a call's
   other inputs. */
#include "ops/mixed_devices.h"

static bool is_number(const lt_op_info *op, const lt_tensor *t) {
  bool elementwise = op->kind == LT_KIND_binary || op->kind == LT_KIND_compare ||
                     op->kind == LT_KIND_where;
  return elementwise && t->ndim == 0 && lt_device_equal(t->storage->device, LT_CPU_DEVICE);
}

static bool fail_mixed(lt_ctx *c, const lt_op_info *op, const lt_tensor *x, const lt_tensor *y) {
  lt_device a = x->storage->device, b = y->storage->device, cpu = LT_CPU_DEVICE;
  char one[32], other[32];
  lt_device_text(c, a, one, sizeof one);
  lt_device_text(c, b, other, sizeof other);
  if (!lt_device_equal(a, cpu) && !lt_device_equal(b, cpu))
    return lt_fail(c, LT_EDEVICE,
                   "%s: tensors are on different devices: %s and %s; move one of them with "
                   ":to '%s'", op->name, one, other, one);
  return lt_fail(c, LT_EDEVICE,
                 "%s: tensors are on different devices: %s and %s; make the one on the cpu with "
                 "{device = self.device}, or move it with :to '%s'",
                 op->name, one, other, lt_device_equal(a, cpu) ? other : one);
}

bool lt_mixed_devices_device(lt_ctx *c, const lt_op_info *op, int n_in, lt_tensor *const *in,
                             lt_device *out) {
  const lt_tensor *first = NULL;
  for (int k = 0; k < n_in; k++) {
    if (in[k] == NULL || is_number(op, in[k])) continue;
    if (first == NULL) first = in[k];
    if (!lt_device_equal(first->storage->device, in[k]->storage->device))
      return fail_mixed(c, op, first, in[k]);
  }
  *out = first->storage->device;
  return true;
}

bool lt_mixed_devices_join(lt_ctx *c, int n_in, lt_tensor **in, lt_device device) {
  for (int k = 0; k < n_in; k++)
    if (in[k] != NULL && (in[k] = lt_to_device(c, in[k], device)) == NULL) return false;
  return true;
}
