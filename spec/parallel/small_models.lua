-- spec/parallel/small_models.lua: scripts with small models of lt.models in f64, and what they
-- print on one rank and on several.
local trained = require "spec.dist.trained"

-- make(name, dropout), loss_of(name, net, ids, images, cross_entropy); digits(x): 10 of them, of
-- what is not the noise of a sum that is 0.
local BEGINNING <const> = [[
local P, dist = lt.parallel, lt.dist
local MAKE = {
  gpt2 = function(p) return lt.models.gpt2 {vocab_size = 16, n_positions = 8, n_embd = 8,
    n_layer = 2, n_head = 4, dropout = p} end,
  llama = function() return lt.models.llama {vocab_size = 16, hidden_size = 16,
    intermediate_size = 12, num_hidden_layers = 2, num_attention_heads = 4,
    num_key_value_heads = 2} end,
  bert = function(p) return lt.models.bert {vocab_size = 16, hidden_size = 8,
    num_hidden_layers = 2, num_attention_heads = 2, intermediate_size = 12,
    max_position_embeddings = 8, dropout = p} end,
  vit = function(p) return lt.models.vit {image_size = 8, patch_size = 4, num_layers = 2,
    num_heads = 2, hidden_dim = 8, mlp_dim = 12, num_classes = 16, dropout = p} end,
}
local NAMES = {"gpt2", "llama", "bert", "vit"}
local function make(name, p)
  lt.seed(11)
  local net = MAKE[name](p)
  if name == "vit" then lt.nn.init.normal_(net.heads.head.weight) end -- else its loss is constant
  return net:to "f64"
end
local function loss_of(name, net, ids, images, cross_entropy)
  cross_entropy = cross_entropy or lt.cross_entropy
  if name == "vit" then return cross_entropy(net(images:to "f64"), ids:select(2, 1)) end
  if name == "bert" then
    local x, pooled = net(ids)
    return x:square():mean() + (pooled - 1):square():mean() + x:sin():mean()
  end
  local logits = net(ids)
  return cross_entropy(logits:flatten(1, 2), ids:roll(1, 2):flatten())
end
local function digits(x) return ("%.10g"):format(x + 1e-20) end
local function norms_of(tensors)
  local texts = {}
  for name, x in pairs(tensors) do
    if lt.is_tensor(x) then texts[#texts + 1] = name .. "=" .. digits(x:square():sum():item()) end
  end
  table.sort(texts)
  return table.concat(texts, " ")
end
]]

-- fit(name, ranks, o, more): trains for two epochs, global batches of 8, tensor parallel on 2 ranks
-- (more.tensor_parallel_size) where there are several; returns norms of parameters and of the
-- optimizer's state, and metrics. more.sharding: further options of the strategy; all units are.
local FIT <const> = [[
local Net = lt.Module:extend("Net")
function Net:init(name) self.name, self.net = name, make(name, 0) end
function Net:configure_model()
  if self.device_mesh then lt.parallelize(self.net, self.device_mesh) end
end
function Net:training_step(batch)
  local loss = loss_of(self.name, self.net, batch[1], batch[2])
  self:log("loss", loss, {on_epoch = true, on_step = false})
  return loss
end
function Net:validation_step(batch)
  self:log("val", loss_of(self.name, self.net, batch[1], batch[2]))
end
function Net:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 0.01}) end
local function fit(name, ranks, o, more)
  lt.seed(12)
  local data = lt.data.TensorDataset(lt.randint(0, 16, {16, 8}), lt.randn(16, 3, 8, 8))
  more = more or {}
  local all = {max_epochs = 2, devices = ranks, gradient_clip_val = 0.1,
    strategy = "single_device"}
  local tensor = more.tensor_parallel_size or 2
  if ranks > 1 then
    local options = {tensor_parallel_size = tensor, state_dict_type = more.state_dict_type,
      stage = more.stage or 0, units = 1, context_parallel_size = more.context_parallel_size}
    for key, value in pairs(more.sharding or {}) do options[key] = value end
    all.strategy = lt.strategies.ModelParallelStrategy(options)
  end
  for key, value in pairs(o or {}) do all[key] = value end
  local net, t = (more.class or Net)(name), trainer(all)
  local readers = math.max(ranks // tensor // (more.context_parallel_size or 1), 1)
  local each = (more.batch or 8) // readers
  local loader = lt.data.DataLoader(data, {batch_size = each})
  t:fit(net, loader, loader, more.ckpt_path and {ckpt_path = more.ckpt_path})
  local state = {}
  for parameter, slots in pairs(t.optimizers[1]:state_dict().state) do
    for slot, value in pairs(slots) do state[parameter .. slot] = value end
  end
  return table.concat({norms_of(net:state_dict()), norms_of(state),
    digits(t.callback_metrics.loss or 0), digits(t.callback_metrics.val or 0)}, " "), net, t
end
]]

-- is_same(name, ranks, o, more): whether a fit is that of one rank; else both.
local SAME <const> = FIT .. [[
local function is_same(name, ranks, o, more)
  local alone = {class = more.class, batch = more.batch}
  local wanted, got = fit(name, 1, o, alone), fit(name, ranks, o, more)
  return got == wanted and "same" or got .. "\n" .. wanted
end
-- Each position has a target of its own, so that sequences may be divided.
local Alone = Net:extend("Alone")
function Alone:training_step(batch)
  local loss = lt.cross_entropy(self.net(batch[1]):flatten(1, 2), ((batch[1] * 3 + 1) % 16)
    :flatten())
  self:log("loss", loss, {on_epoch = true, on_step = false})
  return loss
end
function Alone:validation_step(batch) self:log("val", self:training_step(batch)) end
]]

local scripts <const> = trained.with(BEGINNING)

scripts.FIT, scripts.SAME = FIT, SAME

return scripts
