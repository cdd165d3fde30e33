-- spec/parallel/pipeline_files_spec.lua: checkpoints of a pipeline are whole, and resume on any
-- number of stages, under DDP and on one rank.
-- tags: slow
local net = require "spec.parallel.pipeline_net"

local prints <const> = net.prints

-- tensors(path): those of a checkpoint, of the module and the optimizer. chained(list, o): a fit of
-- 9 steps that is cut and resumed: on each row of the list { strategy, ranks, steps }.
local FILES <const> = [[
local read, parts = require "ltrain.files.checkpoint_file".read, require "ltrain.core.parts"
local function tensors(path)
  local saved = parts.whole(assert(read(path)))
  return {saved.state_dict, saved.optimizer_states[1]}
end
local function chained(list, o)
  local path
  for i, row in ipairs(list) do
    local options = {max_steps = row[3], max_epochs = 4}
    for name, value in pairs(o or {}) do options[name] = value end
    local _, t = fit(row[1], row[2], nil, options, {ckpt_path = path})
    path = "after" .. i
    t:save_checkpoint(path)
  end
  return tensors(path)
end
local function near(a, b) return apart(a, b) < 1e-9 and apart(b, a) < 1e-9 end
]]

local function compares(wanted, script) prints(wanted, FILES:gsub("%s*\n%s*", " ") .. script) end

describe("a checkpoint of Pipeline", function()
  it("is that of one process: in mid-fit, by a callback and after the fit", function()
    compares("true\ntrue\ntrue\n", [[
      for i, strategy in ipairs {"single_device", pipeline {split = {2}}} do
        function Chain:on_train_epoch_end()
          if self.current_epoch == 0 then self.trainer:save_checkpoint(i .. ".mid") end
        end
        local callback = lt.callbacks.ModelCheckpoint {dirpath = "at" .. i, filename = "at",
          every_n_train_steps = 7}
        local _, t = fit(strategy, i, nil, {enable_checkpointing = true, callbacks = {callback}})
        t:save_checkpoint(i .. ".end")
      end
      for _, name in ipairs {"%d.mid", "at%d/at.ckpt", "%d.end"} do
        print(near(tensors(name:format(1)), tensors(name:format(2))))
      end
    ]])
  end)

  it("resumes with other numbers of stages, under DDP and on one rank", function()
    compares("true true true\n", [[
      local whole = chained {{"single_device", 1, 9}}
      local two, three = pipeline {split = {3}}, pipeline {balance = "parameters"}
      print(near(whole, chained {{two, 2, 2}, {three, 3, 4}, {"ddp", 2, 7}, {two, 2, 9}}),
        near(whole, chained {{pipeline(), 2, 3}, {pipeline {stages = 2}, 4, 6},
          {"single_device", 1, 9}}),
        near(whole, chained {{"ddp", 2, 4}, {pipeline(), 3, 9}}))
    ]])
  end)

  it("resumes in the middle of a window of accumulation", function()
    compares("true true true\n", [[
      -- The second file is saved after the second batch of a window of three.
      local window = {accumulate_grad_batches = 3}
      local function cut(first, ranks, second, more)
        local path = tostring(first) .. ranks
        function Chain:on_train_batch_end(_, _, i)
          if i == 1 and self.current_epoch == 0 then self.trainer:save_checkpoint(path) end
        end
        fit(first, ranks, nil, window)
        Chain.on_train_batch_end = nil
        local net, t = fit(second, more, nil, window, {ckpt_path = path})
        return {net:state_dict(), t.optimizers[1]:state_dict()}
      end
      local net, t = fit("single_device", 1, nil, window)
      local whole = {net:state_dict(), t.optimizers[1]:state_dict()}
      local two = pipeline {split = {3}}
      print(near(whole, cut(two, 2, two, 2)), near(whole, cut(pipeline(), 2, "ddp", 2)),
        near(whole, cut("single_device", 1, pipeline(), 3)))
    ]])
  end)

  it("in parts, one a rank, resumes on other numbers of ranks", function()
    compares("true true\n", [[
      local whole = chained {{"single_device", 1, 9}}
      local function sharded(o)
        o.state_dict_type = "sharded"
        return pipeline(o)
      end
      print(near(whole, chained {{sharded {split = {2}}, 2, 3}, {sharded {}, 3, 6},
          {"single_device", 1, 9}}),
        near(whole, chained {{sharded {split = {2}}, 2, 4}, {sharded {stages = 2}, 4, 9}}))
    ]])
  end)

  it("has the buffers of all stages", function()
    compares("true 15\n", [[
      local Norm = Chain:extend("Norm")
      function Norm:init(o)
        Norm.super.init(self, o)
        for i = 1, 5 do self.blocks[i] = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) end
        self.first, self.last = nn.BatchNorm1d(6), nn.BatchNorm1d(6)
        self:to "f64"
      end
      function Norm:forward(x) return self.last(Norm.super.forward(self, self.first(x))) end
      function Norm:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.05}) end
      local all = {}
      for i = 1, 2 do
        function Norm:on_train_epoch_end() self.trainer:save_checkpoint("norm" .. i) end
        fit(pipeline {split = i == 2 and {2} or nil, microbatches = 2}, i, {class = Norm},
          {max_epochs = 1})
        all[i] = parts.whole(read("norm" .. i)).state_dict
      end
      local count = 0
      for name in pairs(all[2]) do count = count + (name:find "running_mean" and 1 or 0) end
      print(near(all[1], all[2]), count + 8)
    ]])
  end)
end)
