-- stdlib/nn/MoE.lua: a mixture of experts: each token goes through the few of E networks that a
-- router chooses for it. N any leading dims, D features, H hidden features, E experts.
--
-- Shazeer et al.: Outrageously Large Neural Networks, 2017. With one choice it is the Switch
-- Transformer's (Fedus et al., 2021), with two GShard's and Mixtral's. The experts may be divided
-- among ranks, to which tokens then go by all_to_all: lt.parallel.ExpertParallel.

local Linear = require "ltrain.nn.Linear"
local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local expert_dispatch = require "ltrain.nn.expert_dispatch"
local initialise = require "ltrain.nn.initialise"

local MoE = Module:extend("MoE")

MoE.__arguments = "dim hidden_dim num_experts | top_k capacity_factor activation bias normalize"

local OPTIONS <const> = {
  top_k = { type = "integer", default = 2, min = 1, doc = "experts that each token goes to" },
  capacity_factor = { type = "number", above = 0, doc = "an expert takes at most so many times the "
    .. "mean number of tokens; what is above is dropped, and gives zeros. By default no limit" },
  activation = { type = "string", default = "swiglu", choices = { "swiglu", "gelu", "relu" },
    doc = "of the experts: w2 (silu(w1 x) * w3 x), or w2 gelu(w1 x)" },
  bias = { type = "boolean", default = false, doc = "whether the experts' layers have biases" },
  normalize = { type = "boolean", doc = "whether the weights of a token's experts add up to 1; by "
    .. "default with several" },
}

-- Uniform as the weights of nn.Linear, of an expert's `inputs`.
local function weight(inputs, ...)
  local w = c.parameter(c.empty(...))
  return initialise.uniform_(w, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
end

--- The names of the experts' parameters, of which a layer has some.
MoE.expert_names = { "w1", "w2", "w3", "b1", "b2", "b3" }

--- nn.MoE(512, 2048, 8, {top_k = 2}): features, hidden features of an expert, experts. Parameters:
--- router.weight [E, D]; w1 and w3 [E, D, H], w2 [E, H, D]; b1, b3 [E, H], b2 [E, D].
function MoE:init(dim, hidden_dim, num_experts, options)
  local name <const> = "nn.MoE"
  local d = config.argument(dim, "integer", name, "dim", { min = 1 })
  local h = config.argument(hidden_dim, "integer", name, "hidden_dim", { min = 1 })
  local e = config.argument(num_experts, "integer", name, "num_experts", { min = 1 })
  local o = config.check(options, OPTIONS, name)
  if o.top_k > e then
    errors.blame("%s: top_k = %d is more than the %d experts", name, o.top_k, e)
  end
  self.dim, self.hidden_dim, self.num_experts, self.top_k = d, h, e, o.top_k
  self.capacity_factor, self.activation = o.capacity_factor, o.activation
  self.normalize = o.normalize
  if self.normalize == nil then self.normalize = o.top_k > 1 end
  self.router = Linear(d, e, { bias = false })
  self.w1 = weight(d, e, d, h)
  self.w2 = weight(h, e, h, d)
  if o.bias then
    self.b1 = weight(d, e, h)
    self.b2 = weight(h, e, d)
  end
  if o.activation == "swiglu" then
    self.w3 = weight(d, e, d, h)
    if o.bias then self.b3 = weight(d, e, h) end
  end
end

local function linear(x, w, b)
  x = x:matmul(w)
  return b and x + b:unsqueeze(2) or x
end

-- The experts on their tokens.
---@param x Tensor [E, M, D] -> the same
local function experts(self, x)
  local y = linear(x, self.w1, self.b1)
  if self.activation == "swiglu" then y = y:silu() * linear(x, self.w3, self.b3)
  elseif self.activation == "gelu" then y = y:gelu()
  else y = y:relu() end
  return linear(y, self.w2, self.b2)
end

-- Rows by expert through the experts that are here: padded to the same number of each.
local function compute(self, rows, kept, first, count_here)
  local slots, most = expert_dispatch.slots(kept, first, count_here, rows.device)
  local buffer = c.zeros(count_here * most, self.dim, { dtype = rows.dtype, device = rows.device })
  buffer = buffer:index_add(1, slots, rows):reshape(count_here, most, self.dim)
  local y = experts(self, buffer):reshape(count_here * most, self.dim)
  return y:index_select(1, slots)
end

-- How many rows go from rank `from` (from 1) to rank `to`.
local function sent(kept, from, to, each)
  local rows = 0
  for e = (to - 1) * each + 1, to * each do rows = rows + kept[from][e] end
  return rows
end

-- The same where experts are divided: rows go to the rank of their expert and come back.
local function exchange(self, rows, kept)
  local group = self._group
  local ranks, own = group:world_size(), group:rank() + 1
  local each, out, back = self.num_experts // ranks, {}, {}
  for r = 1, ranks do out[r], back[r] = sent(kept, own, r, each), sent(kept, r, own, each) end
  rows = collectives.all_to_all(rows, { group = group, splits = out })
  rows = compute(self, rows, kept, (own - 1) * each, each)
  return collectives.all_to_all(rows, { group = group, splits = back })
end

-- Switch Transformer's loss: E times the sum over experts of the share of tokens that it has and
-- the mean probability that it has; 1 where both are uniform. ST-MoE's (Zoph et al., 2022) keeps
-- logits small.
local function losses(self, logits, probabilities, plan)
  local load = plan.load:to(probabilities.dtype)
  self.aux_loss = (load * probabilities:mean(1)):sum() * self.num_experts
  self.z_loss = logits:logsumexp(-1):square():mean()
  self.expert_load, self.dropped = plan.load, plan.dropped
end

-- Products of the router are not lowered by autocast: near choices would change.
local function route(self, tokens)
  local _ <close> = c.autocast(false)
  local logits = self.router(tokens:to(self.router.weight.dtype))
  local probabilities = logits:softmax(-1)
  local weights, choices = probabilities:topk(self.top_k, -1)
  if self.normalize then weights = weights / weights:sum(-1, { keepdim = true }) end
  local plan = expert_dispatch.plan(choices, self.num_experts, self.capacity_factor, self._group)
  losses(self, logits, probabilities, plan)
  return plan, weights
end

--- Returns the weighted sum of the outputs of each token's experts; zeros for tokens that all of
--- them dropped. Sets the fields `aux_loss`, the load-balancing loss, and `z_loss`, to be added to
--- the loss with small factors (0.01 and 0.001), and `expert_load` [E], the share of choices of
--- each expert, and `dropped`, the number of this rank's choices above the capacity.
---@param x Tensor [N, D] -> the same
function MoE:forward(x)
  if x.shape[x.ndim] ~= self.dim then
    errors.blame("nn.MoE: x must be [.., %d]: got %s", self.dim, errors.show_shape(x))
  end
  local tokens = x:reshape(-1, self.dim)
  local plan, weights = route(self, tokens)
  local rows = tokens:index_select(1, plan.tokens)
  if self._group then rows = exchange(self, rows, plan.kept)
  else rows = compute(self, rows, plan.kept, 0, self.num_experts) end
  local share = weights:transpose(1, 2):flatten():index_select(1, plan.entries):unsqueeze(2)
  rows = rows * share:to(rows.dtype)
  local y = c.zeros(tokens.shape, { dtype = rows.dtype, device = x.device })
  y = y:index_add(1, plan.tokens, rows)
  return y:reshape(x.shape)
end

function MoE:extra_repr()
  return ("%d, %d, %d, {top_k = %d, activation = \"%s\"}"):format(self.dim, self.hidden_dim,
    self.num_experts, self.top_k, self.activation)
end

return MoE
