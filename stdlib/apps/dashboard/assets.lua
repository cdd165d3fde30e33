--- stdlib/apps/dashboard/assets.lua: the files of the dashboard's page, which are part of the
--- library.
local c = require "ltrain.c"

local assets = {}

local CHARTS <const> = "dygraph.min.js"

--- The bytes of a file of the page; nil where there is no such file. With LTRAIN_STDLIB they are
--- read from there.
function assets.get(name)
  if not name:find "^[%w_-][%w._-]*$" then return nil end
  local folder = c.runtime.getenv "LTRAIN_STDLIB"
  if name ~= CHARTS and folder and folder ~= "" then
    return (c.io.read_file(("%s/dashboard/page/%s"):format(folder, name)))
  end
  local text = c.runtime.asset(name)
  -- The map of its source is not here: browsers would ask for it.
  return text and name == CHARTS and text:gsub("\n//# sourceMappingURL=[^\n]*", "") or text
end

--- Why the page would show no charts; nil where it does.
function assets.problem()
  if c.runtime.asset(CHARTS) then return nil end
  return "this build has no charts: it found no dygraphs (Debian: apt-get install libjs-dygraphs, "
    .. "then build ltrain again)"
end

return assets
