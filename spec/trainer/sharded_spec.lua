-- spec/trainer/sharded_spec.lua: checkpoints into which each rank writes its part.
-- tags: sixth, slow
local job = require "spec.dist.job"
local trained = require "spec.dist.trained"

local NET <const> = require "spec.trainer.sharded"
local scripts <const> = trained.with(NET)

local function prints(wanted, script)
  local out, err = scripts.output(nil, script)
  assert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

describe("a sharded checkpoint", function()
  it("is a folder with a file a rank and an index, of equally many bytes", function()
    prints("index.safetensors rank-0.safetensors rank-1.safetensors rank-2.safetensors\ntrue\n", [[
      cut("ddp", 3, 2, "cut.ckpt")
      print(files "cut.ckpt")
      local most, least, sum = 0, math.huge, 0
      for r = 0, 2 do
        local _, size = c.io.read_head(("cut.ckpt/rank-%d.safetensors"):format(r), 0)
        most, least, sum = math.max(most, size), math.min(least, size), sum + size
      end
      -- weights and two moments of 77659 + 302 numbers in f64, and headers
      print(most - least < 2000 and sum > 3 * 8 * 77961 and sum < 3 * 8 * 77961 + 9000)
    ]])
  end)

  it("resumes exactly, on as many ranks and under other strategies", function()
    prints("true true true true true true true true\n", [[
      local whole = fit("ddp", 2)
      local two, three = {"sharded", stage = 2}, {"sharded", stage = 3}
      for _, pair in ipairs {{"ddp", "ddp"}, {"ddp", "zero1"}, {"zero1", "zero1"},
          {"zero1", "ddp"}, {two, "ddp"}, {three, two}, {"ddp", three}} do
        cut(pair[1], 2, 4, "cut.ckpt")
        local net = fit(pair[2], 2, nil, {ckpt_path = "cut.ckpt"})
        io.write(tostring(same(whole, net)), " ")
      end
      local full = {"zero1", state_dict_type = "full"}
      cut(full, 2, 4, "full.ckpt")
      print(same(whole, (fit("zero1", 2, nil, {ckpt_path = "full.ckpt"}))))
    ]])
  end)

  it("resumes on 4, then 3, then 1 ranks, in mid-epoch", function()
    prints("true\n", [[
      local whole = fit("single_device", 1)
      cut("zero1", 4, 3, "four.ckpt")
      local Own = Net:extend("Net")
      function Own:on_train_batch_end()
        if self.global_step == 8 then self.trainer:save_checkpoint "three.ckpt" end
      end
      fit("zero1", 3, {max_steps = 8}, {ckpt_path = "four.ckpt"}, Own)
      print(near(whole, (fit("single_device", 1, nil, {ckpt_path = "three.ckpt"}))))
    ]])
  end)

  it("has the gradients of an incomplete window", function()
    prints("true true\n", [[
      local Own = Net:extend("Net")
      function Own:on_train_batch_end(_, _, i)
        if self.current_epoch == 1 and i == 3 then
          self.trainer:request_checkpoint("mid.ckpt", {agreed = true})
        end
      end
      local o = {accumulate_grad_batches = 3}
      local whole = fit("ddp", 2, o, nil, Own)
      local index = reader.open "mid.ckpt".index.tensors
      print(index["grad.a.weight"] ~= nil,
        near(whole, (fit("ddp", 2, o, {ckpt_path = "mid.ckpt"}))))
    ]])
  end)

  it("of a strategy with state of each rank keeps it", function()
    prints("true true\n", [[
      local sgd = {"local_sgd", period = 5, warmup_steps = 1}
      local whole = fit(sgd, 2)
      for _, steps in ipairs {1, 4} do
        cut(sgd, 2, steps, "cut.ckpt")
        io.write(tostring(same(whole, (fit(sgd, 2, nil, {ckpt_path = "cut.ckpt"})))),
          steps == 4 and "\n" or " ")
      end
    ]])
  end)

  it("has the buffers of rank 0, which are others on each rank, on any number of ranks", function()
    prints(("true true true true\n"):rep(5), [[
      local Own = Net:extend("Net")
      function Own:init(o)
        Net.init(self, o)
        self.norm = nn.BatchNorm1d(301)
        self:register_buffer("count", lt.zeros(3, 101)) -- of the samples that a rank has seen
      end
      function Own:forward(x)
        if self.training then self.count:add_(x:size(1) * (lt.dist.rank() + 1)) end
        return self.b(self.norm(self.a(x)):tanh()) * self.w
      end
      local function buffers(net)
        local values = {}
        for name, buffer in net:named_buffers() do values[name] = buffer:clone() end
        return values
      end
      local mesh = {"model_parallel", stage = 2, tensor_parallel_size = 1}
      for _, strategy in ipairs {"ddp", "zero1", {"sharded", stage = 2}, {"sharded", stage = 3},
          mesh} do
        local Saves, Reads = Own:extend("Net"), Own:extend("Net")
        function Saves:on_train_batch_end()
          if self.global_step ~= 3 then return end
          self.trainer:save_checkpoint "cut.ckpt"
          local all = lt.dist.all_gather(buffers(self))
          assert(lt.hash(all[1]) ~= lt.hash(all[2]))
          if lt.dist.rank() == 0 then lt.save("buffers.st", all[1]) end
        end
        function Reads:on_train_start()
          local is_same = lt.hash(buffers(self)) == lt.hash(lt.load "buffers.st")
          for _, one in ipairs(lt.dist.all_gather(is_same)) do is_same = is_same and one end
          if lt.dist.rank() == 0 then lt.save("same.st", {is_same = is_same}) end
        end
        local function is_same() return tostring(lt.load "same.st".is_same) end
        fit(strategy, 2, {max_steps = 3}, nil, Saves)
        local file = assert(require "ltrain.files.checkpoint_file".read "cut.ckpt")
        local saved, own = require "ltrain.core.parts".whole(file.state_dict), {}
        for name in pairs(lt.load "buffers.st") do own[name] = saved[name] end
        local results = {tostring(lt.hash(own) == lt.hash(lt.load "buffers.st"))}
        for _, ranks in ipairs {2, 3, 1} do
          fit(ranks > 1 and strategy or "single_device", ranks, {max_steps = 4},
            {ckpt_path = "cut.ckpt"}, Reads)
          results[#results + 1] = is_same()
        end
        print(table.concat(results, " "))
      end
    ]])
  end)

  it("is read by ranges: each rank reads its part of the optimizer's state", function()
    prints("true\n", [[
      cut("zero1", 3, 2, "cut.ckpt")
      local read
      local Own = Net:extend("Net")
      function Own:on_train_start() read = lt.dist.all_gather(reader.bytes_read) end
      fit("zero1", 2, {max_steps = 3}, {ckpt_path = "cut.ckpt"}, Own)
      local n, ok = 8 * 77961, true
      for _, bytes in ipairs(read) do
        -- all weights, half of two moments; at most two blocks more of each part of the large ones
        ok = ok and bytes >= 2 * n and bytes <= 2 * n + 2 * 2 * reader.BLOCK
      end
      print(ok)
    ]])
  end)

  it("is saved and resumed over mpi, in each stage", function()
    if not job.can "mpi" then return pending("no mpirun here") end
    assert.equal("true true true true true true\n", (scripts.over("mpi", 2, [[
      local whole, results = fit("ddp", 2), {}
      for stage = 1, 3 do
        local strategy = {"sharded", stage = stage, units = {nn.Linear}}
        cut(strategy, 2, 4, "cut.ckpt")
        local _, ended = fit(strategy, 2, {max_steps = 4})
        ended:save_checkpoint "ended.ckpt" -- all ranks are here still
        for _, path in ipairs {"cut.ckpt", "ended.ckpt"} do
          table.insert(results, same(whole, (fit(strategy, 2, nil, {ckpt_path = path}))))
        end
      end
      print(table.unpack(results))
    ]]):gsub("\t", " ")))
  end)

  it("of weights alone, or saved when the other ranks have ended, is one too", function()
    prints("true\nindex.safetensors rank-0.safetensors\ntrue\n", [[
      local Own = Net:extend("Net")
      function Own:on_train_batch_end()
        if self.global_step == 2 then
          self.trainer:save_checkpoint("weights.ckpt", {weights_only = true})
        end
      end
      local net, t = fit("zero1", 2, {max_steps = 2}, nil, Own)
      local saved = assert(require "ltrain.files.checkpoint_file".read "weights.ckpt")
      local state = require "ltrain.core.parts".whole(saved.state_dict)
      print(lt.hash(net:state_dict()) == lt.hash(state) and not saved.loops)
      assert(Net:load_from_checkpoint("weights.ckpt"))
      t:save_checkpoint "end.ckpt"
      print(files "end.ckpt")
      print(same((fit("ddp", 2)), (fit("zero1", 2, nil, {ckpt_path = "end.ckpt"}))))
    ]])
  end)

  it("has what hooks put into it, and the averages of WeightAveraging", function()
    prints("true true 7\n", [[
      local function averaging()
        return {callbacks = {lt.callbacks.EMAWeightAveraging {decay = 0.9}}}
      end
      local Own = Net:extend("Net")
      function Own:on_save_checkpoint(saved) saved.mine = {count = 7, t = lt.ones(3)} end
      function Own:on_load_checkpoint(saved) self.mine = saved.mine end
      function Own:on_train_batch_end()
        if self.global_step == 4 then self.trainer:save_checkpoint "cut.ckpt" end
      end
      local whole = fit("ddp", 2, averaging(), nil, Own)
      local net = fit("zero1", 2, averaging(), {ckpt_path = "cut.ckpt"}, Own)
      print(same(whole, net), net.mine.t:sum():item() == 3, net.mine.count)
    ]])
  end)

  it("replaces a former one, or a file of its name, and is replaced by one", function()
    prints("true\nfile true\n", [[
      cut({"ddp", state_dict_type = "full"}, 2, 1, "cut.ckpt")
      cut("ddp", 3, 2, "cut.ckpt")
      cut("ddp", 2, 4, "cut.ckpt")
      assert(files "cut.ckpt" == "index.safetensors rank-0.safetensors rank-1.safetensors")
      assert(not files ".":find("saving", 1, true))
      local whole = fit("ddp", 2)
      print(same(whole, (fit("ddp", 2, nil, {ckpt_path = "cut.ckpt"}))))
      local full = {"ddp", state_dict_type = "full"}
      cut(full, 2, 4, "cut.ckpt")
      assert(not files ".":find("saving", 1, true))
      print(c.io.kind "cut.ckpt", same(whole, (fit(full, 2, nil, {ckpt_path = "cut.ckpt"}))))
    ]])
  end)

  it("is saved when the fit is interrupted, and resumes it", function()
    prints("true true\n", [[
      local Own = Net:extend("Net")
      function Own:on_train_batch_end()
        if self.global_step == 4 and lt.dist.rank() == 0 then
          os.execute("kill -INT " .. c.runtime.pid())
        end
      end
      local o = {enable_checkpointing = true, default_root_dir = "runs"}
      local ok = pcall(fit, "zero1", 2, o, nil, Own)
      local path = "runs/checkpoints/interrupted.ckpt"
      print(not ok, same((fit("ddp", 2)), (fit("zero1", 2, nil, {ckpt_path = path}))))
    ]])
  end)

  it("needs a checkpoint_io that writes it", function()
    local status, _, err = scripts.run(nil, [[
      local own = {save = function() end, load = function() end, remove = function() end}
      cut({"ddp", checkpoint_io = own}, 2, 1, "cut.ckpt")
    ]])
    assert.equal(1, status)
    assert.matches("save_checkpoint: a CheckpointIO that overrides save must define save_sharded",
      err)
  end)
end)

describe("ModelCheckpoint of sharded checkpoints", function()
  it("keeps the best and the last, removes others, and finds them again", function()
    prints("epoch=1.ckpt epoch=3.ckpt last.ckpt\ntrue true\nepoch=3.ckpt last.ckpt\n", [[
      local values = {0.5, 0.2, 0.9, 0.1}
      local Own = Net:extend("Net")
      function Own:on_train_epoch_end() self:log("score", values[self.current_epoch + 1]) end
      local function callback()
        return lt.callbacks.ModelCheckpoint {dirpath = "saved", monitor = "score", save_top_k = 2,
          save_last = true, filename = "{epoch}"}
      end
      local o = {enable_checkpointing = true, max_epochs = 4, callbacks = {callback()}}
      local net, t = fit("zero1", 2, o, nil, Own)
      print(files "saved")
      local best = t.checkpoint_callback.best_model_path
      o.callbacks, o.max_epochs = {callback()}, 5
      values[5] = 0.3
      local other, again = fit("zero1", 2, o, {ckpt_path = "last"}, Own)
      print(best == "saved/epoch=3.ckpt", again.ckpt_path == "saved/last.ckpt")
      os.execute "rm -r saved/epoch=1.ckpt"
      print(files "saved")
    ]])
  end)

  it("links last.ckpt to the folder that was saved last", function()
    prints("epoch=1.ckpt last.ckpt\ntrue true\n", [[
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "saved", filename = "{epoch}",
        save_last = "link"}
      local net = fit("zero1", 2, {enable_checkpointing = true, callbacks = {callback}})
      print(files "saved")
      local state = require "ltrain.files.sharded_reader".load "saved/last.ckpt"
      print(c.io.follow "saved/last.ckpt" ~= "saved/last.ckpt", lt.hash(state["model.a.weight"])
        == lt.hash(net.a.weight:detach()))
    ]])
  end)

  it("writes while the fit continues, and the fit ends when all is written", function()
    -- Rank 0 sees the files two steps later at the earliest; a third save waits for the first.
    prints("4 true\nstep=12.ckpt step=3.ckpt step=6.ckpt step=9.ckpt\n"
      .. "index.safetensors rank-0.safetensors rank-1.safetensors\n", [[
      local step, done = 0, {}
      local wait_for, commit = c.io.wait_for, c.io.commit_folder
      function c.io.wait_for(path, seconds)
        local begun = assert(tonumber(path:match "step=(%d+)"), path)
        return (step >= begun + 2 or step == 12) and wait_for(path, seconds)
      end
      function c.io.commit_folder(from, to)
        done[#done + 1] = step
        return commit(from, to)
      end
      local Own = Net:extend("Net")
      function Own:on_train_batch_start() step = self.global_step end
      function Own:on_train_end() step = self.global_step end
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "saved", every_n_train_steps = 3,
        save_top_k = -1, filename = "{step}"}
      fit("ddp", 2, {enable_checkpointing = true, callbacks = {callback}}, nil, Own)
      print(#done, done[1] >= 5 and done[1] <= 9)
      print(files "saved")
      print(files "saved/step=9.ckpt")
    ]])
  end)

  it("saves the state before a batch that failed", function()
    prints("true\n", [[
      local Own = Net:extend("Net")
      function Own:on_train_batch_start(_, i)
        if self.current_epoch == 1 and i == 2 then error "as planned" end
      end
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "kept", save_on_exception = true}
      local ok = pcall(fit, "ddp", 2, {enable_checkpointing = true, callbacks = {callback}}, nil,
        Own)
      assert(not ok)
      print(same((fit("ddp", 2)), (fit("ddp", 2, nil, {ckpt_path = callback.exception_path}))))
    ]])
  end)
end)
