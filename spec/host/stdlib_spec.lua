-- spec/host/stdlib_spec.lua: the library's chunks are compiled when it is built, and parsed where
-- another release of Lua runs them.
local BUILD <const> = os.getenv("LT_BUILD")
local SANITIZE <const> = os.getenv("LT_SANITIZE") or ""

local function sh(command, ...)
  local pipe <close> = assert(io.popen("{ " .. command:format(...) .. "; } 2>&1"))
  return pipe:read("a")
end

-- Errors in chunks, their lines and the names of their variables.
local SCRIPT <const> = [[
local lt = require "ltrain"
lt.Trainer { max_epochs = 1 }
print(pcall(lt.nn.Linear, 2, "x"))
print(xpcall(function() lt.Trainer { callbacks = { setmetatable({}, { __index = error }) } } end,
  debug.traceback))
local info = debug.getinfo(lt.Trainer.fit, "SL")
print(info.source, info.linedefined, next(info.activelines) ~= nil)
print(debug.getlocal(lt.Trainer.fit, 1))
]]

describe("the chunks of the library", function()
  it("are the same under another release of Lua", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    if SANITIZE ~= "" then pending("a sanitized program takes no library before its own") end
    local folder <const> = sh("mktemp -d"):match "%S+"
    local file = assert(io.open(folder .. "/script.lua", "w"))
    file:write(SCRIPT)
    file:close()
    sh("echo 'const char lua_ident[] = \"another\";' | cc -shared -fPIC -x c - -o %s/ident.so",
      folder)
    local compiled = sh("%s/ltrain %s/script.lua", BUILD, folder)
    local parsed = sh("LD_PRELOAD=%s/ident.so %s/ltrain %s/script.lua", folder, BUILD, folder)
    local count = sh("LD_PRELOAD=%s/ident.so LD_DEBUG=bindings %s/ltrain -e '' 2>&1 | "
      .. "grep -c 'to %s/ident.so.*lua_ident'", folder, BUILD, folder)
    os.execute("rm -r " .. folder)
    assert.is_true(tonumber(count) > 0, count)
    assert.matches("@?=?ltrain.trainer[%w_.]+\t%d+\ttrue\nself\n$", compiled)
    assert.equal(compiled, parsed)
  end)
end)
