-- stdlib/core/foreign_names.lua: names of PyTorch, Lightning, NumPy and Keras, with what to write
-- here instead. Error messages for unknown names and options look them up; the file is loaded then.
-- Names of namespaces and objects are in core/torch_names.lua and core/lightning_names.lua.
local foreign_names = {}

--- Options: the names that one of these may have here.
foreign_names.options = {
  axis = { "dim", "dims" }, axes = { "dims" },
  dim = { "dims", "embedding_dim", "normalized_shape", "embed_dim" }, dims = { "dim" },
  keepdims = { "keepdim" }, learning_rate = { "lr" }, alpha = { "lr", "negative_slope" },
  l2 = { "weight_decay" }, decay = { "weight_decay" }, beta1 = { "betas" }, beta_1 = { "betas" },
  beta_2 = { "betas" }, beta2 = { "betas" }, epochs = { "max_epochs" }, steps = { "max_steps" },
  gpus = { "devices" }, num_gpus = { "devices" }, tpu_cores = { "devices" },
  nodes = { "num_nodes" }, checkpoint = { "ckpt_path" }, resume_from = { "ckpt_path" },
  resume_from_checkpoint = { "ckpt_path" }, workers = { "num_workers" },
  clip_grad = { "gradient_clip_val" }, clip_norm = { "gradient_clip_val" },
  grad_clip = { "gradient_clip_val" }, accumulate = { "accumulate_grad_batches" },
  checkpoint_callback = { "enable_checkpointing" }, progress_bar = { "enable_progress_bar" },
  show_progress = { "enable_progress_bar" }, verbose = { "enable_progress_bar" },
  fp16 = { "precision" }, amp = { "precision" }, use_bias = { "bias" }, kernel = { "kernel_size" },
  strides = { "stride" }, pad = { "padding" }, rate = { "p" }, ignore = { "ignore_index" },
  val_step = { "validation_step" }, train_step = { "training_step" },
  n_features = { "num_features", "in_features" },
  input_dim = { "in_features", "num_embeddings", "input_size" },
  output_dim = { "out_features", "embedding_dim" }, units = { "out_features", "hidden_size" },
  filters = { "out_channels" }, dilation_rate = { "dilation" }, epsilon = { "eps" },
  vocab_size = { "num_embeddings" }, pool_size = { "kernel_size" }, start_axis = { "start_dim" },
  end_axis = { "end_dim" }, ddof = { "correction" }, unbiased = { "correction" }, ord = { "p" },
  reverse = { "descending" }, num = { "steps" }, newshape = { "size" }, shape = { "size" },
  minimum = { "min" }, maximum = { "max" }, reduce = { "reduction" },
  size_average = { "reduction" }, every_n_val_epochs = { "every_n_epochs" },
  save_best_only = { "save_top_k" }, prefix = { "filename" }, baseline = { "stopping_threshold" },
  is_causal = { "causal" }, tgt_is_causal = { "causal" },
  attn_mask = { "mask" }, src_mask = { "mask" }, tgt_mask = { "mask" },
  attention_mask = { "key_mask", "mask" }, key_padding_mask = { "mask" },
  src_key_padding_mask = { "mask" }, tgt_key_padding_mask = { "mask" }, filepath = { "dirpath" },
  period = { "every_n_epochs" }, register_backward_hook = { "register_full_backward_hook" },
  _register_state_dict_hook = { "register_state_dict_post_hook" },
  _register_load_state_dict_pre_hook = { "register_load_state_dict_pre_hook" },
  ["end"] = { "stop" }, train_loader = { "train_dataloader" }, val_loader = { "val_dataloader" },
}

local LIBRARY <const> = "local lt = requi" .. "re 'ltrain'"

--- Globals that are none in Lua: what to write.
foreign_names.globals = {
  len = "#x", range = "for i = 1, n do", enumerate = "for i, value in ipairs(list) do",
  zip = "for i = 1, #a do", isinstance = "type(x), or module:is_a(Class)", int = "x // 1 | 0",
  float = "x + 0.0", str = "tostring(x)", list = "a table: {1, 2, 3}", dict = "a table: {a = 1}",
  abs = "math.abs(x), or x:abs()", max = "math.max(a, b), or x:max()",
  min = "math.min(a, b), or x:min()", sum = "x:sum()", open = "io.open(path)",
  format = "string.format", input = "io.read()", torch = LIBRARY, np = LIBRARY,
  lt = LIBRARY, pl = LIBRARY, nn = "local nn = lt.nn",
  F = "local F = lt.nn.functional",
  unpack = "table.unpack(list)", hasattr = "object.name ~= nil", exit = "os.exit()",
  None = "nil", null = "nil", True = "true", False = "false", this = "self",
  printf = "print(text:format(...))", f = "('loss %g'):format(loss)",
  iter = "for batch in loader:batches() do", super = "Parent.init(self, ...), with the class",
  sorted = "table.sort(list)", map = "a loop", pow = "x ^ y", round = "math.floor(x + 0.5)",
  Trainer = "lt.Trainer", DataLoader = "lt.data.DataLoader", tensor = "lt.tensor",
}

--- Options that are none here: why.
foreign_names.notes = {
  device = "a module goes there by :to(device), a Trainer by its accelerator",
  requires_grad = "lt.parameter(x) has gradients, and x.requires_grad can be set",
  monitor = "it belongs beside lr_scheduler: {optimizer = o, lr_scheduler = s, monitor = "
    .. "'val_loss'}",
  with_kwargs = "a table of options is one of the arguments",
  mark_dirty = "forward returns a new tensor: what it writes in place has no derivative",
  set_materialize_grads = "gradients that did not arrive are zeros",
  setup_context = "forward gets ctx as its first argument",
  weights = "they come from a file: net:load_state_dict(lt.load(path))",
  pretrained = "weights come from a file: net:load_state_dict(lt.load(path))",
  weights_only = "files of tensors and plain values are all that is read: leave it out",
  fused = "an update is one kernel already: leave it out",
  foreach = "an update is one kernel already: leave it out",
  batch_first = "sequences are [N, T, E] here: leave it out",
  need_weights = "nn.MultiheadAttention returns them; this layer keeps its output alone",
  from_logits = "it takes logits",
  return_sequences = "the output has all steps", activation = "write nn.ReLU() after it",
  average_attn_weights = "weights are of each head: weights:mean(2)",
  memory_mask = "a layer of a decoder takes it",
  restore_best_weights = "after the fit trainer:test(net, loader, {ckpt_path = 'best'})",
  save_function = "the Trainer saves: trainer:save_checkpoint(path)",
  seed = "lt.seed(n)",
  pin_memory_device = "memory is pinned for the device of the Trainer",
}

-- A namespace's rows: { [name] = text }, and in order { pattern, text } of those with a `*`.
local function read(text)
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
  return rows
end

local tables = setmetatable({}, { __index = function(self, namespace)
  local lightning, torch = require "ltrain.core.lightning_names", require "ltrain.core.torch_names"
  local has_both <const> = namespace == "lt" or namespace == "tensor"
    or namespace == "nn.functional"
  local text <const> = (lightning[namespace] or "") .. (torch[namespace] or "")
  self[namespace] = read(has_both and text .. torch.both or text)
  return self[namespace]
end })

--- The rows of a namespace, of a class of which objects lack a member ("Trainer"), or of a function
--- that lacks a parameter ("to()"): what is said of a name.
function foreign_names.rows(namespace) return tables[namespace] end

-- What the patterns of a namespace say; those with %1 only where that is a name that is there.
local function by_pattern(namespace, name, words)
  for _, row in ipairs(tables[namespace].patterns) do
    local found = name:match(row[1])
    local is_known = found and not row[2]:find("%1", 1, true)
    for k = 1, found and #words or 0 do is_known = is_known or words[k] == found end
    if is_known then return (row[2]:gsub("%%1", found)) end
  end
end

--- "write ..." for a name that a namespace lacks ("nn"; "lt", "tensor"), or why there is nothing;
--- nil: other libraries have no such name. `words`: what the namespace has.
function foreign_names.of(namespace, name, words)
  local function among(one)
    return tables[namespace][one] or by_pattern(namespace, one, words or {})
  end
  local said = among(name) or name:sub(-1) == "_" and among(name:sub(1, -2)) or nil
  local is_method = not said and namespace == "lt" and require "ltrain.c".runtime.methods[name]
  return is_method and ("write x:%s(...)"):format(name) or said
end

--- Whose members `member` knows.
foreign_names.objects = { "Module", "Trainer", "DataModule", "Logger" }

--- The same for a member, of whichever object has none of that name.
function foreign_names.member(name)
  for _, object in ipairs(foreign_names.objects) do
    if tables[object][name] then return tables[object][name] end
  end
end

--- The one of `words` that an option of the name is here; nil.
function foreign_names.option(name, words)
  local here = foreign_names.options[name]
  for _, wanted in ipairs(here or {}) do
    for _, word in ipairs(words) do
      if word == wanted then return word end
    end
  end
end

return foreign_names
