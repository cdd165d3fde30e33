-- spec/cli/cpu_level_spec.lua: what ltrain says where it cannot run as asked, or not at all.
local child = require "spec.cli.child"

local BUILD <const> = os.getenv("LT_BUILD")
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""

-- The words of a shell command's output, both streams, and its exit status.
local function sh(command, ...)
  local pipe <close> = assert(io.popen(command:format(...) .. " 2>&1; echo \"status $?\""))
  local out, status = pipe:read("a"):match("^(.-)status (%d+)\n$")
  return tonumber(status), out
end

describe("LTRAIN_CPU_LEVEL", function()
  local function info(level)
    return child.run({ "info" }, { env = { LTRAIN_CPU_LEVEL = level } })
  end

  it("is refused when no level is called so, with the names of those that are", function()
    local status, out, err = info("avx")
    assert.same({ 1, "" }, { status, out })
    assert.matches("^ltrain: LTRAIN_CPU_LEVEL=avx: no such level: this build has [%w, ]+\n$", err)
  end)

  it("is taken when the processor runs it, and unset when empty", function()
    local _, best = info("")
    local level = assert(best:match "instructions of level (%w+)")
    local status, out = info(level)
    assert.equal(0, status)
    assert.matches("instructions of level " .. level, out, 1, true)
  end)

  it("is refused in stock Lua too", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    local status, out = sh("LTRAIN_CPU_LEVEL=avx LD_PRELOAD=%s LUA_CPATH='%s/lua/5.4/?.so' "
      .. "lua5.4 -e 'print(pcall(require, \"ltrain\"))'", os.getenv("LT_PRELOAD") or "", BUILD)
    assert.equal(0, status)
    assert.matches("false\tltrain: LTRAIN_CPU_LEVEL=avx: no such level: ", out, 1, true)
  end)
end)

describe("an older processor", function()
  -- `ltrain -e CODE` on another processor; `level` is for LTRAIN_CPU_LEVEL.
  local function run_on(cpu, code, level)
    if io.popen("uname -m"):read("l") ~= "x86_64" then pending("this machine is not x86-64") end
    if SANITIZED then pending("sanitizers do not run under qemu") end
    if sh("command -v qemu-x86_64") ~= 0 then pending("no qemu-x86_64 (qemu-user)") end
    return sh("LTRAIN_CPU_LEVEL=%s qemu-x86_64 -cpu %s '%s' -e '%s'", level or "", cpu,
      os.getenv("LTRAIN"), code)
  end

  it("below x86-64-v2 is refused with a sentence", function()
    local status, out = run_on("core2duo", "print(lt.ones(4) + 1)")
    assert.equal("ltrain: this processor is below x86-64-v2, the least that ltrain needs (SSE4.2 "
      .. "and POPCNT)\n", out)
    assert.equal(1, status)
  end)

  it("runs the level that it has", function()
    local status, out = run_on("Nehalem", "print(lt.ones(4) + 1)")
    assert.same({ 0, "tensor([2., 2., 2., 2.])\n" }, { status, out })
  end)

  it("runs no level of which it lacks one instruction", function()
    for _, lacking in ipairs{ "f16c", "abm", "movbe", "bmi2", "fma" } do
      local status, out = run_on("max,-" .. lacking, "print(1)", "v3")
      assert.same({ 1, "ltrain: LTRAIN_CPU_LEVEL=v3: this processor runs only v2\n" },
        { status, out })
    end
    assert.same({ 0, "1\n" }, { run_on("max", "print(1)", "v3") })
  end)

  it("is distinguished from one of the level that is asked for", function()
    local status, out = run_on("Nehalem", "print(1)", "v4")
    assert.same({ 1, "ltrain: LTRAIN_CPU_LEVEL=v4: this processor runs only v2\n" },
      { status, out })
  end)
end)
