-- spec/dist/exception_spec.lua: a fit on ranks of which one fails resumes on all of them with the
-- window that had the batch that failed.
-- tags: slow
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.second = lt.nn.Linear(2, 4), lt.nn.Linear(4, 1)
  self.norm, self.dropout = lt.nn.BatchNorm2d(4), lt.nn.Dropout(0.3)
end
function Net:training_step(batch, i)
  self.began = self.began or ("%d.%d"):format(self.current_epoch, i)
  local hidden = self.norm(self.first(batch[1]):reshape(-1, 4, 1, 1)):reshape(-1, 4)
  local loss = (self.second(self.dropout(hidden)) - 1):square():mean()
  self:fail("training_step", i)
  return loss
end
function Net:on_train_batch_end(_, _, i) self:fail("on_train_batch_end", i) end
function Net:fail(place, i)
  local at = self.fails
  if at and at.place == place and at.rank == lt.dist.rank() and self.current_epoch == 1
    and i == at.batch then
    error("broken", 0)
  end
end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = 0.9})
end
lt.seed(2)
local data = lt.data.TensorDataset(lt.randn(40, 2))
local function fit(accumulate, fails, ckpt_path)
  lt.seed(3)
  local net = Net()
  net.fails = fails
  local save = lt.callbacks.ModelCheckpoint {dirpath = "at", save_on_exception = true,
    save_top_k = 0}
  local t = trainer {max_epochs = 3, callbacks = {save}, enable_checkpointing = true,
    accumulate_grad_batches = accumulate}
  local ok = pcall(t.fit, t, net, lt.data.DataLoader(data, {global_batch_size = 8,
    shuffle = true}), {ckpt_path = ckpt_path})
  local values = {}
  for _, tensor in pairs(net:parameters()) do
    if type(tensor) == "userdata" then
      for _, value in ipairs(tensor:reshape {-1}:tolist()) do
        values[#values + 1] = ("%a"):format(value)
      end
    end
  end
  return table.concat(values, " "), ok, net.began
end
]]

describe("a fit on two ranks of which one fails", function()
  for _, rank in ipairs { 0, 1 } do
    it(("resumes to the weights of one that did not: rank %d"):format(rank), function()
      local out = scripts.output(2, ([[
        for accumulate = 1, 2 do
          local whole = fit(accumulate)
          for _, place in ipairs {"training_step", "on_train_batch_end"} do
            local _, ok = fit(accumulate, {place = place, rank = %d, batch = 3})
            local again, fine = fit(accumulate, nil, "at/on_exception.ckpt")
            print(accumulate, place, ok, fine, #whole > 100 and again == whole)
          end
        end
      ]]):format(rank))
      assert.equal("1\ttraining_step\tfalse\ttrue\ttrue\n1\ton_train_batch_end\tfalse\ttrue\ttrue\n"
        .. "2\ttraining_step\tfalse\ttrue\ttrue\n2\ton_train_batch_end\tfalse\ttrue\ttrue\n", out)
    end)
  end
end)
