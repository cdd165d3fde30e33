-- spec/host/guest_spec.lua: ltrain inside stock Lua, and parts of the library as modules.
-- tags: slow
local child = require "spec.cli.child"

local build = os.getenv("LT_BUILD")

-- Runs a script in stock Lua with the module of this build; what it prints.
local function run(script, environment)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(script)
  file:flush()
  local preload = os.getenv("LT_PRELOAD")
  local pipe = assert(io.popen(("%s %s LUA_CPATH_5_4='%s/lua/5.4/?.so' lua5.4 %s 2>&1"):format(
    environment or "", preload and "LD_PRELOAD=" .. preload or "", build, path)))
  local text = pipe:read("a")
  pipe:close()
  os.remove(path)
  return text
end

describe("ltrain in stock Lua", function()
  if not build then
    pending("needs LT_BUILD, the build folder")
    return
  end

  it("works, with gradients, layers and errors", function()
    assert.equal("tensor([2., 2.])\ntensor([2., 2.])\nLinear(2, 3)\nfalse\n", run [[
      local lt = require "ltrain"
      local x = lt.ones(2, {requires_grad = true})
      print(lt.ones(2) + 1);
      (x * x):sum():backward()
      print(x.grad)
      print(lt.nn.Linear(2, 3))
      print((pcall(lt.add, lt.ones(2), lt.ones(3))))
    ]])
  end)

  it("has no prompt for breakpoints, and says so once", function()
    local out = run [[
      local lt = require "ltrain"
      for i = 1, 2 do lt.breakpoint() end
      local x = lt.ones(2)
      coroutine.wrap(function() x = x + 1 lt.breakpoint() end)()
      print(x)
    ]]
    assert.equal(2, select(2, out:gsub("breakpoint: no prompt in this program: it is", "")))
    assert.matches("tensor([2., 2.])\n", out, 1, true)
  end)

  it("says that the state closes to finalizers that run after it", function()
    assert.equal("false\tltrain: the state is closing\n", run [[
      kept = setmetatable({}, { __gc = function() print(pcall(lt.zeros, 3)) end })
      lt = require "ltrain"
    ]])
  end)

  it("leaves the collector and math.random as they were", function()
    assert.equal("incremental\ntrue\ntrue\n", run [[
      local random, seed = math.random, math.randomseed
      collectgarbage("incremental")
      require "ltrain"
      print(collectgarbage("generational"))
      print(random == math.random)
      print(seed == math.randomseed)
    ]])
  end)

  it("has its parts as modules, and says which it has not", function()
    assert.equal("true\nfalse\ttrue\n", run [[
      local lt = require "ltrain"
      print(lt.nn == require "ltrain.nn")
      local ok, message = pcall(require, "ltrain.frobnicate")
      print(ok, message:find("no part 'ltrain.frobnicate' in ltrain", 1, true) ~= nil)
    ]])
  end)

  it("is one library even if package.loaded is cleared", function()
    assert.equal("true\n", run [[
      local a = require "ltrain"
      package.loaded.ltrain = nil
      print(a == require "ltrain")
    ]])
  end)

  it("takes its Lua from a folder that is set", function()
    local text = run([[print(pcall(require, "ltrain"))]], "LTRAIN_STDLIB=/nonexistent")
    assert.matches("the library is not in this build", text)
    local root = os.getenv("LT_ROOT") or "."
    assert.equal("ltrain\n", run([[
      require "ltrain"
      print("ltrain")
    ]], ("LTRAIN_STDLIB='%s/stdlib'"):format(root)))
  end)

  it("has a layer as a name of nn that is a file of the folder alone", function()
    local folder = child.folder()
    assert(os.execute(("cp -r '%s/stdlib' '%s'"):format(os.getenv "LT_ROOT" or ".", folder)))
    child.write(folder .. "/stdlib/nn/Twice.lua", [[
      --- stdlib/nn/Twice.lua: twice the input.
      local Twice = require("ltrain.nn.Module"):extend("Twice")
      function Twice:forward(x) return x * 2 end
      return Twice
    ]])
    child.write(folder .. "/stdlib/nn/TwiceNd.lua", [[
      --- stdlib/nn/TwiceNd.lua: twice the input, in N dims.
      local extend = require("ltrain.core.dims_family").extend
      return extend(require "ltrain.nn.Twice", "TwiceNd", function() end)
    ]])
    local text = run([[
      local lt = require "ltrain"
      print(lt.nn.Twice2d.dims, lt.nn.Twice2d()(lt.ones(1)):item())
      print(lt.nn.Twice()(lt.ones(1)):item())
      for _, name in pairs(lt.nn) do
        if name == "Twice" then print "listed" end
      end
      print(select(2, pcall(function() return lt.Twice end)))
      print(select(2, pcall(function() return lt.nn.Twise end)))
    ]], ("LTRAIN_STDLIB='%s/stdlib'"):format(folder))
    child.remove(folder)
    assert.matches("^2\t2.0\n2.0\nlisted\n", text)
    assert.matches("write lt.nn.Twice\n", text, 1, true)
    assert.matches("nn: there is no 'Twise'; did you mean 'Twice'", text, 1, true)
  end)
end)
