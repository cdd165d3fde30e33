-- spec/build/own_device_spec.lua: a device of somebody else's (ten_device.c), built against the
-- installed headers alone, conforms and trains; what it has no kernel for runs on the CPU.
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

local BUILD <const> = os.getenv("LT_BUILD")
local SANITIZE <const> = os.getenv("LT_SANITIZE") or ""

-- Five batches of examples/digits.lua on a device: the loss of each, a line.
local DIGITS <const> = [[
local lt = require "ltrain"
local Digits = loadfile("examples/digits.lua")("class")
lt.seed(1)
local watcher = {}
function watcher:on_train_batch_end(trainer, module, outputs)
  print(("loss %.6f on %s"):format(outputs:item(), outputs.device))
end
local data = lt.data.DataLoader(lt.data.digits{n = 40}, {batch_size = 8, shuffle = true})
local trainer = lt.Trainer{
  accelerator = "DEVICE", devices = 1, max_epochs = 1, limit_train_batches = 5,
  callbacks = {watcher}, logger = false, enable_checkpointing = false, enable_progress_bar = false,
  enable_model_summary = false,
}
trainer:fit(Digits(), {train = data})
]]

-- GCC 12's AddressSanitizer takes what stands before a library's thread-local memory for a header
-- of glibc's, and its search for leaks then reads nowhere.
local SANITIZER_WORDS <const> = SANITIZE ~= ""
  and 'ASAN_OPTIONS="$ASAN_OPTIONS:intercept_tls_get_addr=0" ' or ""

describe("a device of one's own", function()
  local folder

  -- Compiles a device of a name; `before`: a shell command that may make its source.
  local function build(before, name, source)
    shell.need("%scc -std=c11 -O2 -Wall -Wextra -Werror %s -shared -fPIC -I%s/usr/include "
      .. "-o %s/ltrain_%s.so %s -lm", before,
      SANITIZE ~= "" and "-fsanitize=" .. SANITIZE or "", folder, folder, name, source)
  end

  setup(function()
    if not BUILD then return end
    folder = child.folder()
    shell.need("cmake --install %s --prefix %s/usr", BUILD, folder)
    build("", "ten", "spec/c/ten_device.c")
  end)
  teardown(function()
    if folder then child.remove(folder) end
  end)

  -- Runs a script by the installed program; returns its exit status and what it printed.
  local function run(text, device)
    if not BUILD then pending("LT_BUILD names no build folder") end
    local path = ("%s/%s.lua"):format(folder, device or "script")
    child.write(path, (text:gsub("DEVICE", device or "ten")))
    return shell.run("%sLTRAIN_BACKENDS=%s %s/usr/bin/ltrain %s", SANITIZER_WORDS, folder, folder,
      path)
  end

  local function losses(device)
    local status, out = run(DIGITS, device)
    assert.equal(0, status, out)
    local list = {}
    for value, where in out:gmatch "loss (%S+) on (%S+)" do
      list[#list + 1] = tonumber(value)
      assert.equal(device, where:match "^%a+")
    end
    return list, out
  end

  it("conforms", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    local out = shell.need("%s/spec/c/device_conformance ten %s/ltrain_ten.so", BUILD, folder)
    assert.matches("10 kernels compared with the CPU's\n", out, 1, true)
    assert.matches("ten conforms: 2 devices\n", out, 1, true)
  end)

  it("is listed by `ltrain info`", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    local _, out = shell.run("LTRAIN_BACKENDS=%s %s/usr/bin/ltrain info", folder, folder)
    assert.matches("\nten +yes: 2 devices: ten\n", out)
  end)

  it("trains the digits with the CPU's losses", function()
    local wanted = losses "cpu"
    local got, out = losses "ten"
    assert.equal(5, #got)
    for k, value in ipairs(wanted) do assert.near(value, got[k], 1e-4) end
    local count = 0
    for _ in out:gmatch "warning: convolution: ten has no kernel for f32: it runs on the CPU" do
      count = count + 1
    end
    assert.equal(1, count, out) -- and once by op
  end)

  it("trains under another library's name for its accelerator", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    local status, out = run(DIGITS, "hpu")
    assert.equal(1, status)
    assert.matches("Trainer: accelerator = 'hpu': not in this build", out, 1, true)
    build("sed 's/\"ten\"/\"hpu\"/' spec/c/ten_device.c | ", "hpu", "-x c -")
    local wanted, got = losses "ten", losses "hpu"
    assert.same(wanted, got)
  end)

  it("leaves no update to the CPU", function()
    local status, out = run [[
      local lt = require "ltrain"
      local w = lt.parameter(lt.tensor({1.0, 2}, {device = "ten"}))
      w:sum():backward()
      lt.optim.SGD({w}, {lr = 0.1}):step()
    ]]
    assert.equal(1, status, out)
    assert.matches("script.lua:4: sgd_step: ten has no kernel for f32, and an update does not run "
      .. "on the CPU instead", out, 1, true)
  end)

  it("leaves nothing within a collective to the CPU", function()
    local status, out = run [[
      local lt = require "ltrain"
      local x = lt.ones(2, 3, {dtype = "f64", device = "ten"})
      print(pcall(lt.dist.all_reduce, x:t()))
      print(lt.dist.all_reduce(lt.ones(2, 3, {device = "ten"}):t()).shape[1])
    ]]
    assert.equal(0, status, out)
    assert.matches("clone: ten has no kernel for f64, and within a collective it does not run "
      .. "on the CPU instead", out, 1, true)
    assert.matches("\n3\n", out)
  end)

  it("keeps gaps and strides of what the CPU computes for it", function()
    local status, out = run [[
      local lt = require "ltrain"
      local x = lt.arange(24):to("f32"):view(4, 6):to("ten")
      local part = x(lt.all, {1, 6, 2})
      part:exp_()
      local wanted = lt.arange(24):to("f32"):view(4, 6)
      wanted(lt.all, {1, 6, 2}):exp_()
      local function check(a, b) assert(a:to("cpu"):eq(b):all():item()) end
      check(x, wanted)
      check(x:t():log_softmax(1), wanted:t():log_softmax(1))
      print "equal"
    ]]
    assert.equal(0, status, out)
    assert.matches("equal\n", out, 1, true)
  end)

  it("names the line that issued a value it could not take", function()
    local status, out = run [[
      local lt = require "ltrain"
      local table = lt.zeros(10, 6, {device = "ten"})
      local x = lt.embedding(table, lt.tensor({3, 12}):to("ten"))
      print(x.shape[1])
      print(x:sum():item())
    ]]
    assert.equal(1, status, out)
    assert.matches("\n2\n.*script.lua:%d: embedding: index 12 is out of 0..9", out)
  end)
end)
