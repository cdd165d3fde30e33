-- stdlib/core/foreign_names.lua: names of PyTorch, Lightning, NumPy and Keras, with what to write
-- here instead. Error messages for unknown names and options look them up; the file is loaded then.
-- Names of namespaces and objects are in core/torch_names.lua and core/lightning_names.lua.
local foreign_names = {}

-- Options that are here, and what others call them.
local OPTIONS <const> = {
  accumulate_grad_batches = "accumulate", bias = "use_bias", causal = "is_causal",
  ckpt_path = "ckpt checkpoint resume_from resume_from_checkpoint", correction = "unbiased ddof",
  descending = "reverse", devices = "gpus num_gpus tpu_cores", dim = "axis", dims = "axis axes",
  dirpath = "filepath", enable_progress_bar = "progress_bar verbose", eps = "epsilon",
  every_n_epochs = "period", gradient_clip_val = "clip_grad clip_norm grad_clip",
  hidden_size = "units", in_features = "input_dim", input_size = "input_dim",
  keepdim = "keepdims", kernel_size = "pool_size", lr = "learning_rate", max_epochs = "epochs",
  max_steps = "steps", mask = "attention_mask attn_mask src_mask key_padding_mask",
  max = "maximum", min = "minimum", num_embeddings = "vocab_size input_dim",
  num_workers = "workers", out_channels = "filters", out_features = "units output_dim",
  p = "rate", padding = "pad", reduction = "size_average", size = "shape", stride = "strides",
  train_dataloader = "train_loader", val_dataloader = "val_loader", weight_decay = "l2 decay",
}

local LIBRARY <const> = "local lt = requi" .. "re 'ltrain'"

--- Globals that are none in Lua: what to write.
foreign_names.globals = {
  len = "#x", range = "for i = 1, n do", enumerate = "for i, value in ipairs(list) do",
  zip = "for i = 1, #a do", isinstance = "type(x), or module:is_a(Class)", int = "x // 1 | 0",
  float = "x + 0.0", str = "tostring(x)", list = "a table: {1, 2, 3}", dict = "a table: {a = 1}",
  abs = "math.abs(x), or x:abs()", max = "math.max(a, b), or x:max()",
  min = "math.min(a, b), or x:min()", sum = "x:sum()", open = "io.open(path)",
  torch = LIBRARY, np = LIBRARY, lt = LIBRARY, pl = LIBRARY, nn = "local nn = lt.nn",
  F = "local F = lt.nn.functional", unpack = "table.unpack(list)", exit = "os.exit()",
  None = "nil", null = "nil", True = "true", False = "false", this = "self",
  self = "function Class:method(...), with a colon, to have self",
  printf = "print(text:format(...))", f = "('loss %g'):format(loss)",
  iter = "for batch in loader:batches() do", super = "Parent.init(self, ...), with the class",
  pow = "x ^ y", round = "math.floor(x + 0.5)",
}

--- Options that are none here: why.
foreign_names.notes = {
  device = "a module goes there by :to(device), a Trainer by its accelerator",
  requires_grad = "lt.parameter(x) has gradients, and x.requires_grad can be set",
  non_blocking = "copies to a device are ordered with its work anyway",
  monitor = "it belongs beside lr_scheduler: {optimizer = o, lr_scheduler = s, monitor = "
    .. "'val_loss'}",
  pretrained = "weights come from a file: net:load_state_dict(lt.load(path))",
  weights_only = "files of tensors and plain values are all that is read: leave it out",
  batch_first = "sequences are [N, T, E] here: leave it out",
  seed = "lt.seed(n)",
}

-- Fields that are there at times.
local LATER <const> = {
  grad = "gradients are there after backward",
  hparams = "self:save_hyperparameters(o) makes it, in init",
  new = "an object is made by calling its class: Net(...)",
}

-- A namespace's rows: { [name] = text }, and in order { pattern, text } of those with a `*`.
local tables = setmetatable({}, { __index = function(self, namespace)
  local lightning, torch = require "ltrain.core.lightning_names", require "ltrain.core.torch_names"
  local is_of_both <const> = namespace == "lt" or namespace == "tensor"
    or namespace == "nn.functional"
  local text <const> = (lightning[namespace] or "") .. (torch[namespace] or "")
    .. (is_of_both and torch.both or "")
  local rows = { patterns = {} }
  for line in text:gsub("\n  ", " "):gmatch "[^\n]+" do
    local names, mark, said = line:match "^([%w_*?. ]-) ?([=:]) (.+)$"
    if mark == "=" then said = "write " .. said end
    for name in names:gmatch "%S+" do
      if name:find("*", 1, true) then
        rows.patterns[#rows.patterns + 1] = { "^" .. name:gsub("%*", "([%%w_]*)") .. "$", said }
      else
        rows[name] = said:gsub("%%0", name)
      end
    end
  end
  self[namespace] = rows
  return rows
end })

--- The rows of a namespace, or of a class of which objects lack a member ("Trainer"): what is said
--- of a name.
function foreign_names.rows(namespace) return tables[namespace] end

-- What a namespace says of a name; patterns with %1 count where that is among `words`.
local function said_of(namespace, name, words)
  local rows <const> = tables[namespace]
  if rows[name] then return rows[name] end
  for _, row in ipairs(rows.patterns) do
    local found = name:match(row[1])
    local is_known = found and not row[2]:find("%1", 1, true)
    for k = 1, found and #words or 0 do is_known = is_known or words[k] == found end
    if is_known then return (row[2]:gsub("%%1", found)) end
  end
end

--- "write ..." for a name that a namespace lacks ("nn"; "lt", "tensor"), or why there is nothing;
--- nil: other libraries have no such name. `words`: what the namespace has.
function foreign_names.of(namespace, name, words)
  words = words or {}
  local said = said_of(namespace, name, words)
    or name:sub(-1) == "_" and said_of(namespace, name:sub(1, -2), words) or nil
  local is_method = not said and namespace == "lt" and require "ltrain.c".runtime.methods[name]
  return is_method and ("write x:%s(...)"):format(name) or said
end

--- The same for a member, of whichever object has none of that name.
function foreign_names.member(name)
  return LATER[name] or tables.Module[name] or tables.Trainer[name] or tables.Logger[name]
end

--- The one of `words` that an option of the name is here; nil.
function foreign_names.option(name, words)
  for _, word in ipairs(words) do
    if OPTIONS[word] and (" " .. OPTIONS[word] .. " "):find(" " .. name .. " ", 1, true) then
      return word
    end
  end
end

return foreign_names
