/* runtime/text/libraries.c: PCRE2 and utf8proc (libraries.h). */
#include "text/libraries.h"

#include "base/library.h"

static lt_pcre2 pcre2;

#define ROW(name) {offsetof(lt_pcre2, name), "pcre2_" #name "_8"}
static const lt_function pcre2_functions[] = {
    ROW(compile), ROW(jit_compile), ROW(match), ROW(match_data_create_from_pattern),
    ROW(get_ovector_pointer), ROW(match_context_create), ROW(set_match_limit),
    ROW(get_error_message), ROW(code_free), ROW(match_data_free), ROW(match_context_free)};
#undef ROW

static lt_library pcre2_library = {
    .names = {"libpcre2-8.so.0", "libpcre2-8.so"}, .table = &pcre2,
    .functions = pcre2_functions, .n = sizeof pcre2_functions / sizeof *pcre2_functions,
    .missing = "needs PCRE2: apt install libpcre2-8-0"};

static lt_utf8proc utf8proc;

static const lt_function utf8proc_functions[] = {
    {offsetof(lt_utf8proc, category), "utf8proc_category"},
    {offsetof(lt_utf8proc, to_lower), "utf8proc_tolower"},
    {offsetof(lt_utf8proc, map), "utf8proc_map"}};

static lt_library utf8proc_library = {
    .names = {"libutf8proc.so.2", "libutf8proc.so.3", "libutf8proc.so"}, .table = &utf8proc,
    .functions = utf8proc_functions, .n = sizeof utf8proc_functions / sizeof *utf8proc_functions,
    .missing = "needs utf8proc: apt install libutf8proc2"};

const lt_pcre2 *lt_pcre2_open(lt_ctx *c) {
  return lt_library_open(c, &pcre2_library, "text") ? &pcre2 : NULL;
}

const lt_utf8proc *lt_utf8proc_open(lt_ctx *c) {
  return lt_library_open(c, &utf8proc_library, "text") ? &utf8proc : NULL;
}
