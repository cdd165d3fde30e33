-- spec/cuda/face_spec.lua: lt.cuda and the Trainer's names for GPUs, on the emulated ones.
local lt = require "ltrain"

local both = require "spec.cuda.both"

describe("cuda()", function()
  both.it("moves tensors and modules, cpu() moves them back", function()
    local x, net = lt.ones(2), lt.nn.Linear(2, 1)
    assert.equal("cuda:0", x:cuda().device)
    assert.equal("cuda:1", x:cuda(1).device)
    assert.equal("cuda:1", x:cuda("cuda:1").device)
    assert.equal("cpu", x:cuda():cpu().device)
    assert.equal("cuda:1", net:cuda(1).device)
    assert.equal("cuda:1", net.weight.device)
    assert.equal("cuda:0", net:cuda().device)
    assert.equal("cpu", net:cpu().device)
    assert.equal("cuda:1", x:to(1).device)
    assert.equal("cuda:1", x:to { device = 1, dtype = "f64" }.device)
    assert.equal("cuda:1", lt.zeros(2, { device = 1 }).device)
    assert.equal("cuda:1", net:to(1).device)
    assert.same({ false, true }, { x.is_cuda, x:cuda().is_cuda })
    assert.error_matches(function() x:to(-1) end, "cuda:%-1")
    assert.error_matches(function() x:cuda(99) end, "device: no cuda:99 %(cuda has %d+%)")
    assert.error_matches(function() x:cuda { device = {} } end,
      "cuda: argument 'device' must be a name")
  end)
end)

describe("lt.cuda", function()
  it("says what there is", function()
    if lt.cuda.device_count() == 0 then return pending "no device cuda" end
    assert.is_true(lt.cuda.is_available())
    assert.equal("string", type(lt.cuda.get_device_name()))
    assert.equal(lt.cuda.get_device_name(0), lt.cuda.get_device_name "cuda:0")
    local free, total = lt.cuda.mem_get_info(0)
    assert.is_true(free > 0 and free <= total)
  end)

  it("tells ranks which cores are near a device", function()
    if lt.cuda.device_count() < 2 then return pending "no two devices cuda" end
    local cpu_affinity <const> = require "ltrain.dist.cpu_affinity"
    local runtime <const> = require("ltrain.c").runtime
    local address, before = runtime.bus_address "cuda:1", runtime.cores()
    assert.matches("^%x%x%x%x:%x%x:%x%x%.0$", address)
    assert.not_equal(runtime.bus_address "cuda:0", address)

    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local path = folder .. "/" .. address
    local function cores_with(list)
      local file <close> = assert(io.open(path, "w"))
      file:write(list)
      file:close()
      local _ <close> = cpu_affinity("cuda:1", folder .. "/%s")
      return runtime.cores()
    end
    local first, last = before:match "^%d+", before:match "%d+$"
    assert.equal(first, cores_with(first .. "\n"))
    assert.equal(before, runtime.cores())
    assert.equal(last, cores_with(last .. ",4000-4001\n"))
    for _, list in ipairs { "", "\n", "4001", "x", "0-", before .. "\n" } do
      assert.equal(before, cores_with(list)) -- none of its cores, no list, or all of them
    end
    os.remove(path)
    os.remove(folder)
  end)

  it("counts bytes of tensors", function()
    if lt.cuda.device_count() == 0 then return pending "no device cuda" end
    local before = lt.cuda.memory_allocated()
    local x = lt.zeros(1024, 1024, { device = "cuda" })
    assert.equal(before + 4 * 2 ^ 20, lt.cuda.memory_allocated())
    assert.is_true(lt.cuda.max_memory_allocated() >= before + 4 * 2 ^ 20)
    assert.is_true(lt.cuda.memory_reserved() >= lt.cuda.memory_allocated())
    assert.matches("tensors", lt.cuda.memory_summary())
    assert.equal("cuda:0", x.device)
    lt.cuda.synchronize()
    lt.cuda.empty_cache()
  end)

  it("has no GPU where there is none, and names what is wrong", function()
    assert.is_true(lt.cuda.device_count() >= 0)
    assert.error_matches(function() lt.cuda.get_device_name {} end,
      "cuda%.get_device_name: device must be a number from 0 or text like 'cuda:1'")
    assert.error_matches(function() return lt.cuda.is_availabel end, "did you mean")
  end)
end)
