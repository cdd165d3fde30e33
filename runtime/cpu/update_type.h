/* runtime/cpu/update_type.h: the loops of optimizer steps in one compute type; included by update.c
   with T, NAME(f), OWN, SQRT and NORMAL defined. No guard.

   `sign` (maximize) stands where its product is exact, so that it changes no rounding.

   Where gradients stay 0 (pixels that are always black, units that died), moments shrink until they
   are subnormal then, and stay so, rounding to themselves; CPUs are ten times slower
   with such. They are 0 here. */

/* Parameters p, gradients g, momentum m (as PyTorch's SGD). Nesterov looks ahead by adding momentum
   times the new velocity to the gradient. */
static void NAME(sgd_loop)(int64_t n, const lt_args_sgd_step *a, T *p, const T *g, T *m) {
  const T lr = (T)a->lr, momentum = (T)a->momentum, fresh = (T)(1 - a->dampening);
  const T sign = a->maximize ? -1 : 1, decay = sign * (T)a->weight_decay;
  if (m == NULL) {
    LT_EACH p[i] -= lr * (sign * (g[i] + decay * p[i]));
  } else if (a->first) { /* whatever the buffer holds is not read: it may be NaN */
    const T ahead = a->nesterov ? 1 + momentum : 1;
    LT_EACH {
      T d = sign * (g[i] + decay * p[i]);
      m[i] = d;
      p[i] -= lr * (ahead * d);
    }
  } else {
    const T direct = a->nesterov ? 1 : 0, by = a->nesterov ? momentum : 1;
    LT_EACH {
      T d = sign * (g[i] + decay * p[i]);
      T v = NORMAL(momentum * m[i] + fresh * d);
      m[i] = v;
      p[i] -= lr * (direct * d + by * v);
    }
  }
}

static void NAME(sgd)(const job *j, int64_t chunk) {
  part p = part_of(j, chunk, OWN);
  T scratch[3][LT_TILE];
  for (int64_t at = p.from; at < p.to; at += p.run) {
    int64_t n = p.to - at < p.run ? p.to - at : p.run;
    T *x = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 0, at, n, scratch[0]);
    const T *g = LT_CPU(NAME(lt_load))(&p.it, 1, at, n, scratch[1]);
    T *m =
        j->groups < 3 ? NULL : (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 2, at, n, scratch[2]);
    NAME(sgd_loop)(n, j->args, x, g, m);
    LT_CPU(NAME(lt_store))(&p.it, 0, at, n, x);
    if (m != NULL) LT_CPU(NAME(lt_store))(&p.it, 2, at, n, m);
  }
}

/* Parameters x, gradients g, moments m and v (as PyTorch's Adam and AdamW). x -= lr m' / (sqrt(v')
   + eps) with m', v' corrected for their start at 0 (Kingma and Ba, section 3). The corrections are
   the same for all elements and sit in `size` and `root`, computed once in double: 1 - beta2^t of
   f32 has few right digits in the first steps. */
static void NAME(adam)(const job *j, int64_t chunk) {
  const lt_args_adam_step *a = j->args;
  const T size = (T)j->k[0], root = (T)j->k[1], new1 = (T)j->k[2], new2 = (T)j->k[3];
  const T shrink = (T)j->k[4], beta2 = (T)a->beta2, eps = (T)a->eps;
  const T sign = (T)j->k[6], decay = sign * (T)j->k[5];
  part p = part_of(j, chunk, OWN);
  T scratch[4][LT_TILE];
  for (int64_t at = p.from; at < p.to; at += p.run) {
    int64_t n = p.to - at < p.run ? p.to - at : p.run;
    T *x = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 0, at, n, scratch[0]);
    const T *g = LT_CPU(NAME(lt_load))(&p.it, 1, at, n, scratch[1]);
    T *m = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 2, at, n, scratch[2]);
    T *v = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 3, at, n, scratch[3]);
    LT_EACH {
      T d = sign * (g[i] + decay * x[i]);
      T first = NORMAL(m[i] + new1 * (d - m[i]));
      T second = NORMAL(beta2 * v[i] + new2 * d * d);
      m[i] = first;
      v[i] = second;
      x[i] = shrink * x[i] - size * (first / (SQRT(second) * root + eps));
    }
    LT_CPU(NAME(lt_store))(&p.it, 0, at, n, x);
    LT_CPU(NAME(lt_store))(&p.it, 2, at, n, m);
    LT_CPU(NAME(lt_store))(&p.it, 3, at, n, v);
  }
}

/* Clipping by the norm: all gradients times one factor. */
static void NAME(scale)(const job *j, int64_t chunk) {
  const T factor = (T)j->k[0];
  part p = part_of(j, chunk, OWN);
  T scratch[LT_TILE];
  for (int64_t at = p.from; at < p.to; at += p.run) {
    int64_t n = p.to - at < p.run ? p.to - at : p.run;
    T *x = (T *)(uintptr_t)LT_CPU(NAME(lt_load))(&p.it, 0, at, n, scratch);
    LT_EACH x[i] *= factor;
    LT_CPU(NAME(lt_store))(&p.it, 0, at, n, x);
  }
}

#undef T
#undef NAME
#undef OWN
#undef SQRT
#undef NORMAL
