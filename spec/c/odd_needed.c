/* spec/c/odd_needed.c: what a backend needs and does not find. */
void lt_odd_needed(void);
__attribute__((visibility("default"))) void lt_odd_needed(void) {}
