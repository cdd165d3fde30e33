-- spec/mistakes/mistakes.lua: scripts with a mistake that people make, and what they are told.
--
--   mistakes("tensors", { { "a view of another size", [[
--   local x = lt.ones(2, 3)
--   local y = x:view(4) --!]], "view: shape [4] does not hold the 6 elements of [2, 3]" } })
--
-- A row is what is wrong, a script and the text of its error, as the command line prints it. The
-- line of the error is the one that ends with `--!`. Scripts have `lt`, `nn`, `folder` and what
-- `prelude` returns.
local assert = require "luassert"
local busted = require "busted"
local child = require "spec.cli.child"
local lt = require "ltrain"
local remedies = require "ltrain.core.lua_error_hints"

-- The number of the line with the mark.
local function marked(code)
  local number = 0
  for line in (code .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find "%-%-!$" then return number end
  end
  error("no line ends with --!:\n" .. code)
end

-- What a script is told and its line; nil, where nothing is raised.
local function told(code, folder, prelude)
  local env = { lt = lt, nn = lt.nn, folder = folder, print = function() end }
  for name, value in pairs(prelude and prelude() or {}) do env[name] = value end
  local chunk = _G.assert(load(code, "@script.lua", "t", setmetatable(env, { __index = _G })))
  local ok, message = xpcall(chunk, function(value) return remedies(tostring(value), code) end)
  if ok then return nil end
  message = message:gsub(folder:gsub("%p", "%%%0") .. "/", "")
  local line, text = message:match "^script%.lua:(%d+): (.*)$"
  return text or message, tonumber(line)
end

--- One `it` for each row; `prelude` (nil: none) makes further globals.
return function(area, rows, prelude)
  busted.describe("a mistake with " .. area .. " is an error at its line:", function()
    local folder <const> = child.folder()
    busted.teardown(function() child.remove(folder) end)
    for _, row in ipairs(rows) do
      local what, code, expected = table.unpack(row)
      busted.it(what, function()
        local text, line = told(code, folder, prelude)
        assert.equal(expected, text)
        assert.equal(marked(code), line, code)
      end)
    end
  end)
end
