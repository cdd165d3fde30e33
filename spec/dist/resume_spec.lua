-- spec/dist/resume_spec.lua: a fit that resumes, in mid-epoch, on another number of ranks.
-- tags: sampled, slow
local child = require "spec.cli.child"
local over = require "spec.dist.over"
local trained = require "spec.dist.trained"

-- A net in f64 that notes the samples of each step; `on` makes a trainer on ranks; `steps` prints,
-- for each step of all of them, its number and the samples in ascending order.
local scripts <const> = trained.with [[
lt.seed(3)
local N <const> = 44
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.second = lt.nn.Linear(2, 5), lt.nn.Linear(5, 1)
  self:to("f64")
  self.mean = lt.metrics.Mean()
  self.seen = {}
end
function Net:training_step(batch, index)
  local x, id = batch[1], batch[2]
  local hidden = self.first(x):tanh()
  for _, i in ipairs(id:tolist()) do table.insert(self.seen, {self.current_epoch, index, i}) end
  local loss = (self.second(hidden) - x:sum(2, true)):pow(2):mean()
  self:log("loss", loss, {on_epoch = true, on_step = false})
  self:log("ids", id:to("f64"):mean(), {on_epoch = true, on_step = false})
  self.mean:update(id)
  self:log("mean", self.mean, {on_epoch = true, on_step = false})
  return loss
end
function Net:validation_step() end
function Net:configure_optimizers()
  local sgd = lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = 0.9})
  return {optimizer = sgd, lr_scheduler = {scheduler = lt.optim.StepLR(sgd, 4, {gamma = 0.8}),
    interval = self.interval or "step"}}
end
function Net:on_fit_end()
  local all = {}
  for _, seen in ipairs(lt.dist.all_gather(self.seen)) do
    for _, one in ipairs(seen) do all[#all + 1] = one end
  end
  table.sort(all, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3]
  end)
  if lt.dist.rank() == 0 then show(all) end
end
local lines = {}
function show(all)
  for _, one in ipairs(all) do
    local key = one[1] .. "." .. one[2]
    if not lines[key] then
      lines[key], lines[#lines + 1] = {}, key
    end
    table.insert(lines[key], one[3])
  end
end
local x = lt.randn(N, 2, {dtype = "f64"})
local data = lt.data.TensorDataset(x, lt.arange(N))
local function shuffled()
  return lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true, seed = 4})
end
-- One that was made as all others of the script; its scheduler counts epochs.
local function fresh()
  lt.seed(3)
  local net = Net()
  net.interval = "epoch"
  return net
end
local function on(devices, o)
  o.devices, o.max_epochs = devices, o.max_epochs or 2
  return trainer(o)
end
local function weights(net)
  local all = {}
  for _, p in ipairs(net:parameters()) do
    for _, value in ipairs(p:reshape {-1}:tolist()) do all[#all + 1] = value end
  end
  return all
end
local function distance(a, b)
  local most = 0
  for i, value in ipairs(weights(a)) do most = math.max(most, math.abs(value - weights(b)[i])) end
  return most
end
local function steps()
  for _, key in ipairs(lines) do print(key, table.concat(lines[key], " ")) end
  lines = {}
end
]]

local function start(script) return scripts.run(nil, script) end
local function run(script) return scripts.output(nil, script) end

-- A part of a fit, in processes of its own: on n ranks, up to a step; resumes from a file if there
-- is one, and writes it. Prints the steps, then its values.
local LEG <const> = [[
local max_steps, file = %d, %q
local t, net = on(n, {max_steps = max_steps}), Net()
t:fit(net, lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true, seed = 4}), nil,
  require "ltrain.c".io.kind(file) and {ckpt_path = file} or nil)
t:save_checkpoint(file)
steps()
local m, all = t.callback_metrics, weights(net)
table.move({t.global_step, t.current_epoch, m.loss, m.ids, m.mean}, 1, 5, #all + 1, all)
for _, value in ipairs(all) do print(("= %%.17g"):format(value)) end
]]

-- Runs legs {ranks, up to}; the steps of all, and the values of the last.
local function travel(way, legs)
  local folder, all, values = child.folder(), {}, nil
  for _, leg in ipairs(legs) do
    local out, err = scripts.over(leg[1] > 1 and way or "shm", leg[1],
      LEG:format(leg[2], folder .. "/leg.ckpt"))
    assert.not_matches("in the checkpoint", err)
    all[#all + 1] = out:match "^[^=]*"
    values = {}
    for value in out:gmatch "= (%S+)" do values[#values + 1] = tonumber(value) end
  end
  child.remove(folder)
  return table.concat(all), values
end

describe("a fit that resumes 4 -> 2 -> 1 ranks in mid-epoch", function()
  over({ "shm", "mpi", "two hosts" }, "makes the same steps with global_batch_size, to the same "
    .. "weights and values", function(way)
    local straight, wanted = travel("shm", { { 1, -1 } })
    local parts, values = travel(way, { { 4, 2 }, { 2, 4 }, { 1, 9 }, { 2, -1 } })
    assert.equal(12, select(2, straight:gsub("\n", "")))
    assert.equal(straight, parts)
    assert.equal(5 + 2 * 5 + 5 + 5 + 1, #values)
    for i, value in ipairs(wanted) do assert.near(value, values[i], 1e-10) end
  end)

  it("takes back extra state, and calls the hooks of states, on every rank", function()
    local out = run [[
      local file = os.tmpname()
      function Net:get_extra_state() return {count = #self.seen} end
      function Net:set_extra_state(state) self.count = state.count end
      local function hooked()
        local net = fresh()
        net:register_state_dict_post_hook(function(_, state) state.extra = lt.ones(1) end)
        net:register_load_state_dict_pre_hook(function(_, state)
          net.extra, state.extra = state.extra:item(), nil
        end)
        return net
      end
      local first = on(2, {max_epochs = 1})
      first:fit(hooked(), shuffled())
      first:save_checkpoint(file)
      local net = hooked()
      on(2, {max_epochs = 1}):validate(net, {lt.ones(1)}, {ckpt_path = file})
      print(net.count > 0, net.extra)
      net = hooked()
      function net:on_fit_end()
        local all = lt.dist.all_gather(self.count > 0 and self.extra)
        if lt.dist.rank() == 0 then print(all[1], all[2]) end
      end
      on(2, {max_epochs = 2}):fit(net, shuffled(), nil, {ckpt_path = file})
      os.remove(file)
    ]]
    assert.matches("true\t1.0\n.*1.0\t1.0", out)
  end)

  it("reads each sample of the epoch once where ranks keep their batch size", function()
    local out, err = run [[
      local at = {}
      local function loader()
        return lt.data.DataLoader(data, {batch_size = 2, shuffle = true, seed = 4})
      end
      local net
      for i, leg in ipairs {{4, 3}, {2, 6}, {1, -1}} do
        lt.seed(3)
        net = Net()
        net.interval = "epoch"
        function net:on_validation_start() table.insert(at, self.trainer.num_training_batches) end
        local t = on(leg[1], {max_steps = leg[2], max_epochs = 1, val_check_interval = 0.5,
          elastic = {batch = "per_rank"}})
        t:fit(net, loader(), lt.data.DataLoader(data, {batch_size = 11}),
          i > 1 and {ckpt_path = "leg.ckpt"} or nil)
        t:save_checkpoint "leg.ckpt"
        print(t.progress.batch, t.progress.train_batches, t.global_step, t.world.global_batch)
      end
      local seen = {}
      for _, key in ipairs(lines) do
        for _, id in ipairs(lines[key]) do seen[#seen + 1] = id end
      end
      table.sort(seen)
      print(#seen, seen[1], seen[44], table.concat(at, " "))
      for i = 2, #seen do assert(seen[i] == seen[i - 1] + 1) end
    ]]
    -- 24 of 44 samples in steps of 8, 12 in steps of 4, 8 in steps of 2. Validation comes behind
    -- half of an epoch's batches: 3 of 6, none of the rest.
    assert.equal("3\t3\t3\t8\n9\t6\t6\t4\n0\t10\t10\t2\n44\t0\t43\t6 22\n", out)
    assert.matches("global batch 4 = 2 x 2 %(8 in the checkpoint%), 11 steps an epoch", err)
    assert.matches("ltrain: resumed on 1 rank %(was 2%): global batch 2 %(8 at the start%)", err)
  end)

  it("refuses schedules that count steps when the script has another batch size", function()
    local SCRIPT <const> = [[
      local function fit(ranks, o, options)
        on(ranks, o):fit(Net(), lt.data.DataLoader(data, {batch_size = 1}), nil, options)
      end
      local t = on(2, {max_steps = 2})
      t:fit(Net(), lt.data.DataLoader(data, {batch_size = 2}))
      t:save_checkpoint "a.ckpt"
      fit(2, {max_steps = 6, allow_batch_change = %s}, {ckpt_path = "a.ckpt"})
      print "done"
    ]]
    local status, _, err = start(SCRIPT:format "false")
    assert.equal(1, status)
    assert.matches("fit: a.ckpt was written with a global batch of 4, this run has 2: a scheduler "
      .. "that counts steps would behave differently: give global_batch_size = 4 to the "
      .. "DataLoader, or allow_batch_change = true", err)
    assert.equal("done\n", run(SCRIPT:format "true"))
  end)
end)

describe("a file that ranks save by agreement", function()
  it("has the batches of a batch sampler that are left", function()
    local out = run [[
      local batches = {}
      for k = 0, 10 do batches[k + 1] = {4 * k + 1, 4 * k + 2, 4 * k + 3, 4 * k + 4} end
      local function loader()
        return lt.data.DataLoader(data, {batch_sampler = batches})
      end
      for i, leg in ipairs {{4, 1}, {2, 3}, {1, -1}} do
        local net, t = Net(), on(leg[1], {max_steps = leg[2], max_epochs = 1})
        t:fit(net, loader(), nil, i > 1 and {ckpt_path = "leg.ckpt"} or nil)
        t:save_checkpoint "leg.ckpt"
      end
      steps()
    ]]
    local seen = {}
    for ids in out:gmatch "\t([%d ]+)\n" do
      for id in ids:gmatch "%d+" do seen[#seen + 1] = math.tointeger(id) end
    end
    assert.equal(44, #seen)
    for i, id in ipairs(seen) do assert.equal(i - 1, id) end
  end)

  it("in mid-window has the gradients of all", function()
    local out = run [[
      local whole = fresh()
      on(1, {accumulate_grad_batches = 4}):fit(whole, shuffled())
      for _, leg in ipairs {{4, 2}, {2, 1}, {2, 4}} do
        local first = fresh()
        function first:on_train_batch_end(_, _, i)
          if i == 1 then self.trainer:request_checkpoint("mid.ckpt", {agreed = true}) end
        end
        on(leg[1], {accumulate_grad_batches = 4, max_steps = 1}):fit(first, shuffled())
        local rest = fresh()
        on(leg[2], {accumulate_grad_batches = 4}):fit(rest, shuffled(), nil,
          {ckpt_path = "mid.ckpt"})
        print(distance(whole, rest) < 1e-10)
      end
    ]]
    assert.equal("true\ntrue\ntrue\n", out)
  end)
end)

describe("a fit that ends in mid-window", function()
  local ENDED <const> = [[
    local function leaving()
      local net = fresh()
      function net:on_train_batch_start(_, i) if i == 2 then return -1 end end
      return net
    end
    local function options(o)
      o.accumulate_grad_batches, o.deterministic = 3, %s
      return o
    end
    local whole = leaving()
    on(1, options {}):fit(whole, shuffled())
    for _, leg in ipairs {{1, 1}, {2, 2}, {4, 1}, {2, 4}} do
      local first = leaving()
      local t = on(leg[1], options {max_epochs = 1})
      t:fit(first, shuffled())
      t:save_checkpoint "end.ckpt"
      local rest = leaving()
      on(leg[2], options {}):fit(rest, shuffled(), nil, {ckpt_path = "end.ckpt"})
      t.max_epochs = 2
      t:fit(first, shuffled())
      print(distance(whole, rest) < 1e-10, distance(whole, first) < 1e-10)
    end
  ]]

  for _, mode in ipairs { "true", "'world'" } do
    it(("keeps its gradients for a file and for a later fit, with deterministic = %s"):format(mode),
      function() assert.equal(("true\ttrue\n"):rep(4), run(ENDED:format(mode))) end)
  end
end)

describe("with deterministic = 'world' a fit that resumes, 4 -> 2 -> 1 ranks", function()
  it("has the same bits, saved at a step or in mid-window", function()
    local out = run [[
      local function net_of(at)
        local net = fresh()
        function net:on_train_batch_end(_, _, i)
          if i == at and self.current_epoch == 0 then
            self.trainer:request_checkpoint("leg.ckpt", {agreed = true})
          end
        end
        return net
      end
      local world = {deterministic = "world", accumulate_grad_batches = 3, max_epochs = 2}
      local function leg(ranks, net, max_steps, options)
        local o = {max_steps = max_steps}
        for name, value in pairs(world) do o[name] = value end
        on(ranks, o):fit(net, shuffled(), nil, options)
        return net
      end
      local whole = leg(1, net_of())
      for _, at in ipairs {{1, 2}, {1, 3}, {2, 4}} do
        leg(4, net_of(at[1]), 1)
        leg(2, net_of(at[2]), 2, {ckpt_path = "leg.ckpt"})
        print(distance(whole, leg(1, net_of(), -1, {ckpt_path = "leg.ckpt"})) == 0)
      end
    ]]
    assert.equal("true\ntrue\ntrue\n", out)
  end)
end)

describe("a file that is saved while a step runs", function()
  it("resumes with that step's batch", function()
    local out = run [[
      local function loader() return lt.data.DataLoader(data, {global_batch_size = 22}) end
      local net = Net()
      local step = net.training_step
      function net:training_step(batch, index)
        if self.global_step == 1 then self.trainer:save_checkpoint "in.ckpt" end
        return step(self, batch, index)
      end
      on(1, {max_epochs = 1}):fit(net, loader())
      lines = {}
      on(2, {max_epochs = 1}):fit(Net(), loader(), nil, {ckpt_path = "in.ckpt"})
      for _, key in ipairs(lines) do print(key, #lines[key], lines[key][1], lines[key][22]) end
    ]]
    assert.equal("0.1\t22\t22\t43\n", out)
  end)
end)

describe("manual optimization between two steps", function()
  it("resumes with the gradients of all ranks, on as many and on others", function()
    local folder = child.folder()
    child.write(folder .. "/manual.lua", [[
      local lt = require "ltrain"
      local Net = lt.Module:extend "Net"
      function Net:init()
        self.w, self.automatic_optimization = lt.parameter(lt.tensor {0.5}), false
      end
      function Net:training_step(batch, index)
        self:manual_backward((batch[1] * (self.w - 2)):square():mean())
        if index % 2 == 0 then return end
        self:optimizers():step()
        self:optimizers():zero_grad()
      end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local data = lt.data.TensorDataset(lt.arange(8):to "f32" / 4)
      local function fit(ranks, from, to)
        local net, saver = Net(), lt.Callback()
        saver.all_ranks = true
        function saver.on_train_batch_end(_, trainer, _, _, _, index)
          if to and index == 0 then trainer:request_checkpoint(to, {agreed = true}) end
        end
        lt.Trainer{devices = ranks, max_epochs = 1, logger = false, enable_checkpointing = false,
          enable_progress_bar = false, enable_model_summary = false, callbacks = {saver}}
          :fit(net, lt.data.DataLoader(data, {global_batch_size = 2}), {ckpt_path = from})
        return ("%.5f"):format(net.w:item())
      end
      for ranks = 1, 2 do
        local file = ranks .. ".ckpt"
        print(fit(ranks, nil, file), fit(1, file), fit(2, file))
      end
    ]])
    local status, out, err = child.run({ "manual.lua" }, { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    assert.equal(("1.70914\t1.70914\t1.70914\n"):rep(2), out)
  end)
end)

-- A fit on 2 ranks whose last.ckpt is a link, which resumes from it where it is there; rank 0 is
-- killed in a step. Prints the steps, where the link leads, which files there are, and the weights.
local LINKED <const> = [[
local dying, folder, io = %d, %q, require "ltrain.c".io
local last = io.kind(folder .. "/last.ckpt") and folder .. "/last.ckpt" or nil
local step = Net.training_step
function Net:training_step(...)
  local dies = self.trainer.global_step == dying and lt.dist.rank() == 0
  if dies then os.execute "kill -KILL $PPID" end
  return step(self, ...)
end
local saver = lt.callbacks.ModelCheckpoint {dirpath = folder, every_n_train_steps = 2,
  save_last = "link"}
local net, t = Net(), on(n, {enable_checkpointing = true, callbacks = {saver}})
t:fit(net, lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true, seed = 4}), nil,
  {ckpt_path = last})
print(t.global_step, io.follow(saver.last_model_path):match "[^/]*$",
  table.concat(io.list_folder(folder), " "))
for _, value in ipairs(weights(net)) do print(("%%.17g"):format(value)) end
]]

describe("save_last = 'link'", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  over({ "shm", "mpi" }, "leads ranks back to the newest file after one was killed", function(way)
    local function script(dying, name) return LINKED:format(dying, folder .. name) end
    local whole = scripts.over(way, 2, script(-1, "/whole"))
    assert.matches("12\tepoch=1-step=12.ckpt\tepoch=1-step=12.ckpt last.ckpt\n", whole, 1, true)
    local one <close> = scripts.start(way, 2, script(7, "/killed"))
    assert.truthy(one:wait_for("status", 60) and one:wait_gone(10), "it does not end")
    -- The file that a fit was resumed from stays, and the one before where the kill came between
    -- the two.
    local resumed = scripts.over(way, 2, script(-1, "/killed"))
    assert.matches("epoch=0%-step=[46].ckpt ", resumed)
    assert.equal(whole, (resumed:gsub("epoch=0%-step=[46].ckpt ", "")))
  end)
end)
