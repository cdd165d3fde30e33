/* runtime/io/libyaml.c: finds libyaml. */
#include "io/libyaml.h"

#include "base/library.h"

static lt_libyaml table;

#define ROW(field, name) \
  { offsetof(lt_libyaml, field), "yaml_" name }
static const lt_function functions[] = {
    ROW(initialize, "parser_initialize"),
    ROW(set_input, "parser_set_input_string"),
    ROW(parse, "parser_parse"),
    ROW(event_delete, "event_delete"),
    ROW(parser_delete, "parser_delete"),
};
#undef ROW

static lt_library library = {.names = {"libyaml-0.so.2"},
                             .table = &table,
                             .functions = functions,
                             .n = sizeof functions / sizeof *functions,
                             .missing = "needs libyaml: apt install libyaml-0-2"};

const lt_libyaml *lt_libyaml_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &library, op) ? &table : NULL;
}
