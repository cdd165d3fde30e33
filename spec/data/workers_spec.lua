-- spec/data/workers_spec.lua: processes that read samples: the same batches, in order, whatever
-- their number; how their errors arrive; how they end.
-- tags: slow, threads

local lt = require "ltrain"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"

local DataLoader <const>, Dataset <const> = lt.data.DataLoader, lt.data.Dataset
local RACES <const> = (os.getenv("LT_SANITIZE") or ""):find("thread", 1, true) ~= nil

local function has(pattern, text)
  assert.is_truthy(text:find(pattern), ("'%s' does not match '%s'"):format(text, pattern))
end

-- A data set of n samples that get(self, i) reads.
local function dataset(n, get)
  local Class = Dataset:extend("Samples")
  function Class:__len() return n end
  Class.get = get
  return Class()
end

local function random_sample(_, i)
  return {
    x = lt.rand(2, 3), r = math.random(), i = i, half = i / 2, name = "sample " .. i,
    even = i % 2 == 0, deep = { { t = lt.tensor({ i }, { dtype = "u8" }) } },
  }
end

-- Draws too: what it mixes must not depend on who does.
local function mixing(list)
  local batch = lt.data.collate(list)
  batch.share = math.random()
  batch.x = batch.x * lt.rand(1)
  return batch
end

local function hashes(loader, epochs, all)
  all = all or {}
  for _ = 1, epochs or 1 do
    for batch, i in loader:batches() do all[#all + 1] = i .. " " .. lt.hash(batch) end
  end
  return all
end

local function options(more)
  local o = { batch_size = 3, shuffle = true, seed = 5, collate = mixing }
  for key, value in pairs(more or {}) do o[key] = value end
  return o
end

local function children()
  local pid = io.open("/proc/self/stat"):read("n")
  local file <close> = assert(io.open(("/proc/self/task/%d/children"):format(pid)))
  local list = {}
  for one in file:read("a"):gmatch "%d+" do list[#list + 1] = one end
  return list
end

local function own_pid() return math.tointeger(io.open("/proc/self/stat"):read("n")) end

describe("data.DataLoader with num_workers", function()
  it("gives the batches that no worker, one and four give", function()
    local set = dataset(20, random_sample)
    local wanted = hashes(DataLoader(set, options()), 2)
    assert.equal(14, #wanted)
    for _, more in ipairs { { num_workers = 1 }, { num_workers = 4 },
      { num_workers = 4, persistent_workers = true }, { num_workers = 3, prefetch = 7 } } do
      assert.same(wanted, hashes(DataLoader(set, options(more)), 2))
    end
  end)

  it("resumes in the middle of an epoch, with another number of workers", function()
    local set = dataset(20, random_sample)
    local wanted = hashes(DataLoader(set, options()), 2)
    local loader = DataLoader(set, options { num_workers = 2 })
    local got = hashes(loader)
    for batch, i in loader:batches() do
      got[#got + 1] = i .. " " .. lt.hash(batch)
      if i == 2 then break end
    end
    local state = loader:state_dict()
    assert.equal(9, state.position)
    local other = DataLoader(set, options { num_workers = 4 })
    other:load_state_dict(state)
    assert.same(wanted, hashes(other, 1, got))
  end)

  it("hands over every kind of value that a batch may have", function()
    local sample = {
      "text", 7, 2.5, true, { 1, { deep = lt.zeros(0, 3) } }, x = lt.tensor(3.0), [10] = "ten",
      t = lt.arange(6):reshape(2, 3):t(), half = lt.ones({ 2 }, { dtype = "bf16" }),
    }
    local set = dataset(2, function() return sample end)
    local function first(list) return list[1] end
    for batch in DataLoader(set, { collate = first, num_workers = 1 }):batches() do
      assert.equal(lt.hash(sample), lt.hash(batch))
      assert.equal("integer", math.type(batch[2]))
      assert.same({ 0, 3 }, batch[5][2].deep.shape)
      assert.equal("bf16", batch.half.dtype)
      assert.equal("[0,3,1,4,2,5]", lt.json.encode(batch.t:reshape(6):tolist()))
    end
  end)

  it("keeps batches that the script keeps", function()
    local set = dataset(30, function(_, i) return lt.full({ 1000 }, i) end)
    local kept = {}
    for batch in DataLoader(set, { num_workers = 2 }):batches() do kept[#kept + 1] = batch end
    for i, batch in ipairs(kept) do
      assert.equal(i * 1000.0, batch:sum():item())
      batch:add_(1)
      assert.equal(i * 1000.0 + 1000, batch:sum():item())
    end
  end)

  it("has more and larger batches than the one before", function()
    local set = dataset(8, function(_, i) return lt.full({ 10 ^ (i // 2) // 1 | 0 }, i) end)
    for batch, i in DataLoader(set, { num_workers = 2 }):batches() do
      assert.equal(10 ^ ((i + 1) // 2), batch:numel())
      assert.equal(i + 1.0, batch:max():item())
    end
  end)

  it("follows samplers, and drops what drop_last drops", function()
    local set = dataset(7, function(_, i) return i end)
    local function all(o)
      local list = {}
      o.num_workers = 2
      for batch in DataLoader(set, o):batches() do list[#list + 1] = batch:tolist() end
      return list
    end
    assert.same({ { 7, 7 }, { 1 } }, all { sampler = { 7, 7, 1 }, batch_size = 2 })
    assert.same({ { 2 }, { 3, 1, 5 } }, all { batch_sampler = { { 2 }, { 3, 1, 5 } } })
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, all { batch_size = 3, drop_last = true })
  end)

  it("leaves data sets of tensors to the thread that gathers their rows", function()
    local set = lt.data.TensorDataset(lt.arange(4))
    for _ in DataLoader(set, { num_workers = 2 }):batches() do assert.same({}, children()) end
    local function first(list) return list[1][1] end
    local loader = DataLoader(set, { num_workers = 2, collate = first })
    for batch, i in loader:batches() do
      assert.equal(2, #children())
      assert.equal(i, batch:item())
    end
  end)

  it("gives each worker a place of its own in files that were open", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    for i = 1, 40 do file:write(("%03d\n"):format(i)) end
    file:close()
    file = assert(io.open(path))
    local set = dataset(40, function(_, i)
      file:seek("set", (i - 1) * 4)
      return math.tointeger(file:read("n"))
    end)
    local seen = {}
    for batch in DataLoader(set, { num_workers = 4 }):batches() do
      seen[#seen + 1] = batch:item()
    end
    for i = 1, 40 do assert.equal(i, seen[i]) end
    file:close()
    os.remove(path)
  end)

  it("keeps batches of 2 ranks the same", function()
    local code = [[
      local lt = require "ltrain"
      local S = lt.data.Dataset:extend("S")
      function S:__len() return 21 end
      function S:get(i) return {x = lt.rand(2), i = i + math.random()} end
      for _, workers in ipairs{0, 2} do
        print(lt.dist.launch(2, function(rank)
          local loader = lt.data.DataLoader(S(), {batch_size = 3, shuffle = true, seed = 4,
            num_workers = workers})
          loader:shard(rank, 2)
          local all = {}
          for batch in loader:batches() do all[#all + 1] = batch and lt.hash(batch) or "none" end
          return table.concat(lt.dist.all_gather(table.concat(all, " ")), " ")
        end))
      end]]
    local status, out, err = child.run { "-e", code }
    assert.equal(0, status, err)
    local first, second = out:match "^(.-)\n(.-)\n$"
    assert.equal(8, select(2, first:gsub("%x+", "")))
    assert.equal(first, second)
  end)

  it("trains to the same bits on 2 ranks, resumed in mid-epoch with other workers", function()
    local folder = child.folder()
    child.write(folder .. "/fit.lua", [[
      local lt = require "ltrain"
      local S = lt.data.Dataset:extend("S")
      function S:__len() return 29 end
      function S:get() return {x = lt.rand(4) + math.random()} end
      lt.seed(1)
      local net = lt.Module()
      net.fc = lt.nn.Linear(4, 1)
      function net:training_step(batch) return self.fc(batch.x):pow(2):mean() end
      function net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
      local workers, steps, from = tonumber(arg[1]), tonumber(arg[2]), arg[3]
      local trainer = lt.Trainer{max_epochs = 2, max_steps = steps, devices = 2, logger = false,
        enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
      local loader = lt.data.DataLoader(S(), {batch_size = 4, shuffle = true,
        num_workers = workers})
      trainer:fit(net, loader, from and {ckpt_path = from} or nil)
      if steps > 0 then trainer:save_checkpoint("part.ckpt") end
      print(lt.hash(net:state_dict()))]])
    local status, out, err = child.shell("ltrain fit.lua 0 -1; ltrain fit.lua 2 6; "
      .. "ltrain fit.lua 1 -1 part.ckpt", { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    local whole, part, resumed = out:match "^(%x+)\n(%x+)\n(%x+)\n$"
    assert.not_equal(whole, part)
    assert.equal(whole, resumed)
  end)
end)

describe("an error in a worker", function()
  it("has the line, the sample, the worker and its traceback", function()
    local function decode(i)
      if i == 4 then error("no such picture") end
      return i
    end
    local set = dataset(9, function(_, i) return (decode(i)) end)
    local loader, seen = DataLoader(set, { num_workers = 2 }), {}
    local message = error_of(function()
      for batch in loader:batches() do seen[#seen + 1] = batch:item() end
    end)
    assert.same({ 1, 2, 3 }, seen)
    has("workers_spec.lua:%d+: no such picture %(in sample 4%)\nin worker 1 of 2, stack traceback:"
      .. "\n\t.-workers_spec.lua:%d+: in .-'decode'\n\t.-workers_spec.lua:%d+: in .-'get'", message)
    assert.same({}, children())
    assert.equal(3, loader:state_dict().position)
  end)

  it("is that of collate, or of what cannot be handed over", function()
    local set = dataset(4, function(_, i) return lt.ones(i) end)
    has("samples differ in shape: sample 1 has f32 %[1%], sample 2 has f32 %[2%]",
      error_of(function()
        for _ in DataLoader(set, { num_workers = 1, batch_size = 2 }):batches() do end
      end))
    local function collate() return { f = print } end
    local loader = DataLoader(set, { num_workers = 1, collate = collate })
    has("DataLoader: batch.f is a function: only nil", error_of(function()
      for _ in loader:batches() do end
    end))
  end)

  it("leaves a loop that catches it where it was", function()
    local broken = true
    local set = dataset(4, function(_, i)
      if i == 2 and broken then error("not yet") end
      return i
    end)
    local step <const> = DataLoader(set, { num_workers = 2 }):batches()
    assert.equal(1, step():item())
    has("not yet", error_of(step))
    broken = false
    assert.equal(2, step():item())
    assert.equal(3, step():item())
    assert.equal(4, step():item())
    assert.is_nil(step())
  end)

  it("is os.exit, or a collective in a rank's worker", function()
    local set = dataset(1, function() os.exit(0) end)
    has("os.exit was called in a worker of a DataLoader %(in sample 1%)", error_of(function()
      for _ in DataLoader(set, { num_workers = 1 }):batches() do end
    end))
    local status, _, err = child.run { "-e", [[
      local lt = require "ltrain"
      local S = lt.data.Dataset:extend("S")
      function S:__len() return 4 end
      function S:get() return lt.dist.all_reduce(lt.ones(1)) end
      lt.dist.launch(2, function()
        for _ in lt.data.DataLoader(S(), {num_workers = 1}):batches() do end
      end)]] }
    assert.equal(1, status)
    has("all_reduce: a worker of a DataLoader is not a rank", err)
  end)
end)

describe("a worker", function()
  it("knows which it is, and is prepared by worker_init_fn", function()
    local prepared
    local set = dataset(4, function()
      local info = lt.data.get_worker_info()
      return { id = info.id, n = info.num_workers, own = info.dataset ~= nil, prepared = prepared }
    end)
    local loader = DataLoader(set, { num_workers = 2, worker_init_fn = function(id)
      prepared = id * 10
    end })
    for batch, i in loader:batches() do
      assert.equal(i % 2, batch.id:item())
      assert.equal(2, batch.n:item())
      assert.is_true(batch.own:item())
      assert.equal(i % 2 * 10, batch.prepared:item())
    end
    assert.is_nil(lt.data.get_worker_info())
  end)

  it("has the data set of when the epoch began, or with persistent_workers its own", function()
    local set = dataset(2, function(self)
      self.read = (self.read or 0) + 1
      return { own_pid(), self.read, self.level or 0 }
    end)
    local function epoch(loader)
      local pid, read, level
      for batch in loader:batches() do
        pid, read, level = batch[1]:item(), batch[2]:item(), batch[3]:item()
      end
      return pid, read, level
    end
    for _, persistent in ipairs { false, true } do
      set.level = 0
      local loader = DataLoader(set, { num_workers = 1, persistent_workers = persistent })
      local first = epoch(loader)
      set.level = 3
      local second, read, level = epoch(loader)
      assert.equal(persistent, first == second)
      assert.equal(persistent and 4 or 2, read)
      assert.equal(persistent and 0 or 3, level)
      assert.equal(persistent and 1 or 0, #children())
    end
    collectgarbage()
    collectgarbage()
    assert.same({}, children())
  end)

  it("that persists drops what was under way when the loop was left", function()
    local set = dataset(12, function(_, i) return i end)
    local loader = DataLoader(set, { num_workers = 3, persistent_workers = true, prefetch = 5 })
    for _ = 1, 4 do
      for batch, i in loader:batches() do
        assert.equal(i + 1, batch:item())
        if i == 2 then break end
      end
    end
  end)

  it("ends with the loop, however that ends", function()
    local set = dataset(100, function(_, i) return i end)
    local loader = DataLoader(set, { num_workers = 2 })
    for _, i in loader:batches() do
      assert.equal(2, #children())
      if i == 3 then break end
    end
    assert.same({}, children())
    pcall(function()
      for _ in loader:batches() do error("in the loop") end
    end)
    assert.same({}, children())
    for _ in loader:batches() do end
    assert.same({}, children())
  end)

  it("that is killed is an error that names the signal", function()
    for _, signal in ipairs { "KILL", "ABRT", "TERM" } do
      local set = dataset(6, function(_, i)
        if i == 4 then os.execute(("kill -%s %d"):format(signal, own_pid())) end
        return i
      end)
      has("workers_spec.lua:%d+: DataLoader: worker 1 of 2 %(pid %d+%) was ended by SIG" .. signal,
        error_of(function()
          for _ in DataLoader(set, { num_workers = 2 }):batches() do end
        end))
      assert.same({}, children())
    end
  end)

  it("is waited for until Ctrl-C, which ends the script at its line", function()
    local folder = child.folder()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      local S = lt.data.Dataset:extend("S")
      function S:__len() return 4 end
      function S:get()
        io.open("reading", "w"):close()
        local start = require "ltrain.c".runtime.clock()
        repeat until require "ltrain.c".runtime.clock() - start > 0.5
        return 1
      end
      for _ in lt.data.DataLoader(S(), {num_workers = 1}):batches() do end]])
    local status, out, err = child.shell([[
      env --default-signal=INT ltrain script.lua & parent=$!
      n=0; until [ -e reading ] || [ $n = 300 ]; do n=$((n + 1)); sleep 0.01; done
      kill -INT $parent
      set +e; wait $parent; echo "exit $?"]], { dir = folder })
    assert.equal(0, status, err)
    assert.equal("exit 130\n", out)
    has("script.lua:10: interrupted", err)
    child.remove(folder)
  end)

  it("has one thread", function()
    if RACES then pending("ThreadSanitizer has one of its own in each process") end
    local set = dataset(2, function()
      local x = lt.rand(300, 300)
      x:matmul(x)
      local file <close> = assert(io.open("/proc/self/status"))
      return math.tointeger(file:read("a"):match "Threads:%s*(%d+)")
    end)
    local big = lt.rand(512, 512)
    big:matmul(big) -- the pool of threads is there when it is forked
    for batch in DataLoader(set, { num_workers = 2 }):batches() do assert.equal(1, batch:item()) end
    big:matmul(big)
  end)

  it("ends when its parent is killed, also when it is stopped", function()
    if RACES then pending("ThreadSanitizer delivers signals at calls of the C library alone") end
    local folder = child.folder()
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      local S = lt.data.Dataset:extend("S")
      function S:__len() return 4 end
      function S:get(i)
        local pid = io.open("/proc/self/stat"):read("n")
        local file <close> = assert(io.open(("pid.%d"):format(i), "w"))
        file:write(math.tointeger(pid))
        file:close()
        os.rename(("pid.%d"):format(i), ("pid.%d.txt"):format(i))
        repeat until false
      end
      for _ in lt.data.DataLoader(S(), {num_workers = 2}):batches() do end]])
    local _, out = child.shell([[
      wait_for() {
        n=0; until "$@" || [ $n = 300 ]; do n=$((n + 1)); sleep 0.01; done; [ $n -lt 300 ]
      }
      gone() { ! grep -q '^State:.[^Z]' /proc/$1/status 2> /dev/null; }
      setsid ltrain script.lua & parent=$!
      wait_for [ -s pid.1.txt ]; wait_for [ -s pid.2.txt ]
      gone $(cat pid.1.txt) && echo early
      kill -STOP $(cat pid.2.txt)
      kill -9 $parent
      for k in 1 2; do wait_for gone $(cat pid.$k.txt) && echo gone; done]], { dir = folder })
    assert.equal("gone\ngone\n", out)
    child.remove(folder)
  end)
end)

describe("the options of workers", function()
  local set = dataset(2, function(_, i) return i end)

  it("are refused where they mean nothing", function()
    has("persistent_workers needs num_workers = 1 or more", error_of(function()
      DataLoader(set, { persistent_workers = true })
    end))
    has("worker_init_fn needs num_workers = 1 or more", error_of(function()
      DataLoader(set, { worker_init_fn = print })
    end))
    has("prefetch = 2 batches in flight leave some of num_workers = 4 without work",
      error_of(function() DataLoader(set, { num_workers = 4, prefetch = 2 }) end))
    has("prefetch without workers must be at most 16: got 17", error_of(function()
      DataLoader(set, { prefetch = 17 })
    end))
  end)
end)
