/* runtime/cpu/float_types.h: includes TYPE_FILE for float and for double, with T, NAME(f), EXP and
   LOG defined. No guard. */
/* C has no templates: a file of loops is included once for each type, and NAME gives its functions
   a suffix. */
#define T       float
#define NAME(f) f##_f32
#define EXP     lt_exp_f32
#define LOG     lt_log_f32
#include TYPE_FILE
#undef T
#undef NAME
#undef EXP
#undef LOG

#define T       double
#define NAME(f) f##_f64
#define EXP     lt_exp_f64
#define LOG     lt_log_f64
#include TYPE_FILE
#undef T
#undef NAME
#undef EXP
#undef LOG
#undef TYPE_FILE
