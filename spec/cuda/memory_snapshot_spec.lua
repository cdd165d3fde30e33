-- spec/cuda/memory_snapshot_spec.lua: lt.cuda.memory_snapshot, its page, a process's limit.
local both = require "spec.cuda.both"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local LARGE <const> = 3 * 2 ^ 20 // 4 | 0 -- elements of 3 MiB of f32

-- Runs a script in a process of its own, whose memory has nothing else; what it prints.
local function run(script, env)
  local folder <const> = child.folder()
  child.write(folder .. "/script.lua", 'local lt = require "ltrain"\n' .. script)
  local all = { LTRAIN_BACKENDS = os.getenv "LTRAIN_BACKENDS" }
  for name, value in pairs(env or {}) do all[name] = value end
  local _, out, err = child.run({ "script.lua" }, { dir = folder, env = all })
  child.remove(folder)
  return out, err
end

describe("memory_snapshot", function()
  both.it("has all reserved memory, divided into blocks without gaps", function()
    local kept <const> = lt.ones({ LARGE }, { device = "cuda" })
    local small <const> = lt.ones({ 100 }, { device = "cuda" })
    lt.ones({ 2 * LARGE }, { device = "cuda" }) -- freed when it is collected
    collectgarbage()
    collectgarbage()
    local segments = lt.cuda.memory_snapshot()
    local reserved, allocated, last = 0, 0, 0
    for _, segment in ipairs(segments) do
      assert.equal("cuda:0", segment.device)
      assert.is_true(segment.address >= last)
      local at, used = segment.address, 0
      for _, block in ipairs(segment.blocks) do
        assert.equal(at, block.address)
        at = at + block.size
        if block.state == "active_allocated" then used = used + block.size end
      end
      last = segment.address + segment.total_size
      assert.equal(last, at)
      assert.equal(used, segment.allocated_size)
      reserved, allocated = reserved + segment.total_size, allocated + used
    end
    assert.is_true(reserved >= lt.cuda.memory_reserved())
    assert.equal(lt.cuda.memory_allocated(), allocated)
    assert.equal(100, small:numel() + kept:numel() - LARGE)
  end)

  both.it("names what made a block: large ones, and all when it is recorded", function()
    local out, err = run [[
local function show()
  for _, segment in ipairs(lt.cuda.memory_snapshot()) do
    for _, b in ipairs(segment.blocks) do
      if b.op then print(segment.segment_type, b.requested_size, b.op, b.shape, b.dtype, b.line) end
    end
  end
end
local x = lt.ones({ 512, 1024 }, { device = "cuda" })
local y = x:narrow(1, 1, 1):exp()
show()
lt.cuda.record_memory_history()
local z = y:exp()
show()
lt.cuda.record_memory_history(false)
local w = z:exp()
show()
]]
    local line <const> = "large\t2097152\tfull\t[512, 1024]\tf32\tscript.lua:9\n"
    local small <const> = "small\t4096\texp\t[1, 1024]\tf32\tscript.lua:13\n"
    local lines = {}
    for text in out:gmatch "[^\n]+\n" do lines[#lines + 1] = text end
    table.sort(lines)
    assert.same({ line, line, line, small, small }, lines, err)
  end)

  both.it("is a page with a bar for each segment", function()
    local path <const> = os.tmpname()
    local kept <const> = lt.ones({ LARGE }, { device = "cuda" })
    lt.cuda.save_memory_snapshot(path)
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    os.remove(path)
    local _, bars = text:gsub("<svg", "")
    assert.equal(#lt.cuda.memory_snapshot(), bars)
    assert.matches("<title>full %[786432%] f32 at [^<]*memory_snapshot_spec.lua:%d+, 3.00 MiB"
      .. "</title>", text)
    assert.is_nil(text:find("http", 1, true)) -- nothing is fetched
    assert.equal(LARGE, kept:numel())
    assert.matches("cuda.save_memory_snapshot: cannot write /no/such/file: No such file",
      error_of(lt.cuda.save_memory_snapshot, "/no/such/file"))
    assert.matches("path must be text: got 1", error_of(lt.cuda.save_memory_snapshot, 1))
  end)
end)

describe("set_per_process_memory_fraction", function()
  both.it("makes what is beyond it an out-of-memory error", function()
    local out, err = run [[
local _, total = lt.cuda.mem_get_info()
print(lt.cuda.get_per_process_memory_fraction())
lt.cuda.set_per_process_memory_fraction(64 * 2 ^ 20 / total)
print(math.floor(lt.cuda.get_per_process_memory_fraction() * total + 0.5) == 64 * 2 ^ 20)
local x = lt.ones({ 8 * 2 ^ 20 | 0 }, { device = "cuda" })
local ok, message = pcall(function() return lt.ones({ 2 ^ 24 | 0 }, { device = "cuda" }) end)
print(ok, message:match "out of memory on cuda:0", message:match "the limit is %d+")
print(lt.ones({ 8 * 2 ^ 20 | 0 }, { device = "cuda:1" }):numel()) -- of another GPU
lt.cuda.set_per_process_memory_fraction(1)
print(lt.ones({ 8 * 2 ^ 20 | 0 }, { device = "cuda" }):numel())
]]
    assert.equal("1.0\ntrue\nfalse\tout of memory on cuda:0\tthe limit is 67108864\n"
      .. "8388608\n8388608\n", out, err)
  end)

  both.it("refuses what is no fraction", function()
    for _, value in ipairs { 0, -1, 1.5, "half" } do
      assert.matches("cuda.set_per_process_memory_fraction: fraction must be above 0 and at most 1",
        error_of(lt.cuda.set_per_process_memory_fraction, value))
    end
  end)
end)
