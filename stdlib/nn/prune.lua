--- stdlib/nn/prune.lua: lt.nn.utils.prune, pruning of parameters.
--
--   local lt = require "ltrain"
--   local prune = lt.nn.utils.prune
--   local layer = lt.nn.Linear(4, 2)
--   prune.l1_unstructured(layer, "weight", 0.5)
--   print(layer.weight:eq(0):sum():item(), table.concat(layer:parameters().names, " "))
--   -- prints: 4	bias weight_orig
--   prune.remove(layer, "weight")
--   print(layer.weight:eq(0):sum():item(), prune.is_pruned(layer))
--   -- prints: 4	false
--
-- As torch.nn.utils.prune: the parameter `weight` becomes the parameter `weight_orig` times the
-- buffer `weight_mask` whenever it is read. A second call prunes the remaining elements, and
-- multiplies the masks. An amount is a number of elements (3) or a fraction (0.3, or 1.0 for all).
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local has_shape = require "ltrain.core.has_shape"
local load_export = require "ltrain.core.load_export"
local parametrize = require "ltrain.nn.parametrize"
local walk = require "ltrain.core.walk"
local c = require "ltrain.c"

local prune = {}

-- What computes a pruned parameter.
local Masked = class.extend(nil, "Masked")

function Masked:init(module, name)
  self.module, self.orig, self.mask = module, name .. "_orig", name .. "_mask"
end

function Masked:forward()
  local orig, mask = rawget(self.module, self.orig), rawget(self.module, self.mask)
  return orig * mask:to(orig.dtype)
end

function Masked:assign(value)
  local _ <close> = c.allow_update()
  rawget(self.module, self.orig):copy_(value)
end

local function masked_by(module, name)
  local made = walk.is_module(module) and parametrize.computed(module, name)
  return class.is_a(made, Masked) and made or nil
end

-- The mask of a pruned parameter, ones of another.
local function mask_of(module, name)
  local made = masked_by(module, name)
  if made then return rawget(module, made.mask) end
  return c.ones_like(parametrize.parameter(module, name, "prune"):detach())
end

local function check_amount(amount, who)
  local is_count = math.type(amount) == "integer"
  if not math.type(amount) or not (amount >= 0 and (is_count or amount <= 1)) then
    errors.blame("%s: amount must be a number of elements, or a part of them from 0.0 to 1.0: got "
      .. "%s", who, errors.show(amount))
  end
  return amount
end

-- How many of n; halves go to the even number, as in Python.
local function count_of(amount, n, who)
  local count = amount
  if math.type(amount) == "float" then
    count = math.floor(amount * n + 0.5)
    if amount * n % 1 == 0.5 and count % 2 == 1 then count = count - 1 end
  end
  if count > n then
    errors.blame("%s: amount = %d is more than the %d that are left", who, amount, n)
  end
  return count
end

--- The base class of pruning methods: `local Mine = prune.BasePruningMethod:extend("Mine")` with
--- compute_mask(t, default_mask), which returns the mask of `t`, given the previous mask; and the
--- field PRUNING_TYPE: "unstructured" (for a parameter that is already pruned it gets the remaining
--- elements, as a vector), "structured" (the remaining positions of dim `self.dim`) or "global"
--- (everything).
prune.BasePruningMethod = class.extend(nil, "BasePruningMethod")
prune.BasePruningMethod.extend = class.extend
prune.BasePruningMethod.PRUNING_TYPE = "unstructured"

local function method_class(name, kind, arguments)
  local new = prune.BasePruningMethod:extend(name)
  new.PRUNING_TYPE, new.__arguments = kind, arguments
  prune[name] = new
  return new
end

local Identity <const> = method_class("Identity", "unstructured", "")
local CustomFromMask <const> = method_class("CustomFromMask", "global", "mask")
local L1Unstructured <const> = method_class("L1Unstructured", "unstructured", "amount")
local RandomUnstructured <const> = method_class("RandomUnstructured", "unstructured", "amount")
local LnStructured <const> = method_class("LnStructured", "structured", "amount n dim")
local RandomStructured <const> = method_class("RandomStructured", "structured", "amount dim")

-- The mask before, zero where the k least of the scores are.
local function without_least(scores, default_mask, amount, who)
  local k = count_of(amount, scores:numel(), who)
  if k == 0 then return default_mask:clone() end
  local _, places = scores:reshape(-1):topk(k, { largest = false })
  local mask = default_mask:clone():reshape(-1)
  mask[places] = 0
  return mask:reshape(default_mask.shape)
end

function Identity:compute_mask(_, default_mask) return default_mask:clone() end

function CustomFromMask:init(mask) self.mask = mask end

function CustomFromMask:compute_mask(_, default_mask)
  if not c.is_tensor(self.mask) or not has_shape(self.mask, default_mask) then
    errors.blame("%s: the mask must be a tensor %s: got %s", "CustomFromMask",
      errors.show_shape(default_mask), errors.show(self.mask))
  end
  return default_mask * self.mask:to(default_mask.dtype):to(default_mask.device)
end

function L1Unstructured:init(amount) self.amount = check_amount(amount, "L1Unstructured") end

function L1Unstructured:compute_mask(t, default_mask)
  return without_least(t:abs(), default_mask, self.amount, "L1Unstructured")
end

function RandomUnstructured:init(amount)
  self.amount = check_amount(amount, "RandomUnstructured")
end

function RandomUnstructured:compute_mask(t, default_mask)
  return without_least(c.rand_like(t), default_mask, self.amount, "RandomUnstructured")
end

-- The dim of a structured method, counted from 1.
local function dim_of(method, t)
  local dim, who = method.dim, class.of(method).__name
  if t.ndim < 2 then
    errors.blame("%s: needs a parameter with two dims or more: got %s", who, errors.show_shape(t))
  end
  local from_first = math.type(dim) == "integer" and dim < 0 and dim + t.ndim + 1 or dim
  if math.type(from_first) ~= "integer" or from_first < 1 or from_first > t.ndim then
    errors.blame("%s: dim must be a dim of %s: got %s", who, errors.show_shape(t),
      errors.show(dim))
  end
  return from_first
end

-- The mask before, zero at the positions of `dim` that have the least of the scores [positions].
local function without_positions(scores, default_mask, dim, amount, who)
  local kept = without_least(scores, c.ones_like(scores), amount, who)
  local shape = {}
  for d = 1, default_mask.ndim do shape[d] = d == dim and -1 or 1 end
  return default_mask * kept:reshape(shape):to(default_mask.dtype)
end

function LnStructured:init(amount, n, dim)
  self.amount, self.n = check_amount(amount, "LnStructured"), n
  self.dim = dim == nil and -1 or dim
end

function LnStructured:compute_mask(t, default_mask)
  local dim, others = dim_of(self, t), {}
  for d = 1, t.ndim do
    if d ~= dim then others[#others + 1] = d end
  end
  local linalg = load_export "linalg"
  local norm
  if self.n == "nuc" then
    norm = linalg.matrix_norm(t, "nuc", { dim = others })
  else
    norm = linalg.vector_norm(t, self.n == "fro" and 2 or self.n, { dim = others })
  end
  return without_positions(norm, default_mask, dim, self.amount, "LnStructured")
end

function RandomStructured:init(amount, dim)
  self.amount, self.dim = check_amount(amount, "RandomStructured"), dim == nil and -1 or dim
end

function RandomStructured:compute_mask(t, default_mask)
  local dim = dim_of(self, t)
  local scores = c.rand({ t.shape[dim] }, { device = t.device })
  return without_positions(scores, default_mask, dim, self.amount, "RandomStructured")
end

-- The mask before with that of `method`, which sees what the mask before leaves of the scores.
local function combine(method, t, mask)
  local kind = method.PRUNING_TYPE
  if kind == "unstructured" then
    local left = mask:eq(1)
    local part = method:compute_mask(t:masked_select(left), mask:masked_select(left))
    return mask:masked_scatter(left, part)
  elseif kind == "structured" then
    local dim = dim_of(method, t)
    local first, mask_first = t:movedim(dim, 1), mask:movedim(dim, 1)
    local left = mask_first:flatten(2):sum { dim = 2 }:ne(0):nonzero():reshape(-1)
    local part = method:compute_mask(first[left]:movedim(1, dim), mask_first[left]:movedim(1, dim))
    local new = mask:clone()
    new:movedim(dim, 1)[left] = part:movedim(dim, 1)
    return new
  elseif kind == "global" then
    return method:compute_mask(t, mask)
  end
  errors.blame("prune: PRUNING_TYPE must be 'unstructured', 'structured' or 'global': got %s",
    errors.show(kind))
end

local function check_scores(scores, parameter, who)
  if scores == nil then return parameter end
  if not c.is_tensor(scores) or not has_shape(scores, parameter) then
    errors.blame("%s: importance_scores must be a tensor %s: got %s", who,
      errors.show_shape(parameter), errors.show(scores))
  end
  return scores
end

-- Puts what `method` leaves of it in place of a parameter; returns the module.
local function apply(method, module, name, scores, who)
  local _ <close> = c.no_grad()
  local made = masked_by(module, name)
  local parameter = made and made:forward() or parametrize.parameter(module, name, who)
  scores = check_scores(scores, parameter, who):detach()
  if made then
    module:register_buffer(made.mask, combine(method, scores, rawget(module, made.mask)))
    return module
  end
  local mask = method:compute_mask(scores, c.ones_like(parameter:detach()))
  parametrize.compute(module, name, Masked(module, name))
  module[name .. "_orig"] = parameter
  module:register_buffer(name .. "_mask", mask)
  return module
end

--- `Class:apply(module, name, ...)`: prunes a parameter with a new object of the class, made from
--- `...`; returns the module.
function prune.BasePruningMethod:apply(module, name, ...)
  return apply(self(...), module, name, nil, self.__name)
end

-- The function of this name by the class `method`, whose arguments and scores `signature` lists.
local function by(name, method, signature)
  config.signature(signature)
  return function(module, parameter, ...)
    local o = config.arguments(name, signature, ...)
    local scores = o.importance_scores
    o.importance_scores = nil
    return apply(next(o) and method(o) or method(), module, parameter, scores, name)
  end
end

local AMOUNT <const> = { "amount", type = "number", required = true }
local SCORES <const> = { "importance_scores", type = "tensor" }
local DIM <const> = { "dim", type = "integer", required = true }

--- prune.l1_unstructured(module, name, amount, importance_scores): prunes the elements with the
--- smallest absolute values, or the smallest absolute scores; returns the module.
prune.l1_unstructured = by("l1_unstructured", L1Unstructured, { AMOUNT, SCORES })

--- prune.random_unstructured(module, name, amount): prunes random elements.
prune.random_unstructured = by("random_unstructured", RandomUnstructured, { AMOUNT })

--- prune.ln_structured(module, name, amount, n, dim, importance_scores): prunes the positions of
--- `dim` with the smallest norms: `n` is the order of linalg.vector_norm, "fro" or "nuc".
prune.ln_structured = by("ln_structured", LnStructured,
  { AMOUNT, { "n", type = "number|string", required = true }, DIM, SCORES })

--- prune.random_structured(module, name, amount, dim): prunes random positions of `dim`.
prune.random_structured = by("random_structured", RandomStructured, { AMOUNT, DIM })

--- prune.custom_from_mask(module, name, mask): prunes the elements where a mask of the parameter's
--- shape is zero.
prune.custom_from_mask = by("custom_from_mask", CustomFromMask,
  { { "mask", type = "tensor", required = true } })

--- prune.identity(module, name): adds a mask of ones.
function prune.identity(module, name) return apply(Identity(), module, name, nil, "identity") end

-- The pairs {module, name}, and for each what `value_of` says, as one vector.
local function joined(pairs_of, value_of)
  local list = {}
  for i, pair in ipairs(pairs_of) do list[i] = value_of(pair[1], pair[2], i):reshape(-1) end
  return c.cat(list)
end

local function check_pairs(parameters, who)
  local is_list = type(parameters) == "table" and parameters[1] ~= nil
  for _, pair in ipairs(is_list and parameters or {}) do
    is_list = is_list and type(pair) == "table" and walk.is_module(pair[1])
      and type(pair[2]) == "string"
  end
  if not is_list then
    errors.blame("%s: parameters must be a list of pairs {module, name}: got %s", who,
      errors.show(parameters))
  end
end

--- Prunes the elements with the smallest scores over several parameters together:
--- prune.global_unstructured({{net[1], "weight"}, {net[3], "weight"}}, prune.L1Unstructured,
--- {amount = 0.2}). The table contains the arguments of the class, and `importance_scores`, a list
--- of tensors in the order of the pairs (false: the parameter itself).
function prune.global_unstructured(parameters, pruning_method, arguments)
  local who <const> = "global_unstructured"
  check_pairs(parameters, who)
  if not class.is_class(pruning_method, prune.BasePruningMethod)
    or pruning_method.PRUNING_TYPE ~= "unstructured" then
    errors.blame("%s: pruning_method must be a class like prune.L1Unstructured whose PRUNING_TYPE "
      .. "is 'unstructured': got %s", who, errors.show(pruning_method))
  end
  config.argument(arguments or {}, "table", who, "arguments")
  local own, scores = {}, arguments and arguments.importance_scores or {}
  config.argument(scores, "table", who, "importance_scores")
  for key, value in next, arguments or {} do
    if key ~= "importance_scores" then own[key] = value end
  end
  local method = pruning_method(own)
  local _ <close> = c.no_grad()
  local all = joined(parameters, function(module, name, i)
    return check_scores(scores[i] or nil, module[name], who):detach()
  end)
  local mask, at = combine(method, all, joined(parameters, mask_of)), 1
  for _, pair in ipairs(parameters) do
    local parameter = pair[1][pair[2]]
    local n = parameter:numel()
    local part = mask:narrow(1, at, n):reshape(parameter.shape)
    apply(CustomFromMask(part), pair[1], pair[2], nil, who)
    at = at + n
  end
end

--- Makes the pruning permanent: the parameter becomes a plain one, with zeros for pruned elements;
--- returns the module.
function prune.remove(module, name)
  local made = masked_by(module, name)
  if not made then
    errors.blame("remove: %s has no pruned parameter %s", errors.show(module), errors.show(name))
  end
  local orig = rawget(module, made.orig)
  made:assign(made:forward():detach())
  parametrize.uncompute(module, name)
  module._buffers[made.mask] = nil
  rawset(module, made.orig, nil)
  rawset(module, made.mask, nil)
  rawset(module, name, orig)
  return module
end

--- Whether a parameter of the module or its submodules is pruned.
function prune.is_pruned(module)
  for _, entry in ipairs(walk.modules(module)) do
    for _, made in next, rawget(entry.module, "_computed") or {} do
      if class.is_a(made, Masked) then return true end
    end
  end
  return false
end

return strict_arity.all(prune, "prune")
