/* runtime/io/libyaml.h: libyaml, opened when a file of YAML is first read.

   What we call of it is declared here, so that a build needs neither its header nor it, and a start
   of the program pays nothing. spec/c/json_test.c compares the layouts with the header where that
   is installed. */
#ifndef LT_IO_LIBYAML_H
#define LT_IO_LIBYAML_H

#include "base/ctx.h"

/* enum yaml_event_type_e */
enum {
  LT_YAML_STREAM_END = 2, LT_YAML_DOCUMENT_START = 3, LT_YAML_ALIAS = 5, LT_YAML_SCALAR = 6,
  LT_YAML_SEQUENCE = 7, LT_YAML_SEQUENCE_END = 8, LT_YAML_MAPPING = 9, LT_YAML_MAPPING_END = 10
};
enum { LT_YAML_PLAIN = 1 }; /* enum yaml_scalar_style_e */

typedef struct lt_yaml_mark {
  size_t index, line, column; /* from 0 */
} lt_yaml_mark;

typedef struct lt_yaml_event {
  int type;
  struct { /* of a scalar; an alias has the anchor, a list or mapping the tag too */
    const char *anchor, *tag, *value;
    size_t length;
    int plain_implicit, quoted_implicit, style;
  } data;
  lt_yaml_mark start, end;
} lt_yaml_event;

/* The head of yaml_parser_t, and memory for the rest of it. */
typedef struct lt_yaml_parser {
  int error;
  const char *problem;
  size_t problem_offset;
  int problem_value;
  lt_yaml_mark problem_mark;
  const char *context;
  lt_yaml_mark context_mark;
  char rest[1024];
} lt_yaml_parser;

typedef struct lt_libyaml {
  int (*initialize)(lt_yaml_parser *);
  void (*set_input)(lt_yaml_parser *, const unsigned char *text, size_t n);
  int (*parse)(lt_yaml_parser *, lt_yaml_event *);
  void (*event_delete)(lt_yaml_event *);
  void (*parser_delete)(lt_yaml_parser *);
} lt_libyaml;

/* NULL and LT_EDEVICE where it is not installed. */
const lt_libyaml *lt_libyaml_open(lt_ctx *c, const char *op);

#endif
