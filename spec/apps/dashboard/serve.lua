-- spec/apps/dashboard/serve.lua: `ltrain dashboard` as a process of its own.
--
--   local server <close> = serve(folder, "--dashboard_control true")
--   page:go(server:address())
local c = require "ltrain.c"
local child = require "spec.cli.child"

local Server = {}
Server.__index = Server

local BINARY <const> = os.getenv("LTRAIN") or arg[-1] or "ltrain"
local LIMIT <const> = 200 -- seconds that one may live

-- The last address in its output, which is good once: each is used when it has been returned.
function Server:address()
  for _ = 1, 200 do
    local text, list = c.io.read_file(self.folder .. "/log") or "", {}
    for url in text:gmatch "http://[%w.:]+/%?token=%x+" do list[#list + 1] = url end
    if #list > self.used then
      self.used = #list
      return list[#list]
    end
    os.execute "sleep 0.05"
  end
  error("the dashboard printed no address: " .. (c.io.read_file(self.folder .. "/log") or ""), 2)
end

function Server:__close()
  os.execute(("cd %s && pid=$(cat pid) && kill $pid 2>/dev/null && timeout 5 tail --pid=$pid -f "
    .. "/dev/null"):format(self.folder))
  child.remove(self.folder)
end

return function(root, options)
  local folder = child.folder()
  assert(os.execute(("ltrain=$(realpath %s); cd %s && (timeout -k 5 %d $ltrain dashboard %s %s "
    .. ">log 2>&1 </dev/null & echo $! >pid)"):format(BINARY, folder, LIMIT, root, options or "")))
  return setmetatable({ folder = folder, used = 0 }, Server)
end
