-- tools/docs/ops_page.lua: the operations, from lt.ops(), and those of stdlib/ops.
local lt = require "ltrain"
local markdown = require "markdown"
local operation_text = require "ltrain.apps.prompt.operation_text"
local written_ops = require "written_ops"

-- Kinds in the order of the page, with their titles; what is not named comes last.
local GROUPS <const> = {
  { "Elementwise, of one tensor", "unary", "unary_numbers", "clamp", "test",
    "bitwise_not", "nan_to_num", "prelu", "glu", "dropout", "bernoulli" },
  { "Elementwise, of two", "binary", "compare", "where", "masked_fill",
    "isclose", "lerp", "addcmul" },
  { "Reductions", "reduce", "variance", "norm", "arg_reduce", "extremum", "moments",
    "aminmax", "mode", "quantile", "scan", "cummax", "topk", "sort", "argsort" },
  { "Products", "matmul", "linear", "product", "addmm", "cdist", "cosine_similarity", "conv",
    "conv_transpose" },
  { "Layers", "softmax", "normalize", "layer_norm", "rms_norm", "group_norm", "batch_norm",
    "attention", "embedding" },
  { "Pooling", "max_pool", "avg_pool", "lp_pool", "adaptive_avg_pool", "adaptive_max_pool",
    "max_unpool" },
  { "Losses", "cross_entropy", "nll_loss", "loss", "huber_loss", "smooth_l1_loss",
    "weighted_loss", "logits_loss", "sigmoid_focal_loss", "kl_div", "poisson_nll_loss",
    "gaussian_nll_loss", "dice_loss", "hinge_embedding_loss", "cosine_embedding_loss",
    "margin_ranking_loss", "triplet_margin_loss", "multilabel_soft_margin_loss",
    "multilabel_margin_loss", "multi_margin_loss", "ctc_loss" },
  { "Shapes", "view", "permute", "expand", "transpose", "t", "squeeze", "unsqueeze", "flatten",
    "movedim", "flip", "cat", "stack", "clone", "tile", "repeat_interleave", "roll", "rot90",
    "pad", "diagonal", "diag", "unfold", "im2col", "col2im", "linspace", "eye" },
  { "Choosing elements", "select", "narrow", "slice", "index_select", "index_add", "gather",
    "scatter_add", "scatter", "scatter_reduce", "take_along_dim", "masked_select",
    "masked_scatter", "nonzero", "triangle", "one_hot" },
  { "Counting values", "unique", "unique_consecutive", "bincount", "histc", "searchsorted" },
  { "Random numbers", "random", "random_int", "permutation", "multinomial" },
}

local CASTS <const> = { keep = "as it is", lower = "lower", f32 = "f32" }

local function gradient_text(op)
  if op.differentiable then return "yes" end
  return op.composite and "by parts" or "no"
end

local function arguments_table(op)
  local rows, places = {}, {}
  for place, name in ipairs(op.places) do places[name] = place end
  for i, argument in ipairs(operation_text.arguments(op)) do
    rows[i] = { tostring(places[argument.name]), markdown.code(argument.name),
      operation_text.type(argument), operation_text.default(argument) }
  end
  return #rows > 0 and markdown.table({ "place", "argument", "type", "default" }, rows) or nil
end

local function facts_table(ops)
  local rows = {}
  for i, op in ipairs(ops) do
    rows[i] = {
      markdown.code(operation_text.call(op)), op.doc,
      op.in_place and ("`x:%s_`"):format(op.name) or "",
      operation_text.dtype(op), CASTS[op.cast], gradient_text(op),
    }
  end
  return markdown.table({ "function", "gives", "in place", "dtype", "autocast", "gradient" }, rows)
end

-- Kinds without arguments share a table; the others have one each, and that of their arguments.
local function group_text(title, kinds)
  local plain, parts = {}, {}
  for _, ops in ipairs(kinds) do
    local first = ops[1]
    if #operation_text.arguments(first) == 0 and not operation_text.notes(first) then
      table.move(ops, 1, #ops, #plain + 1, plain)
    else
      local names = {}
      for i, op in ipairs(ops) do names[i] = op.name end
      parts[#parts + 1] = "### " .. table.concat(names, ", ")
      parts[#parts + 1] = facts_table(ops)
      parts[#parts + 1] = operation_text.notes(first)
      parts[#parts + 1] = arguments_table(first)
    end
  end
  if #plain > 0 then table.insert(parts, 1, facts_table(plain)) end
  return "## " .. title .. "\n\n" .. markdown.join(parts)
end

local INTRO <const> = [[
Each is a function of `lt`, and a method of its first tensor unless it takes a list: `lt.relu(x)`
and `x:relu()` are the same. Arguments follow the tensors, in order or by name in one table:
`x:sum(2, true)`, `x:sum(2, {keepdim = true})`, `x:sum{dims = {1, 2}}`; `dim` and `dims` are
synonyms. Operations that take an index take the dim before it, as in PyTorch: `x:gather(2, index)`.
The table may also contain optional tensors: `lt.cross_entropy(logits, target, {weight = w})`.
Operands of elementwise operations broadcast, and one may be a number.

- *Dims* and *positions* count from 1, or from -1 at the end. Everything else counts as in PyTorch:
  ids are 0-based, and 0 is the main diagonal.
- *dtype* is that of the result: "promoted" is PyTorch's rule for two dtypes; if the cell is empty,
  see the description, else it is the dtype of x.
- *autocast* is the dtype within `lt.autocast("bf16")`: "lower" computes in bf16, "f32" in f32, "as
  it is" in the dtype of the inputs.
- *gradient* "by parts": the operation is composed of others, which have gradients.
- The option *dtype* of reductions, scans and softmax converts x first; amax, amin, any, all,
  logsumexp, logcumsumexp and count_nonzero do not have it.
- In-place forms (`x:relu_()`) change x and return it.

Operators: `+ - * / // % ^` and unary `-` are `add sub mul div floor_divide remainder pow neg`;
`& | ~ << >>` are `bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift` and,
of one operand, `bitwise_not`; on bools they are logical. There is no `<`: write `a:lt(b)`.]]

return function(root)
  local by_kind, rest = {}, { "Others" }
  for _, op in ipairs(lt.ops()) do
    if not op.hidden then
      by_kind[op.kind] = by_kind[op.kind] or {}
      table.insert(by_kind[op.kind], op)
    end
  end
  local parts, known = { "# Operations", INTRO }, {}
  for _, group in ipairs(GROUPS) do
    for i = 2, #group do
      local kind = group[i]
      known[kind] = by_kind[kind] and true or error(("ops_page: no op is of kind %s"):format(kind))
    end
  end
  for _, op in ipairs(lt.ops()) do
    if not op.hidden and not known[op.kind] then
      known[op.kind] = true
      rest[#rest + 1] = op.kind
    end
  end
  table.insert(GROUPS, rest)
  for _, group in ipairs(GROUPS) do
    local kinds = {}
    for i = 2, #group do kinds[#kinds + 1] = by_kind[group[i]] end
    if #kinds > 0 then parts[#parts + 1] = group_text(group[1], kinds) end
  end
  parts[#parts + 1] = written_ops(root)
  return { {
    file = "ops.md", title = "Operations", about = "all operations: arguments, dtypes, gradients",
    source = "lt.ops(), the rows of runtime/ops/*.def, and the files of stdlib/ops",
    text = markdown.join(parts),
  } }
end
