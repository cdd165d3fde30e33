-- spec/data/iterable_workers_spec.lua: iterable data sets that workers read: batches shared out by
-- the loader, or samples by the data set; resuming; errors.
-- tags: slow

local lt = require "ltrain"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"

local DataLoader <const>, Iterable <const> = lt.data.DataLoader, lt.data.IterableDataset

local function has(pattern, text)
  assert.is_truthy(text:find(pattern), ("'%s' does not match '%s'"):format(text, pattern))
end

-- Samples first, first + step, ... up to n; what `look` returns as first and step.
local function counting(n, look)
  local Class = Iterable:extend("Counting")
  function Class.iterate()
    local i, step = 1, 1
    if look then i, step = look() end
    i = i - step
    return function()
      i = i + step
      if i <= n then return { i = i, draw = lt.rand(1), number = math.random() } end
    end
  end
  return Class()
end

local function strided()
  local info = lt.data.get_worker_info()
  if not info then return 1, 1 end
  return info.id + 1, info.num_workers
end

local function options(more)
  local o = { batch_size = 2, seed = 3 }
  for key, value in pairs(more) do o[key] = value end
  return o
end

local function numbers(loader, all)
  all = all or {}
  for batch in loader:batches() do all[#all + 1] = table.concat(batch.i:tolist(), " ") end
  return all
end

-- Leaves a pass after its first batch.
local function early(loader)
  for _, i in loader:batches() do
    if i == 0 then return true end
  end
end

local function hashes(loader, all)
  all = all or {}
  for batch, i in loader:batches() do all[#all + 1] = i .. " " .. lt.hash(batch) end
  return all
end

describe("an iterable data set with num_workers", function()
  it("gives the batches that no worker gives", function()
    for _, cut in ipairs { {}, { drop_last = true } } do
      local wanted = hashes(DataLoader(counting(9), options(cut)))
      assert.equal(cut.drop_last and 4 or 5, #wanted)
      for _, n in ipairs { 1, 2, 7 } do
        cut.num_workers = n
        assert.same(wanted, hashes(DataLoader(counting(9), options(cut))))
      end
    end
  end)

  it("draws in collate what no worker draws", function()
    local function collate(list)
      local batch = lt.data.collate(list)
      batch.noise = lt.rand(2)
      return batch
    end
    local function all(n)
      return hashes(DataLoader(counting(9), options { num_workers = n, collate = collate }))
    end
    assert.same(all(0), all(3))
  end)

  it("may be a function, and empty", function()
    local function three()
      local i = 0
      return function()
        i = i + 1
        return i <= 3 and { i = i } or nil
      end
    end
    assert.same({ "1 2", "3" }, numbers(DataLoader(three, options { num_workers = 2 })))
    assert.same({}, numbers(DataLoader(counting(0), options { num_workers = 2 })))
  end)

  it("gives those of the workers in turn where it calls get_worker_info", function()
    local function all(n, more)
      local o = options(more or {})
      o.num_workers = n
      return numbers(DataLoader(counting(9, strided), o))
    end
    assert.same({ "1 2", "3 4", "5 6", "7 8", "9" }, all(0))
    assert.same({ "1 3", "2 4", "5 7", "6 8", "9" }, all(2))
    assert.same({ "1 3", "2 4", "5 7", "6 8" }, all(2, { drop_last = true }))
    assert.same({ "1 5", "2 6", "3 7", "4 8", "9" }, all(4))
  end)

  it("leaves out the workers that have no more", function()
    local function look()
      local id = lt.data.get_worker_info().id
      return ({ 9, 1, 6 })[id + 1], 1
    end
    assert.same({ "9", "1 2", "6 7", "3 4", "8 9", "5 6", "7 8", "9" },
      numbers(DataLoader(counting(9, look), options { num_workers = 3 })))
  end)

  it("shares out where only worker_init_fn calls it", function()
    local first
    local set = counting(4, function() return first, 2 end)
    local loader = DataLoader(set, options { num_workers = 2, worker_init_fn = function()
      first = lt.data.get_worker_info().id + 1
    end })
    assert.same({ "1 3", "2 4" }, numbers(loader))
  end)

  it("draws other numbers in each share, also where the first sample asks", function()
    local function lazy()
      local i, info = 0, nil
      return function()
        info = info or lt.data.get_worker_info()
        i = i + 1
        if i <= 3 then return { i = i, draw = lt.rand(1) } end
      end
    end
    local seen, n = {}, 0
    for batch in DataLoader(lazy, options { num_workers = 2, batch_size = 1 }):batches() do
      seen[batch.draw:item()], n = true, n + 1
    end
    local distinct = 0
    for _ in pairs(seen) do distinct = distinct + 1 end
    assert.equal(6, n)
    assert.equal(6, distinct)
  end)

  it("serves epoch after epoch with persistent workers, also left early", function()
    for _, look in ipairs { strided, false } do
      local set = counting(9, look or nil)
      local loader = DataLoader(set, options { num_workers = 2, persistent_workers = true })
      local wanted = numbers(DataLoader(set, options { num_workers = 2 }))
      assert.is_truthy(early(loader))
      assert.same(wanted, numbers(loader))
      assert.same(wanted, numbers(loader))
    end
  end)

  it("resumes after any batch, in mid-epoch and with the draws of the whole run", function()
    for _, look in ipairs { strided, false } do
      local set = counting(9, look or nil)
      local function new(n) return DataLoader(set, options { num_workers = n }) end
      local wanted = hashes(new(3))
      for stop = 0, 4 do
        local loader, got = new(3), {}
        for batch, i in loader:batches() do
          got[#got + 1] = i .. " " .. lt.hash(batch)
          if i == stop then break end
        end
        local state = lt.json.decode(lt.json.encode(loader:state_dict()))
        local other = new(look and 3 or 2)
        other:load_state_dict(state)
        assert.equal(#wanted, #hashes(other, got))
        local texts, texts_wanted = {}, {}
        for k, text in ipairs(got) do
          texts[k], texts_wanted[k] = text:match " (.*)", wanted[k]:match " (.*)"
        end
        assert.same(texts_wanted, texts)
      end
    end
  end)

  it("resumes shares with as many workers only", function()
    local set = counting(9, strided)
    local loader = DataLoader(set, options { num_workers = 2 })
    assert.is_truthy(early(loader))
    local state = loader:state_dict()
    for _, n in ipairs { 0, 3 } do
      local other = DataLoader(set, options { num_workers = n })
      other:load_state_dict(state)
      has("the state was taken with num_workers = 2", error_of(function() other:batches() end))
    end
    local plain = DataLoader(set, options { num_workers = 2 })
    plain:load_state_dict { epoch = 0, position = 4 }
    has("the data set calls get_worker_info, and the 4 samples", error_of(plain:batches()))
  end)

  it("is an error where workers read different samples without asking which they are", function()
    local loader = DataLoader(function()
      local pid = io.open("/proc/self/stat"):read("n")
      return function() return { i = pid } end
    end, options { num_workers = 2 })
    has("returns different samples in 2 workers: if each is to read its own share, it must call "
      .. "lt.data.get_worker_info", error_of(function()
      for _ in loader:batches() do end
    end))
  end)

  it("is an error where it asks too late", function()
    local loader = DataLoader(function()
      local i = 0
      return function()
        i = i + 1
        if i == 2 then lt.data.get_worker_info() end
        return { i = i }
      end
    end, options { num_workers = 2 })
    has("iterable_workers_spec.lua:%d+: get_worker_info: an iterable data set must call it before",
      error_of(loader:batches()))
  end)

  it("raises an error of a sample with its line and worker, and reads it anew", function()
    local path = os.tmpname()
    local set = counting(5)
    local iterate = set.iterate
    function set.iterate()
      local step = iterate()
      return function()
        local sample = step()
        if sample and sample.i == 3 and io.open(path) then error("no such record") end
        return sample
      end
    end
    local step <const> = DataLoader(set, options { num_workers = 2 }):batches()
    assert.same({ 1, 2 }, step().i:tolist())
    has("iterable_workers_spec.lua:%d+: no such record\nin worker 1 of 2", error_of(step))
    os.remove(path)
    assert.same({ 3, 4 }, step().i:tolist())
    assert.same({ 5 }, step().i:tolist())
    assert.is_nil(step())
  end)

  it("ends its run in order by a SIGTERM that its workers get too", function()
    local code <const> = [[
      local lt = require "ltrain"
      local function data()
        local info, i = arg[1] == "share" and lt.data.get_worker_info(), 0
        return function()
          i = i + 1
          if i == 5 and not io.open("sent") then
            repeat until os.rename("stepped", "sent")
            os.execute("kill -TERM 0")
          end
          if i <= 8 then return {x = lt.full({4}, i)} end
        end
      end
      local net = lt.Module()
      net.fc = lt.nn.Linear(4, 1)
      function net:training_step(batch, index)
        print(index, batch.x[1][1]:item())
        if index == 0 then io.open("stepped", "w"):close() end
        return self.fc(batch.x):pow(2):mean()
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
      local trainer = lt.Trainer{max_epochs = 1, logger = false, enable_progress_bar = false,
        enable_model_summary = false}
      trainer:fit(net, lt.data.DataLoader(data, {batch_size = 2, num_workers = 2}))]]
    for _, how in ipairs { "share", "none" } do
      local folder = child.folder()
      child.write(folder .. "/fit.lua", code)
      local _, out, err = child.shell("setsid env --default-signal=TERM ltrain fit.lua " .. how,
        { dir = folder })
      child.remove(folder)
      has("interrupted: saved", err)
      has("^0\t1\n", out)
    end
  end)

  it("trains to the same bits with and without, and resumed by others", function()
    local folder = child.folder()
    child.write(folder .. "/fit.lua", [[
      local lt = require "ltrain"
      local function data()
        local i = 0
        return function()
          i = i + 1
          if i <= 22 then return {x = lt.rand(4) + math.random()} end
        end
      end
      lt.seed(1)
      local net = lt.Module()
      net.fc = lt.nn.Linear(4, 1)
      function net:training_step(batch) return self.fc(batch.x):pow(2):mean() end
      function net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
      local workers, steps, from = tonumber(arg[1]), tonumber(arg[2]), arg[3]
      local trainer = lt.Trainer{max_epochs = 2, max_steps = steps, logger = false,
        enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
      local loader = lt.data.DataLoader(data, {batch_size = 4, num_workers = workers})
      trainer:fit(net, loader, from and {ckpt_path = from} or nil)
      if steps > 0 then trainer:save_checkpoint("part.ckpt") end
      print(lt.hash(net:state_dict()))]])
    local status, out, err = child.shell("ltrain fit.lua 0 -1; ltrain fit.lua 2 8; "
      .. "ltrain fit.lua 3 -1 part.ckpt", { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    local whole, part, resumed = out:match "^(%x+)\n(%x+)\n(%x+)\n$"
    assert.not_equal(whole, part)
    assert.equal(whole, resumed)
  end)
end)
