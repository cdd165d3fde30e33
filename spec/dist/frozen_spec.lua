-- spec/dist/frozen_spec.lua: a fit on ranks that unfreezes as it goes, saved and resumed.
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.body, self.head = lt.nn.Linear(2, 5), lt.nn.Linear(5, 1)
  self.body:freeze()
end
function Net:training_step(batch)
  local hidden = self.body(batch[1]):tanh()
  local loss = self.head(hidden):square():mean()
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self.head:parameters(), {lr = 0.1}) end
function Net:on_train_epoch_start()
  if self.current_epoch ~= 1 then return end
  self.body:unfreeze()
  self.trainer.optimizers[1]:add_param_group {params = self.body:parameters(), lr = 0.01}
end
local function fit(path, ckpt_path)
  lt.seed(3)
  local data = lt.data.TensorDataset(lt.randn(16, 2))
  local net, save = Net(), lt.Callback()
  save.all_ranks = true
  function save.on_train_batch_end(_, t, _, _, _, index)
    if path and t.current_epoch == 2 and index == 1 then
      t:request_checkpoint(path, {agreed = true})
    end
  end
  trainer {max_epochs = 4, callbacks = {save}}:fit(net,
    lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true}), {ckpt_path = ckpt_path})
  local values = {}
  for _, p in ipairs(net:parameters()) do
    for _, value in ipairs(p:reshape {-1}:tolist()) do
      values[#values + 1] = ("%a"):format(value)
    end
  end
  return table.concat(values, " ")
end
]]

describe("a fit on ranks that unfreezes and adds a group", function()
  it("resumes bit for bit", function()
    local out = scripts.output(2, [[
      local whole = fit("mid.ckpt")
      print(whole == fit(nil, "mid.ckpt"), #whole > 100)
    ]])
    assert.equal("true\ttrue\n", out)
  end)
end)
