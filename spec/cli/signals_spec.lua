-- spec/cli/signals_spec.lua: Ctrl-C and SIGTERM. Scripts send the signals to themselves.
-- tags: slow
local child = require "spec.cli.child"

local HERE <const> = io.popen("pwd"):read("l")
local LINE <const> = HERE .. "/spec/cli/scripts/line.lua"
local SAVED <const> = "ltrain_logs/version_0/checkpoints/interrupted.ckpt"

describe("a signal", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(what, ...)
    return child.run({ "run", LINE, ... }, { dir = folder, env = { WHAT = what } })
  end

  it("ends the step, saves, says where, and the status is 130; the file resumes", function()
    local status, _, err = run("kill INT")
    assert.equal(130, status)
    assert.matches("ltrain: interrupted: saved .*" .. SAVED:gsub("%p", "%%%0"), err)
    assert.not_matches("stack traceback", err, 1, true)
    assert.truthy(io.open(folder .. "/" .. SAVED))
    status, _, err = run("", "--ckpt_path", "last")
    assert.equal(0, status, err)
    assert.truthy(io.open(folder .. "/ltrain_logs/version_1/checkpoints/epoch=1-step=8.ckpt"))
  end)

  it("reaches a loop that runs in a coroutine", function()
    local status, _, err = run("kill INT in a coroutine")
    assert.equal(130, status)
    assert.matches("interrupted: saved", err, 1, true)
  end)

  it("reaches a script that computes in a coroutine", function()
    child.write(folder .. "/busy.lua", [=[
      coroutine.wrap(function()
        local lt = require "ltrain"
        local x = lt.zeros(1)
        io.popen("kill -INT " .. require "ltrain.c".runtime.pid()):close()
        while true do x = x + 1 end
      end)()
    ]=])
    local status, _, err = child.run({ "busy.lua" }, { dir = folder })
    assert.equal(130, status)
    assert.matches("busy%.lua:[45]: interrupted\n$", err)
  end)

  it("asks politely as SIGTERM too: 143", function()
    local status, _, err = run("kill TERM")
    assert.equal(143, status)
    assert.matches("interrupted: saved", err, 1, true)
  end)

  it("ends the process at once when it comes again later", function()
    local status, _, err = run("kill INT WAIT INT")
    assert.equal(130, status)
    assert.not_matches("saved", err, 1, true)
    assert.is_nil(io.open(folder .. "/" .. SAVED))
  end)

  it("is one when it comes twice at once, as timeout(1) and others send it", function()
    for name, wanted in pairs { INT = 130, TERM = 143 } do
      local status, _, err = run(("kill %s %s"):format(name, name))
      assert.equal(wanted, status, err)
      assert.matches("interrupted: saved", err, 1, true)
    end
  end)

  it("saves nothing where enable_checkpointing is false", function()
    local status, _, err = run("kill INT", "--enable_checkpointing", "false")
    assert.equal(130, status, err)
    assert.equal("ltrain: interrupted", err:match("[^\n]*\n$"):sub(1, -2))
    assert.equal("", io.popen(("find '%s' -name '*.ckpt'"):format(folder)):read("a"))
  end)

  it("is not lost in a program that a script waits for", function()
    child.write(folder .. "/waits.lua", [[
      os.execute "kill -INT $PPID"
      print "after"
      while true do end
    ]])
    local status, out, err = child.run({ "waits.lua" }, { dir = folder })
    assert.equal(130, status)
    assert.equal("", out)
    assert.matches("waits%.lua:[12]: interrupted\n$", err)
  end)

  describe("that is SIGTERM ends a script", function()
    local function catching(body)
      child.write(folder .. "/catches.lua", [[
        local function closed(name)
          local function close() local s = name; print(s .. " closed") end
          return setmetatable({}, { __close = close })
        end
        local function catch()
          pcall(function()
            local inner <close> = closed "inner"
            os.execute "kill -TERM $PPID"
            while true do end
          end)
        end
        local outer <close> = closed "outer"
        ]] .. body)
      local status, out, err = child.run({ "catches.lua" }, { dir = folder })
      assert.equal(143, status, err)
      return out, err
    end

    it("that catches every error, and closes what is open", function()
      local out, err = catching "catch() print 'after' while true do pcall(catch) end"
      assert.equal("inner closed\nouter closed\n", out)
      assert.matches("catches%.lua:%d+: interrupted\n$", err)
    end)

    it("that catches it in a coroutine", function()
      catching "local co = coroutine.create(catch) while true do coroutine.resume(co) end"
    end)

    it("that has nothing else to do", function() catching "catch()" end)
  end)

  it("raises an error in a script that runs no loop", function()
    child.write(folder .. "/busy.lua", [[
      local closed <close> = setmetatable({}, {__close = function() print("closed") end})
      io.popen("kill -INT " .. require "ltrain.c".runtime.pid()):close()
      while true do end
    ]])
    for _, words in ipairs { { "run", "busy.lua" }, { "busy.lua" } } do
      local status, out, err = child.run(words, { dir = folder })
      assert.equal(130, status)
      assert.equal("closed\n", out)
      assert.matches("^ltrain: busy%.lua:[23]: interrupted\n$", err)
    end
  end)

  -- Runs a fit of 2 epochs of 4 batches; `where` busies itself for ever when it is to be stopped.
  local function busy(where, ...)
    child.write(folder .. "/busy.lua", [=[
      local lt = require "ltrain"
      local where = os.getenv("WHERE")
      local function busy(name)
        if name ~= where then return end
        io.popen("kill -INT " .. require "ltrain.c".runtime.pid()):close()
        while true do end
      end
      local x, reads = lt.arange(8):to("f32"):view(8, 1) / 8, 0
      local Data = lt.data.Dataset:extend("Data")
      function Data:get(i)
        reads = reads + 1
        if reads == 12 then busy("get") end
        return { x[i] + lt.rand(1) }
      end
      function Data:__len() return 8 end
      local Stream = lt.data.IterableDataset:extend("Stream")
      function Stream:iterate()
        return coroutine.wrap(function()
          for i = 1, 8 do
            reads = reads + 1
            if reads == 12 then busy("iterate") end
            coroutine.yield({ x[i] + lt.rand(1) })
          end
        end)
      end
      local Net = lt.Module:extend("Net")
      function Net:init() self.layer = lt.nn.Linear(1, 1) end
      function Net:prepare_data() busy("prepare_data") end
      function Net:setup() busy("setup") end
      function Net:train_dataloader()
        busy("train_dataloader")
        local stream = where:find("iterate") or where == "endless"
        return lt.data.DataLoader((stream and Stream or Data)(), { batch_size = 2,
          shuffle = not stream })
      end
      function Net:training_step(batch)
        if reads == 12 then busy("step") end
        local y = self.layer(batch[1])
        return (lt.dropout(y, 0.5) * y):mean()
      end
      function Net:configure_optimizers()
        busy("configure_optimizers")
        return lt.optim.SGD(self:parameters(), { lr = 0.1 })
      end
      function Net:on_train_end()
        print(("%a %a"):format(self.layer.weight:item(), self.layer.bias:item()))
      end
      lt.seed(5)
      return { model = Net(), trainer = { max_epochs = 2, enable_progress_bar = false,
        enable_model_summary = false, default_root_dir = "runs" } }
    ]=])
    return child.run({ "run", "busy.lua", ... }, { dir = folder, env = { WHERE = where } })
  end

  it("ends what comes before the first batch at its next line, and saves nothing", function()
    for _, where in ipairs { "prepare_data", "setup", "configure_optimizers",
      "train_dataloader" } do
      local status, out, err = busy(where)
      assert.equal(130, status, err)
      assert.equal("", out)
      assert.matches("\nltrain: busy%.lua:%d+: interrupted\n$", "\n" .. err)
      assert.equal("", io.popen(("find '%s' -name '*.ckpt'"):format(folder)):read("a"))
    end
  end)

  it("ends the reading of a sample at its next line, and the run resumes as if unbroken", function()
    for _, where in ipairs { "get", "iterate" } do
      local status, whole, err = busy(where == "get" and "" or "endless")
      assert.equal(0, status, err)
      status, _, err = busy(where)
      assert.equal(130, status, err)
      local saved = err:match("ltrain: interrupted: saved (%S+interrupted%.ckpt)\n$")
      assert.truthy(saved, err)
      local _, out, message = busy(where == "get" and "" or "endless", "--ckpt_path", saved)
      assert.equal(whole, out, message)
    end
  end)

  it("is left alone when the process was started with it ignored", function()
    child.write(folder .. "/ignored.lua", [[
      io.popen("kill -INT " .. require "ltrain.c".runtime.pid()):close()
      print("resumes")
    ]])
    local pipe <close> = assert(io.popen(("env --ignore-signal=INT %s %s/ignored.lua"):format(
      os.getenv("LTRAIN") or arg[-1], folder)))
    assert.equal("resumes\n", pipe:read("a"))
  end)
end)
